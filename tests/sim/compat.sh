#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Each of xentrace's options, given to xentrace's own binary and to `xentracectl xentrace`, on the same
# replayed trace of a real Xen: the same records, the same endings, and Xen left in the same state.

. "$(dirname "$0")/lib.sh"

xentrace=/usr/lib/xen-4.17/bin/xentrace
sample=$(dirname "$script")/../samples/pv-domu.xentrace.zst
results=
buffers=(--pages 64)

is_enabled() { "$xensim" stat | tr -d ' \n' | grep '"enabled":true' >/dev/null; }

# `theirs` or `ours`, with these arguments; it is $recorder.
start_recorder() { # start_recorder WHOSE ARGUMENT...
    local whose=$1
    shift
    if [ "$whose" = theirs ]; then
        "$xentrace" "$@" >"$dir/stdout" 2>"$dir/stderr" &
    else
        "$build/xentracectl" xentrace "$@" >"$dir/stdout" 2>"$dir/stderr" &
    fi
    recorder=$!
}

# Replays all of the sample to it, and ends it with SIGNAL; none: it ends by itself.
one() { # one WHOSE SIGNAL ARGUMENT...
    local whose=$1 signal=$2 status=0
    shift 2
    [ "$whose" = theirs ] || daemon_start || exit 1
    start_recorder "$whose" "$@"
    if [[ " $* " == *" -X "* || " $* " == *" -S 128 "* ]]; then
        sleep 1 # tracing is somebody else's to enable, and nobody does; or is enabled already
    else
        wait_until 5 is_enabled
    fi
    "$xensim" resume
    "$xensim" wait
    sleep 0.3
    [ "$signal" = none ] || kill -s "$signal" "$recorder"
    wait "$recorder" || status=$?
    echo "$status" >"$dir/status"
    "$xensim" stat | tr -d ' \n' | grep -o '"enabled":[a-z]*' >"$dir/xen-state"
    "$xensim" stat | tr -d ' \n' | grep -o '"cpu":[0-9]*,"buffer":true' | wc -l >>"$dir/xen-state"
}

# Both, and what each left is in $results/theirs and $results/ours.
both() { # both SIGNAL ARGUMENT...; FILE stands for the file
    local whose
    rm -rf "$results"
    mkdir -p "$results"
    for whose in theirs ours; do
        sim --cpus 8 "${buffers[@]}" --replay "$sample" --loops 1 --tsc-exact --speed 8 --paused -- \
            one_with_file "$whose" "$@"
        cp "$dir/status" "$results/$whose.status"
        cp "$dir/xen-state" "$results/$whose.state"
        cp "$dir/stderr" "$results/$whose.stderr"
        [ ! -s "$dir/stdout" ] || cp "$dir/stdout" "$dir/trace"
        "$xensim" records "$dir/trace" >"$results/$whose.records" 2>/dev/null
        stat -c %s "$dir/trace" >"$results/$whose.size" 2>/dev/null
        rm -rf "$dir"
    done
}
one_with_file() {
    local arguments=() argument
    for argument in "$@"; do
        [ "$argument" != FILE ] || argument=$dir/trace
        arguments+=("$argument")
    done
    one "${arguments[@]}"
}

same_of() { diff "$results/theirs.$1" "$results/ours.$1"; } # same_of WHAT
check_same() { # check_same NAME WHAT...
    local name=$1 what
    shift
    for what in "$@"; do
        check "$name: the same $what" same_of "$what"
    done
}
has_records() { [ "$(wc -l <"$results/ours.records")" -gt 0 ]; }

# Options that choose what is recorded.
check_selection() { # check_selection ARGUMENT...
    both INT "$@" FILE
    check_same "${*:-no option}" records status state
    check "${*:-no option}: and not none" has_records
}

main() {
    if [ ! -x "$xentrace" ]; then
        echo "not ok - $xentrace is not installed (apt-get install xen-utils-4.17)"
        exit 1
    fi
    results=$(mktemp -d)
    check_selection
    check_selection -e sched
    check_selection -e dom0op -e gen -e sched
    check_selection -e 0x0002f000
    check_selection -e all
    check_selection -e sched -c 0
    check_selection -e sched -c 0x2
    check_selection -e all -c 0,2-
    check_selection -e all -c all -s 10
    check_selection -e all -S 64
    check_selection -e all -D
    check_selection -e all -r 1
    check_selection -e all -M 64M
    check_selection -e sched -x

    buffers=(--preset-pages 64)
    check_selection -e all -S 128 # the buffers have a size: it is ignored
    buffers=(--pages 64)

    both TERM -e sched FILE
    check_same "SIGTERM" records status state
    both HUP -e sched FILE
    check_same "SIGHUP" records status state
    both none -e sched -T 8 FILE
    check_same "-T 8" records status state
    both INT -e sched /dev/stdout
    check_same "to standard output" records status state
    check "to standard output: and not none" has_records
    both INT -X -e sched FILE
    check_same "-X" records status state
    check "-X: nothing" same "$(wc -l <"$results/ours.records")" 0
    both none -e all -r 99999999 FILE
    check_same "-r, with too little space" records status
    rm -rf "$results"
}

dispatch "$@"
