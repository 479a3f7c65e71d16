#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A guest that is starved on purpose, in dom0: it is pinned to a CPU on which two vCPUs of dom0 are always
# busy, and has a small weight. A trigger takes a snapshot when it has waited for 20 ms. Once with a PV
# guest, once with a PVH guest.
#
#   story-job.dom0.sh credit|credit2

set -uo pipefail
. "$REAL_XEN_LIB"

scheduler=$1
state=/var/lib/xentraced

busy=()
be_busy() { # on vCPUs 1 and 2 of dom0, which are pinned to CPU 1
    local vcpu
    for vcpu in 1 2; do
        xl vcpu-pin Domain-0 $vcpu 1 || return 1
        taskset -c $vcpu bash -c 'while :; do :; done' &
        busy+=($!)
    done
    xl vcpu-pin Domain-0 0 0
}
rest() {
    kill "${busy[@]}"
    wait "${busy[@]}" 2>/dev/null
    busy=()
    true
}
starve() { # starve NAME
    xl vcpu-pin "$1" 0 1 && xl "sched-$scheduler" -d "$1" -w 8
}
has_snapshot() { compgen -G "$state/snapshot-$1-*.json" >/dev/null; }

# Not before it is pinned: a guest that boots may wait as well.
arm() { # arm NAME
    printf '[trigger %s]\nrunnable-latency=20ms\ndomain=%s\ndelay=2s\nlast=2s\n' "$1" "$1" \
        >"/etc/xentraced/xentraced.conf.d/$1.conf" && systemctl reload xentraced
}

printf '[capture]\nbuffer-pages=256\n[disk]\nmax-use=none\nkeep-free=none\n[flight-recorder]\nevents=sched\n' \
    >/etc/xentraced/xentraced.conf
mkdir -p /etc/xentraced/xentraced.conf.d
systemd-sysusers
check "the scheduler is $scheduler" shows "xen_scheduler *: $scheduler" xl info
check "systemctl start xentraced" systemctl start xentraced
check "it answers" wait_until 60 daemon_is_ready
for guest_type in pv pvh; do
    check "a $guest_type guest" pv_guest_start $guest_type 128 load
    check "two vCPUs are always busy" be_busy
    check "the guest is pinned beside them" starve $guest_type
    sleep 3 # what the trigger sees is history
    check "a trigger" arm $guest_type
    check "it takes a snapshot" wait_until 240 has_snapshot $guest_type
    check "the load ends" rest
    check "the guest ends" pv_guest_destroy $guest_type
    cp "$(compgen -G "$state/snapshot-$guest_type-*.xentrace" | head -n 1)" "$OUT/$guest_type.xentrace"
    cp "$(compgen -G "$state/snapshot-$guest_type-*.json" | head -n 1)" "$OUT/$guest_type.json"
done
journalctl -u xentraced --no-pager -o cat >"$OUT/xentraced.log"
finish
