#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The PVH job, in dom0: events at known times, a snapshot of the last 2 s, and VIRQ_TBUF, also for a
# daemon whose predecessor was killed with an unread one.

set -uo pipefail
. "$REAL_XEN_LIB"

state=/var/lib/xentraced

# Hypercalls that Xen does not know, each with the time and the TSC before and after. Xen traces them
# as VMMCALL with their number.
probe() {
    python3 - <<'PYTHON'
import ctypes, mmap, time
library = ctypes.CDLL("libxencall.so.1")
library.xencall_open.restype = ctypes.c_void_p
library.xencall0.argtypes = ctypes.c_void_p, ctypes.c_uint
xcall = library.xencall_open(None, 0)
assert xcall
# rdtsc; shl $32, %rdx; or %rdx, %rax; ret
code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("0f3148c1e2204809d0c3"))
rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
for _ in range(40):
    time.sleep(0.05)
    before = time.clock_gettime_ns(time.CLOCK_REALTIME), rdtsc()
    library.xencall0(xcall, 62)
    after = rdtsc(), time.clock_gettime_ns(time.CLOCK_REALTIME)
    print(*before, *after)
PYTHON
}

# By default it would be 256 pages, half of which take a PVH dom0 in the emulator 20 s.
printf '[capture]\nbuffer-pages=32\n[disk]\nmax-use=none\nkeep-free=none\n[flight-recorder]\nevents=all\n' >/etc/xentraced/xentraced.conf
check "dom0 is a PVH domain" same "$(cat /sys/hypervisor/guest_type)" PVH
systemd-sysusers # the service's group
check "the service starts" systemctl start xentraced
check "and answers" wait_until 20 daemon_is_ready

check "start -e all" xentracectl start -e all probed
check "events at known times" shows '[0-9]' probe
printf '%s\n' "$checked" >"$OUT/probes"
check "stop" xentracectl stop probed
check "the file is sound" xentracectl info "$state/probed.xentrace"

load_start
sleep 4
date +%s%N >"$OUT/last-ns"
check "snapshot --last 2s" xentracectl snapshot --last 2s last
date +%s%N >>"$OUT/last-ns"

check "VIRQ_TBUF is counted" virq_is_counted
echo "$(virqs) VIRQ_TBUF, $(xentracectl --json status | grep -o '"rounds": *[0-9]*')"

# The buffers of both CPUs become half full: one event is unread, and one pending, when the daemon dies.
killed_pid=$(daemon_pid)
is_new() { [ "$(daemon_pid)" != "$killed_pid" ] && daemon_is_ready; }
check "VIRQ_TBUF fires for one that is stopped" stop_until_fired
sleep 3
kill -KILL "$killed_pid"
check "killed, and its event unread: a new daemon runs" wait_until 60 is_new
check "... and its VIRQ_TBUF is counted" virq_is_counted
check "... and counted again" virq_is_counted
load_stop

cp "$state"/{probed,last}.{xentrace,json} "$OUT"
check "the service stops" systemctl stop xentraced
journalctl -u xentraced --no-pager -o short-precise >"$OUT/xentraced.log"
finish
