#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Dates and lengths of time are right, also in a PVH dom0, whose rdtsc is not the clock of the records
# (xensim run --tsc-offset), and after a step of the wall clock.

. "$(dirname "$0")/lib.sh"

# --- Clock pairs. ---

# The wall clock of TSC by the pairs of DOCUMENT, as docs/file-format.md has it; and by Xen's own.
wall_clock() { # wall_clock DOCUMENT TSC
    python3 - "$@" <<'END'
import json, sys
document, tsc = json.load(open(sys.argv[1])), int(sys.argv[2])
pairs, khz = document["clock"], document["host"]["tsc_khz"]
i = max([0] + [i for i, pair in enumerate(pairs) if pair["tsc"] <= tsc])
ns, ticks = 10**6, khz
if pairs[i]["tsc"] <= tsc and i + 1 < len(pairs):
    ns, ticks = (pairs[i + 1][key] - pairs[i][key] for key in ("realtime_ns", "tsc"))
print(pairs[i]["realtime_ns"] + (tsc - pairs[i]["tsc"]) * ns // ticks)
END
}
within() { # within MILLISECONDS A B: of each other, both in nanoseconds
    local difference=$(($2 - $3))
    echo "# apart: $((difference / 1000)) us"
    [ "${difference#-}" -lt $(($1 * 1000000)) ]
}
clock_pairs() { # clock_pairs DOCUMENT: how many
    python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["clock"]))' "$1"
}
stop_all() { # stop_all CAPTURE...
    local capture
    for capture; do ctl stop "$capture" || return; done
}
date_of() { number "$1" realtime_ns; }
tsc_of() { number "$1" tsc; }
# Each of the pairs of DOCUMENT is one of Xen's clock.
pairs_are_right() { # pairs_are_right DOCUMENT STAT
    local i khz
    khz=$(number "$1" host tsc_khz)
    for ((i = 0; i < $(clock_pairs "$1"); i++)); do
        within 10 "$(number "$1" clock $i realtime_ns)" \
            $(($(date_of "$2") + ($(number "$1" clock $i tsc) - $(tsc_of "$2")) * 1000000 / khz)) || return
    done
}

# --- Lengths of time: a snapshot begins with a round, and the recorder's are up to a second apart. ---

span_msec() { # span_msec DOCUMENT OBJECT
    echo $((($(number "$1" "$2" last_ns) - $(number "$1" "$2" first_ns)) / 1000000))
}
oldest_age_msec() { # of the recorder's ring
    recorder_status
    echo $((($(date +%s%N) - $(number "$dir/recorder" ring oldest_ns)) / 1000000))
}
is_young() { [ "$(oldest_age_msec)" -lt "$1" ]; }

# The offset is known to within the time between two rounds, of which the first left nothing. On a
# machine that is busy, rounds are as far apart as it lets the collector run; each snapshot makes one.
rounds_in_a_row() {
    local clients=() i
    for i in 1 2 3 4; do
        ctl snapshot --max-size 64K -o - >/dev/null 2>&1 &
        clients+=($!)
    done
    wait "${clients[@]}"
}

offset() { # offset SECONDS
    local name
    recorder_start memory=64M max-age=4s || exit 1
    ctl start early || exit 1 # before there is a record to learn from
    "$xensim" resume
    sleep 3
    "$xensim" stat >"$dir/middle.stat"
    check "$1: a capture joins" ctl start later
    sleep 2
    check "$1: --last" ctl snapshot --last 2s last
    check "$1: --last holds what was asked for" above "$(span_msec "$dir/state/last.json" snapshot)" 1500
    check "$1: --last holds no more" below "$(span_msec "$dir/state/last.json" snapshot)" 3500
    for _ in 1 2 3 4 5; do rounds_in_a_row; done
    sleep 2
    "$xensim" stat >"$dir/end.stat"
    check "$1: max-age evicts" wait_until 10 is_young 6500
    check "$1: max-age evicts no more than that" above "$(oldest_age_msec)" 3500
    check "$1: the sidecar of a capture that runs has what was learned since" \
        pairs_are_right "$dir/state/early.json" "$dir/end.stat"
    check "$1: stop" stop_all early later
    for name in early later last; do
        check "$1: the clock pairs of $name are Xen's" pairs_are_right "$dir/state/$name.json" "$dir/end.stat"
    done
    check "$1: a moment in the middle has its date" within 10 "$(date_of "$dir/middle.stat")" \
        "$(wall_clock "$dir/state/early.json" "$(tsc_of "$dir/middle.stat")")"
    check "$1: the sidecar has the offset" within 10 $(($1 * 1000000000)) \
        $(($(number "$dir/state/early.json" host tsc_offset) * 1000000 / $(number "$dir/state/early.json" host tsc_khz)))
    check "$1: ... and how far it may be off" below \
        "$(number "$dir/state/early.json" host tsc_offset_uncertainty_ns)" 10000000
}
check_offset() {
    local from
    from=$(number "$dir/state/later.json" complete_from_tsc)
    check "$1: who joins begins at one TSC on all CPUs, and is complete" "$xensim" verify --cpus 0-3 \
        --beside "$dir/state/early.xentrace" --one-start --complete-from "$from" "$dir/state/later.xentrace"
    check "$1: ... which is when it was started" within 500 "$(number "$dir/state/later.json" started realtime_ns)" \
        "$(number "$dir/state/later.json" complete_from_ns)"
    check "$1: it has records from there on" below "$from" "$(number "$dir/state/later.json" ledger cpus 0 last_tsc)"
}

