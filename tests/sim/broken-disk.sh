#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Calls on files that fail once, for a moment, or for good: a capture continues, nothing is left that
# nobody removes, and no file is removed that is being written. libbroken-disk.so makes them fail.

. "$(dirname "$0")/lib.sh"

mib=$((1024 * 1024))
preload=$build/tests/sim/libbroken-disk.so
if [ ! -e "$preload" ]; then
    echo "$script: $preload is not built: run make check, or set BUILD" >&2
    exit 1
fi
export BROKEN_DISK=${dir:-}/broken

EINTR=4 EIO=5 EAGAIN=11 ENOMEM=12 ENOSPC=28 EROFS=30

broken_start() { LD_PRELOAD="$LD_PRELOAD:$preload" daemon_start "$@"; }
break_call() { echo "$2 ${3:-1}" >"$BROKEN_DISK/$1"; }      # break_call CALL ERRNO [COUNT]
was_used() { ! grep -qv ' 0 *$' "$BROKEN_DISK/$1"; }        # was_used CALL: all of it failed
mend() { rm -f "$BROKEN_DISK"/*; }
newest_segment() { # newest_segment NAME: its number
    local newest
    newest=$(cd "$dir/state" && ls | grep -E "^$1\.[0-9]+\.xentrace\$" | tail -n 1 | tr -dc 0-9)
    echo "$((10#0$newest))"
}
has_segment() { [ "$(newest_segment "$1")" -ge "$2" ]; } # has_segment NAME NUMBER: or a later one
hidden() { ls -A "$dir/state" | grep '^\.'; }
nothing_hidden() { [ -z "$(hidden)" ] || { hidden; return 1; }; }

# The capture NAME goes from segment to segment, and holds together.
check_continues() { # check_continues CASE NAME SEGMENT
    check "$1: the capture continues" wait_until 30 has_segment "$2" "$3"
    check "$1: it runs" state_is "$2" running
}
check_whole() { # check_whole CASE NAME
    ctl stop "$2" >"$dir/stopped" 2>&1
    check "$1: the ledger balances" balances "$dir/state/$2.json"
    check "$1: it ended as asked" same "$(number "$dir/state/$2.json" ended reason)" stop
    check "$1: the segments are one capture" joined_is_whole "$2"
    check "$1: nothing is left" nothing_hidden
}
joined_is_whole() { cat "$dir/state/$1".0*.xentrace >"$dir/joined" && "$xensim" verify "$dir/joined"; }

rotates() { # rotates CASE CALL ERRNO COUNT [OPTION VALUE]
    ctl start cap --segment-size 1M ${5:+"$5" "$6"} >/dev/null
    wait_until 30 has_segment cap 2
    break_call "${@:2:3}"
    check "$1: the call fails" wait_until 30 was_used "$2"
    check_continues "$1" cap "$(($(newest_segment cap) + 2))"
    check_whole "$1" cap
    mend
    rm -f "$dir/state"/cap.*
}

segments() {
    mkdir "$BROKEN_DISK"
    broken_start || exit 1
    rotates "rename, once" renameat2 $EIO 1
    rotates "rename, some times" renameat2 $EIO 5
    rotates "rename, without memory" renameat2 $ENOMEM 3
    rotates "rename, for seconds" renameat2 $EIO 20
    rotates "rename, in a full directory" renameat2 $ENOSPC 3
    rotates "unlink, once" unlinkat $EIO 1 --keep-files 2
    rotates "fsync of the directory, once" fsync-directory $EIO 1
    rotates "fsync of the directory, some times" fsync-directory $EIO 4
    rotates "fsync, interrupted" fsync $EINTR 3
    rotates "ftruncate, once" ftruncate $EIO 1
    rotates "fallocate, interrupted" fallocate $EINTR 2
}

# A call that fails for good: the capture ends, and says why; its records have their name.
for_good() {
    mkdir "$BROKEN_DISK"
    broken_start || exit 1
    ctl start cap --segment-size 1M >/dev/null
    wait_until 30 has_segment cap 2
    break_call renameat2 $EROFS 1000000
    check "for good: it ends" wait_until 30 ended cap
    check "for good: why" grep -q 'Cannot rename the current segment' "$dir/state/cap.json"
    mend
    check "for good: the ledger balances" balances "$dir/state/cap.json"
    check "for good: the daemon ends well" daemon_stop
    broken_start || exit 1
    check "for good: the next start names it" wait_until 10 nothing_hidden
    check "for good: all is there" joined_is_whole cap
}

# A snapshot whose name may not be on the disk is none, and nothing of it stays.
snapshots() {
    mkdir "$BROKEN_DISK"
    recorder memory=8M
    broken_start && wait_until 10 recorder_runs && wait_until 60 recorder_has $mib || exit 1
    break_call fsync-directory $EIO 1
    check "snapshot: fsync of the directory fails once" ctl snapshot once
    check "snapshot: it is listed" shows '^once$' ctl list --files --names
    break_call fsync-directory $EIO 1000000
    check "snapshot: it fails for good" refuses 'I/O error' ctl snapshot never
    mend
    check "snapshot: it left no file" test -z "$(ls -A "$dir/state" | grep never)"
    break_call fsync-directory $EIO 1000000
    break_call unlinkat $EIO 1
    check "snapshot: and cannot be removed at once" refuses 'I/O error' ctl snapshot never
    mend
    check "snapshot: it left no file either" test -z "$(ls -A "$dir/state" | grep never)"
}

# Space is still taken ahead: without it the whole reserve would be the next capture's.
interrupted() {
    mkdir "$BROKEN_DISK"
    broken_start || exit 1
    break_call fallocate $EINTR 1
    ctl start cap >/dev/null
    check "fallocate: interrupted" was_used fallocate
    check "fallocate: space is taken all the same" above "$(allocated cap)" $((100 * mib))
    break_call fallocate $EINTR 3
    ctl start cap2 >/dev/null
    check "fallocate: interrupted three times" was_used fallocate
    check "fallocate: space is taken then, too" above "$(allocated cap2)" $((100 * mib))
    break_call fallocate $EIO 8
    ctl start cap3 >/dev/null
    check "fallocate: the capture starts without it" state_is cap3 running
    ctl stop cap cap2 >/dev/null
    check "fallocate: the next time space is taken" wait_until 120 takes_space cap3
    ctl stop cap3 >/dev/null
}
allocated() { echo $(($(stat -c '%b * %B' "$dir/state/$1.xentrace"))); }
takes_space() { [ "$(spare "$1")" -gt $((32 * mib)) ]; }
spare() { echo $(($(stat -c '%b * %B - %s' "$dir/state/$1.xentrace"))); }

# Where times are even seconds, and the sweep is late, what is being written looks old.
sweep() {
    local i
    mkdir "$BROKEN_DISK"
    echo 300000 >"$BROKEN_DISK/slow-sweep"
    : >"$BROKEN_DISK/even-seconds"
    mkdir -p "$dir/state"
    : >"$dir/state/.old.00001.xentrace.next"
    : >"$dir/state/.old.xentrace.new"
    : >"$dir/state/.old.77.json.new"
    configure '[capture always]' events=all segment-size=1M keep-files=4
    wait_until 10 second_is_odd
    broken_start || exit 1
    check "sweep: old files go" wait_until 30 nothing_old
    check "sweep: the capture continues" wait_until 30 has_segment always 4
    check "sweep: it runs" state_is always running
    check "sweep: no file was lost" test -z "$(grep -E 'Cannot rename|No such file' "$dir/log")"
}
second_is_odd() { [ $(($(date +%s) % 2)) -eq 1 ]; }
nothing_old() { [ -z "$(ls -A "$dir/state" | grep old)" ]; }

# What a killed daemon had allocated ahead is freed by the next one, and counted until then.
killed() {
    local i
    mkdir "$BROKEN_DISK"
    broken_start || exit 1
    for i in 1 2 3; do ctl start "cap$i" >/dev/null; done
    check "killed: space is taken ahead" takes_space cap3
    check "killed: the list counts it" above "$(ctl list --files --json | number /dev/stdin files 0 bytes)" $((100 * mib))
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null
    exec 9<"$dir/state/cap3.xentrace" # as a reader
    broken_start 9<&- || exit 1
    for i in 1 2; do check "killed: cap$i is cut" wait_until 20 is_cut "cap$i"; done
    check "killed: one that is open stays" takes_space cap3
    exec 9<&-
    ctl vacuum >/dev/null 2>&1
    check "killed: it is cut by the next look" wait_until 20 is_cut cap3
    for i in 1 2 3; do check "killed: cap$i is sound" ctl info "$dir/state/cap$i.xentrace"; done
}
is_cut() { [ "$(spare "$1")" -lt $mib ]; }

# Several captures come to the reserve at once, on a disk that allocates slowly, beside a program that
# writes, too.
at_reserve() {
    local i starts=()
    mkdir "$BROKEN_DISK"
    on_small 400 || exit 1
    trap 'kill "$watch" "$writer" 2>/dev/null; umount -l "$dir/state"' EXIT
    echo 300000 >"$BROKEN_DISK/slow-fallocate"
    broken_start || exit 1
    python3 - "$dir/state" "$dir/lowest" <<'END' &
import os, sys, time
lowest = 1 << 60
while True:
    st = os.statvfs(sys.argv[1])
    if st.f_bavail * st.f_frsize < lowest:
        lowest = st.f_bavail * st.f_frsize
        open(sys.argv[2] + ".new", "w").write(str(lowest))
        os.rename(sys.argv[2] + ".new", sys.argv[2])
    time.sleep(0.005)
END
    watch=$!
    python3 - "$dir/state/foreign" <<'END' &
import os, sys, time
def free():
    st = os.statvfs(os.path.dirname(sys.argv[1]))
    return st.f_bavail * st.f_frsize
with open(sys.argv[1], "wb", buffering=0) as file:
    while free() > 104 << 20:
        file.write(b"x" * (1 << 20))
        os.fsync(file.fileno())
        time.sleep(0.05)
END
    writer=$!
    for i in 1 2 3 4; do ctl start "cap$i" --reserve 100M >/dev/null & starts+=($!); done
    wait "${starts[@]}"
    for i in 1 2 3 4; do check "reserve: cap$i ends" wait_until 120 ended "cap$i"; done
    wait "$writer"
    check "reserve: the lowest free space is that" above "$(cat "$dir/lowest")" $((99 * mib))
    for i in 1 2 3 4; do
        check "reserve: why cap$i ended" same "$(number "$dir/state/cap$i.json" ended reason)" reserve
        check "reserve: the ledger of cap$i balances" balances "$dir/state/cap$i.json"
    done
    check "reserve: the daemon ends well" daemon_stop
    unset daemon
    kill "$watch"
    wait "$watch" 2>/dev/null
    umount "$dir/state"
    trap - EXIT
}

main() {
    local function
    for function in ${CASES:-segments for_good snapshots interrupted sweep killed at_reserve}; do
        sim --cpus 2 --workload numbered --rate 4M -- "$function"
        sim_clean
    done
}

dispatch "$@"
