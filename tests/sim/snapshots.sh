#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A snapshot of the ring is complete, begins and ends with whole rounds, and costs the recording
# nothing, whoever asks for it and whatever becomes of the one who asked or of the disk: no torn file
# has a capture's name, and nothing but the oldest records is ever evicted. A capture in memory (-M)
# is a ring that is written at its end.
#
#   tests/sim/snapshots.sh [PART]...                               only these parts
#   RUN_SECONDS=60 SNAPSHOTS=20 tests/sim/snapshots.sh in_a_row    the full form of that one

. "$(dirname "$0")/lib.sh"

mib=$((1024 * 1024))
seconds=${RUN_SECONDS:-8}
snapshots=${SNAPSHOTS:-4}
many=${MANY_SNAPSHOTS:-1000}

of_snapshot() { number "$1" snapshot "${@:2}"; } # of_snapshot DOCUMENT KEY
size_of() { stat -c %s "$1"; }
nothing_hidden() { same "$(find "$dir/state" -name '.*' -type f)" ""; }
writes_hidden() { [ -n "$(find "$dir/state" -name '.*.xentrace.new' -size "+${1:-0}c")" ]; }
snapshots_of_recorder() { recorder_status && number "$dir/recorder" ring snapshots; }
is_written() { test -e "$dir/state/$1.json"; } # the sidecar comes last
recorder_has_not() { ! recorder_has "$1"; }
used() { recorder_status && number "$dir/recorder" ring used_bytes; }
is_gone() { ! grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status" 2>/dev/null; }

nothing_lost() { # nothing_lost NAME: of what the recorder took
    recorder_status
    check "$1: nothing was lost" same "$(number "$dir/recorder" ledger lost)" 0
    check "$1: nothing was dropped" same "$(number "$dir/recorder" ledger dropped)" 0
    "$xensim" pause
    recorder_status
    check "$1: the ledger balances" balances "$dir/recorder"
    "$xensim" resume
}

# What file and sidecar say of the records in it.
agrees() { # agrees FILE DOCUMENT
    local key
    ctl --json info "$1" >"$dir/info" || return
    for key in records lost first_tsc last_tsc; do
        same "$(number "$dir/info" files 0 "$key")" "$(of_snapshot "$2" "$key")" || return
    done
    same "$(size_of "$1")" "$(number "$2" output bytes)"
}

# --- One after the other, under load. ---

in_a_row() {
    local i begun=$SECONDS
    recorder_start memory=512M || exit 1
    for i in $(seq "$snapshots"); do
        while [ $((SECONDS - begun)) -lt $((seconds * i / snapshots)) ]; do sleep 0.1; done
        [ "$i" -lt "$snapshots" ] || wait_until 60 has_evicted # on a busy machine it takes longer
        ctl --json snapshot "n$i" >"$dir/n$i" || echo "not ok - snapshot $i"
    done
    settle_recorder
    cp "$dir/recorder" "$dir/document"
    echo "# pinned in (us): $(all_of pin_usec)"
    echo "# written in (us): $(all_of write_usec)"
}
has_evicted() { recorder_status && [ "$(number "$dir/recorder" ledger evicted)" -gt 0 ]; }
all_of() {
    local i
    for i in $(seq "$snapshots"); do of_snapshot "$dir/n$i" "$1"; done | sort -n | tr '\n' ' '
}
check_in_a_row() {
    local i files=()
    for i in $(seq "$snapshots"); do
        files+=("$dir/state/n$i.xentrace")
        check "in a row: $i is one that every reader reads" "$xensim" rules "$dir/state/n$i.xentrace"
        check "in a row: $i is complete" "$xensim" verify "$dir/state/n$i.xentrace"
        check "in a row: $i has what its sidecar says" agrees "$dir/state/n$i.xentrace" "$dir/n$i"
        check "in a row: $i: nothing was lost" same "$(of_snapshot "$dir/n$i" lost)" 0
    done
    check "in a row: the first begins with the first record" \
        "$xensim" verify --from-start "$dir/state/n1.xentrace"
    check "in a row: the ring has gone round" above "$(of_snapshot "$dir/n$snapshots" evicted)" 0
    check "in a row: together they have everything" "$xensim" verify --overlap --from-start "${files[@]}"
    check "in a row: the ledger balances" balances "$dir/document"
    check "in a row: the ledger is the producer's" produced_as_reported "$dir/document" "$dir/report"
    check "in a row: nothing was lost" same "$(number "$dir/document" ledger lost)" 0
    check "in a row: nothing was dropped" same "$(number "$dir/document" ledger dropped)" 0
}

# --- Any number of them take nothing from the ring. ---

oldest_stays() { # oldest_stays NANOSECONDS: as it was, but for what the clock's conversion adds
    recorder_status
    python3 -c 'import sys; assert abs(int(sys.argv[1]) - int(sys.argv[2])) < 10**8' \
        "$(number "$dir/recorder" ring oldest_ns)" "$1"
}
newest() { # newest ARGUMENT...: on a busy machine the producer may have made nothing for 10 ms: again
    local i
    for i in $(seq 40); do
        ctl snapshot --last 10ms "$@" 2>"$dir/refused" && return
        grep -q 'nothing in that time' "$dir/refused" || break
        sleep 0.05
    done
    cat "$dir/refused"
    return 1
}
one_of_many() { # one_of_many NUMBER
    local file=$dir/state/many.xentrace
    case $(($1 % 20)) in
        0) ctl snapshot many && "$xensim" verify --from-start "$file" ;;
        *[13579]) newest many && "$xensim" verify "$file" ;;
        *)
            file=$dir/many.xentrace
            newest -o "$file" && "$xensim" verify "$file"
            ;;
    esac >"$dir/one" 2>&1 || return
    rm -f "$file" "${file%.xentrace}.json"
}
many() {
    local i oldest bad=0
    recorder_start memory=256M || exit 1 # room for a quarter of an hour, in 64 chunks
    wait_until 10 recorder_has "$mib"
    oldest=$(number "$dir/recorder" ring oldest_ns)
    for i in $(seq "$many"); do
        one_of_many "$i" && continue
        bad=$((bad + 1))
        [ $bad -gt 5 ] || fail "many: $i is complete" "$(cat "$dir/one")"
    done
    check "many: each is complete" same "$bad" 0
    check "many: the oldest record has not moved" oldest_stays "$oldest"
    check "many: nothing was evicted" same "$(number "$dir/recorder" ledger evicted)" 0
    nothing_lost many
}

