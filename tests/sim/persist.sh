#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A capture in segments that continues: its daemon is killed at any moment, or restarted, and the next
# one goes on in the next segment. Per CPU every record is in a segment, or lost or dropped with its
# exact count, which the ledger and the next segment have.

. "$(dirname "$0")/lib.sh"

for program in xensim/service; do
    if [ ! -e "$build/tests/$program" ]; then
        echo "$script: $build/tests/$program is not built: run make check, or set BUILD" >&2
        exit 1
    fi
done

times=${KILLS:-6}
seed=${SEED:-$RANDOM}
state=${dir:-}/state

# --- The daemon as a service; see docs/xensim.md. ---

service_start() {
    : >"$dir/service.log"
    : >"$dir/log"
    "$build/tests/xensim/service" --log "$dir/service.log" --pid-file "$dir/pid" -- \
        "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" 2>>"$dir/log" &
    manager=$!
    wait_until 20 has_been_ready 1
}
readies() { grep -c ' ready$' "$dir/service.log"; }
has_been_ready() { [ "$(readies)" -ge "$1" ]; }
kill_daemon() { kill -KILL "$(cat "$dir/pid")"; }
restart() { kill -HUP "$manager"; }
again() { # again COMMAND...: COMMAND ends the daemon; the next one is waited for
    local n
    n=$(readies)
    "$@"
    wait_until 20 has_been_ready $((n + 1)) || { cat "$dir/service.log" "$dir/log" >&2; return 1; }
}
pause_random() { sleep "$(printf 0.%03d $((RANDOM % 450 + 150)))"; }
ends_as_signalled() {
    local status=0
    kill -TERM "$manager" && wait "$manager" || status=$?
    [ "$status" -eq 0 ] || { echo "status $status"; tail -n 3 "$dir/service.log"; return 1; }
}

say() { ctl --json status "$1" >"$dir/document" && number "$dir/document" "${@:2}"; }
writes() { # writes NAME: it has a segment that is being written
    ctl --json status "$1" >"$dir/writes" 2>/dev/null && [ "$(number "$dir/writes" output bytes)" -gt 0 ] &&
        [ -n "$(number "$dir/writes" output path)" ]
}
segments_of() { ls "$dir"/state/"$1".*.xentrace*; }
no_gap_in_numbers() { # no_gap_in_numbers NAME
    segments_of "$1" | sed 's/.*\.\([0-9]*\)\.xentrace.*/\1/' | awk '
        NR > 1 && $1 + 0 != last + 1 { print "after " last ": " $1; bad = 1 } { last = $1 + 0 } END { exit bad }'
}
agree() { # agree FILE...: what is in it, and what its sidecar says; it can be sought in
    ctl info "$@" >"$dir/info" || { tail -n 20 "$dir/info"; return 1; }
    ! grep -B 20 -e Differs -e 'without a seek table' "$dir/info"
}
has_sidecars() {
    local file
    for file in $(segments_of "$1"); do
        [ -s "${file%.xentrace*}.json" ] || { echo "$file has no sidecar"; return 1; }
    done
}

# --- Every record, over many lives. ---

lives() { # lives NAME END
    local i name=$1 end=$2
    RANDOM=$seed
    for i in $(seq "$times"); do
        pause_random
        check "$name $end $i: the next one comes up" again "$end"
        check "$name $end $i: it continues" wait_until 10 writes "$name"
        check "$name $end $i: and reports that" same "$(say "$name" segments continued)" "$i"
    done
}
all_is_there() { # all_is_there NAME: nothing is produced any more
    local files
    "$xensim" stat >"$dir/stat"
    check "$1: stop" ctl stop "$1"
    ctl --json status "$1" >"$dir/document"
    mapfile -t files < <(segments_of "$1")
    check "$1: ${#files[@]} segments, with every number or its loss" \
        "$xensim" verify --from-start --report "$dir/stat" --warn-rounds "${files[@]}"
    check "$1: each is one that every reader reads" "$xensim" rules "${files[@]}"
    check "$1: each agrees with its sidecar" agree "${files[@]}"
    check "$1: numbers ascend without a gap" no_gap_in_numbers "$1"
    check "$1: each has its sidecar" has_sidecars "$1"
    check "$1: the ledger balances" balances "$dir/document"
    check "$1: its own sidecar says that it has ended" same "$(number "$dir/state/$1.json" state)" ended
    check "$1: and has the same ledger" same "$(number "$dir/state/$1.json" ledger delivered)" \
        "$(number "$dir/document" ledger delivered)"
    echo "# $(number "$dir/document" ledger lost) lost, $(number "$dir/document" ledger dropped) dropped of $(number "$dir/document" ledger produced)"
    check "$1: nothing is left to continue" test -z "$(ls "$dir" | grep ^persist-)"
}

