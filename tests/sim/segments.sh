#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Disk rings: each segment is readable alone, all of them joined are one capture without a gap, what
# is to be kept is kept and no more, and at the reserve the oldest go, or the capture pauses. The
# part on full disks needs root and a loop device for a small file system of its own.

. "$(dirname "$0")/lib.sh"

mib=$((1024 * 1024))
buffer_pages=32 # small rounds: a segment may be longer by one
state=${dir:-}/state # where the segments are

# --- Calls. ---

call() { # call METHOD [KEY=VALUE]...: prints what it is answered
    python3 "$(dirname "$script")/varlink.py" "$XENTRACED_SOCKET" call "$@"
}
start() { # start NAME [KEY=VALUE]...
    call Start "name=$1" "${@:2}" >"$dir/started"
}
stop() { call Stop "name=$1" >"$dir/document"; }
rotate() { call Rotate ${1:+"name=$1"} >"$dir/segment"; }
status() { call Status "name=$1" >"$dir/status"; }
say() { number "$dir/$1" "${@:2}"; }

# --- Files. ---

segments() { ls "$state" | grep -E "^$1\.[0-9]+\.xentrace$"; }
join() { (cd "$state" && segments "$1" | xargs -r cat) >"$dir/joined"; }
count() { segments "$1" | wc -l; }
total() { (cd "$state" && segments "$1" | xargs -r stat -c %s 2>/dev/null) | awk '{ n += $1 } END { print n + 0 }'; }
longest() { (cd "$state" && segments "$1" | xargs -r stat -c %s 2>/dev/null) | sort -n | tail -n 1 | grep . || echo 0; }
newest() { segments "$1" | tail -n 1 | grep -oE '[1-9][0-9]*\.xentrace$' | cut -d. -f1; }
has_begun() { [ "$(newest "$1")" -ge "$2" ] 2>/dev/null; } # has_begun NAME NUMBER
nothing_hidden() { same "$(ls -A "$state" | grep -c '^\.')" 0; }

# Each segment is sound, has a sidecar that says so, and together they hold what the session says.
check_documents() { # check_documents NAME
    python3 - "$state" "$1" "$build/xentracectl" <<'END'
import glob, json, os, subprocess, sys
state, name, ctl = sys.argv[1:]
session = json.load(open(f"{state}/{name}.json"))
assert session["kind"] == "segments" and session["state"] == "ended", session["kind"]
listed = session["segments"]["files"]
files = sorted(glob.glob(f"{state}/{name}.[0-9]*.xentrace"))
assert len(listed) == min(64, len(files)), (len(listed), len(files))
assert session["segments"]["written"] - session["segments"]["deleted"] == len(files)
assert listed[-1]["path"].endswith(os.path.basename(files[-1])), (listed[-1], files[-1])
assert listed[-1]["reason"] == "end" or all(s["reason"] != "end" for s in listed)
delivered = lost = dropped = 0
last_tsc = {}
for file in files:
    sidecar = json.load(open(file.replace(".xentrace", ".json")))
    segment = sidecar["segment"]
    info = json.loads(subprocess.run([ctl, "--json", "info", file], check=True,
                                     stdout=subprocess.PIPE).stdout)["files"][0]
    assert os.path.basename(segment["path"]) == os.path.basename(file)
    assert segment["bytes"] == os.path.getsize(file) == sidecar["output"]["bytes"], segment
    assert segment["records"] == info["records"] == segment["ledger"]["delivered"], (segment, info)
    assert segment["first_ns"] <= segment["last_ns"]
    for line in segment["ledger"]["cpus"]:
        assert line["produced"] == line["delivered"] + line["lost"] + line["dropped"], line
        assert line["evicted"] == 0, line
        if line["first_tsc"]:
            assert line["first_tsc"] >= last_tsc.get(line["cpu"], 0), (file, line)
            last_tsc[line["cpu"]] = line["last_tsc"]
    delivered += segment["records"]
    lost += segment["lost"]
    dropped += segment["dropped"]
ledger = session["ledger"]
assert ledger["delivered"] == delivered, (ledger["delivered"], delivered)
if session["ended"]["reason"] == "abort": # the last one may have no file, if all of it was dropped
    assert ledger["lost"] >= lost and ledger["dropped"] >= dropped, (ledger, lost, dropped)
elif session["segments"]["deleted"] == 0:
    assert (ledger["lost"], ledger["dropped"], ledger["evicted"]) == (lost, dropped, 0)
else:
    assert ledger["evicted"] > 0
END
}

