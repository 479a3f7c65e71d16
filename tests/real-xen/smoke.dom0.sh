#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Proves the harness itself, with Xen's own xentrace:
#
#   tests/real-xen/run --cpus 8 --out DIR tests/real-xen/smoke.dom0.sh

set -u
# shellcheck source=tests/real-xen/dom0-lib.sh
. "$REAL_XEN_LIB"

xentrace=/usr/lib/xen-4.17/bin/xentrace

no_failed_units() {
    systemctl is-system-running --wait
    systemctl --failed --no-legend
    [ -z "$(systemctl --failed --no-legend)" ]
}

xl_lists_dom0() {
    xl list | grep '^Domain-0 ' >/dev/null
}

guest_is_gone() {
    ! xl domid "$1" 2>/dev/null
}

trace_under_load() {
    local tracer status=0
    "$xentrace" -D -e all -T 3 "$OUT/smoke.xentrace" &
    tracer=$!
    load_start
    pv_guest_start smoke 128 load || status=1
    sleep 1
    guest_id smoke || status=1
    pv_guest_destroy smoke || status=1
    wait "$tracer" || status=1
    load_stop
    return $status
}

# Windows of a trace: cpu_change (0x2001F003), CPU, bytes, as docs/file-format.md has it.
every_cpu_was_traced() {
    python3 - "$OUT/smoke.xentrace" "$(nproc)" <<'END'
import struct, sys
data = open(sys.argv[1], "rb").read()
at, sizes = 0, dict.fromkeys(range(int(sys.argv[2])), 0)
while at < len(data):
    header, cpu, size = struct.unpack_from("<III", data, at)
    if header & 0x0fffffff != 0x0001f003:
        sys.exit(f"no window at byte {at}")
    sizes[cpu] += size
    at += 12 + size
print(sizes)
sys.exit(at != len(data) or not all(sizes.values()))
END
}

echo "dom0: $(uname -r), $(nproc) CPUs, $(systemd-analyze time | head -n 1)"
check "the system is up and no unit failed" no_failed_units
check "xl list shows dom0" xl_lists_dom0
check "io_uring is allowed" test ! -s /proc/sys/kernel/io_uring_disabled
check "xentrace -e all for 3 s under load, with a guest started and destroyed" trace_under_load
check "every CPU was traced" every_cpu_was_traced
check "a guest that panics" pv_guest_start panicking 128 panic
check "... is destroyed" wait_until 30 guest_is_gone panicking
check "a guest that powers off" pv_guest_start poweroff 128 poweroff
check "... is gone" wait_until 30 guest_is_gone poweroff
finish