by_hand() { # by_hand END [OPTION]...
    service_start || exit 1
    check "start --persist" ctl start long --segment-size 4M --persist "${@:2}"
    lives long "$1"
    "$xensim" pause
    all_is_there long
    check "the manager ends" ends_as_signalled
}
with_recorder() { # with_recorder END: another takes the records meanwhile
    recorder memory=16M
    "$xensim" pause
    service_start || exit 1
    wait_until 10 recorder_runs
    check "start --persist" ctl start long --segment-size 4M --persist
    "$xensim" resume
    lives long "$1"
    ctl snapshot all >/dev/null
    "$xensim" pause
    all_is_there long
    check "the recorder goes on, too" same "$(ctl --json status flight-recorder | number /dev/stdin ring restored)" "$times"
    check "its snapshot is whole" whole "$dir/state/all.xentrace"
    check "the manager ends" ends_as_signalled
}

# --- In the configuration. ---

configured() {
    configure '[capture always]' segment-size=2M keep-files=4
    service_start || exit 1
    check "it starts with the daemon" wait_until 10 writes always
    check "it is the configuration's" same "$(say always options configured)" true
    again kill_daemon
    check "killed: it continues" wait_until 10 writes always
    check "killed: in the same ledger" same "$(say always segments continued)" 1
    check "the oldest go" wait_until 20 test ! -e "$dir/state/always.00001.xentrace"
    check "at most so many are kept" test "$(segments_of always | wc -l)" -le 5
    check "stop" ctl stop always
    check "the ledger balances" balances <(ctl --json status always)
    before=$(segments_of always | tail -n 1)
    check "the manager ends" ends_as_signalled
    service_start || exit 1
    check "the next start: it begins again" wait_until 10 writes always
    check "the next start: with a ledger of its own" same "$(say always segments continued)" 0
    check "the next start: after the segments there are" test "$(segments_of always | tail -n 1)" '>' "$before"
    check "older ones still count" wait_until 20 test ! -e "$before"
    check "the manager ends" ends_as_signalled
    check "its own sidecar says that it has ended" same "$(number "$dir/state/always.json" state)" ended
}

# --- What does not continue. ---

ended() {
    service_start || exit 1
    check "--persist needs segments" refuses '--segment-size' ctl start wrong --persist
    ctl start plain --segment-size 4M >/dev/null
    ctl start long --segment-size 4M --persist >/dev/null
    wait_until 10 writes long
    check "its state is kept" test -s "$dir/persist-long.json"
    check "one that was not asked to has none" test ! -e "$dir/persist-plain.json"
    ctl stop long >/dev/null
    check "one that was stopped has none" test ! -e "$dir/persist-long.json"
    again kill_daemon
    check "it does not continue" refuses 'no capture' ctl status long
    ctl start long2 --segment-size 4M --persist >/dev/null
    wait_until 10 writes long2
    kill -STOP "$(cat "$dir/pid")" # it would replace it, with the next segment
    echo '{"format":"xentraced-persist"}' >"$dir/persist-long2.json"
    again kill_daemon
    check "a damaged state is reported" grep -q 'long2.* is not continued' "$dir/log"
    check "and removed" test ! -e "$dir/persist-long2.json"
    check "its segments are there" segments_of long2
    check "the manager ends" ends_as_signalled
}
refuses() { # refuses REGEX COMMAND...
    local regex=$1 output
    shift
    output=$("$@" 2>&1) && { echo "it does not fail: $output"; return 1; }
    grep -Eq -- "$regex" <<<"$output" || { echo "$output"; return 1; }
}