# --- What is asked for. ---

# The newest part, of so many seconds: its first record is as old as that, but for a round.
spans() { # spans DOCUMENT SECONDS BEFORE AFTER: the latter two are around the request
    python3 - "$@" <<'END'
import json, sys
first = json.load(open(sys.argv[1]))["snapshot"]["first_ns"]
ago, before, after = (int(x) for x in sys.argv[2:])
ago *= 10**9
print((first - (before - ago)) / 1e9, "s behind the earliest,", (after - ago - first) / 1e9, "before the latest")
assert before - ago - 2 * 10**8 <= first <= after - ago
END
}

parts() {
    local file size before after
    recorder_start memory=32M || exit 1
    wait_until 30 recorder_has $((21 * mib))

    before=$(date +%s%N)
    ctl --json snapshot --last 1 last >"$dir/last"
    after=$(date +%s%N)
    check "--last: complete" whole "$dir/state/last.xentrace"
    check "--last: has what its sidecar says" agrees "$dir/state/last.xentrace" "$dir/last"
    check "--last 1: is of that time" spans "$dir/last" 1 "$before" "$after"
    check "--last 1h: not as much" shorter "Recording began at [0-9:]*\." --last 1h hour
    check "--last 1h: so does the sidecar" is_shorter "$dir/state/hour.json" began 3600
    check "--last 1h: it goes back to the beginning" \
        test "$(of_snapshot "$dir/state/hour.json" first_ns)" -lt $(($(recorder_started) + 10 ** 9))
    check "--last 1: as much as that" test "$(of_snapshot "$dir/last" asked_usec)" = 1000000 \
        -a "$(of_snapshot "$dir/last" held_usec)" = 1000000 \
        -a -z "$(of_snapshot "$dir/last" shorter_because)"
    check "status: how far back it goes, and a full one will" wait_until 5 shows_history \
        '[0-9.]+s; about [0-9.]+s at [0-9.]+M/s when full'
    check "--last 1h: complete" whole "$dir/state/hour.xentrace"
    check "--last 1h: everything" above "$(size_of "$dir/state/hour.xentrace")" $((20 * mib))
    for size in 700000 $((10 * mib)); do
        ctl --json snapshot --max-size "$size" "size-$size" >"$dir/size-$size"
        file=$dir/state/size-$size.xentrace
        check "--max-size $size: complete" whole "$file"
        check "--max-size $size: has what its sidecar says" agrees "$file" "$dir/size-$size"
        check "--max-size $size: not exceeded" below "$(size_of "$file")" $((size + 1))
        check "--max-size $size: and made use of" above "$(size_of "$file")" $((size - mib * 5 / 8))
    done
    check "--max-size 1: is told to be too little" refuses "The newest round.*larger --max-size" \
        ctl snapshot --max-size 1 too-small

    "$xensim" pause
    "$xensim" stat >"$dir/stat"
    sleep 0.7
    check "--last of a time without records" refuses "nothing in that time.*--last" \
        ctl snapshot --last 500ms silent
    check "everything" ctl snapshot everything
    check "everything: to the very last record" \
        "$xensim" verify --report "$dir/stat" "$dir/state/everything.xentrace"
    check "what was refused left no file" same \
        "$(ls -A "$dir/state" | grep -E 'too-small|silent|^\.')" ""
    "$xensim" resume
    nothing_lost parts
}

