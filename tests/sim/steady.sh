#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The collector thread in steady capture, into the recorder's ring and a file at once: it allocates
# nothing, and its only system calls are io_uring_enter and the event channel's read and write.

. "$(dirname "$0")/lib.sh"

seconds=${SECONDS_WATCHED:-10}

mallocs() { od -A n -t u8 -w16 "$dir/mallocs" | awk -v i="$1" '{ print $i }'; } # 1: the collector's
collector_thread() {
    local comm
    comm=$(grep -lx collector "/proc/$daemon/task"/*/comm) && basename "$(dirname "$comm")"
}

# Those in FILE that are none of these. What is pending when a port is unmasked the stand-in itself
# delivers, in the unmasking thread: an open, a write and a close that Xen does not need.
other_calls() { # other_calls FILE EVTCHN
    awk -v evtchn="$2" '
        /^openat\(.*evtchn\.[0-9]+", O_WRONLY/ { its_own = 2; next }
        its_own > 0 { its_own--; next }
        /^io_uring_enter\(/ { next }
        /^(read|write)\(/ { fd = $1; gsub(/[^0-9]/, "", fd); if (fd == evtchn) next }
        { print }' "$1"
}
only_these_calls() { same "$(other_calls "$@" | cut -d "(" -f 1 | sort | uniq -c)" ""; }

steady() {
    local thread evtchn before
    recorder memory=32M
    LD_PRELOAD="$LD_PRELOAD:$build/tests/sim/libmallocs.so" MALLOCS=$dir/mallocs daemon_start || exit 1
    wait_until 10 recorder_runs || exit 1
    ctl start -e all steady >/dev/null
    ctl --json status >"$dir/status"
    check "Xen's buffers have 1 MiB for each CPU" same "$(number "$dir/status" xen buffer_pages)" 256
    wait_until 20 test -s "$dir/state/steady.xentrace"
    sleep 1
    thread=$(collector_thread)
    evtchn=$(find "/proc/$daemon/fd" -lname '*/evtchn.*' -printf '%f\n')
    before=$(mallocs 1)
    timeout -s INT "$seconds" strace -qq -s 0 -p "$thread" -o "$dir/calls" 2>"$dir/strace"
    check "in $seconds s it allocates nothing, and frees nothing" same "$(mallocs 1)" "$before"
    check "its system calls were seen" above "$(grep -c '^io_uring_enter' "$dir/calls")" 100
    check "the event channel's among them" above "$(grep -c "^read($evtchn, " "$dir/calls")" 100
    check "there are no others" only_these_calls "$dir/calls" "$evtchn"
    check "all that time records came" ctl stop steady
    check "the daemon ends" daemon_stop
    unset daemon
    check "what the thread frees at its end is seen" above "$(mallocs 1)" "$before"
}

main() {
    sim --cpus 8 --rate 160M -- steady
    sim_clean
}

dispatch "$@"
