#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A host where nothing happens is left alone: without a session not one wake-up, with one and nothing
# traced two a second at most, with the flight recorder and its triggers one in two seconds: all
# threads of the daemon together.

. "$(dirname "$0")/lib.sh"

wakeups() { # context switches that the daemon's threads made of their own accord
    awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }' /proc/"$daemon"/task/*/status
}

count_over() { # count_over SECONDS
    local before
    before=$(wakeups)
    sleep "$1"
    echo $(($(wakeups) - before))
}

idle() {
    daemon_start || exit 1
    sleep 1
    check "no session: no wake-up in 5 s" same "$(count_over 5)" 0
    ctl start -e all quiet >/dev/null
    sleep 5 # the fallback timer slows down
    local n
    n=$(count_over 6)
    echo "# $n wake-ups in 6 s with a capture and nothing traced"
    check "a capture and nothing traced: at most 2 wake-ups a second" below "$n" 13
    ctl stop quiet >/dev/null
    sleep 1
    check "after the session: no wake-up in 3 s" same "$(count_over 3)" 0
}

recording() {
    local n
    recorder memory=16M
    printf '%s\n' '[trigger crash]' condition=domain-crash '[trigger wait]' runnable-latency=50ms \
        '[trigger lost]' condition=lost-records >>"$dir/xentraced.conf"
    daemon_start && wait_until 10 recorder_runs || exit 1
    sleep 6 # the fallback timer slows down
    n=$(count_over 12)
    echo "# $n wake-ups in 12 s with the flight recorder and nothing traced"
    # The one more is at the edge.
    check "the flight recorder and nothing traced: one wake-up in 2 s" below "$n" 8
    check "and it is awake when something is" "$xensim" insert 0 5
    check "a snapshot has it" ctl snapshot awake
    check "all of it" "$xensim" verify --from-start "$dir/state/awake.xentrace"
}

run() {
    case $1 in
        idle) sim --cpus 8 --workload none -- idle ;;
        recording) sim --cpus 8 --rate 0 -- recording ;;
    esac
    sim_clean
}

main() { together run idle recording; }

dispatch "$@"
