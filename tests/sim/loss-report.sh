#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The log reports losses within a second, exactly, and does not repeat itself.

. "$(dirname "$0")/lib.sh"

lines() { grep -cE -- "$1" "$dir/log"; }
reported() { # reported SESSION: the sum of what the log has
    sed -nE "s/^xentraced: $1: ([0-9]+) records? of .* lost: .*/\1/p" "$dir/log" |
        awk '{ n += $1 } END { print n + 0 }'
}
has_line() { [ "$(lines "$1")" -gt 0 ]; }

recorder_loses() {
    recorder_start 'memory=8M' || exit 1
    ctl start -o "$dir/a.xentrace" a >/dev/null
    check "nothing is lost at first" same "$(lines ' lost: ')" 0
    lose_for 0.2
    kill -CONT "$daemon"
    check "the recorder's loss is in the log within a second" \
        wait_until_msec 1000 has_line 'flight-recorder: [0-9]+ records of CPUs 0-3 were lost: '
    check "and the capture's" wait_until_msec 200 has_line ': a: [0-9]+ records of CPUs 0-3 were lost: '
    check "the capture ends" ctl stop a
    check "the log has each loss of the capture, exactly" \
        same "$(reported a)" "$(number "$dir/a.json" ledger lost)"
    wait_until 10 grep -q 'a: Ended' "$dir/log"
    sleep 3
    check "a loss that is over is not reported again" below "$(lines 'flight-recorder: .* lost: ')" 4
}

# A reader that does not read: the recorder goes on, so the capture's records are dropped.
lasting() {
    configure '[daemon]' pool=4M pool-max=4M
    recorder_start 'memory=8M' || exit 1
    mkfifo "$dir/fifo"
    read_fifo "$dir/fifo" "$dir/copy" 0
    ctl start -o "$dir/fifo" slow >/dev/null
    check "dropped records are in the log" wait_until 30 has_line 'slow: .* dropped: .*pool-max='
    sleep 5
    check "a few lines in 5 seconds" below "$(lines 'slow: .* dropped: ')" 6
    touch "$dir/go"
    check "it ends" ctl stop slow
}

wait_until_msec() { # wait_until_msec MSEC COMMAND...
    local deadline=$(($(date +%s%3N) + $1))
    shift
    until "$@"; do
        [ "$(date +%s%3N)" -lt "$deadline" ] || return 1
        sleep 0.02
    done
}

main() {
    sim --cpus 4 --workload numbered --rate 500K -- recorder_loses
    sim_clean
    sim --cpus 2 --workload numbered --rate 20M -- lasting
    sim_clean
}

dispatch "$@"
