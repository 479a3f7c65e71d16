#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Outputs are independent of each other in the kernel, too: on one io_uring, the writes of 24 sinks are
# stuck on a frozen file system, while those of 8 more to another one complete. Needs root and loop
# devices.

. "$(dirname "$0")/lib.sh"

name="writes to a healthy file system do not wait for those to a frozen one"
work=$(mktemp -d)

clean_up() {
    local fs
    for fs in frozen healthy; do
        mountpoint -q "$work/$fs" || continue
        fsfreeze -u "$work/$fs" 2>/dev/null # if the test left it frozen
        umount "$work/$fs"
    done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

make_file_system() { # make_file_system NAME
    truncate -s 64M "$work/$1.image" && mkfs.ext4 -q "$work/$1.image" && mkdir "$work/$1" &&
        mount -o loop "$work/$1.image" "$work/$1"
}

# The programs freeze and thaw. One that hangs because of its own freeze can only be thawed from here.
with_thaw() {
    local status=0 guard
    (sleep 60 && fsfreeze -u "$work/frozen") >/dev/null 2>&1 &
    guard=$!
    "$@" || status=$?
    kill "$guard"
    return "$status"
}
stuck_writes() { # stuck_writes direct|buffered
    with_thaw "$build/tests/sim/stuck-writes" "$work/frozen" "$work/healthy" "$@"
}
stuck_sink() { with_thaw "$build/tests/sim/stuck-sink" "$work/frozen"; }

skip() {
    echo "ok - $name # SKIP $1"
    exit 0
}

[ "$(id -u)" -eq 0 ] || skip "needs root"
for fs in frozen healthy; do
    make_file_system "$fs" >"$work/log" 2>&1 || skip "no loop device: $(tail -n 1 "$work/log")"
done

for how in direct buffered; do
    check "$name, $how" stuck_writes "$how"
done
check "a sink whose file system is frozen is given up at once, and closed after the thaw" stuck_sink
finish