# A ring that goes round, and one that forgets: the log, the answer and the exit status agree.
shorter() { # shorter REGEX OPTION...: a snapshot covers less than was asked for, and reports why
    local regex=$1 status=0
    shift
    ctl snapshot "$@" >"$dir/shorter" 2>&1 || status=$?
    same "$status" 3 && matches "Holds: .* of the .* asked for$" "$(cat "$dir/shorter")" &&
        matches "$regex" "$(cat "$dir/shorter")" && grep -Eq "Wrote .* requested\. .*$regex" "$dir/log"
}
is_shorter() { # is_shorter DOCUMENT BECAUSE SECONDS-ASKED-FOR
    same "$(of_snapshot "$1" shorter_because)" "$2" && same "$(of_snapshot "$1" ok)" true &&
        same "$(of_snapshot "$1" asked_usec)" "$3"000000 &&
        below "$(of_snapshot "$1" held_usec)" "$3"000000
}
shows_history() { # shows_history REGEX [NAME]
    matches "History: $1" "$(ctl status "${2:-flight-recorder}")"
}
recorder_started() { recorder_status && number "$dir/recorder" started realtime_ns; }
is_full() { recorder_status && same "$(number "$dir/recorder" ring full)" true; }

too_short() {
    local held
    recorder_start memory=64M max-age=20min || exit 1
    ctl start -M 16M --max-age 400ms aged >/dev/null
    wait_until 30 is_full
    check "full: a minute" shorter "The ring of 64M is full.*memory= in" --last 1min full
    check "full: its sidecar" is_shorter "$dir/state/full.json" evicted 60
    check "full: complete" whole "$dir/state/full.xentrace"
    held=$(of_snapshot "$dir/state/full.json" held_usec)
    # Its records go on from the request until it was pinned.
    check "full: what it holds is all there was" above \
        $((held / 1000 + 200)) "$(age_of "$dir/state/full.json" snapshot first_ns last_ns)"
    check "full: status" shows_history "[0-9.]+s; full, [0-9.]+M/s"
    check "max-age" shorter "keeps records for only 400ms, as set by --max-age\." --session aged --last 10s aged-10
    check "max-age: its sidecar" is_shorter "$dir/state/aged-10.json" max-age 10
    check "max-age: status" shows_history "[0-9.m]*s; 400ms at most, [0-9.]+M/s" aged
    check "max-age: what is left is not too short" ctl snapshot --session aged --last 300ms aged-1
    check "too short: stop" ctl stop aged
    nothing_lost too_short
}

names() {
    local i pids=()
    recorder_start memory=8M || exit 1
    sleep 0.5
    ctl snapshot >/dev/null && ctl snapshot >/dev/null && ctl snapshot >/dev/null
    check "three made-up names" same "$(ls "$dir/state" |
        grep -cE '^snapshot-[0-9]{8}-[0-9]{6}(-[0-9]{3})?\.xentrace$')" 3
    ctl --json snapshot --label "slow-guest" >"$dir/labelled"
    check "a label is in the name" same "$(ls "$dir/state" |
        grep -cE '^snapshot-slow-guest-[0-9]{8}-[0-9]{6}\.xentrace$')" 1
    check "and in the sidecar" same "$(of_snapshot "$dir/labelled" label)" slow-guest
    # Of this second and those that follow, 300 names are in use.
    python3 - "$dir/state" <<'END'
import sys, time
for second in range(int(time.time()), int(time.time()) + 4):
    stem = sys.argv[1] + time.strftime("/snapshot-taken-%Y%m%d-%H%M%S", time.localtime(second))
    for name in [stem] + [f"{stem}-{number:03}" for number in range(2, 301)]:
        open(name + ".xentrace", "x").close()
END
    check "300 names of a second are in use" ctl snapshot --label taken
    check "300 names of a second are in use: the next one is taken" \
        compgen -G "$dir/state/snapshot-taken-*-301.json"
    rm "$dir"/state/snapshot-taken-*
    for i in 1 2 3 4 5 6 7 8; do
        "$build/xentracectl" snapshot --label together >/dev/null 2>>"$dir/together" &
        pids+=($!)
    done
    wait "${pids[@]}"
    check "eight at once without a name: all have one" \
        same "$(find "$dir/state" -name 'snapshot-together-*.json' | wc -l)$(cat "$dir/together")" 8
    pids=()
    check "a name" ctl snapshot mine
    cp "$dir/state/mine.xentrace" "$dir/mine"
    check "a name in use is refused" refuses "mine.xentrace exists.*another name" ctl snapshot mine
    check "and its file is as it was" cmp "$dir/mine" "$dir/state/mine.xentrace"
    check "a name with a slash" refuses_usage "not a valid name" ctl snapshot a/b
    check "a hidden name" refuses "not a valid name" ctl snapshot .hidden
    check "both --last and --max-size" refuses_usage "not both" ctl snapshot --last 1 --max-size 1M

    for i in 1 2 3 4; do
        "$build/xentracectl" snapshot race >/dev/null 2>"$dir/race-$i" &
        pids+=($!)
    done
    wait "${pids[@]}"
    check "four at once of one name: one is it" same "$(cat "$dir"/race-? | grep -c exists)" 3
    check "four at once of one name: complete" whole "$dir/state/race.xentrace"

    kill -USR2 "$daemon"
    wait_until 10 grep -q "Snapshot .*sigusr2.*Wrote" "$dir/log"
    check "SIGUSR2: complete" whole "$dir"/state/snapshot-sigusr2-*.xentrace
    check "SIGUSR2: audit: who sent it" wait_until 5 grep -q \
        "Audit: Snapshot (SIGUSR2) snapshot-sigusr2-[-0-9]* by root, UID 0 (bash, PID $$): done" "$dir/log"
    check "SIGUSR2: its cause" same \
        "$(of_snapshot "$dir"/state/snapshot-sigusr2-*.json cause)" signal
    check "nothing hidden is left" nothing_hidden
    check "the recorder counts them" same "$(snapshots_of_recorder)" 16
    ctl --json status >"$dir/status"
    check "status lists them, the newest first" \
        same "$(number "$dir/status" snapshots 0 snapshot cause)" signal
    nothing_lost names
}

