#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The units on a real Xen, in dom0, under a real systemd: the sandbox lets the service do its work, a
# reload changes what it may, and a wrong configuration is refused and not retried for ever.

set -uo pipefail
. "$REAL_XEN_LIB"

state=/var/lib/xentraced
drop_ins=/etc/xentraced/xentraced.conf.d

conf() { printf '%s\n' "$@" >"$drop_ins/50-test.conf"; }
service_value() { systemctl show -P "$1" xentraced; }
status_is() { same "$(awk "/^$1:/ { print \$2 }" "/proc/$(service_value MainPID)/status")" "$2"; }
has_file() { compgen -G "$state/$1" >/dev/null; }
logs() { journalctl -u xentraced -o cat --no-pager | grep -q -- "$1"; }
complaints() { journalctl -q -t xentraced -p warning -o cat --no-pager; }
pid_stays() { same "$(service_value MainPID)" "$pid"; }

printf '[capture]\nbuffer-pages=32\n' >/etc/xentraced/xentraced.conf
mkdir -p "$drop_ins"
systemd-sysusers
systemd-tmpfiles --create xentraced.conf
check "systemctl start xentraced" systemctl start xentraced
check "it answers" wait_until 10 daemon_is_ready
pid=$(service_value MainPID)

# --- The sandbox. ---

check "no capability" status_is CapEff 0000000000000000
check "nor any that could be gained" status_is CapBnd 0000000000000000
check "a system call filter" status_is Seccomp 2
check "the group of the files" same "$(stat -c %U:%G:%a "$state")" root:xentrace:750
check "the recorder is kept by systemd" same "$(service_value NFileDescriptorStore)" 2
check "memory is locked" shows '"memory_locked": *true' xentracectl --json status
check "the collector has its priority, the pool is registered" \
    same "$(journalctl -u xentraced -o cat --no-pager | grep -c RLIMIT)" 0
check "domains are known by name" shows '"Domain-0"' xentracectl --json status flight-recorder
check "a capture" xentracectl record --quiet -e sched -T 1 one
check "for the group" same "$(stat -c %U:%G:%a "$state/one.xentrace")" root:xentrace:640
check "it is sound" xentracectl info "$state/one.xentrace"
check "a client's own file" xentracectl record --quiet -e sched -T 1 -o /root/two.xentrace
check "is sound, too" xentracectl info /root/two.xentrace
check "a snapshot" xentracectl snapshot three
check "nothing is complained about" same "$(complaints)" ""
systemd-analyze security xentraced --no-pager | grep -e ✗ -e Overall >"$OUT/security"
systemd-analyze security xentraced-snapshot@x --no-pager | grep -e ✗ -e Overall >>"$OUT/security"
check "the service's exposure is at most 1.3" systemd-analyze security --threshold=13 --no-pager xentraced
check "the snapshot's is at most 1.5" systemd-analyze security --threshold=15 --no-pager xentraced-snapshot@x
check "a snapshot by the unit" systemctl start xentraced-snapshot@unit
check "is there" has_file 'snapshot-unit-*.json'

# --- Reload. ---

conf '[trigger hand]' condition=manual '[daemon]' pool=32M
check "systemctl reload" systemctl reload xentraced
check "the same daemon" pid_stays
check "it has the trigger" xentracectl trigger hand
check "the log has what needs a restart" logs "pool=32M .* needs a restart"
conf '[trigger hand]' conditoin=manual
check "a wrong file: systemctl reload fails" fails "" systemctl reload xentraced
check "the log says why" logs "50-test.conf, line 2: there is no key 'conditoin'"
check "the service continues" pid_stays
check "with the configuration before" shows hand xentracectl list --triggers

# --- Ends that are not retried. ---

systemctl restart xentraced
sleep 2
check "a wrong configuration is not retried" same "$(service_value ActiveState) $(service_value NRestarts)" \
    "failed 0"
check "the status says what it is" same "$(service_value ExecMainStatus)" 78
rm "$drop_ins/50-test.conf"
check "the right one starts" systemctl start xentraced
check "killed" systemctl kill -s KILL --kill-who=main xentraced
check "any other end is" wait_until 20 daemon_is_ready
check "with the recorder kept" shows '"restored": *1' xentracectl --json status flight-recorder
journalctl -u xentraced -u 'xentraced-snapshot@*' --no-pager -o short-precise >"$OUT/xentraced.log"
finish
