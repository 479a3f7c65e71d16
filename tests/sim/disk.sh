#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The disk gets full, or nearly: the capture ends at a whole window, says why, keeps its ledger, and
# tracing is off. Needs root and a loop device for a small file system of its own.

. "$(dirname "$0")/lib.sh"

mib=$((1024 * 1024))

mount_small() { # mount_small MIB: an ext4 of that size at $dir/small
    truncate -s "$1M" "$dir/image" && mkfs.ext4 -q "$dir/image" &&
        mkdir -p "$dir/small" && mount -o loop "$dir/image" "$dir/small"
}
unmount_small() { umount "$dir/small"; }

available() { echo $(($(stat -f -c '%a * %S' "$dir/small"))); }
tracing_is_off() { "$xensim" stat | tr -d ' \n' | grep '"enabled":false' >/dev/null; }
ended_because() { same "$(number "$1" ended reason)" "$2"; }
size_is() { same "$(stat -c %s "$1")" "$(number "$2" output bytes)"; }

# The lowest free space seen while COMMAND runs, in $dir/lowest.
watch_space() {
    local lowest=$(available) now
    while kill -0 "$1" 2>/dev/null; do
        now=$(available)
        [ "$now" -ge "$lowest" ] || lowest=$now
        sleep 0.01
    done
    echo "$lowest" >"$dir/lowest"
}

check_file() { # check_file NAME REASON
    check "$1: the reason is told" ended_because "$dir/small/f.json" "$2"
    check "$1: the ledger balances" balances "$dir/small/f.json"
    check "$1: the file is sound" ctl info "$dir/small/f.xentrace"
    check "$1: the file is as long as the sidecar says" \
        size_is "$dir/small/f.xentrace" "$dir/small/f.json"
    check "$1: all in it is in order" "$xensim" verify --from-start "$dir/small/f.xentrace"
    check "$1: it holds what was delivered" same \
        "$(ctl --json info "$dir/small/f.xentrace" >"$dir/info"; number "$dir/info" files 0 records)" \
        "$(number "$dir/small/f.json" ledger delivered)"
    check "$1: tracing is off" tracing_is_off
}

reserve() {
    daemon_start || exit 1
    ctl record --quiet -T 60 -r 20 -o "$dir/small/f.xentrace" &
    local client=$! status=0
    watch_space "$client"
    wait "$client" || status=$?
    check "reserve: it ends with status 1" same "$status" 1
    check "reserve: not a byte of it was touched" above "$(cat "$dir/lowest")" $((20 * mib - 1))
    check "reserve: but what is above it was used" below "$(available)" $((22 * mib))
    check_file reserve reserve
    check "reserve: a start below it is refused" refuses "There is no space" \
        ctl start -r 60 -o "$dir/small/g.xentrace"
    check "reserve: and leaves no file" test ! -e "$dir/small/g.xentrace"
}

full() {
    daemon_start || exit 1
    check "full: it ends with status 1" same \
        "$(ctl record --quiet -T 60 -o "$dir/small/f.xentrace" >/dev/null 2>&1; echo $?)" 1
    check_file "full" disk-full
}

# Where space cannot be taken ahead the writes themselves fail: here by a limit on the file's size.
torn_write() {
    daemon_start || exit 1
    prlimit --pid "$daemon" --fsize=$((3 * mib))
    ctl record --quiet -T 60 -o "$dir/small/f.xentrace" 2>/dev/null
    check_file "torn write" "$1"
}

# Others have filled the disk to the last byte. (Here files are memory: no space was taken ahead, whose
# rest the end of a capture would give back.)
filled() {
    mkdir "$dir/memory" && mount -t tmpfs -o size=8M none "$dir/memory" || exit 1
    daemon_start --state-dir "$dir/memory" || exit 1
    ctl start own >/dev/null
    check "filled: its sidecar has room to grow" has_room "$dir/memory/own.json"
    ! cat /dev/zero >"$dir/memory/filler" 2>/dev/null || exit 1
    check "filled: the capture ends" ctl stop own
    check "filled: its sidecar says so" same "$(number "$dir/memory/own.json" state)" ended
    check "filled: nothing is left" same "$(ls -A "$dir/memory" | tr '\n' ' ')" \
        "filler own.json own.xentrace "
    check "filled: the daemon ends well" daemon_stop
    unset daemon
    umount "$dir/memory"
}

has_room() { [ $(($(stat -c '%b * %B' "$1"))) -ge $((2 * $(stat -c %s "$1"))) ]; }

run_on() { # run_on MIB FUNCTION [ARGUMENT]
    local size=$1
    shift
    sim --cpus 4 --workload numbered --rate 20M -- on_small "$size" "$@"
    sim_clean
}
on_small() {
    local size=$1
    shift
    mount_small "$size" || exit 1
    trap unmount_small EXIT
    "$@"
    check "$1: the daemon ends well" daemon_stop
    unset daemon
    unmount_small
    trap - EXIT
}

main() {
    run_on 64 reserve
    run_on 64 full
    run_on 64 torn_write output-error
    sim --cpus 64 --workload none -- filled
    sim_clean
}

dispatch "$@"