# dump --follow reads the newest second again and again.
follow() {
    recorder_start memory=128M || exit 1
    "$build/xentracectl" --json dump --follow >"$dir/followed" 2>"$dir/warnings" &
    local reader=$!
    sleep 4
    kill $reader
    wait $reader 2>/dev/null
    check "follow: the snapshot" ctl snapshot -o "$dir/all.xentrace"
    "$build/xentracectl" --json dump "$dir/all.xentrace" >"$dir/dumped"
    grep -v 'not shown: they were read too late' "$dir/warnings" >"$dir/others"
    check "follow: no other warning" same "$(cat "$dir/others")" ""
    check "follow: each record once, of each CPU in their order" python3 - "$dir" <<'END'
import json, os, sys
def read(name):
    of = {}
    with open(os.path.join(sys.argv[1], name)) as file:
        for line in file:
            if not line.endswith("\n"):
                break # it was killed
            record = json.loads(line)
            of.setdefault(record["cpu"], []).append(
                (record["tsc"], record["event"], str(record["fields"])))
    return of
followed, dumped = read("followed"), read("dumped")
late = os.path.getsize(os.path.join(sys.argv[1], "warnings")) > 0
assert followed, "nothing was followed"
for cpu, records in followed.items():
    begin = dumped[cpu].index(records[0])
    rest = dumped[cpu][begin:]
    if late: # what is missing is missing, and nothing is there twice or in another order
        there = iter(rest)
        assert all(record in there for record in records), "CPU %d" % cpu
    else:
        assert records == rest[:len(records)], "CPU %d" % cpu
print("# %d records%s" % (sum(map(len, followed.values())), ", with gaps" if late else ""))
END
    nothing_lost follow
}

outputs() {
    local status
    recorder_start memory=32M || exit 1
    wait_until 10 recorder_has $((16 * mib))
    check "-o FILE" ctl snapshot -o "$dir/own.xentrace"
    check "-o FILE: complete" whole "$dir/own.xentrace"
    check "-o FILE: its sidecar" agrees "$dir/own.xentrace" "$dir/own.json"
    cp "$dir/own.xentrace" "$dir/copy"
    check "-o FILE: is not overwritten" refuses "exists and was not changed.*--force" \
        ctl snapshot -o "$dir/own.xentrace"
    check "-o FILE: and is as it was" cmp "$dir/copy" "$dir/own.xentrace"
    check "-o FILE --force" ctl snapshot --force --last 200ms -o "$dir/own.xentrace"
    check "-o FILE --force: complete" whole "$dir/own.xentrace"
    check "-o FILE --force: its sidecar" agrees "$dir/own.xentrace" "$dir/own.json"
    ctl snapshot -o - 2>"$dir/summary" | cat >"$dir/piped"
    check "-o -: complete" whole "$dir/piped"
    ctl snapshot -o - 2>/dev/null >"$dir/redirected"
    check "-o - into a file: complete" whole "$dir/redirected"

    ctl snapshot -o - 2>"$dir/of-head" | head -c 100000 >"$dir/head"
    status=${PIPESTATUS[0]}
    check "a reader that goes away: status 1" same "$status" 1
    check "a reader that goes away: it is told" grep -q "Cannot write" "$dir/of-head"
    check "a reader that goes away: what came is right" same "$(size_of "$dir/head")" 100000
    check "the next one works" ctl snapshot next
    check "and is complete" whole "$dir/state/next.xentrace"
    check "nothing hidden is left" nothing_hidden
    nothing_lost outputs
}

empty() {
    recorder_start memory=8M || exit 1
    sleep 0.3
    check "an empty ring: since when it runs" \
        refuses "holds no records: it has been running for [1-9][0-9.]*m?s.*none of its events occurred" \
        ctl snapshot nothing
    check "an empty ring, into a file" refuses "holds no records" ctl snapshot -o "$dir/nothing.xentrace"
    kill -USR2 "$daemon"
    check "an empty ring, SIGUSR2: the log says so" \
        wait_until 5 grep -q "No snapshot (signal). .*holds no records" "$dir/log"
    check "an empty ring: no file" same "$(ls -A "$dir/state")$(ls "$dir" | grep nothing)" ""
    "$xensim" insert 0 10 >/dev/null
    check "ten records" ctl snapshot ten
    check "ten records: they are all" same "$(ctl --json info "$dir/state/ten.xentrace" >"$dir/info"
        number "$dir/info" files 0 records)" 10
    "$xensim" stat >"$dir/stat"
    check "ten records: from the first to the last" \
        "$xensim" verify --from-start --cpus 0 --report "$dir/stat" "$dir/state/ten.xentrace"
}

