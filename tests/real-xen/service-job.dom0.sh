#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The package on a real Xen, in dom0, under a real systemd. One package and `systemctl start` are all
# there is to it. The sandbox lets the service do its work. A reload changes what it may; a wrong
# configuration is refused and not retried for ever. Each role may do what the manual's table says.
# An upgrade from 0.1.0 keeps configuration and history.
#
#   service-job.dom0.sh [carries]   0.1.0 has its own programs, whose ring has another layout
#
# Packages are in /packages (service-job).

set -uo pipefail
. "$REAL_XEN_LIB"

carries=${1:-}
state=/var/lib/xentraced
conf_file=/etc/xentraced/xentraced.conf
drop_ins=$conf_file.d

conf() { printf '%s\n' "$@" >"$drop_ins/50-test.conf"; }
service_value() { systemctl show -P "$1" xentraced; }
status_is() { same "$(awk "/^$1:/ { print \$2 }" "/proc/$(service_value MainPID)/status")" "$2"; }
has_file() { compgen -G "$state/$1"; }
logs() { journalctl -u xentraced -o cat --no-pager | grep -- "$1"; }
# Not systemd's own. How soon xenstored answers is the emulator's doing: others use this machine, too.
complaints() {
    journalctl -q -t xentraced -p warning -o cat --no-pager | grep -v '^Xenstore does not answer\.'
}
pid_stays() { same "$(service_value MainPID)" "$pid"; }
ended() { xentracectl status "$1" | grep 'State: ended'; }
runs() { xentracectl status "$1" | grep 'State: running'; }
as() { runuser -u "$1" -- "${@:2}"; } # as USER COMMAND...
recorder() { xentracectl --json status flight-recorder; }
# What they need is in the image. A changed configuration: the default, which is to keep it.
apt_install() { # apt_install DEB...
    apt-get -qq -y --no-install-recommends -o Dpkg::Options::=--force-confdef install "$@"
}

# --- One package, one command. ---

export DEBIAN_FRONTEND=noninteractive
mkdir -p /var/cache/apt/archives/partial /var/lib/apt/lists/partial
check "apt install xentraced.deb, and no other" apt_install /packages/xentraced.deb
check "it starts nothing" same "$(service_value ActiveState)" inactive
check "the service starts at the next boot" systemctl is-enabled xentraced
# The image's disk is small, and its CPUs are slow: no more than that is different from the default.
printf '%s\n' '[capture]' buffer-pages=32 '[disk]' max-use=none keep-free=none \
    >"$drop_ins/10-host.conf"
check "systemctl start xentraced" systemctl start xentraced
check "it answers" wait_until 10 daemon_is_ready
check "the doctor finds no fault" xentracectl doctor
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
check "start -e sched -c 0-7 -T 10" xentracectl start -e sched -c 0-7 -T 10 one
check "it ends by itself" wait_until 60 ended one
check "its file is for the group" same "$(stat -c %U:%G:%a "$state/one.xentrace")" root:xentrace:640
check "it is sound" xentracectl info "$state/one.xentrace"
check "a client's own file" xentracectl record --quiet -e sched -T 1 -o /root/two.xentrace
check "is sound, too" xentracectl info /root/two.xentrace
check "a snapshot" xentracectl snapshot three
check "is sound" xentracectl info "$state/three.xentrace"
check "nothing is complained about" same "$(complaints)" ""
systemd-analyze security xentraced --no-pager | grep -e ✗ -e Overall >"$OUT/security"
systemd-analyze security xentraced-snapshot@x --no-pager | grep -e ✗ -e Overall >>"$OUT/security"
check "the service's exposure is at most 1.3" \
    systemd-analyze security --threshold=13 --no-pager xentraced
check "the snapshot's is at most 1.5" \
    systemd-analyze security --threshold=15 --no-pager xentraced-snapshot@x
check "a snapshot by the unit" systemctl start xentraced-snapshot@unit
check "is there" has_file 'snapshot-user-unit-*.json'

# --- A report beside a snapshot. ---

systemd-analyze security xentraced-report@x --no-pager | grep -e ✗ -e Overall >>"$OUT/security"
check "the report's exposure is at most 1.0" \
    systemd-analyze security --threshold=10 --no-pager xentraced-report@x