hasty() { # it is ended while it is being continued
    local i how
    service_start || exit 1
    for i in 1 2 3 4 5 6; do
        how=$([ $((i % 2)) -eq 1 ] || echo --abort)
        ctl start "long$i" --segment-size 4M --persist >/dev/null
        wait_until 10 writes "long$i"
        check "hasty $i: the next one comes up" again kill_daemon
        check "hasty $i: stop $how" ctl stop $how "long$i"
        check "hasty $i: it has ended" wait_until 10 state_is "long$i" ended
        check "hasty $i: the ledger balances" balances <(ctl --json status "long$i")
        check "hasty $i: nothing is left to continue" test -z "$(ls "$dir" | grep ^persist-)"
        mapfile -t files < <(segments_of "long$i")
        check "hasty $i: what there is is whole" "$xensim" verify --warn-rounds "${files[@]}"
    done
    check "the manager ends" ends_as_signalled
}

# A runtime directory without space: its capture is refused, and the others do not notice.
full() {
    mkdir "$dir/run" && mount -t tmpfs -o size=256k tmpfs "$dir/run" || exit 1
    trap 'umount "$dir/run"' EXIT
    export XENTRACED_SOCKET=$dir/run/control
    daemon_start --socket "$XENTRACED_SOCKET" || exit 1
    check "full: a capture" ctl start other
    head -c 1M /dev/zero >"$dir/run/filler" 2>/dev/null
    check "full: start --persist is refused" \
        refuses 'Cannot save the state of .long. .*No space left' ctl start long --segment-size 4M --persist
    check "full: the daemon lives" kill -0 "$daemon"
    check "full: the other capture, too" ctl stop other
    check "full: it left no file" test -z "$(ls "$dir/run" | grep ^persist-)$(ls "$dir/state" | grep long)"
    rm "$dir/run/filler"
    check "full: with space it starts" ctl start long --segment-size 4M --persist
    check "full: the daemon ends well" daemon_stop
    unset daemon
    umount "$dir/run"
    trap - EXIT
}

# Killed while its disk does not answer: what was not written of one segment is missing at the begin of the
# next one, and reported there.
killed_waiting() { # killed_waiting [OPTION]...
    local i
    RANDOM=$seed
    truncate -s 1G "$dir/image" && mkfs.ext4 -q "$dir/image" && mkdir -p "$dir/state" &&
        mount -o loop "$dir/image" "$dir/state" || exit 1
    trap 'umount "$dir/state"' EXIT
    service_start || exit 1
    check "start --persist" ctl start long --segment-size 1M --persist "$@"
    for i in $(seq "$times"); do
        check "it writes" wait_until 10 writes long
        pause_random
        fsfreeze -f "$dir/state" || exit 1
        sleep "$(printf 0.%03d $((RANDOM % 300 + 50)))" # some segments
        kill_daemon
        fsfreeze -u "$dir/state"
        check "$i: the next one comes up" wait_until 20 has_been_ready $((i + 1))
        check "$i: it continues" wait_until 10 writes long
    done
    "$xensim" pause
    all_is_there long
    check "the manager ends" ends_as_signalled
    umount "$dir/state"
    trap - EXIT
}