# --- Slow outputs. ---

slow() {
    local reader client
    configure '[daemon]' pool=32M pool-max=32M # it cannot borrow: see borrowing.sh
    recorder_start memory=32M || exit 1
    wait_until 20 recorder_has $((20 * mib)) # from 22 MiB on it varies, as chunks are full or not
    sleep 1 # it goes round
    mkfifo "$dir/fifo"
    read_fifo "$dir/fifo" "$dir/slow" $mib
    ctl --json snapshot -o "$dir/fifo" >"$dir/slow-document" &
    client=$!
    wait_until 5 test -s "$dir/slow"
    check "slow: another one meanwhile" ctl snapshot meanwhile
    check "slow: that is complete" whole "$dir/state/meanwhile.xentrace"
    # More comes than the spare chunks take.
    check "slow: history becomes shorter" wait_until 20 recorder_has_not $((16 * mib))
    check "slow: what is left of it" ctl snapshot shorter
    check "slow: the first is still being written" kill -0 "$client"
    check "slow: what is left is complete" whole "$dir/state/shorter.xentrace"
    check "slow: and goes on to the newest records" below \
        "$(of_snapshot "$dir/state/meanwhile.json" last_tsc)" \
        "$(of_snapshot "$dir/state/shorter.json" last_tsc)"
    touch "$dir/go"
    check "slow: the first ends well" wait "$client"
    wait "$reader"
    check "slow: and is complete" whole "$dir/slow"
    check "slow: and has what was said" agrees "$dir/slow" "$dir/slow-document"
    check "slow: history grows again" wait_until 10 recorder_has $((20 * mib))
    nothing_lost slow

    # The client does not live to see it.
    read_fifo "$dir/fifo" "$dir/orphan" $mib
    "$build/xentracectl" snapshot -o "$dir/fifo" >/dev/null 2>&1 &
    client=$!
    wait_until 5 test -s "$dir/orphan"
    kill -KILL "$client"
    wait "$client" 2>/dev/null
    touch "$dir/go"
    check "the client is killed: its reader comes to the end" wait "$reader"
    check "the client is killed: complete" whole "$dir/orphan"
    check "the client is killed: and not a part of it" above "$(size_of "$dir/orphan")" $((16 * mib))
    ctl --json status >"$dir/status"
    check "the client is killed: status has it" \
        same "$(number "$dir/status" snapshots 0 snapshot ok)" true
    settle_recorder
    cp "$dir/recorder" "$dir/document"
}

# A reader that does not read holds up neither the others nor the daemon's end.
stubborn() {
    local reader client before
    recorder_start memory=16M || exit 1
    wait_until 20 recorder_has $((4 * mib))
    mkfifo "$dir/fifo"
    exec 9<>"$dir/fifo" # has it open before anybody writes to it
    sleep 100 <&9 &
    reader=$!
    exec 9>&-
    "$build/xentracectl" snapshot -o "$dir/fifo" >/dev/null 2>"$dir/stubborn" &
    client=$!
    sleep 0.5
    check "stubborn: another one" ctl snapshot other
    check "stubborn: that is complete" whole "$dir/state/other.xentrace"
    nothing_lost stubborn
    before=$SECONDS
    kill -TERM "$daemon"
    check "stubborn: the daemon ends all the same" wait_until 20 is_gone "$daemon"
    kill -KILL "$daemon" 2>/dev/null
    wait "$daemon" 2>/dev/null
    unset daemon
    echo "# it ended after $((SECONDS - before)) s"
    wait "$client"
    check "stubborn: the client is told" same "$?" 1
    kill "$reader"
}

# --- Disks. ---

on_small() { # on_small MIB: the state directory is an ext4 of that size
    truncate -s "$1M" "$dir/image" && mkfs.ext4 -q "$dir/image" &&
        mkdir -p "$dir/state" && mount -o loop "$dir/image" "$dir/state"
}
available() { echo $(($(stat -f -c '%a * %S' "$dir/state"))); }

