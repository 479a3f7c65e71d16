#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A viewer, an operator and root call everything at random, at once, beside root's capture of 20 MB/s and the
# recorder: what must hold is beside.sh. SEED: one that was printed. RUN_SECONDS (12). Needs root.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/beside.sh"

seed=${SEED:-$(date +%s)}
run_seconds=${RUN_SECONDS:-12}
descriptors_max=700 # two messages of 253

calls() { # calls UID GIDS
    env -u LD_PRELOAD python3 "$here/random-calls.py" "$dir/control" "$seed-$1" "$dir/theirs/began-$1" "$1" "$2" \
        >"$dir/called-$1" 2>&1 &
    callers[$1]=$!
    check "UID $1 calls" wait_until 30 test -e "$dir/theirs/began-$1"
}

at_random() {
    local callers=() uid turn=0
    begin
    measure_quiet
    mkdir -m 0777 "$dir/theirs"
    echo "# seed $seed"
    calls "$viewer" "$(gid_of xentrace)"
    calls "$operator" "$(gid_of tracers)"
    calls 0 -1
    SECONDS=0
    until [ $SECONDS -ge "$run_seconds" ] && [ $turn -gt 0 ]; do
        turn=$((turn + 1))
        while_attacked "random calls, $SECONDS s"
    done
    for uid in "${!callers[@]}"; do
        rm "$dir/theirs/began-$uid"
        check "UID $uid: its calls end" wait "${callers[$uid]}"
        sed 's/^/# /' "$dir/called-$uid"
    done
    check "root's capture has lost and dropped nothing" same "$(ledger_of numbered)" "0 0"
    check "nor has the recorder" same "$(ledger_of flight-recorder)" "0 0"
    check "the daemon is the same" kill -0 "$daemon"
    check "no client writes lines of its own into the log" same "$(grep -avc '^xentraced: ' "$dir/log")" 0
    # Root's calls are all logged.
    check "users do not fill the log" below "$(grep -avc "by root, UID 0\|configuration was reloaded" "$dir/log")" 1500
    check "nothing of theirs is left running" wait_until 20 only_ours_run
    check "the capture stops" ctl stop numbered
    check "... and is whole" whole "$dir"/state/numbered.0*.xentrace
}
only_ours_run() { same "$(ctl list --running --names | sort | tr '\n' ' ')" "flight-recorder numbered "; }

main() {
    if [ -z "${RANDOM_GROUPS:-}" ]; then
        unshare --mount true 2>/dev/null || {
            skip "random calls" "this needs root"
            return
        }
        RANDOM_GROUPS=1 exec unshare --mount "$script"
    fi
    people "xentrace:64001:$viewer" "tracers:64002:$operator"
    sim --cpus 4 --workload numbered --rate "${RATE:-20M}" -- at_random
    sim_clean
    people_done
}

dispatch "$@"
