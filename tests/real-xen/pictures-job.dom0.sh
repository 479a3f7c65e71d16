#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The incident of README.md on a real Xen, in dom0: the service as it is installed, with one trigger.

set -uo pipefail
. "$REAL_XEN_LIB"
. "${REAL_XEN_LIB%/*}/play.sh"

crash_domain() { pv_guest_start web 128 panic; }

printf '[trigger crash]\ncondition=domain-crash\n' >/etc/xentraced/xentraced.conf.d/crash.conf
systemd-sysusers
systemd-tmpfiles --create xentraced.conf
check "systemctl start xentraced" systemctl start xentraced
check "it answers" wait_until 60 daemon_is_ready
load_start 2
check "a guest" pv_guest_start db 128 load
mkdir -p "$OUT/pictures"
log_command="journalctl -q -u xentraced -o cat -n 2"
sleep 30 # a history to show
play_incident /var/lib/xentraced "$OUT/pictures"
load_stop
journalctl -u xentraced --no-pager -o short-precise >"$OUT/xentraced.log"
finish