each_verifies() {
    local file
    for file in $(segments "$1"); do
        "$xensim" verify "$state/$file" >/dev/null || { echo "$file"; return 1; }
    done
}

check_segments() { # check_segments NAME [VERIFY-OPTION]...: after its end
    local name=$1
    shift
    check "$name: the ledger balances" balances "$state/$name.json"
    check "$name: the documents agree with the files" check_documents "$name"
    check "$name: each segment is in order" each_verifies "$name"
    join "$name"
    check "$name: joined they are one capture" "$xensim" verify "$@" "$dir/joined"
    check "$name: nothing is left over" nothing_hidden
}

none_is_longer() { # none_is_longer NAME BYTES
    local bytes
    for bytes in $(cd "$state" && segments "$1" | xargs stat -c %s); do
        below "$bytes" $(($2 + 1)) || return 1
    done
}
reasons() { python3 -c 'import json, sys
print(" ".join(sorted({s["reason"] for s in json.load(open(sys.argv[1]))["segments"]["files"]})))' \
    "$state/$1.json"; }

# --- How segments end. ---

by_size() { # by_size [other]: alone, or with another capture beside it
    daemon_start || exit 1
    check "by size: start" start size segment_size_bytes=$((4 * mib))
    [ -z "${1:-}" ] || ctl start -o "$dir/other.xentrace" other >/dev/null
    check "by size: there are several" wait_until 20 has_begun size 7
    status size
    check "by size: status tells the one that is written" same "$(say status segments files -1 reason)" ""
    [ -z "${1:-}" ] || check "by size: the other one ends" ctl stop other
    check "by size: stop" stop size
    check "by size: and that is why" same "$(reasons size)" "end size"
}
check_by_size() {
    check_segments size --from-start
    check "by size: none is longer" none_is_longer size $((4 * mib))
    check "by size: nothing was lost" same "$(number "$state/size.json" ledger lost)" 0
    check "by size: the ledger is the producer's" produced_as_reported "$state/size.json" "$dir/report"
}

by_time() {
    daemon_start || exit 1
    check "by time: start" start time segment_time_usec=1000000
    sleep 2.5
    check "by time: stop" stop time
    check "by time: as many as seconds" same "$(count time)" 3
    check "by time: and that is why" same "$(reasons time)" "end time"
    check_segments time --from-start

    check "nothing happens: start" start quiet segment_time_usec=1000000 events=guest
    sleep 2.2
    check "nothing happens: stop" stop quiet
    check "nothing happens: one empty segment" same "$(count quiet) $(total quiet)" "1 0"
}

by_request() {
    local i answered=0
    daemon_start || exit 1
    check "on request: start" start request segment_size_bytes=$((1024 * mib))
    for i in $(seq 200); do
        "$xensim" insert 0 1 >/dev/null # whatever else the machine does: there is something
        rotate request && is_finished "$i" && answered=$((answered + 1))
    done
    check "on request: 200 in a row are answered, each when it is finished" same "$answered" 200
    check "on request: the last one tells why" same "$(say segment reason)" rotate
    for i in $(seq 8); do rotate "" >/dev/null & done
    wait $(jobs -p | grep -v "^$daemon$")
    check "on request: stop" stop request
    check "on request: all are there" above "$(count request)" 200
    check_segments request --from-start
}

is_finished() { # is_finished NUMBER: it is what was answered, and on the disk
    same "$(say segment number)" "$1" &&
        same "$(say segment bytes)" "$(stat -c %s "$(say segment path)")"
}

nothing_to_rotate() {
    configure '[capture]' segment-unit=collect@.service
    daemon_start || exit 1
    check "rotate: not segmented" fails_with NotSegmented rotate "$(ctl start plain >/dev/null; echo plain)"
    check "rotate: none is segmented" fails_with NoSuchSession rotate
    ctl stop plain >/dev/null
    check "rotate: it has ended" fails_with NotSegmented rotate plain
    check "rotate: start" start empty segment_size_bytes=$mib events=guest
    check "rotate: there is nothing" fails_with Empty rotate empty
    check "rotate: again" fails_with Empty rotate
    # The stand-in has no systemd: a unit that was to be started is reported.
    check "rotate: no unit for a segment without a file" same "$(grep -c collect@ "$dir/log")" 0
    check "rotate: stop" stop empty
    check "rotate: one empty file" same "$(segments empty)" empty.00001.xentrace
    check "rotate: after its end" fails_with NoSuchSession rotate empty
    check "rotate: nothing is left over" nothing_hidden
}
fails_with() { # fails_with WORDS COMMAND...: the error's name, or words of its sentence
    local words=$1 output
    shift
    output=$("$@" 2>&1 >/dev/null) && { echo "it does not fail: $output"; return 1; }
    grep -Eq -- "$words" <<<"$output" || { echo "$output"; return 1; }
}

wrong_options() {
    daemon_start || exit 1
    check "--keep-files alone" fails_with "need --segment-size" start wrong keep_files=3
    check "--keep-size alone" fails_with "need --segment-size" start wrong keep_size_bytes=$((9 * mib))
    check "--on-reserve rotate alone" fails_with "it needs --segment-size" start wrong on_reserve=rotate
    check "--on-reserve nonsense" fails_with "use stop, rotate or pause" start wrong on_reserve=nonsense
    check "a short segment" fails_with "at least 1M" start wrong segment_size_bytes=$((mib - 1))
    check "a hasty segment" fails_with "at least 1 s" start wrong segment_time_usec=999999
    check "one file" fails_with "from 2" start wrong segment_size_bytes=$mib keep_files=1
    check "no room" fails_with "at least 3M" start wrong segment_size_bytes=$mib keep_size_bytes=$((2 * mib))
    check "--memory" fails_with "either" start wrong segment_size_bytes=$mib memory_bytes=$((64 * mib))
    check "--max-size" fails_with "keep-size" start wrong segment_size_bytes=$mib max_size_bytes=$((64 * mib))
    check "none of them left a file" same "$(ls -A "$state")" ""
    : >"$state/old.00007.xentrace"
    check "older segments" fails_with "older capture" start old segment_size_bytes=$mib
    check "and only those" start older segment_size_bytes=$((1024 * mib))
    : >"$state/older.00002.xentrace" # somebody else's
    check "somebody else's file" rotate older
    check "stop" stop older
    check "is left alone" same "$(stat -c %s "$state/older.00002.xentrace")" 0
    check "and passed over" test -s "$state/older.00003.xentrace"
    check "a capture without segments after all this" ctl record --quiet -T 0.2 plain
}

# --- What is kept. ---

# The most that is ever there, in $dir/most: files, bytes, and bytes of one.
watch_files() { # watch_files NAME
    local files=0 bytes=0 longest=0 now
    while [ ! -e "$dir/enough" ]; do
        now=$(count "$1"); [ "$now" -le "$files" ] || files=$now
        now=$(total "$1"); [ "$now" -le "$bytes" ] || bytes=$now
        now=$(longest "$1"); [ "$now" -le "$longest" ] || longest=$now
        echo "$files $bytes $longest" >"$dir/most"
    done
}
# By as much as a segment may exceed its size, where the machine paused, so may they all together:
# the one that is written, and the one that is flushed.
never_more() { # never_more BYTES KEPT-BYTES SEGMENT-BYTES LONGEST-BYTES
    local excess=$(($4 > $3 ? $4 - $3 : 0))
    echo "the longest has $4 bytes"
    below "$1" $(($2 + 2 * excess + 1))
}
keep() { # keep NAME SEGMENTS [KEY TYPE VALUE]...: until so many have begun
    local name=$1 segments=$2 watcher
    shift 2
    check "$name: start" start "$name" "$@"
    watch_files "$name" &
    watcher=$!
    check "$name: there were several" wait_until 30 has_begun "$name" "$segments"
    check "$name: stop" stop "$name"
    enough "$watcher"
    check "$name: the oldest went" above "$(say document segments deleted)" 3
    check "$name: with its sidecar" test ! -e "$state/$name.00001.json"
    check_segments "$name"
}
keeping() {
    local most
    daemon_start || exit 1
    keep files 12 segment_size_bytes=$mib keep_files=3
    read -r -a most <"$dir/most"
    check "files: never more" below "${most[0]}" 4
    check "files: nor less at the end" same "$(count files)" 3
    keep two 12 segment_size_bytes=$mib keep_files=2
    read -r -a most <"$dir/most"
    check "two: never more" below "${most[0]}" 3
    keep size 20 segment_size_bytes=$mib keep_size_bytes=$((8 * mib))
    read -r -a most <"$dir/most"
    check "size: never more" never_more "${most[1]}" $((8 * mib)) $mib "${most[2]}"
    check "size: but made use of" above "${most[1]}" $((4 * mib))
    keep both 12 segment_time_usec=1000000 keep_size_bytes=$((16 * mib)) keep_files=5
    read -r -a most <"$dir/most"
    check "both: never more bytes" never_more "${most[1]}" $((16 * mib)) $((2 * mib)) "${most[2]}"
    check "both: never more files" below "${most[0]}" 6
}

# --- How a disk ring ends. ---

rotate_on() { # rotate_on NAME: again and again, until enough() is called
    while [ ! -e "$dir/enough" ]; do call Rotate "name=$1"; done >/dev/null 2>&1
}
enough() { # enough PID: of what runs until then
    : >"$dir/enough"
    wait "$1"
    rm "$dir/enough"
}

stopping() {
    local i
    daemon_start || exit 1
    for i in $(seq 25); do
        start "stop-$i" segment_size_bytes=$mib
        rotate_on "stop-$i" &
        sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
        stop "stop-$i" || echo "not ok - stop $i"
        enough $!
    done
    check "stop while it rotates: 25 of 25 end well" same \
        "$(grep -l '"reason": *"stop"' "$state"/stop-?.json "$state"/stop-??.json | wc -l)" 25
    for i in 1 9 17 25; do check_segments "stop-$i"; done 2>/dev/null | grep -v '^ok'
    check "tracing is off" grep -q '"enabled":false' <(xen_state)
}

ending() {
    local rotating
    daemon_start || exit 1
    check "SIGTERM: start" start term segment_size_bytes=$mib
    rotate_on term &
    rotating=$!
    sleep 1
    check "SIGTERM: the daemon ends well" daemon_stop
    enough "$rotating"
    check_segments term
    daemon_start || exit 1
    check "SIGKILL: start" start kill segment_size_bytes=$mib
    rotate_on kill &
    rotating=$!
    sleep 1
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null
    enough "$rotating"
    daemon_start || exit 1
    check "SIGKILL: nothing is left over" nothing_hidden
    check "SIGKILL: each segment is in order" each_verifies kill
    join kill
    check "SIGKILL: joined they are one capture" "$xensim" verify "$dir/joined"
    # As if the daemon had died between the first record and the name.
    cp "$state/kill.00002.xentrace" "$state/.late.00003.xentrace.next"
    : >"$state/.early.00004.xentrace.next"
    check "the daemon ends well" daemon_stop
    daemon_start || exit 1
    check "a segment without its name gets it" cmp "$state/kill.00002.xentrace" "$state/late.00003.xentrace"
    check "an empty one goes" nothing_hidden
}

# --- At the reserve. ---

mount_small() { # mount_small MIB: an ext4 of that size at $dir/small
    truncate -s "$1M" "$dir/image" && mkfs.ext4 -q "$dir/image" &&
        mkdir -p "$dir/small" && mount -o loop "$dir/image" "$dir/small" && mkdir "$dir/small/state"
}
available() { echo $(($(stat -f -c '%a * %S' "$dir/small"))); }
paused() { status "$1" && [ "$(say status output paused)" = true ]; }
misses_some() { # misses_some NAME: for want of a pool; or Xen does, as nobody drains, and has not told
    status "$1" && [ $(($(say status ledger dropped) + $(number <("$xensim" stat) cpus 0 lost))) -gt 1000 ]
}
not_paused() { ! paused "$1"; }
watch_space() { # the lowest free space, in $dir/lowest
    local lowest=$(available) now
    while [ ! -e "$dir/enough" ]; do
        now=$(available)
        [ "$now" -ge "$lowest" ] || lowest=$now
        echo "$lowest" >"$dir/lowest"
    done
}

reserve_rotate() {
    local watcher
    watch_space &
    watcher=$!
    check "reserve, rotate: start" start rotate segment_size_bytes=$((4 * mib)) \
        reserve_bytes=$((20 * mib)) on_reserve=rotate
    check "reserve, rotate: there were several" wait_until 30 has_begun rotate 18
    enough "$watcher"
    status rotate
    check "reserve, rotate: it runs on" same "$(say status state)" running
    check "reserve, rotate: the oldest went" above "$(say status segments deleted)" 5
    check "reserve, rotate: the reserve was not touched" above "$(cat "$dir/lowest")" $((20 * mib - 1))
    check "reserve, rotate: stop" stop rotate
    check_segments rotate
    # Nothing is left to delete: then it ends, as with `stop`.
    rm -f "$state"/*
    check "reserve, one segment: start" start one segment_size_bytes=$((1024 * mib)) \
        reserve_bytes=$((20 * mib)) on_reserve=rotate
    check "reserve, one segment: it ends" wait_until 10 ended one
    check "reserve, one segment: the reason" same "$(number "$state/one.json" ended reason)" reserve
    check_segments one
}

reserve_stop() {
    check "reserve, stop: start" start full segment_size_bytes=$((4 * mib)) reserve_bytes=$((20 * mib))
    check "reserve, stop: it ends" wait_until 10 ended full
    check "reserve, stop: the reason" same "$(number "$state/full.json" ended reason)" reserve
    check "reserve, stop: what is above it was used" below "$(available)" $((22 * mib))
    check "reserve, stop: and no more" above "$(available)" $((20 * mib - 1))
    check_segments full --from-start
}

pause() { # pause [OPTION]...: a capture, with segments or without
    fallocate -l 22M "$dir/small/ballast"
    check "pause: start" start pause reserve_bytes=$((20 * mib)) on_reserve=pause "$@"
    check "pause: it pauses" wait_until 10 paused pause
    check "pause: longer than the pool lasts" wait_until 30 misses_some pause
    sleep 1
    check "pause: it still does" paused pause
    check "pause: it is told" grep -q "Paused" "$dir/log"
    check "pause: the reserve was not touched" above "$(available)" $((20 * mib - 1))
    [ $# -eq 0 ] || check "pause: rotate is refused" fails_with "until there is space" rotate pause
    rm "$dir/small/ballast"
    check "pause: it goes on when there is space" wait_until 10 not_paused pause
    check "pause: which is reported" grep -q "There is space again" "$dir/log"
    sleep 0.3
    check "pause: stop" stop pause
    check "pause: well" same "$(say document ended reason)" stop
    check "pause: told once" same "$(grep -c "Paused" "$dir/log")" 1
}
check_paused() { # check_paused NAME FILE
    check "$1: the ledger balances" balances "$dir/small/state/pause.json"
    check "$1: every gap has exactly its count" "$xensim" verify --from-start "$2"
    check "$1: and is in the ledger" above \
        $(($(number "$dir/document" ledger lost) + $(number "$dir/document" ledger dropped))) 1000
}
pause_segments() {
    pause segment_size_bytes=$((4 * mib))
    check_segments pause --from-start
    check_paused "pause, segments" "$dir/joined"
}
pause_file() {
    pause
    check_paused "pause, one file" "$state/pause.xentrace"
}
# The other one is on another disk, and is to lose nothing by it.
pause_beside() {
    ctl start -o "$dir/other.xentrace" other >/dev/null
    pause segment_size_bytes=$((4 * mib))
    check "pause, beside: the other one ends" ctl stop other
    check_segments pause
    check "pause, beside: dropped, not lost" above "$(say document ledger dropped)" 1000
    check "pause, beside: the other one has everything" "$xensim" verify --from-start "$dir/other.xentrace"
    check "pause, beside: nothing of it was lost" same "$(number "$dir/other.json" ledger lost)" 0
}
pause_stop() {
    fallocate -l 22M "$dir/small/ballast"
    check "stop while it pauses: start" start pause reserve_bytes=$((20 * mib)) on_reserve=pause \
        segment_size_bytes=$((4 * mib))
    check "stop while it pauses: it pauses" wait_until 10 paused pause
    sleep 1
    check "stop while it pauses: stop" stop pause
    check "stop while it pauses: that is why it ends there" same "$(say document ended reason)" reserve
    check_segments pause --from-start
    check "stop while it pauses: tracing is off" grep -q '"enabled":false' <(xen_state)
}

# --- A disk that does not answer. ---

freeze() { # freeze SECONDS: until then every call on the small file system waits
    fsfreeze -f "$dir/small" || return 1
    setsid bash -c 'sleep "$1"; fsfreeze -u "$2"' bash "$1" "$dir/small" >/dev/null 2>&1 &
    thaws=$!
}

is_quick() { # is_quick COMMAND...: within a second
    local begun=${EPOCHREALTIME//[^0-9]/}
    "$@" || return 1
    [ $((${EPOCHREALTIME//[^0-9]/} - begun)) -lt 1000000 ]
}

frozen() {
    check "frozen: start" start frozen segment_size_bytes=$mib
    check "frozen: there are some" wait_until 30 has_begun frozen 3
    check "frozen: the disk is" freeze 4
    rotate frozen &
    local client=$!
    sleep 1
    check "frozen: status is answered" is_quick status frozen
    check "frozen: it runs" same "$(say status state)" running
    check "frozen: rotate is not" kill -0 $client
    wait $thaws
    check "frozen: rotate is answered after the thaw" wait $client
    check "frozen: segments follow again" wait_until 30 has_begun frozen $(($(newest frozen) + 2))
    check "frozen: stop" stop frozen
    check "frozen: nothing was dropped" same "$(say document ledger dropped)" 0
    check_segments frozen

    check "frozen, abort: start" start abort segment_size_bytes=$mib
    check "frozen, abort: there are some" wait_until 30 has_begun abort 2
    check "frozen, abort: the disk is" freeze 4
    sleep 1
    check "frozen, abort: it is answered" is_quick ctl stop --abort abort
    wait $thaws
    check "frozen, abort: the files are completed after the thaw" wait_until 10 is_completed abort
    check "frozen, abort: the documents agree with the files" check_documents abort
    check "frozen, abort: nothing is left over" nothing_hidden
}

is_completed() { # is_completed NAME: the last segment has a sidecar, and so has the session
    nothing_hidden && [ -e "$state/$1.$(printf %05u "$(newest "$1")").json" ] &&
        [ "$(number "$state/$1.json" state 2>/dev/null)" = ended ]
}

on_small() { # on_small FUNCTION
    mount_small 64 || exit 1
    trap 'umount "$dir/small"' EXIT
    state=$dir/small/state
    configure '[daemon]' pool=8M pool-max=8M # which does not outlast a pause
    daemon_start --state-dir "$state" || exit 1
    "$1"
    check "$1: the daemon ends well" daemon_stop
    unset daemon
    umount "$dir/small"
    trap - EXIT
}

# Named parts only: segments.sh PART...
parts=(by_size by_size_beside by_time by_request nothing_to_rotate wrong_options keeping stopping ending
    reserve_rotate reserve_stop frozen pause_segments pause_file pause_beside pause_stop)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

run() { # run PART
    case $1 in
        by_size)
            sim --cpus 4 --workload numbered --rate 5M -- by_size
            state=$dir/state
            check_by_size
            ;;
        by_size_beside)
            sim --cpus 4 --workload numbered --rate 5M -- by_size other
            state=$dir/state
            check_by_size
            ;;
        by_request | stopping) sim --cpus 4 --workload numbered --rate 2M -- "$1" ;;
        pause_*) sim --cpus 4 --workload numbered --rate 4M -- on_small "$1" ;;
        reserve_*) sim --cpus 4 --workload numbered --rate 10M -- on_small "$1" ;;
        frozen) sim --cpus 4 --workload numbered --rate 500K -- on_small "$1" ;;
        *) sim --cpus 4 --workload numbered --rate 10M -- "$1" ;;
    esac
    sim_clean
}

main() {
    local part waiting=()
    for part in "${parts[@]}"; do
        case $part in
            pause_segments | pause_file | pause_stop) waiting+=("$part") ;; # may lose records
            *) run "$part" ;;
        esac
    done
    together run "${waiting[@]}"
}

dispatch "$@"