small_disk() { # small_disk RESERVE-MIB
    local free
    on_small 64 || exit 1
    trap 'umount -l "$dir/state"' EXIT
    [ "$1" -eq 0 ] || configure '[capture]' "reserve=$1"
    recorder_start memory=128M || exit 1
    wait_until 30 recorder_has $((70 * mib))
    free=$(available)
    check "no space ($1 MiB reserved): it is told" refuses "There is no space for" ctl snapshot large
    check "no space ($1): into a file" refuses "There is no space for" \
        ctl snapshot -o "$dir/state/own.xentrace"
    kill -USR2 "$daemon"
    check "no space ($1): SIGUSR2" \
        wait_until 10 grep -q "No snapshot (signal). There is no space" "$dir/log"
    check "no space ($1): no file is left" same "$(find "$dir/state" -type f)" ""
    check "no space ($1): nor is anything taken" above "$(available)" $((free - mib))
    check "a part of it fits ($1)" ctl snapshot --max-size 20M part
    check "a part of it fits ($1): complete" whole "$dir/state/part.xentrace"
    if [ "$1" -gt 0 ]; then # what is left would do, if nothing were reserved
        check "the reserve is kept" refuses "and the reserve is" ctl snapshot --max-size 20M more
        check "the reserve is kept: it would have been the reserve" above "$(available)" $((20 * mib))
    fi
    nothing_lost "no space ($1)"
    check "no space ($1): the daemon ends well" daemon_stop
    unset daemon
    umount "$dir/state"
    trap - EXIT
}

# SIGUSR2 has no options: it keeps the reserve of the configuration.
signal_reserve() {
    on_small 64 || exit 1
    trap 'umount -l "$dir/state"' EXIT
    configure '[capture]' reserve=40
    recorder_start memory=32M || exit 1
    wait_until 30 recorder_has $((20 * mib))
    kill -USR2 "$daemon"
    check "SIGUSR2 keeps the reserve" wait_until 10 grep -q "(signal). .*and the reserve is" "$dir/log"
    check "SIGUSR2 keeps the reserve: no file" same "$(find "$dir/state" -type f)" ""
    check "SIGUSR2: the daemon ends well" daemon_stop
    unset daemon
    umount "$dir/state"
    trap - EXIT
}

# Where space cannot be taken ahead, writes fail: on ext2, beyond a limit on the file's size.
torn() {
    mkdir -p "$dir/memory"
    truncate -s 64M "$dir/image" && mkfs.ext2 -q "$dir/image" &&
        mount -o loop "$dir/image" "$dir/memory" || exit 1
    trap 'umount -l "$dir/memory"' EXIT
    recorder memory=32M
    daemon_start --state-dir "$dir/memory/state" && wait_until 10 recorder_runs || exit 1
    ctl start -M 16M ends >/dev/null
    wait_until 20 recorder_has $((16 * mib))
    prlimit --pid "$daemon" --fsize=$((3 * mib)):
    check "a write fails: it is told" refuses "Cannot write .*take another snapshot" \
        ctl snapshot torn
    check "a write fails: no file is left" same "$(ls -A "$dir/memory/state" | grep -v '^ends\.')" ""
    check "a write fails: a client's file is told of" python3 "$(dirname "$script")/varlink.py" "$dir/control" \
        failing-snapshot "$dir/memory/own"
    check "a write fails: a client's file is cut to whole windows" whole "$dir/memory/own"
    check "a write fails: and has what was written" above "$(size_of "$dir/memory/own")" $((2 * mib))
    ctl stop ends >"$dir/stopped" 2>&1
    check "a write fails at the end of -M: that says what is lost" \
        grep -q "Cannot write .*the remaining records are counted as dropped" "$dir/stopped"
    check "a write fails at the end of -M: whole windows stay" whole "$dir/memory/state/ends.xentrace"
    ctl --json info "$dir/memory/state/ends.xentrace" >"$dir/info"
    check "a write fails at the end of -M: delivered is what is in the file" same \
        "$(number "$dir/memory/state/ends.json" ledger delivered)" "$(number "$dir/info" files 0 records)"
    check "a write fails at the end of -M: some are dropped" above \
        "$(number "$dir/memory/state/ends.json" ledger dropped)" 0
    check "a write fails at the end of -M: the ledger balances" balances "$dir/memory/state/ends.json"
    prlimit --pid "$daemon" --fsize=unlimited:
    check "when it can be written again" ctl snapshot again
    check "it is complete" whole "$dir/memory/state/again.xentrace"
    nothing_lost torn
    check "a write fails: the daemon ends well" daemon_stop
    unset daemon
    umount "$dir/memory"
    trap - EXIT
}

# SIGKILL in the middle: nothing that looks like a capture, and the rest is swept.
killed() {
    local i name torn=0
    recorder memory=256M
    for i in 1 2 3 4; do
        daemon_start && wait_until 10 recorder_runs || exit 1
        check "killed $i: what was left before is swept" nothing_hidden
        wait_until 20 recorder_has $((60 * mib))
        "$build/xentracectl" snapshot "killed-$i" >/dev/null 2>&1 &
        until writes_hidden "$((i * 4 * mib))" || is_written "killed-$i"; do
            : # no sleep: it is written within 50 ms
        done
        kill -KILL "$daemon"
        wait "$daemon" $! 2>/dev/null
        writes_hidden && torn=$((torn + 1))
    done
    check "killed: at least one in the middle" above "$torn" 0
    daemon_start || exit 1
    check "killed: what was left is swept" nothing_hidden
    for name in "$dir"/state/*.xentrace; do
        [ ! -e "$name" ] || check "killed: ${name##*/} was whole already" whole "$name"
    done
}

# --- Captures in memory. ---