check "a report by the unit" systemctl start xentraced-report@three
check "is one" grep -q '^DOMAIN ' "$state/three.report.txt"
check "is for the group, whose directory it is in" same "$(stat -c %U:%a "$state/three.report.txt")" root:644
check "a report of nothing: the unit is skipped" systemctl start xentraced-report@nothing
check "... and leaves nothing" test ! -e "$state/nothing.report.txt"
head -c 100000 /dev/urandom >"$state/noise.xentrace"
check "a report of noise fails" fails . systemctl start xentraced-report@noise
rm "$state"/noise.*
systemctl reset-failed
conf '[trigger reported]' condition=manual cooldown=0 report=yes
check "reload: report=yes" systemctl reload xentraced
echo CLICKHOUSE_URL=http://127.0.0.1:1 >/etc/xentraced/ship.env
check "shipping is enabled, for reports" systemctl enable xentraced-ship@.service
report_is_shown() { xentracectl status | grep 'Last report: [^ ]' >/dev/null; }
xentracectl trigger reported
check "the daemon has the report written" wait_until 60 report_is_shown
reported=$(basename "$(compgen -G "$state/snapshot-reported-*.report.txt")" .report.txt)
rows_wait() {
    [ "$(systemctl show -P SubState xentraced-send)" = auto-restart ] &&
        [ -s "/var/spool/xentraced/$reported.intervals.gz" ]
}
check "its rows wait for a server that is not there" wait_until 60 rows_wait
systemctl disable xentraced-ship@.service
systemctl stop xentraced-send.path xentraced-send.service
rm /etc/xentraced/ship.env
check "remove takes it, too" xentracectl remove "$reported"
check "... and leaves nothing" same "$(compgen -G "$state/$reported*")" ""

# --- A unit that fails again and again. ---

flapping_unit=xentraced-snapshot@flapping.service.service
printf '%s\n' '[Unit]' OnFailure=xentraced-snapshot@%n.service \
    '[Service]' Type=oneshot ExecStart=/bin/false >/etc/systemd/system/flapping.service
state_bytes() { du -s --block-size=1 "$state" | cut -f1; }
flapping_snapshots() { compgen -G "$state/snapshot-user-flapping.service-*.json" | wc -l; }
is_over() { [ "$(systemctl show -P ActiveState $flapping_unit)" != activating ]; }
flap() { # flap TIMES: without systemd's own limit, so that the daemon's is seen
    local i
    for ((i = 0; i < $1; i++)); do
        systemctl reset-failed flapping.service $flapping_unit
        systemctl start flapping.service
        wait_until 20 is_over
        [ $((i % 5)) -ne 0 ] || echo "# failure $i" # who is silent for too long is ended
    done 2>/dev/null
}
systemctl daemon-reload
sleep 10 # snapshot-interval=, since the one before
before=$(state_bytes) from=$SECONDS
flap 12
took=$((SECONDS - from)) written=$(flapping_snapshots)
echo "# it failed 12 times in $took s: $written snapshots, $(($(state_bytes) - before)) bytes"
check "a unit that flaps has its snapshot" above "$written" 0
check "... one in 10 s" above $((took / 10 + 2)) "$written"
check "... of the recorder's memory at most" \
    above $((written * 68000000)) $(($(state_bytes) - before))
conf '[limits]' snapshot-interval=0 snapshots-per-day=$((written + 3))
check "with a budget of 3 more a day" systemctl reload xentraced
flap 8
check "... it has some" above "$(flapping_snapshots)" "$written"
check "... but no more than those" below "$(flapping_snapshots)" $((written + 4))
check "... and root has its own" xentracectl snapshot roots-own
rm "$drop_ins/50-test.conf"
check "the default budget" systemctl reload xentraced

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
check "a wrong configuration is not retried" \
    same "$(service_value ActiveState) $(service_value NRestarts)" "failed 0"
