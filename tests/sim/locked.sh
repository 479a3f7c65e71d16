#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the thread that empties Xen's buffers uses is locked in memory, and nothing else is; if it
# cannot be, status reports it, and recording goes on.

. "$(dirname "$0")/lib.sh"

mib=$((1024 * 1024))

locked_bytes() { awk '/^VmLck:/ { print $2 * 1024 }' "/proc/$daemon/status"; }
daemon_says() { reports ctl --json status >"$dir/all" && [ "$(number "$dir/all" daemon memory_locked)" = "$1" ]; }

records() {
    check "$1: a capture" ctl start "$1"
    check "$1: records come" wait_until 20 test -s "$dir/state/$1.xentrace"
    check "$1: and are whole" ctl stop "$1"
}

locked() {
    configure '[daemon]' pool=16M
    recorder_start memory=16M || exit 1
    records locked
    check "locked: pool and ring are" above "$(locked_bytes)" $((32 * mib))
    check "locked: and not much more" below "$(locked_bytes)" $((48 * mib))
    check "locked: status reports it" daemon_says true
}

# Without the capability that knows no limit.
unlocked() {
    launcher=(prlimit --memlock=1048576 setpriv --bounding-set=-ipc_lock)
    configure '[daemon]' pool=16M
    recorder_start memory=16M || exit 1
    records unlocked
    check "unlocked: the log has a line" grep -q 'Not all memory is locked.*LimitMEMLOCK=' "$dir/log"
    check "unlocked: within the limit" below "$(locked_bytes)" $((mib + 1))
    check "unlocked: status reports it" daemon_says false
    ctl status >"$dir/text"
    check "unlocked: for people, too" grep -q "not locked.*LimitMEMLOCK=" "$dir/text"
}

# Not enough for the smallest io_uring.
refused() {
    launcher=(prlimit --memlock=65536 setpriv --bounding-set=-ipc_lock)
    configure '[daemon]' pool=16M
    check "refused: it does not start" fails . daemon_start
    check "refused: and says why" grep -q 'Cannot start the collector: .*LimitMEMLOCK=' "$dir/log"
    unset daemon
}

# Control groups allow less than the configuration: beyond it the kernel would kill the daemon.
limited() {
    local group=$dir/group$(sed -n 's/^0:://p' /proc/self/cgroup)
    mkdir -p "$group" && echo $((256 * mib)) >"$group/memory.max" && echo 0 >"$group/memory.current" || exit 1
    launcher=(unshare --mount sh -c 'mount --bind "$0" /sys/fs/cgroup && exec "$@"' "$dir/group")
    configure '[daemon]' pool=16M pool-max=1G
    recorder_start memory=16M || exit 1
    ctl --json status >"$dir/all"
    check "limited: the pool may grow to what fits" same "$(number "$dir/all" daemon pool_max_bytes)" $((176 * mib))
    check "limited: the log says so" grep -q 'The pool cannot grow to 1G .* is 256M (MemoryMax=' "$dir/log"
    check "limited: a ring that does not fit is refused" refuses "memory" ctl start -M 300M big
    check "limited: it ends well" daemon_stop
    sed -i 's/^pool=16M/pool=300M/' "$dir/xentraced.conf"
    check "limited: a pool that does not fit is refused" fails . daemon_start
    check "limited: and the log says why" grep -q 'No memory for the pool of 300 MiB .* set a smaller pool=' "$dir/log"
    unset daemon
}

run() {
    sim --cpus 4 --rate 1M -- "$1"
    check "$1: the capture is whole" whole "$dir/state/$1.xentrace"
    sim_clean
}

main() {
    together run locked unlocked
    sim --cpus 2 -- refused
    sim --cpus 2 -- limited
}

dispatch "$@"
