#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The flight recorder on a real Xen, in dom0, under a real systemd: what it records by default, captures
# beside it, restarts of all kinds under load, crashing guests, failing units, and who may ask.
#
#   recorder-job.dom0.sh [CRASHES]   so many guests are to crash and be destroyed at once (1)
#
# Snapshots and a list of what is to be found in them go to $OUT; recorder-job looks.

set -uo pipefail
. "$REAL_XEN_LIB"

crashes=${1:-1}
state=/var/lib/xentraced
config=/etc/xentraced/xentraced.conf
recorder() { xentracectl --json status flight-recorder; }

status() { value "$1" xentracectl --json status; }
value_is() { same "$(value "$1" recorder)" "$2"; } # value_is KEY VALUE
status_is() { same "$(status "$1")" "$2"; }
service_value() { systemctl show -P "$1" xentraced; }
milliseconds() { date +%s%3N; }
snapshot() { # snapshot NAME: of all; it is sound and arrives at the host
    xentracectl snapshot "$1" && xentracectl info "$state/$1.xentrace"
}
ledger_is_even() { ledger_balances recorder; }
# Not systemd's own. How soon xenstored answers is the emulator's doing: others use this machine, too.
complaints() {
    journalctl -q -t xentraced -p warning -o cat --no-pager | grep -v '^Xenstore does not answer\.'
}
no_complaint_since() { # no_complaint_since COUNT
    [ "$(complaints | wc -l)" -eq "$1" ] || { complaints | tail -n "+$(($1 + 1))"; return 1; }
}

# --- The default configuration, but for the buffers: small ones are half full more often. ---

# The image's disk is small: what is there is to stay, to be looked at.
printf '[capture]\nbuffer-pages=32\n[disk]\nmax-use=none\nkeep-free=none\n' >"$config"
# The group is there since the boot: systemd-sysusers has made it, and the user of the snapshot unit.
useradd -G xentrace member
useradd stranger
check "systemctl start xentraced" systemctl start xentraced
check "it answers" wait_until 10 daemon_is_ready
check "the flight recorder runs" value_is recorder true
check "its ring is in systemd's fd store" value_is kept true
check "... with the event channel" same "$(service_value NFileDescriptorStore)" 2
check "it is locked in memory" value_is locked true
check "nothing is amiss: no complaint" no_complaint_since 0
check "the pool is registered, the collector has its priority" \
    same "$(journalctl -u xentraced -o cat --no-pager | grep -c -e RLIMIT)" 0
check "its events are in force in Xen" status_is event_mask "$(value xen_mask recorder)"
check "tracing is on" status_is tracing on
check "Xen's buffers are as configured" status_is buffer_pages 32
check "dom0 is known by name: xenstore is reached from inside the sandbox" \
    shows '"Domain-0"' recorder

used() { value used_bytes recorder; }
bytes_a_second() { # bytes_a_second BEFORE MILLISECONDS-THEN
    echo $((($(used) - $1) * 1000 / ($(milliseconds) - $2)))
}
sleep 2 # what starting stirred up
before=$(used) from=$(milliseconds)
idle_wakeups=$(wakeups_in 10)
idle_bytes=$(bytes_a_second "$before" "$from")
load_start
before=$(used) from=$(milliseconds)
sleep 5
loaded_bytes=$(bytes_a_second "$before" "$from")
echo "default events: $idle_bytes bytes/s idle, with $idle_wakeups wake-ups in 10 s;" \
    "$loaded_bytes bytes/s under load"
check "an idle dom0 is recorded" above "$idle_bytes" 0
check "so is a busy one" above "$loaded_bytes" 0
check "a snapshot of it is sound" snapshot default

# --- A capture beside it. ---