check "the status says what it is" same "$(service_value ExecMainStatus)" 78
rm "$drop_ins/50-test.conf"
check "the right one starts" systemctl start xentraced
check "killed" systemctl kill -s KILL --kill-who=main xentraced
check "any other end is" wait_until 20 daemon_is_ready
check "with the recorder kept" shows '"restored": *1' xentracectl --json status flight-recorder
produced=$(total produced recorder)
check "systemctl restart" systemctl restart xentraced
check "the records are kept" above "$(total produced recorder)" "$produced"
check "... in the same ring" shows '"restored": *2' recorder

# --- Who may do what: the table of xentraced(8), PERMISSIONS. ---

groupadd tracers
useradd -m -G xentrace viewer
useradd -m -G tracers tracer # Debian has a group `operator`
useradd -m stranger
conf '[daemon]' control-group=tracers '[limits]' snapshot-interval=0 \
    '[trigger hand]' condition=manual cooldown=0
check "roles" systemctl restart xentraced
check "root: a capture in segments" \
    xentracectl start -e sched --segment-time 600 --keep-files 4 roots
check "root: a capture" xentracectl start -e sched plain

may() { # may USER WHAT COMMAND...
    check "$1 may $2" as "$1" "${@:3}"
}
refusal='Only root( and members .* operate.)? may |Another user started this one: only root may '
may_not() { # may_not USER WHAT COMMAND...: refused by the daemon, as what this role may not do
    check "$1 may not $2" refuses "$refusal" as "$1" "${@:3}"
}
live() { # live USER
    as "$1" xentracectl snapshot --last 1s -o - 2>/dev/null | cat >"$OUT/live-$1" &&
        xentracectl info "$OUT/live-$1"
}
for user in viewer tracer; do
    check "$user may see the status" reports as "$user" xentracectl status
    may $user "list captures" xentracectl list
    may $user "list files" xentracectl list --files
    may $user "list triggers" xentracectl list --triggers
    may $user "fire a manual trigger" xentracectl trigger hand
    may $user "take a snapshot" xentracectl snapshot "by-$user"
    check "... whose name has the prefix" has_file "snapshot-user-by-$user.xentrace"
    check "$user may read the newest second" live $user
    may_not $user "start a capture into the state directory" xentracectl start -e sched
    may_not $user "start one in segments" xentracectl start -e sched --segment-time 2 mine
    may_not $user "stop root's capture" xentracectl stop plain
    may_not $user "abort it" xentracectl stop --abort plain
    may_not $user "rotate root's segments" xentracectl rotate roots
    may_not $user "vacuum" xentracectl vacuum --max-use 1M
    may_not $user "remove root's files" xentracectl remove one
    may_not $user "remove a snapshot of its own" xentracectl remove "snapshot-user-by-$user"
    may_not $user "stop the flight recorder" xentracectl stop --recorder
    may_not $user "start the flight recorder" xentracectl start flight-recorder
    may_not $user "reload" xentracectl reload
done
may viewer "read all snapshots" xentracectl info "$state/three.xentrace"
check "viewer may not write there" fails 'denied' as viewer touch "$state/x"
check "viewer may not take a snapshot with -o" \
    fails 'Only root' as viewer xentracectl snapshot -o /home/viewer/one.xentrace
check "viewer may not start a capture with -o" \
    fails 'Only root' as viewer xentracectl start -e sched -o /home/viewer/two.xentrace
check "... and has no records" same "$(find /home/viewer -name '*.xentrace' -size +0)" ""
may tracer "take a snapshot with -o" xentracectl snapshot -o /home/tracer/snapshot.xentrace
may tracer "start a capture with -o" xentracectl start -e sched -o /home/tracer/own.xentrace own
may tracer "stop its own capture" xentracectl stop own
check "... whose file is sound, and is its own" as tracer xentracectl info /home/tracer/own.xentrace
may tracer "start another" xentracectl start -e sched -o /home/tracer/other.xentrace other
may tracer "abort its own" xentracectl stop --abort other
may tracer "start a third" xentracectl start -e sched -o /home/tracer/third.xentrace third
may_not viewer "stop an operator's capture" xentracectl stop third
check "root may stop an operator's capture" xentracectl stop "uid$(id -u tracer)-third"
for command in status list "list --files" "trigger hand" snapshot "snapshot -o /home/stranger/x" \
    "start -o /home/stranger/x" "stop plain" "rotate roots" vacuum "remove one" "stop --recorder" \
    reload; do
    # shellcheck disable=SC2086 # words of a command line
    check "a stranger may not: $command" \
        refuses 'Not permitted to reach' as stranger xentracectl $command