evicted() { number "$dir/state/$1.json" ledger evicted; }

in_memory() {
    local file client
    daemon_start || exit 1
    check "record -M -T" ctl record --quiet -M 16M -T 1.5 timed
    file=$dir/state/timed.xentrace
    check "record -M -T: complete" whole "$file"
    check "record -M -T: the ring has gone round" above "$(evicted timed)" 0
    check "record -M -T: the ledger balances" balances "$dir/state/timed.json"
    ctl --json info "$file" >"$dir/info"
    check "record -M -T: what is delivered is in the file" same \
        "$(number "$dir/state/timed.json" ledger delivered)" "$(number "$dir/info" files 0 records)"
    check "record -M -T: within its memory" below "$(size_of "$file")" $((16 * mib + 1))
    check "record -M -T: and made use of it" above "$(size_of "$file")" $((8 * mib))
    check "record -M -T: info compares it with its sidecar" ctl info "$file"
    check "-M: tracing is off" grep -q '"enabled":false' <(xen_state)

    ctl start -M 16M stopped >/dev/null
    sleep 1
    check "-M: a snapshot of the only ring" ctl snapshot midway
    check "-M: the snapshot is complete" whole "$dir/state/midway.xentrace"
    check "-M: by name" ctl snapshot --session stopped named
    check "-M: there is no ring of another name" refuses "no capture 'none'" ctl snapshot --session none
    "$xensim" pause
    "$xensim" stat >"$dir/stat"
    check "-M: stop" ctl stop stopped
    check "-M: complete, to the last record" \
        "$xensim" verify --report "$dir/stat" "$dir/state/stopped.xentrace"
    check "-M: one that every reader reads" "$xensim" rules "$dir/state/stopped.xentrace"
    "$xensim" resume

    "$build/xentracectl" record -M 16M interrupted >"$dir/summary" 2>&1 &
    client=$!
    wait_until 5 test -e "$dir/state/interrupted.json"
    sleep 1
    kill -INT "$client"
    check "-M: Ctrl-C" wait "$client"
    check "-M: Ctrl-C: complete" whole "$dir/state/interrupted.xentrace"
    check "-M: Ctrl-C: the reason" same "$(number "$dir/state/interrupted.json" ended reason)" stop

    ctl record --quiet -M 16M -T 1 -o - 2>/dev/null | cat >"$dir/piped"
    check "-M -o -: complete" whole "$dir/piped"
    check "-M -o FILE" ctl record --quiet -M 16M -T 1 -o "$dir/own.xentrace"
    check "-M -o FILE: complete" whole "$dir/own.xentrace"
    check "-M --max-size is one too many" refuses 'use either --memory or --max-size' \
        ctl start -M 16M --max-size 3M limited
    check "... and leaves no file" same "$(compgen -G "$dir/state/limited*")" ""

    ctl start -M 4M -e sched-min -c 1-2 chosen >/dev/null
    sleep 1
    ctl stop chosen >/dev/null
    check "-M -e -c: exactly these" \
        "$xensim" verify --cpus 1-2 --kinds 0x00021000 "$dir/state/chosen.xentrace"

    ctl start -M 16M unwritten >/dev/null
    sleep 0.5
    check "-M, the daemon is stopped" daemon_stop
    unset daemon
    check "-M, the daemon is stopped: complete" whole "$dir/state/unwritten.xentrace"
}

uses_at_most() { # uses_no_more_of NAME BYTES
    ctl --json status "$1" >"$dir/$1" && [ "$(number "$dir/$1" ring used_bytes)" -le "$2" ]
}
age_of() { echo $((($(number "$1" "$2" "${4}") - $(number "$1" "$2" "${3}")) / 1000000)); }

max_age() {
    daemon_start || exit 1
    ctl start -M 16M --max-age 500ms aged >/dev/null
    sleep 1.5
    ctl --json status aged >"$dir/aged"
    # A chunk goes as a whole: of 256 KiB, 1/76 of what comes in a second.
    check "--max-age: what is older is evicted" below "$(age_of "$dir/aged" ring oldest_ns newest_ns)" 900
    check "--max-age: and nothing younger" above "$(age_of "$dir/aged" ring oldest_ns newest_ns)" 450
    ctl --json snapshot --session aged aged-snapshot >"$dir/aged-snapshot"
    check "--max-age: a snapshot is complete" whole "$dir/state/aged-snapshot.xentrace"
    check "--max-age: and no older" below \
        "$(age_of "$dir/aged-snapshot" snapshot first_ns last_ns)" 700
    "$xensim" pause
    # No records come that would push them out. The chunk that was being filled stays; no snapshot has
    # anything of it.
    check "--max-age: also while none come" wait_until 10 uses_at_most aged $((mib / 4))
    sleep 0.6
    check "--max-age: a snapshot of nothing" refuses "holds no records" ctl snapshot --session aged too-late
    "$xensim" resume
    sleep 0.2
    check "--max-age: stop" ctl stop aged
    check "--max-age: complete" whole "$dir/state/aged.xentrace"
    check "--max-age: the ledger balances" balances "$dir/state/aged.json"
}

