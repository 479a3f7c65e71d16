#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The main job on a real Xen, in dom0: the service, a capture of the scheduler, a capture of everything
# while a guest comes and goes, and losses that the ledger, the file and `status` tell alike.

set -uo pipefail
. "$REAL_XEN_LIB"

state=/var/lib/xentraced
cpus=$(nproc)

ended() { xentracectl status "$1" | grep 'State: ended' >/dev/null; }
balances() { ledger_balances cat "$state/$1.json"; } # balances NAME

# Captures alone, and buffers that overflow soon; recorder-job has the flight recorder.
printf '[capture]\nbuffer-pages=32\n[disk]\nmax-use=none\nkeep-free=none\n[flight-recorder]\nenabled=no\n' >/etc/xentraced/xentraced.conf
systemd-sysusers # the service's group
check "the service starts" systemctl start xentraced
check "and answers" wait_until 10 daemon_is_ready
check "nothing was allocated or enabled by starting it" \
    shows '"buffer_pages": *0' xentracectl --json status

sleep 1
check "no session: no wake-up in 5 s" same "$(wakeups_in 5)" 0
check "a capture of nothing starts" xentracectl start -e gen nothing # nothing is traced by it
sleep 5
idle=$(wakeups_in 10)
check "a capture and nothing traced: at most 2 wake-ups a second" above 21 "$idle"
echo "$idle wake-ups in 10 s"
check "it stops" xentracectl stop nothing

load_start
check "start -e sched -c 0-7 -T 10" xentracectl start -e sched -c "0-$((cpus - 1))" -T 10 sched
check "a daemon beside it is refused with the first one's PID" \
    fails "PID $(systemctl show -P MainPID xentraced)" xentraced --socket /tmp/other --state-dir /tmp
check "it ends by itself" wait_until 20 ended sched
check "its file is sound" xentracectl info "$state/sched.xentrace"
check "its ledger balances" balances sched
check "the file holds what the ledger says" \
    same "$(info_number records "$state/sched.xentrace")" "$(total delivered cat "$state/sched.json")"
check "every CPU is in it" \
    same "$(xentracectl --json info "$state/sched.xentrace" | tr -d ' \n' | grep -o '"cpu":[0-9]*' |
        sort -u | wc -l)" "$cpus"

check "start -e all" xentracectl start -e all everything
check "a second start with its name is refused" \
    refuses "'everything' is already running" xentracectl start everything
check "a guest starts" pv_guest_start guest 128 idle
guest=$(guest_id guest)
sleep 3
check "the guest is destroyed" pv_guest_destroy guest
sleep 1
check "stop" xentracectl stop everything
check "the file of everything is sound" xentracectl info "$state/everything.xentrace"
check "its ledger balances" balances everything
echo "$guest" >"$OUT/guest-domid"
check "the sidecar knows the guest by name" grep -q '"guest"' "$state/everything.json"

# The collector cannot run for two seconds: Xen's buffers overflow, and Xen counts.
check "start for the losses" xentracectl start -e all lossy
sleep 1
kill -STOP "$(systemctl show -P MainPID xentraced)"
sleep 2
kill -CONT "$(systemctl show -P MainPID xentraced)"
sleep 1
live=$(total lost xentracectl --json status lossy)
check "status tells the losses while it runs" above "$live" 0
check "stop after the losses" xentracectl stop lossy
load_stop
lost=$(total lost xentracectl --json status lossy)
check "the file is sound" xentracectl info "$state/lossy.xentrace"
check "the ledger balances" balances lossy
check "status, file and sidecar tell the same number" same \
    "$lost $lost" "$(info_number lost "$state/lossy.xentrace") $(total lost cat "$state/lossy.json")"
echo "lost $lost"

# The emulator's disk may not answer for the 2 s that a start waits.
packs() { xentracectl record --quiet --compress zstd -e all -T 3 packed; }
check "a compressed capture" wait_until 60 packs
check "it is sound, and agrees with its sidecar" xentracectl info "$state/packed.xentrace.zst"
check "its ledger balances" balances packed
check "it is smaller than what it holds" above \
    "$(value plain_bytes cat "$state/packed.json")" \
    "$(stat -c %s "$state/packed.xentrace.zst")"

check "one page more than in force is refused with the size in force" \
    refuses "32 pages" xentracectl start -S 33
check "a CPU that is not there is refused with the highest" \
    refuses "$((cpus - 1))" xentracectl start -c 0-99

# A file system of its own for the disk that gets full.
mount_small() {
    modprobe loop && truncate -s 12M /tmp/small.img && mkfs.ext4 -q /tmp/small.img &&
        mkdir -p /mnt/small && mount -o loop /tmp/small.img /mnt/small
}
check "a small file system" mount_small
load_start
check "record ends with status 1 when only the reserve is left" \
    fails "reserve" xentracectl record -e all -T 90 -r 6M -o /mnt/small/f.xentrace
load_stop
check "the reserve is whole" \
    above "$(($(stat -f -c '%a * %S' /mnt/small/f.xentrace)))" $((6 * 1024 * 1024 - 1))
check "the reason is told" shows '"reason": *"reserve"' xentracectl --json status
check "the file is sound to its end" xentracectl info /mnt/small/f.xentrace
check "tracing is off" shows "tracing off" xentracectl status

check "the service stops" systemctl stop xentraced
check "and did not fail" same "$(systemctl show -P Result xentraced)" success
timeout 10 xentrace -e 0x0002f000 -T 1 /tmp/x
check "xentrace can have Xen again" test -s /tmp/x

cp "$state"/*.xentrace "$state"/*.json "$OUT"
journalctl -u xentraced --no-pager -o cat >"$OUT/xentraced.log"
finish
