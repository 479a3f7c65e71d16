#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# CPUs that are not recorded are reported: those that have no buffer when a capture asks for them,
# and those that fall silent while it runs, because they were offline or because somebody disabled
# tracing. In the stand-in every online CPU is idle half of the time. The minute that a silence
# has to last is skipped (liblate-clock.so).

. "$(dirname "$0")/lib.sh"

clock=$build/tests/sim/liblate-clock.so
if [ ! -e "$clock" ]; then
    echo "$script: $clock is not built: run make check, or set BUILD" >&2
    exit 1
fi

# --- No buffer at the start. ---

missing() {
    daemon_start || exit 1
    check "no buffer: start" ctl start --cpus 1-2,5 some
    check "no buffer: the one who starts it is told" shows "CPUs 2,5 have no trace buffer" echo "$checked"
    check "no buffer: so is the log" grep -q "some: CPU 5 has no trace buffer" "$dir/log"
    check "no buffer: the document" same "$(ctl --json status some | number /dev/stdin buffers missing)" 2,5
    check "no buffer: status" shows "No buffer: CPUs 2,5 are not recorded" ctl status some
    check "all CPUs: start" ctl start most
    check "all CPUs: nothing is said" same "$(ctl --json status most | number /dev/stdin buffers missing)" ""
    sleep 0.3
    check "no buffer: stop" ctl stop some
    check "no buffer: the sidecar" same "$(number "$dir/state/some.json" buffers missing)" 2,5
    check "no buffer: the others are recorded" whole "$dir/state/some.xentrace"
    check "all CPUs: stop" ctl stop most
}

# --- Silent later. ---

silent_are() { # silent_are CPUS
    [ "$(ctl --json status "$1" | number /dev/stdin buffers silent)" = "$2" ]
}

silent() { # silent CASE POKE CPUS: what happens to Xen's tracing, and who is silent then
    export LATE_CLOCK=$dir/late
    LD_PRELOAD="$LD_PRELOAD:$clock" daemon_start || exit 1
    check "$1: start" ctl start --events sched switches
    check "$1: start one without scheduling events" ctl start --events hw others
    sleep 0.5
    # shellcheck disable=SC2086 # it is a command's words
    "$xensim" poke $2
    sleep 6 # the first look is after 5 s
    check "$1: nobody is silent before a minute has passed" silent_are switches ""
    touch "$dir/late"
    check "$1: the document has its CPUs" wait_until 25 silent_are switches "$3"
    check "$1: status tells it" shows "Silent: CPUs? $3 " ctl status switches
    check "$1: the log tells it, and what to do" \
        grep -Eq "switches: CPUs $3 are in use, but .*until the host is rebooted.*xl dmesg" "$dir/log"
    check "$1: once" same "$(grep -c "are in use, but" "$dir/log")" 1
    check "$1: without scheduling events nobody knows" silent_are others ""
    check "$1: they end" ctl stop --all
    check "$1: the sidecar has its CPUs" same "$(number "$dir/state/switches.json" buffers silent)" "$3"
}

run() { # run CASE
    case $1 in
        missing) sim --cpus 6 --offline 2,5 --rate 1M -- missing ;;
        offline) sim --cpus 4 --rate 1M -- silent "offline and back" "offline 2" 2 ;;
        disabled) sim --cpus 4 --rate 1M -- silent "disabled by Xen" "bogus-cons 1" 0-3 ;;
    esac
    sim_clean
}

main() {
    together run missing offline disabled
}

dispatch "$@"