ended() { xentracectl status "$1" | grep 'State: ended' >/dev/null; }
alone=$(status event_mask)
check "start -e sched -c 0-7 -T 10 beside it" xentracectl start -e sched -c 0-7 -T 10 beside
xentracectl start -e sched wider >/dev/null # in the emulator, 10 s may be over before status answers
check "Xen's mask grows" above "$(status event_mask)" "$alone"
xentracectl stop wider >/dev/null
virq_wakes() { # virq_wakes NAME
    local status=0
    xentracectl start -e all -s 3600s "virq-$1" >/dev/null || return
    virq_is_counted || status=1
    xentracectl stop "virq-$1" >/dev/null || return
    rm -f "$state/virq-$1".*
    return "$status"
}
check "VIRQ_TBUF wakes the collector" virq_wakes first
check "the capture ends by itself" wait_until 30 ended beside
check "its file is sound" xentracectl info "$state/beside.xentrace"
check "its ledger balances" ledger_balances cat "$state/beside.json"
check "Xen's mask is the recorder's again" status_is event_mask "$alone"
check "the recorder's ledger balances" ledger_is_even

# --- Restarts, under load. ---

# What is checked is checked without load: in the emulator it makes everything slow.
restart() { # restart NAME LOAD|- COMMAND...: COMMAND ends the service, systemd starts it anew
    local of=$1 load=$2 pid restored produced from to
    shift 2
    check "$of: a snapshot before" snapshot "$of-before"
    pid=$(service_value MainPID) restored=$(value restored recorder)
    produced=$(total produced recorder)
    is_new() { [ "$(service_value MainPID)" != "$pid" ] && daemon_is_ready; }
    [ "$load" = - ] || load_start 2
    from=$(date +%s%N)
    "$@"
    check "$of: a new daemon runs" wait_until 60 is_new
    to=$(date +%s%N)
    load_stop
    echo "$of: $(((to - from) / 1000000)) ms until it answered again"
    echo "$of $from $to" >>"$OUT/restarts"
    check "$of: the ring was taken over" value_is restored $((restored + 1))
    check "$of: the ledger goes on" above "$(total produced recorder)" "$produced"
    check "$of: the ledger balances" ledger_is_even
    check "$of: two descriptors are stored" same "$(service_value NFileDescriptorStore)" 2
    check "$of: a snapshot after" snapshot "$of-after"
}
load_stop
complained=$(complaints | wc -l)
restart restart load systemctl restart xentraced
restart kill load systemctl kill -s KILL xentraced
check "no complaint about what was kept" no_complaint_since "$complained"
load_start 2
check "VIRQ_TBUF wakes the new one's collector" virq_wakes second
load_stop

# --- Triggers, with another configuration: the ring is kept all the same, also by a new systemd. ---

cat >"$config" <<'CONF'
[disk]
max-use=none
keep-free=none
[trigger crash]
condition=domain-crash
delay=500ms
cooldown=0
max-per-day=100

[trigger button]
condition=manual
cooldown=0