# --- A restart: the ring is there, and nothing is known of Xen's clock. ---

restart() {
    recorder memory=64M
    : >"$dir/log"
    "$build/tests/xensim/service" --log "$dir/service.log" --pid-file "$dir/pid" -- "$build/xentraced" \
        --config "$dir/xentraced.conf" --socket "$dir/control" --state-dir "$dir/state" 2>>"$dir/log" &
    wait_until 20 recorder_runs || exit 1
    sleep 3
    check "restart: killed" kill -KILL "$(cat "$dir/pid")"
    check "restart: the next one goes on" wait_until 20 is_restored
    sleep 1
    "$xensim" stat >"$dir/now.stat"
    check "restart: --last" ctl snapshot --last 1s last
    check "restart: --last holds what was asked for" above "$(span_msec "$dir/state/last.json" snapshot)" 700
    check "restart: --last holds no more" below "$(span_msec "$dir/state/last.json" snapshot)" 2500
    check "restart: everything" ctl snapshot all
    check "restart: what is older has its date" above "$(span_msec "$dir/state/all.json" snapshot)" 2700
    check "restart: the clock pairs are Xen's" pairs_are_right "$dir/state/all.json" "$dir/now.stat"
    kill -TERM %1 && wait %1
}
is_restored() { recorder_runs && recorder_status && [ "$(number "$dir/recorder" ring restored)" -eq 1 ]; }

# --- A step of the wall clock. ---

preload=$build/tests/sim/libset-clock.so
if [ ! -e "$preload" ]; then
    echo "$script: $preload is not built: run make check, or set BUILD" >&2
    exit 1
fi

hour_ns=3600000000000
has_pairs() { # has_pairs COUNT: the recorder's document
    recorder_status && [ "$(clock_pairs "$dir/recorder")" -ge "$1" ]
}
# A moment's date in a document: of Xen's clock, and as the daemon knew it then.
has_date() { # has_date DOCUMENT STAT NANOSECONDS
    within 10 $(($(date_of "$2") + $3)) "$(wall_clock "$1" "$(tsc_of "$2")")"
}

# The daemon's own reading of CLOCK_REALTIME is an hour later when $dir/set is there, and it looks at
# the clocks each second instead of each minute.
step() {
    local name
    export SET_CLOCK=$dir/set
    LD_PRELOAD="$LD_PRELOAD:$preload" recorder_start memory=64M max-age=6s || exit 1
    ctl start whole || exit 1
    ctl start --segment-size 4M segments || exit 1
    sleep 3
    "$xensim" stat >"$dir/before.stat"
    sleep 2
    ctl snapshot --last 1s old
    check "step: an ordinary clock takes two pairs" same "$(clock_pairs "$dir/state/old.json")" 2
    touch "$dir/set"
    check "step: the document has it" wait_until 10 has_pairs 4
    sleep 1
    check "step: --last" ctl snapshot --last 2s last
    check "step: --last holds what was asked for" above "$(span_msec "$dir/state/last.json" snapshot)" 1500
    check "step: max-age has evicted nothing younger" above "$(ticks_msec recorder)" 5000
    sleep 2
    "$xensim" stat >"$dir/after.stat"
    sleep 2
    check "step: stop" ctl stop segments
    check "step: how long a capture took is no matter of the wall clock" shows " in [0-9.]+s, lost: none" \
        ctl stop whole
    check "step: a record from before has the date of that time" has_date "$dir/state/whole.json" \
        "$dir/before.stat" 0
    check "step: one from afterwards has its own" has_date "$dir/state/whole.json" "$dir/after.stat" $hour_ns
    check "step: the snapshot from before is dated as then" has_date "$dir/state/old.json" "$dir/before.stat" 0
    name=$(ls "$dir/state"/segments.0*.json | head -n 1)
    check "step: a segment has the pairs of its own time" same "$(clock_pairs "$name")" 2
    name=$(ls "$dir/state"/segments.0*.json | tail -n 1)
    check "step: a later segment is dated by the new clock" within 60000 \
        "$(number "$name" segment last_ns)" $(($(date +%s%N) + hour_ns))
    check "step: its records are dated by it" has_date "$name" "$dir/after.stat" $hour_ns
}
ticks_msec() { # of what the recorder's ring holds, by its own wall clock less the hour
    recorder_status
    echo $((($(number "$dir/$1" ring newest_ns) - hour_ns - $(number "$dir/$1" ring oldest_ns)) / 1000000))
}

run() {
    case $1 in
        restart) sim --cpus 4 --rate 4M --tsc-offset 300 -- restart ;;
        step) sim --cpus 4 --rate 4M --tsc-offset 300s -- step ;;
        offset-*) sim --cpus 4 --rate 4M --paused --tsc-offset "${1#offset-}" -- offset "${1#offset-}" ;;
    esac
    case $1 in
        offset-*) check_offset "${1#offset-}" ;;
    esac
    sim_clean
}

main() { together run offset-0 offset-90 restart step; }

dispatch "$@"
