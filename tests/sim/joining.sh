#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# From when on a file has everything: a capture that joins others begins at one TSC on all CPUs, and
# has neither records nor losses from before; the sidecar of each file says from which TSC on it is
# complete, and it is.

. "$(dirname "$0")/lib.sh"

verify() { "$xensim" verify "$@"; }
lost_of() { number "$dir/state/$1.json" ledger lost; }
dropped_of() { number "$dir/state/$1.json" ledger dropped; }
complete_from() { number "$dir/state/$1.json" "${@:2}" complete_from_tsc; }

# --- Beside one that has everything. ---

beside() {
    local i
    configure '[daemon]' pool=256M # so that a slow disk drops nothing
    daemon_start || exit 1
    check "beside: start the first" ctl start first
    for i in 1 2 3 4; do
        sleep 0.2
        check "beside: start $i" ctl start "joins$i"
    done
    check "beside: start the segments" ctl start --segment-size 4M segments
    check "beside: start one in memory" ctl start --memory 8M memory
    sleep 1
    wait_until 20 has_segments 5 # the disk may be slow
    check "beside: stop" ctl stop --all
}
has_segments() { [ "$(ls "$dir/state" | grep -c '^segments\.[0-9]*\.json$')" -ge "$1" ]; }
check_beside() {
    local i name file=$dir/state/first.xentrace
    check "beside: the first is complete" verify "$file"
    for i in 1 2 3 4; do
        check "beside: $i begins at one TSC on all CPUs, and is complete" verify --cpus 0-7 \
            --beside "$file" --one-start --complete-from "$(complete_from "joins$i")" "$dir/state/joins$i.xentrace"
        check "beside: $i: nothing was lost" same "$(lost_of "joins$i")" 0
        check "beside: $i: the ledger balances" balances "$dir/state/joins$i.json"
    done
    i=0
    for name in "$dir"/state/segments.?????.json; do
        name=$(basename "$name" .json)
        i=$((i + 1))
        check "beside: $name is complete from where it says" verify --beside "$file" \
            --complete-from "$(complete_from "$name" segment)" "$dir/state/$name.xentrace"
    done
    check "beside: what was in memory is complete from where it says" verify --beside "$file" \
        --complete-from "$(complete_from memory)" "$dir/state/memory.xentrace"
    check "beside: ... which is after what was evicted" above \
        "$(number "$dir/state/memory.json" ledger evicted)" 0
    check "beside: there were segments" above "$i" 3
    check "beside: the session is complete from its first segment on" same \
        "$(complete_from segments)" "$(complete_from segments.00001 segment)"
}

# --- Beside a lone one that is starved. ---

starved() {
    local reader i
    configure '[daemon]' pool=32M pool-max=32M
    daemon_start || exit 1
    mkfifo "$dir/slow.fifo"
    read_fifo "$dir/slow.fifo" "$dir/slow.xentrace" 0
    check "starved: start one that nobody reads" ctl start -o "$dir/slow.fifo" slow
    check "starved: Xen loses records" wait_until 60 xen_loses
    sleep 1
    check "starved: start one that joins it" ctl start joins
    sleep 0.5
    check "starved: start another" ctl start later
    sleep 0.5
    touch "$dir/go"
    check "starved: stop" ctl stop --all
    wait "$reader"
}
check_starved() {
    local khz
    khz=$(number "$dir/state/joins.json" host tsc_khz)
    check "starved: who joins has no loss from before" same "$(lost_of joins)" 0
    check "starved: nor a drop" same "$(dropped_of joins)" 0
    check "starved: it is complete" verify --cpus 0-7 "$dir/state/joins.xentrace"
    # A CPU makes records every 200 us, or as often as the producer has its turn.
    check "starved: it begins at one time" \
        "$xensim" rules --even-start $((khz * 100)) "$dir/state/joins.xentrace"
    check "starved: the other begins at one TSC on all CPUs, and is complete" verify --cpus 0-7 \
        --beside "$dir/state/joins.xentrace" --one-start \
        --complete-from "$(complete_from later)" "$dir/state/later.xentrace"
    check "starved: the ledger balances" balances "$dir/state/joins.json"
}

# --- Snapshots. ---

snapshots() {
    local i
    recorder_start memory=8M || exit 1
    check "snapshots: start one that has everything" ctl start all
    sleep 1.5
    for i in 1 2 3 4; do
        ctl --json snapshot "s$i" >"$dir/s$i.json" || echo "not ok - snapshot $i"
        sleep 0.2
        ctl --json snapshot --last 100ms "last$i" >"$dir/last$i.json" || echo "not ok - snapshot --last $i"
    done
    check "snapshots: stop" ctl stop all
}
check_snapshots() {
    local i name
    for i in 1 2 3 4; do
        for name in "s$i" "last$i"; do
            check "snapshots: $name is complete from where it says" verify \
                --beside "$dir/state/all.xentrace" \
                --complete-from "$(number "$dir/$name.json" snapshot complete_from_tsc)" \
                "$dir/state/$name.xentrace"
            check "snapshots: $name: most of it" below \
                "$(number "$dir/$name.json" snapshot complete_from_tsc)" \
                "$(number "$dir/$name.json" snapshot last_tsc)"
        done
    done
}

# A boot trace, or what a capture before has left, is in the first one's file, unless it discards it.
first() {
    daemon_start || exit 1
    ctl start -x before >/dev/null
    ctl stop before >/dev/null
    sleep 0.3
    check "first: one that keeps what was there" ctl start -x keeps
    sleep 0.2
    ctl stop keeps >/dev/null
    sleep 0.3
    check "first: one that discards it" ctl start -D discards
    sleep 0.2
    ctl stop discards >/dev/null
}
check_first() {
    local tsc
    for name in keeps discards; do
        check "first: $name: complete" verify "$dir/state/$name.xentrace"
        check "first: $name: its ledger balances" balances "$dir/state/$name.json"
    done
    tsc=$(complete_from keeps)
    check "first: records are older than from where on it is complete" below \
        "$(number "$dir/state/keeps.json" ledger cpus 0 first_tsc)" "$tsc"
    check "first: who discards has none that are much older" above \
        "$(number "$dir/state/discards.json" ledger cpus 0 first_tsc)" \
        $(($(complete_from discards) - 50 * $(number "$dir/state/discards.json" host tsc_khz)))
}

parts=(beside starved snapshots first)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

main() {
    local part
    for part in "${parts[@]}"; do
        case $part in
            starved) sim --cpus 8 --rate 10M -- starved ;;
            *) sim --cpus 8 --rate 20M -- "$part" ;;
        esac
        "check_$part"
        sim_clean
    done
}

dispatch "$@"
