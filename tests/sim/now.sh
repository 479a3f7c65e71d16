#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What commands that read traces read without a file: with --now what the flight recorder holds, else
# the newest snapshot. --now loses nothing and leaves no file.

. "$(dirname "$0")/lib.sh"

ring=${RING:-16M}
limit_ms=${LIMIT_MS:-3000} # RING=64M on a quiet machine: 300
runs=${RUNS:-3}

now_holds() { # now_holds: as many records as the ring, or nearly
    ctl --json report --now >"$dir/report" && above "$(number "$dir/report" measures records)" 10000
}
times() { # times: the longest of $runs is below the limit
    local i begun took longest=0
    for i in $(seq "$runs"); do
        begun=$(date +%s%N)
        ctl report --now >"$dir/text" || return
        took=$((($(date +%s%N) - begun) / 1000000))
        echo "# report --now of $ring, run $i: $took ms"
        [ "$took" -le "$longest" ] || longest=$took
    done
    below "$longest" "$limit_ms"
}
the_recorder() {
    local state mib
    mib=${ring%M}
    recorder_start "memory=$ring" || exit 1
    check "--now while the ring is nearly empty" ctl report --now
    wait_until 60 recorder_has $((mib * 1024 * 1024 * 3 / 4))
    state=$(ls -A "$dir/state")
    times >"$dir/times"
    check "report --now: in time" same "$?" 0
    cat "$dir/times"
    check "report --now has the records" now_holds
    check "the first line names the flight recorder" shows '^the flight recorder: ' ctl report --now
    check "the sidecar is used" same "$(grep -c assume "$dir/text")" 0
    vcpu=$(grep -o '"d[0-9]*v[0-9]*"' "$dir/report" | grep -v d32767 | head -n 1 | tr -d '"')
    check "why --now" shows 'ran [0-9]+%' ctl why "$vcpu" --now
    check "dump --now" above "$(ctl dump --now --since -10ms | wc -l)" 10
    check "no file is left" same "$(ls -A "$dir/state")" "$state"
    recorder_status
    check "nothing was lost" same "$(number "$dir/recorder" ledger lost)" 0
    check "nothing was dropped" same "$(number "$dir/recorder" ledger dropped)" 0
    check "a file and --now" refuses_usage 'omit' "$build/xentracectl" report --now "$dir/x"
    daemon_stop
    unset daemon
    check "--now without a daemon" refuses 'Cannot reach xentraced' "$build/xentracectl" report --now
    error=$("$build/xentracectl" --json report --now 2>&1)
    check "--now without a daemon, with --json" same "$(number /dev/stdin level <<<"$error")" error
}

newest() {
    recorder_start memory=16M || exit 1
    check "no snapshot yet" refuses 'There is no snapshot in' "$build/xentracectl" report
    wait_until 20 recorder_has 100000
    ctl snapshot older >"$dir/older" && ctl snapshot newer >"$dir/newer"
    touch -d '1 minute ago' "$dir/state/older.xentrace"
    ctl record -q -T 200ms a-capture >"$dir/capture" 2>&1
    check "the newest snapshot, not a capture" same "$(ctl report)" "$(ctl report "$dir/state/newer.xentrace")"
    check "dump reads it, too" same "$(ctl dump | wc -l)" "$(ctl dump "$dir/state/newer.xentrace" | wc -l)"
    touch "$dir/state/older.xentrace"
    check "the newest by its time" same "$(ctl report)" "$(ctl report "$dir/state/older.xentrace")"
}

parts=(the_recorder newest)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

main() {
    local part
    for part in "${parts[@]}"; do
        sim --cpus 2 --workload sched --rate "${RATE:-5M}" -- "$part"
        sim_clean
    done
}

dispatch "$@"