[capture]
segment-unit=collect@.service
CONF
# trigger_value KEY: of the trigger `crash`
trigger_value() {
    local document
    document=$(xentracectl --json status)
    [[ $document =~ \"name\":[[:space:]]*\"crash\" ]] && value "$1" echo "${document#*"${BASH_REMATCH[0]}"}"
}
has_written() { [ "$(trigger_value written)" -ge "$1" ]; }
crashes_seen=0
crash() { # crash GUEST ON_CRASH: a guest panics; counts whether the trigger fired
    local guest=$1 domid log=/var/log/xen/xl-$1.log
    check "$guest: it starts" pv_guest_start "$guest" 128 panic "$2"
    domid=$(guest_id "$guest")
    crash_is_over() { grep -q "Domain $domid has shut down, reason code 3" "$log"; }
    check "$guest: it panics, says xl" wait_until 60 crash_is_over
    if wait_until 10 has_written $((crashes_seen + 1)); then
        crashes_seen=$((crashes_seen + 1))
        check "$guest: the trigger says the same" \
            same "$(trigger_value last_reason)" "Domain $domid ($guest) crashed."
        check "$guest: the snapshot is sound" xentracectl info "$(trigger_value last_snapshot)"
        echo "$guest $domid $(basename "$(trigger_value last_snapshot)" .xentrace)" >>"$OUT/crashes"
    else
        echo "# $guest: the trigger did not fire"
    fi
}
systemctl daemon-reexec
restart reexec - systemctl restart xentraced
check "there are triggers" shows 'button' xentracectl list --triggers --names
for ((n = 1; n <= crashes; n++)); do
    crash "destroyed-$n" destroy
done
echo "$crashes_seen of $crashes crashes were seen before the toolstack destroyed the domain"
destroyed_seen=$crashes_seen
crash preserved preserve
check "a crash of a domain that is preserved is seen" same "$crashes_seen" $((destroyed_seen + 1))
pv_guest_destroy preserved
check "a destroyed domain is no crash" same "$(trigger_value fired)" "$crashes_seen"

# --- A unit that fails. ---

failing() { # failing UNIT
    printf '[Unit]\nOnFailure=xentraced-snapshot@%%n.service\n[Service]\nExecStart=/bin/false\n' \
        >"/etc/systemd/system/$1"
}
failing important.service
# Units are called like that after paths (systemd-escape): a backslash in the name.
failing 'srv-my\x2dbackup.service'
systemctl daemon-reload
has_file() { compgen -G "$state/$1" >/dev/null; }
SECONDS=0
systemctl start important.service
check "a failing unit makes a snapshot with its name" \
    wait_until 20 has_file 'snapshot-user-important.service-*.json'
check "... which is in the sidecar, too" \
    grep -q '"label": *"important.service"' "$state"/snapshot-user-important.service-*.json
check "... sound" xentracectl info "$state"/snapshot-user-important.service-*.xentrace
check "... for the group to read" same \
    "$(stat -c '%a %U %G' "$state"/snapshot-user-important.service-*.xentrace "$state" | tr '\n' ' ')" \
    "640 root xentrace 750 root xentrace "
systemctl restart important.service
sleep 2
check "a unit that flaps makes one in 10 s" below \
    "$(compgen -G "$state/snapshot-user-important.service-*.json" | wc -l)" $((2 + SECONDS / 10))
sleep 10
systemctl start 'srv-my\x2dbackup.service'
check "so does one whose name has a backslash" \
    wait_until 20 has_file 'snapshot-user-srv-my_x2dbackup.service-*.json'

# --- A unit for each finished segment. ---

printf '[Service]\nType=oneshot\nExecStart=/bin/cp %s/%%i.xentrace %s/\n' "$state" /run \
    >/etc/systemd/system/collect@.service
systemctl daemon-reload
check "a capture in segments" xentracectl start -e sched --segment-time 2 --keep-files 4 -T 5 seg
check "its segments are collected by a unit" \
    wait_until 30 test -s /run/seg.00001.xentrace -a -s /run/seg.00002.xentrace
check "... whole" xentracectl info /run/seg.00001.xentrace /run/seg.00002.xentrace

# --- What the doctor says. ---

for finding in 'control-domain +This is Xen' 'devices ' 'xen +Xen 4\..*library libxenctrl\.so\.4\.' 'kernel ' \
    'io-uring ' 'virq +xentraced holds' 'daemon ' 'recorder ' 'buffers ' 'cpus ' 'disk ' 'outputs '; do
    check "doctor: ${finding%% *}" shows "^pass  $finding" xentracectl doctor
done

# --- Who may ask. ---

as() { # as USER COMMAND...
    runuser -u "$1" -- "${@:2}"
}
check "a member of the group xentrace may look" reports as member xentracectl status
check "... and call the doctor" shows '^pass  rights +You may see the status' as member xentracectl doctor
check "... take a snapshot" as member xentracectl snapshot by-member
check "... which it can read" as member xentracectl info "$state/snapshot-user-by-member.xentrace"
not_two_at_once() { # the second one may come late: once more
    local i
    for i in 1 2 3; do
        as member xentracectl snapshot >/dev/null 2>&1
        refuses 'less than 10s ago.*snapshot-interval=' as member xentracectl snapshot && return
    done
    return 1
}
check "... not two at once" not_two_at_once
newest_second() { as member xentracectl snapshot --last 1s -o - 2>/dev/null | cat >"$OUT/newest"; }
check "... read the newest second, all the same" newest_second
check "... which is sound, too" xentracectl info "$OUT/newest"
check "... fire a manual trigger" as member xentracectl trigger button
check "... whose snapshot is written" wait_until 20 has_file 'snapshot-button-*.json'
check "... not start" refuses 'role operate. may start captures' as member xentracectl start
check "... nor stop" refuses 'role operate. may stop captures' \
    as member xentracectl stop flight-recorder
check "a stranger may not even look" refuses 'Not permitted to reach' as stranger xentracectl status
check "any program can call Snapshot" shows '"parameters":.*"by-hand"' \
    "${varlink[@]}" org.xentraced.Control.Snapshot '{"name":"by-hand"}'
check "... which is sound" xentracectl info "$state/by-hand.xentrace"

# --- A recorder to which nothing happens; then the end. ---

printf '[disk]\nmax-use=none\nkeep-free=none\n[flight-recorder]\nevents=gen\n' >"$config"
check "a recorder of nothing" systemctl restart xentraced
sleep 4 # until it looks every two seconds
from=$(milliseconds)
quiet=$(wakeups_in 10)
took=$(($(milliseconds) - from))
echo "$quiet wake-ups in $took ms"
check "at most one wake-up in 2 s" above $((took / 2000 + 2)) "$quiet"
rm "$config"

# --- Stopped on request: over restarts, until the service is stopped and started. ---

recorder_is() {
    local document
    document=$(xentracectl --json status)
    [[ $document =~ \"recorder\":[[:space:]]*"{"[[:space:]]*\"state\":[[:space:]]*\"$1\" ]] ||
        { echo "$document"; return 1; }
}
check "the recorder is not stopped by its name" refuses 'discards its history' xentracectl stop flight-recorder
check "... but with its option" xentracectl stop --recorder
check "... of which systemd keeps a note" same "$(service_value NFileDescriptorStore)" 2
check "restarted" systemctl restart xentraced
check "... it stays stopped" recorder_is stopped
check "... and status shows who did it" \
    shows 'Flight recorder: stopped by root, UID 0 [(]xentracectl, PID [0-9]+[)]' xentracectl status
check "killed" systemctl kill -s KILL --kill-who=main xentraced
check "... it stays stopped" wait_until 20 recorder_is stopped
check "started" xentracectl start flight-recorder
check "... it runs" recorder_is running
check "stopped again" xentracectl stop --recorder

complained=$(complaints | wc -l)
check "stop" systemctl stop xentraced
check "it did not fail" same "$(service_value Result)" success
check "nothing is kept after a stop" same "$(service_value NFileDescriptorStore)" 0
sleep 1 # an idle dom0 makes some hundred records in that time, if they are asked for
stopped_ns=$(date +%s%N)
check "start" systemctl start xentraced
check "the ring is a new one" value_is restored 0
check "nothing was amiss" no_complaint_since "$complained"
sleep 1
check "the recorder runs" snapshot anew
check "... and holds nothing from before: nothing was traced between stop and start" \
    above "$(value first_ns cat "$state/anew.json")" "$stopped_ns"

# A port that the descriptor does not know, and a descriptor that is no event channel: both are told
# by Linux, and binding VIRQ_TBUF again.
systemctl stop xentraced
inherits() { # inherits FILE NAME: a daemon that is given FILE under NAME
    (
        exec 3<>"$1"
        export LISTEN_FDS=1 LISTEN_FDNAMES=$2
        # The shell becomes the daemon, whose PID is then LISTEN_PID.
        exec bash -c 'LISTEN_PID=$$ exec xentraced --socket /tmp/inherits --state-dir /tmp'
    ) 2>"$OUT/inherits.log" &
    local pid=$! status=0
    wait_until 120 grep -q "Ready at" "$OUT/inherits.log" || status=1
    kill "$pid"
    wait "$pid" || status=1
    cat "$OUT/inherits.log"
    grep -q "binding VIRQ_TBUF again" "$OUT/inherits.log" && grep -q "($3)" "$OUT/inherits.log" &&
        return "$status"
}
check "a foreign port is refused by Linux, and not used" \
    inherits /dev/xen/evtchn evtchn-77 "Transport endpoint is not connected"
check "no event channel is refused" inherits /dev/null evtchn-5 "Inappropriate ioctl for device"

mkdir "$OUT/files"
cp "$state"/*.xentrace "$state"/*.json "$OUT/files"
journalctl -u xentraced --no-pager -o short-precise >"$OUT/xentraced.log"
cp /var/log/xen/xl-*.log "$OUT" 2>/dev/null
finish