# Its end is written to a reader that takes longer than the patience with one that does not read.
in_memory_slowly() {
    local reader client
    daemon_start || exit 1
    mkfifo "$dir/fifo"
    read_fifo "$dir/fifo" "$dir/slowly" $((2 * mib))
    ctl start -M 16M -o "$dir/fifo" slowly >/dev/null
    sleep 1.5
    "$build/xentracectl" stop slowly >"$dir/stopped" 2>&1 &
    client=$!
    wait_until 5 test -s "$dir/slowly"
    check "-M, while its end is written: no snapshot any more" \
        refuses "No ring is running" timeout 5 "$build/xentracectl" snapshot late
    check "-M, while its end is written: nor by name" refuses "does not record into memory" \
        timeout 5 "$build/xentracectl" snapshot --session slowly late
    check "-M into a slow reader: it ends well" wait "$client"
    wait "$reader"
    check "-M into a slow reader: complete" whole "$dir/slowly"
    check "-M into a slow reader: all of it" above "$(size_of "$dir/slowly")" $((10 * mib))
}

memory_share() {
    local part
    configure '[daemon]' memory-share=1
    recorder memory=2G
    daemon_start || exit 1
    check "a recorder that is too large: the log says so, with numbers" grep -Eq "flight-recorder: \
Not started. A ring of 2G is more than dom0 can spare: [0-9.]+[MG] is free, .* 1 % of that, [0-9.]+[MG]\." \
        "$dir/log"
    check "and a snapshot" refuses "No ring is running.*could not be started" ctl snapshot
    check "a capture in memory, too" refuses \
        "A ring of 1G is more than dom0 can spare: [0-9.]+[MG] is free.* 1 %.*Use a smaller ring" ctl start -M 1G
    check "a smaller one" ctl start -M 4M smaller
    check "and its end" ctl stop smaller
    part=$(($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) * 6 / 1000 / 1024))M # 0.6 %
    check "one of more than half of the share" ctl start -M "$part" half
    check "a second one: the share is for all rings together" refuses \
        "is free, rings have [0-9.]+[MG], and memory-share= limits all rings together to 1 %" ctl start -M "$part" more
    check "the end of the first" ctl stop half
    check "then there is room again" ctl start -M "$part" again
}

large() {
    recorder_start memory=3G || exit 1
    wait_until 240 recorder_has $((2100 * mib)) || echo "# not filled within four minutes"
    check "above 2 GiB: in a ring" above "$(used)" $((2048 * mib))
    "$xensim" pause
    "$xensim" stat >"$dir/stat"
    check "above 2 GiB: a snapshot" ctl snapshot large
    check "above 2 GiB: in a file" above "$(size_of "$dir/state/large.xentrace")" $((2048 * mib))
    check "above 2 GiB: complete, to the last record" \
        "$xensim" verify --report "$dir/stat" "$dir/state/large.xentrace"
    recorder_status
    check "above 2 GiB: the ledger balances" balances "$dir/recorder"
}
memory_for_large() { [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -gt $((8 * mib)) ]; }

parts=(in_a_row many parts too_short names outputs empty slow stubborn small_disk signal_reserve torn killed in_memory
    follow max_age in_memory_slowly memory_share large)
if [ -z "${SIM_INSIDE:-}" ]; then
    case ${1:-} in
        "") ;;
        -*) mapfile -t parts < <(printf '%s\n' "${parts[@]}" | grep -vx -e "${1#-}") ;; # all but that one
        *) parts=("$@") ;;
    esac
fi

run() { # run PART
    case $1 in
        in_a_row)
            buffer_pages=512 sim --cpus 8 --rate 100M -- in_a_row
            check_in_a_row
            ;;
        many) buffer_pages=32 sim --cpus 4 --rate 256K -- many ;;
        parts) buffer_pages=32 sim --cpus 4 --rate 5M -- parts ;; # small rounds
        empty) sim --rate 0 -- empty ;;
        slow)
            sim --cpus 4 --rate 20M -- slow
            check "slow: the ledger balances" balances "$dir/document"
            check "slow: the ledger is the producer's" \
                produced_as_reported "$dir/document" "$dir/report"
            ;;
        stubborn) sim --cpus 4 --rate 4M -- stubborn ;;
        small_disk)
            sim --cpus 4 --rate 40M -- small_disk 0
            sim_clean
            sim --cpus 4 --rate 40M -- small_disk 20
            ;;
        killed) sim --cpus 4 --rate 60M -- killed ;;
        large)
            memory_for_large || {
                echo "# less than 8 GiB are available: nothing above 2 GiB"
                return
            }
            sim --cpus 4 --rate 300M -- large
            ;;
        *) sim --cpus 4 --rate 20M -- "$1" ;;
    esac
    sim_clean
}

main() {
    local part patient=()
    for part in "${parts[@]}"; do
        case $part in
            stubborn | in_memory_slowly | max_age) patient+=("$part") ;;
            *) run "$part" ;;
        esac
    done
    together run "${patient[@]}"
}

dispatch "$@"