# Thousands of segments are on the disk: PARTS=many prints for how long the next one is waited for, with
# readers in the last two lives. How long that is, is the machine's; what is read meanwhile is checked by
# unit/test-persist.
make_many() { # make_many COUNT: copies of the second segment; the unfinished one is that after the last of them
    local after
    after=$(printf 'long.%05d' $(($1 + 1)))
    rm -f "$state"/.long.* "$state/$after.json"
    mv "$(segments_of long | tail -n 1)" "$state/$after.xentrace"
    python3 - "$state/long." "$1" <<'END'
import shutil, sys
for i in range(3, int(sys.argv[2]) + 1):
    for ending in ".xentrace", ".json":
        shutil.copyfile(f"{sys.argv[1]}00002{ending}", f"{sys.argv[1]}{i:05d}{ending}")
END
    sed -i "s/\"finished_number\":[0-9]*/\"finished_number\":$1/" "$dir/persist-long.json"
}
many() {
    local i count=${SEGMENTS:-3000}
    service_start || exit 1
    check "start --persist" ctl start long --segment-size 1M --keep-files "$count" --persist
    check "many: two segments" wait_until 60 test -s "$dir/state/long.00002.json"
    kill -STOP "$(cat "$dir/pid")"
    make_many "$count"
    for i in 1 2 3 4 5; do
        [ "$i" -le 3 ] || exec 9<"$(segments_of long | tail -n 1)"
        check "many $i: the next one comes up" again kill_daemon
        check "many $i: it continues" wait_until 60 writes long
        sed -n 's/.*\(ready after [0-9]* ms\).*/# \1/p' "$dir/log" | tail -n 1
    done
    exec 9<&-
    check "many: the oldest go" wait_until 60 test ! -e "$state/long.00001.xentrace"
    check "many: stop" ctl stop long
    check "the manager ends" ends_as_signalled
}

# While no daemon runs, a finished segment is removed, and sidecars are removed and damaged; the next daemon
# may be killed before it has seen that.
removed() {
    local i records
    service_start || exit 1
    check "start --persist" ctl start long --segment-size 1M --persist
    check "removed: four segments" wait_until 60 test -s "$state/long.00004.json"
    kill -STOP "$(cat "$dir/pid")"
    records=$(number "$state/long.00001.json" segment records)
    rm "$state"/long.00001.* "$state/long.00002.json"
    echo '{"segment":{"ledger":{"cpus":[{"cpu":99}]}}}' >"$state/long.00003.json"
    for i in 1 2; do
        check "removed $i: the next one comes up" again kill_daemon
        check "removed $i: it continues" wait_until 20 writes long
    done
    "$xensim" pause
    "$xensim" stat >"$dir/stat"
    check "removed: stop" ctl stop long
    ctl --json status long >"$dir/document"
    check "removed: the records of the segment are evicted" same "$(number "$dir/document" ledger evicted)" "$records"
    check "removed: the ledger balances" balances "$dir/document"
    check "removed: each segment has its sidecar" has_sidecars long
    mapfile -t files < <(segments_of long | grep -v 00003)
    check "removed: each agrees with it" agree "${files[@]}"
    check "the manager ends" ends_as_signalled
}

killed() { by_hand kill_daemon; }
killed_waiting_packed() { killed_waiting --compress zstd; }
restarted() { by_hand restart; }
killed_packed() { by_hand kill_daemon --compress zstd; }
restarted_packed() { by_hand restart --compress zstd; }
killed_beside() { with_recorder kill_daemon; }
restarted_beside() { with_recorder restart; }

main() {
    local part rate
    for part in ${PARTS:-killed restarted killed_packed restarted_packed killed_beside restarted_beside
        killed_waiting killed_waiting_packed removed}; do
        echo "# SEED=$seed"
        rate=20M
        case $part in many | removed) rate=1M ;; esac
        SEED=$seed sim --cpus 3 --rate "$rate" -- "$part"
        case $part in
        killed* | restarted* | removed)
            check "$part: the ledger is the producer's" produced_as_reported "$dir/document" "$dir/report"
            ;;
        esac
        sim_clean
    done
    [ -n "${PARTS:-}" ] || for part in configured ended hasty full; do
        sim --cpus 2 --rate 5M -- "$part"
        sim_clean
    done
}

dispatch "$@"