done
check "nor read the files" fails 'denied' as stranger cat "$state/three.xentrace"
check "nor speak to the socket" fails 'Permission denied' as stranger \
    "${varlink[@]}" org.xentraced.Control.Snapshot '{"name":"by-hand"}'
check "the service's own user takes snapshots, and no more" \
    refuses 'Only root' as xentraced-snapshot xentracectl vacuum
for name in roots plain flight-recorder; do
    check "root's has run all the time: $name" runs $name
done
check "root may rotate" xentracectl rotate roots
check "root may stop" xentracectl stop --all
check "root may remove" xentracectl remove one
check "root may vacuum" xentracectl vacuum --max-use 1M --dry-run
rm "$drop_ins/50-test.conf"

# --- Stopped and purged: nothing is left, in Xen neither. ---

check "systemctl stop" systemctl stop xentraced
check "it did not fail" same "$(service_value Result)" success
check "nothing is kept after a stop" same "$(service_value NFileDescriptorStore)" 0
check "started again" systemctl start xentraced
check "... with an empty recorder" shows '"restored": *0' recorder
rm "$drop_ins/10-host.conf"
check "purge" shows "Traces in $state are kept" apt-get -qq -y purge xentraced
check "it does not run" same "$(systemctl is-active xentraced) $(pidof xentraced)" "inactive "
check "nothing is left of the package" same "$(find /etc /usr -xdev -path '*/xentraced*')" ""
check "... but the captures" test -s "$state/three.xentrace"

# --- From 0.1.0: the configuration and the history are kept. ---

check "0.1.0 is installed" \
    apt_install /packages/older_xentraced.deb /packages/older_xentrace-tools.deb
sed -i 's/^#buffer-pages=.*/buffer-pages=32/; s/^#memory=.*/memory=32M/' $conf_file
before=$(sha256sum <$conf_file)
check "0.1.0 runs" systemctl start xentraced
[ -z "$carries" ] || check "... its own programs" shows '^xentraced 0[.]1[.]0' xentraced --version
load_start 2
sleep 3
load_stop
check "a snapshot of what it holds" xentracectl snapshot -o "$OUT/before.xentrace"
pid=$(service_value MainPID)
check "the upgrade" apt_install /packages/xentraced.deb
check "another daemon runs" fails '' pid_stays
check "... and answers" wait_until 20 daemon_is_ready
check "the configuration is kept" same "$(sha256sum <$conf_file)" "$before"
check "... with the new default beside it" test -s $conf_file.dpkg-dist
check "the ring is kept" shows '"restored": *1' recorder
[ -z "$carries" ] || check "... its records carried over" logs 'carried over from a ring of'
check "a snapshot of what was kept" xentracectl snapshot -o "$OUT/after.xentrace"
check "it is sound" xentracectl info "$OUT/after.xentrace"
check "the ledger balances" ledger_balances recorder
has_no_client_package() { ! dpkg-query -W -f '${Status}' xentrace-tools | grep 'ok installed'; }
check "the client's package is gone" has_no_client_package

# --- After xenstored, which cannot really be restarted: so it comes last. ---

order_is_kept() { # both are asked for at once, and xenstored takes its time
    local started slow=/run/systemd/system/xenstored.service.d
    systemctl stop xentraced xenstored
    mkdir -p "$slow"
    printf '[Service]\nExecStartPre=/bin/sleep 2\n' >"$slow/slow.conf"
    systemctl daemon-reload
    systemctl start xenstored xentraced || return
    started=$(systemctl show -P ActiveEnterTimestampMonotonic xenstored)
    above "$(service_value ExecMainStartTimestampMonotonic)" "$started"
}
check "it starts after xenstored" order_is_kept
check "it is purged" apt-get -qq -y purge xentraced
journalctl -u xentraced -u 'xentraced-snapshot@*' --no-pager -o short-precise >"$OUT/xentraced.log"
finish
