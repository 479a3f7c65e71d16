#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A file system that is frozen (fsfreeze) holds up every call on it: open, write, fallocate, fsync,
# rename, unlink, for as long as it likes. That costs the captures on it, and nobody else:
#
#   beside_state   the state directory is frozen under a capture in it; beside it are a capture on
#   beside_output  another file system and the flight recorder. And the other way round: a capture
#                  to a file of its client's is stuck, the state directory is healthy.
#                  - The capture beside it and the recorder lose nothing and drop nothing.
#                  - status, list, snapshot, start and stop on the healthy file system are answered
#                    within 100 ms at any time.
#                  - The stuck capture drops records when its share of the pool is full, counts them
#                    exactly, is reported as waiting after 2 s, and continues after the thaw.
#   short          A freeze that the stuck capture's share of the pool outlasts loses nothing.
#   start          A start on the frozen file system fails within 3 s and leaves nothing.
#   abort          stop --abort ends a stuck capture at once, whether it runs or is being stopped.
#   sigterm        SIGTERM disables tracing and ends the recorder at once. The process lives until
#                  the thaw, and asks the service manager for that time.
#   restart        So does a restart, which keeps the recorder's ring.
#
#   tests/sim/frozen.sh [CASE]...
#
# FREEZE_SECONDS (20) is how long `beside` freezes, RATE (40M) what the producer makes meanwhile.
# Needs root and loop devices. Where the machine is busy, an answer may take three times as long as
# the slowest one of the same kind before the freeze.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/disks.sh"

mib=$((1024 * 1024))
pool=$((64 * mib))
freeze_seconds=${FREEZE_SECONDS:-20}
rate=${RATE:-40M}
slow=1
if sanitized; then # memory and threads matter there, not speed: a small pool fills too
    slow=5
    pool=$((16 * mib))
    freeze_seconds=${FREEZE_SECONDS:-8}
    rate=${RATE:-4M}
fi
most_msec=$((100 * slow))

# --- Disks: see disks.sh. ---

# What has to be seen while it is frozen was seen: however slow the machine is, it was frozen then.
end_freeze() { touch "$dir/thaw" && wait_for_thaw "$1"; } # end_freeze NAME
wait_for_thaw() { check "$1: the file system is thawed" wait_until $((freeze_seconds + 60)) is_thawed; }

clean_up() {
    local mount pid
    trap - EXIT
    for mount in "${mounted[@]}"; do
        fsfreeze -u "$mount" 2>/dev/null # most are not frozen
    done
    for pid in ${manager:-} $(cat "$dir/pid" 2>/dev/null) ${daemon:-} $(jobs -p); do
        kill -KILL "$pid" 2>/dev/null
    done
    unset daemon
    for mount in "${mounted[@]}"; do
        wait_until 20 umount "$mount" 2>/dev/null || umount -l "$mount"
    done
    rm -rf "$images"
}

# --- The daemon. ---

state=${dir:-}/state # a file system of its own, as is
other=${dir:-}/other

# Runs CASE with both file systems.
on_disks() { # on_disks CASE [ARGUMENT]...
    mounted=()
    images=$(image_folder)
    trap clean_up EXIT
    mount_disk "$state" && mount_disk "$other" || exit 1
    configure '[daemon]' "pool=$pool" "pool-max=$pool" # so that it can be filled
    recorder memory=32M
    "$@"
    [ -z "${daemon:-}" ] || check "$1: the daemon ends well" daemon_ends
    clean_up
}

daemon_ends() { # by SIGTERM, and soon
    local status=0
    kill -TERM "$daemon"
    wait_until 30 is_a_zombie "$daemon" || { echo "it does not end"; return 1; }
    wait "$daemon" || status=$?
    unset daemon
    [ "$status" -eq 0 ] || { echo "status $status"; return 1; }
}
is_a_zombie() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status"; }

# Where xenstored does not answer, nobody but the domains' names may miss it.
stop_xenstored() {
    "$xensim" fault xenstore-hangs on 2>/dev/null ||
        echo "# this stand-in's xenstored cannot hang: it answers"
}

# --- Calls, and how long they take. ---

# What a hanging daemon does to xentracectl is measured, not suffered.
ctl_soon() { timeout -k 1 10 "$build/xentracectl" "$@"; }

timed() { # timed COMMAND...: its time is in $msec, its exit status in $status, its output in $dir/said
    local begin
    begin=$(milliseconds)
    status=0
    "$@" >"$dir/said" 2>&1 || status=$?
    msec=$(($(milliseconds) - begin))
}
call() { # call PHASE ARGUMENT...: of xentracectl, whose first argument names the call
    local phase=$1
    shift
    timed ctl_soon "$@"
    echo "$1 $msec" >>"$dir/calls.$phase"
    [ "$1 $status" != "status 4" ] || status=0 # what it reports is that records are being lost
    [ "$status" -eq 0 ] || echo "$phase: $* (status $status): $(cat "$dir/said")" >>"$dir/calls.failed"
}
calls() { # calls PHASE NUMBER: one of each, on the healthy file system
    call "$1" status
    call "$1" list
    call "$1" snapshot --max-size 8M -o "$healthy/snapshot-$1-$2.xentrace"
    call "$1" start -e sched -o "$healthy/short-$1-$2.xentrace" "short-$1-$2"
    call "$1" stop "short-$1-$2"
    rm -f "$healthy/snapshot-$1-$2".* "$healthy/short-$1-$2".*
}
slowest() { # slowest PHASE CALL: in milliseconds
    awk -v call="$2" '$1 == call && $2 > most { most = $2 } END { print most + 0 }' "$dir/calls.$1"
}
allowed() { # allowed CALL: the longest that it may take
    local before
    before=$(slowest before "$1")
    echo $((before * 3 > most_msec ? before * 3 : most_msec))
}
check_calls() { # check_calls NAME
    local call
    check "$1: every call was answered" same "$(cat "$dir/calls.failed" 2>/dev/null)" ""
    for call in status list snapshot start stop; do
        echo "# $1: $call took at most $(slowest before "$call") ms before, $(slowest frozen "$call") ms while frozen"
        check "$1: $call is answered in time" below "$(slowest frozen "$call")" $(($(allowed "$call") + 1))
    done
}

# --- What status reports of the stuck capture. ---

field() { number "$dir/of" "$@" 2>/dev/null || echo 0; } # field KEY...: 0 if it is not there, or null
# One line in $dir/samples: milliseconds since the freeze, dropped records, queued bytes, since when
# it waits for the disk.
sample() {
    local since
    ctl_soon --json status stuck >"$dir/of" 2>/dev/null || return 0
    since=$(field output waiting_since_ns)
    [ "$since" != null ] || since=0
    echo "$(frozen_for) $(field ledger dropped) $(field output queued_bytes) $since" >>"$dir/samples"
}
drops() { ctl_soon --json status stuck >"$dir/of" && [ "$(field ledger dropped)" -gt 0 ]; }
waits_no_more() { ctl_soon --json status stuck >"$dir/of" && ! [[ $(field output waiting_since_ns) =~ ^[1-9] ]]; }
# The file of a capture is written again, and keeps up.
has_recovered() { # has_recovered NAME
    local dropped delivered
    ctl_soon --json status "$1" >"$dir/of" || return
    dropped=$(field ledger dropped) delivered=$(field ledger delivered)
    sleep 1
    ctl_soon --json status "$1" >"$dir/of" || return
    [ "$(field ledger dropped)" -eq "$dropped" ] && [ "$(field ledger delivered)" -gt "$delivered" ]
}

check_waiting() { # check_waiting NAME
    local ago since
    # When the first sample with a time was taken, and the time.
    read -r ago since <<<"$(awk '$4 > 0 { print $1, $4; exit }' "$dir/samples")"
    check "$1: a disk that is waited for is reported" above "${since:-0}" 0
    check "$1: ... after 2 s" below "${ago:-999999}" $((2000 + 2000))
    check "$1: ... not at once" above "${ago:-0}" 1000
    check "$1: ... since the freeze" above "${since:-0}" $((freeze_begin_ns - 1))
    check "$1: ... not since later" below "${since:-0}" $((($(cat "$dir/frozen") + 1500) * 1000000))
    check "$1: ... to people too" grep -Eqi "waiting:? +for the disk since" "$dir/status.text"
    check "$1: ... in the log, once" \
        same "$(grep -c "waiting for the disk since" "$dir/log")" 1
}

# Half of the pool is promised in equal parts to the captures there are and one to come; so an eighth
# is its own while a third one comes and goes. The largest chunk, a sixteenth, may not fit in.
check_share() { # check_share NAME
    local dropped queued
    read -r dropped queued <<<"$(awk '$2 > 0 { print $2, $3; exit }' "$dir/samples")"
    check "$1: the stuck capture drops records" above "${dropped:-0}" 0
    check "$1: ... not before its share of the pool is full" \
        above "${queued:-0}" $((pool / 8 - pool / 16 - 1))
    check "$1: ... and leaves the others theirs" \
        below "$(awk '$3 > most { most = $3 } END { print most + 0 }' "$dir/samples")" $((pool * 5 / 6))
}

# --- Files. ---

lost_in() { ctl --json info "$1" >"$dir/info" && number "$dir/info" files 0 lost; }
records_in() { ctl --json info "$1" >"$dir/info" && number "$dir/info" files 0 records; }

complete() { # complete NAME DOCUMENT
    check "$1: nothing was lost" same "$(number "$2" ledger lost)" 0
    check "$1: nothing was dropped" same "$(number "$2" ledger dropped)" 0
    check "$1: the ledger balances" balances "$2"
}
sound() { # sound NAME FILE DOCUMENT: has all that the ledger says, and every gap has its count
    check "$1: the file is sound" ctl info "$2"
    check "$1: every gap in it has its count" "$xensim" verify "$2"
    check "$1: one that every reader reads" "$xensim" rules "$2"
    check "$1: the ledger balances" balances "$3"
    check "$1: the file is as long as its document says" \
        same "$(stat -c %s "$2")" "$(number "$3" output bytes)"
    check "$1: it holds what was delivered" same "$(records_in "$2")" "$(number "$3" ledger delivered)"
}

# --- Beside a frozen file system. ---

# All begin before the first record, and end after the last one: each ledger is the producer's.
begin_captures() { # begin_captures NAME FROZEN: `stuck` there, `healthy` on the other file system
    frozen=$2
    [ "$frozen" = "$state" ] && healthy=$other || healthy=$state
    daemon_start && wait_until 10 recorder_runs || exit 1
    if [ "$frozen" = "$state" ]; then
        check "$1: start the one that will be stuck" ctl start stuck
        check "$1: start the one beside it" ctl start -o "$other/healthy.xentrace" healthy
    else
        check "$1: start the one that will be stuck" ctl start -o "$other/stuck.xentrace" stuck
        check "$1: start the one beside it" ctl start healthy
    fi
    "$xensim" resume
    check "$1: both are written" wait_until 20 test -s "$frozen/stuck.xentrace" -a -s "$healthy/healthy.xentrace"
}
end_captures() { # end_captures NAME
    "$xensim" pause
    sleep 0.5
    settle_recorder
    check "$1: the one beside it stops" ctl_soon stop healthy
    check "$1: the stuck one stops" timeout 30 "$build/xentracectl" stop stuck
    cp "$healthy/healthy.json" "$frozen/stuck.json" "$dir"
    complete "$1: the recorder" "$dir/recorder"
    complete "$1: the one beside it" "$dir/healthy.json"
    sound "$1: the one beside it" "$healthy/healthy.xentrace" "$dir/healthy.json"
    sound "$1: the stuck one" "$frozen/stuck.xentrace" "$dir/stuck.json"
    check "$1: the stuck one: Xen lost nothing" same "$(number "$dir/stuck.json" ledger lost)" 0
    check "$1: the stuck one: file and ledger have the same number" same \
        "$(lost_in "$frozen/stuck.xentrace")" "$(number "$dir/stuck.json" ledger dropped)"
}

beside() { # beside NAME FROZEN
    local n=0 name=$1
    begin_captures "$name" "$2"
    stop_xenstored
    sleep 1
    for ((n = 0; n < 30; n++)); do # long enough to see what this machine takes of everybody's time
        calls before "$n"
        sleep 0.1
    done
    check "$name: nobody waits for a disk yet" waits_no_more
    check "$name: the file system is frozen" freeze "$frozen" "$freeze_seconds" || return
    : >"$dir/samples"
    : >"$dir/status.text"
    for ((n = 0; 1; n++)); do
        is_frozen || break
        sample
        is_frozen || break
        calls frozen "$n"
        sleep 0.1
        [ -s "$dir/status.text" ] || [ "$(frozen_for)" -lt 4000 ] ||
            ctl_soon status stuck >"$dir/status.text" 2>&1
    done
    wait_for_thaw "$name"
    echo "# $name: $n rounds of calls in $freeze_seconds s"
    check "$name: there were several rounds of calls" above "$n" $((freeze_seconds / 4))
    check_calls "$name"
    check_share "$name"
    check_waiting "$name"
    check "$name: after the thaw the stuck one is written again" wait_until 60 has_recovered stuck
    check "$name: ... and does not wait any more" waits_no_more
    end_captures "$name"
    echo "# $name: $(number "$dir/stuck.json" ledger dropped) of $(number "$dir/stuck.json" ledger produced) dropped by the stuck one"
    check "$name: the log has the line once, to the end" \
        same "$(grep -c "waiting for the disk since" "$dir/log")" 1
}
beside_state() { beside beside_state "$state"; }
beside_output() { beside beside_output "$other"; }

short() {
    begin_captures short "$state"
    sleep 1
    check "short: the file system is frozen" freeze "$frozen" 2
    wait_for_thaw short
    check "short: the stuck one is written again" wait_until 30 has_recovered stuck
    end_captures short
    check "short: the stuck one: nothing was dropped" same "$(number "$dir/stuck.json" ledger dropped)" 0
}

check_ledgers() { # check_ledgers NAME: outside, when the producer has given its account
    local ledger
    for ledger in recorder healthy.json stuck.json; do
        check "$1: $ledger: the ledger is the producer's" \
            produced_as_reported "$dir/$ledger" "$dir/report"
    done
}

# --- A start on a frozen file system. ---

nothing_left_of() { # nothing_left_of NAME: neither its file, nor a sidecar, nor a hidden one
    [ -z "$(find "$state" -name "*$1*")" ]
}

start() {
    local i client_msec
    begin_captures start "$state"
    timed ctl_soon --version
    client_msec=$((2 * msec + 10))
    check "start: the file system is frozen" freeze "$state" 60
    for i in 1 2; do
        timed ctl_soon start "refused-$i"
        check "start $i: it fails" same "$status" 1
        check "start $i: within 3 s, and what it takes to start a client" below "$msec" $(((3000 + client_msec) * slow))
        check "start $i: with a sentence about the disk" \
            grep -Eqi '(disk|file system).*(wait|answer|respond|stuck|frozen)|(wait|answer|respond).*(disk|file system)' "$dir/said"
        check "start $i: in one line" same "$(wc -l <"$dir/said")" 1
        check "start $i: there is no such session" refuses "refused-$i" ctl_soon status "refused-$i"
    done
    check "start: all that while it was frozen" is_frozen
    end_freeze start
    for i in 1 2; do
        check "start $i: no file is left after the thaw" wait_until 10 nothing_left_of "refused-$i"
    done
    check "start: it can be started now" ctl start refused-1
    sleep 0.5
    check "start: ... and stopped" ctl stop refused-1
    check "start: ... and is complete" whole "$state/refused-1.xentrace"
    settle_recorder
    complete "start: the recorder" "$dir/recorder"
    check "start: the others stop" ctl stop --all
    complete "start: the one beside it" "$other/healthy.json"
}

# Nothing has mapped Xen's buffers yet: the very first session is being opened, and looked at.
first() {
    local client
    sed -i 's/^events=all$/enabled=no/' "$dir/xentraced.conf"
    daemon_start || exit 1
    check "first: the file system is frozen" freeze "$state" 60
    ctl_soon start early >"$dir/started" 2>&1 &
    client=$!
    sleep 0.3
    check "first: it is being opened" state_is early starting
    check "first: status of everything" reports ctl_soon status
    check "first: no ring of it can be written" fails "" ctl_soon snapshot --session early
    check "first: it can be aborted" is_answered ctl_soon stop --abort early
    check "first: ... and who started it is answered" wait_until 3 is_a_zombie "$client"
    check "first: the daemon lives" kill -0 "$daemon"
    end_freeze first
    check "first: no file is left after the thaw" wait_until 10 nothing_left_of early
}
is_answered() { # COMMAND: it may fail, but it is answered
    local status=0
    "$@" || status=$?
    same "$((status == 124))" 0
}

# --- stop --abort. ---

pool_is_free() {
    reports ctl_soon --json status >"$dir/all" &&
        same "$(number "$dir/all" daemon pool_free_bytes)" "$(number "$dir/all" daemon pool_bytes)"
}
sidecar_is() { [ "$(number "$frozen/stuck.json" state 2>/dev/null)" = "$1" ]; }
is_stopping() { state_is "$1" stopping; }

abort() { # abort NAME [stopping]
    local name="abort, ${1}" client
    begin_captures "$name" "$state"
    sleep 1
    check "$name: the file system is frozen" freeze "$frozen" 60
    check "$name: it drops records" wait_until 8 drops
    if [ "$1" = stopping ]; then
        ctl_soon stop stuck >"$dir/stopped" 2>&1 &
        client=$!
        check "$name: stop waits for the disk" wait_until 4 is_stopping stuck
    fi
    timed ctl_soon stop --abort stuck
    check "$name: it is answered, as a success" same "$status" 0
    check "$name: within 1 s" below "$msec" $((1000 * slow))
    check "$name: it is ended" state_is stuck ended
    ctl_soon --json status stuck >"$dir/aborted"
    check "$name: ... while the file system is frozen" is_frozen
    check "$name: the ledger balances at once" balances "$dir/aborted"
    check "$name: what was not written is dropped" above "$(number "$dir/aborted" ledger dropped)" 0
    if [ -n "${client:-}" ]; then
        check "$name: who waited for the stop is answered too" wait_until 3 is_a_zombie "$client"
        check "$name: ... while the file system is frozen" is_frozen
    fi
    end_freeze "$name"
    "$xensim" pause
    sleep 0.5
    settle_recorder
    complete "$name: the recorder" "$dir/recorder"
    check "$name: the one beside it stops" ctl_soon stop healthy
    complete "$name: the one beside it" "$healthy/healthy.json"
    check "$name: its memory comes back after the thaw" wait_until 20 pool_is_free
    check "$name: its sidecar says that it ended" wait_until 10 sidecar_is ended
    ctl_soon --json status stuck >"$dir/stuck.json"
    check "$name: it produced what it had at the abort" \
        same "$(number "$dir/stuck.json" ledger produced)" "$(number "$dir/aborted" ledger produced)"
    sound "$name" "$frozen/stuck.xentrace" "$dir/stuck.json"
    sound "$name: by its sidecar" "$frozen/stuck.xentrace" "$frozen/stuck.json"
}

# --- The end of the daemon. ---

stop_timeout_msec=4000 # less than the freeze takes: who does not ask for more is killed

service_start() {
    : >"$dir/service.log"
    : >"$dir/log"
    "$build/tests/xensim/service" --stop-timeout "$stop_timeout_msec" --log "$dir/service.log" \
        --pid-file "$dir/pid" -- \
        "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" --state-dir "$state" \
        2>>"$dir/log" &
    manager=$!
    wait_until 20 has_been_ready 1 && wait_until 10 recorder_runs
}
has_been_ready() { [ "$(grep -c ' ready$' "$dir/service.log")" -ge "$1" ]; }
logged() { grep -Eq "$1" "$dir/service.log"; }
tracing_is_off() { "$xensim" stat | tr -d ' \n' | grep '"enabled":false' >/dev/null; }
mask_is() { "$xensim" stat | tr -d ' \n' | grep "\"event_mask\":\"$1\"" >/dev/null; }
tells_to_wait() { logged ' extend-timeout [1-9][0-9]*$'; }

# A service with the recorder of one event class and a stuck capture of all.
service_is_stuck() { # service_is_stuck NAME
    service_start || exit 1
    check "$1: start" ctl start stuck
    check "$1: it is written" wait_until 20 test -s "$state/stuck.xentrace"
    check "$1: the file system is frozen" freeze "$state" 60
    check "$1: the capture drops records" wait_until 9 drops
}
stuck_is_sound() { # stuck_is_sound NAME
    check "$1: the reason is told" same "$(number "$state/stuck.json" ended reason)" daemon-exit
    sound "$1" "$state/stuck.xentrace" "$state/stuck.json"
}
# The process may have to wait for the thaw, longer than its time to stop.
wait_for_the_thaw_alive() { # wait_for_the_thaw_alive NAME
    local pid
    pid=$(cat "$dir/pid")
    check "$1: the service manager is asked for more time" wait_until 3 tells_to_wait
    check "$1: ... with a reason" wait_until 5 logged ' status .*([Dd]isk|[Ff]ile system)'
    sleep $((stop_timeout_msec / 1000 + 1))
    check "$1: it lives on" kill -0 "$pid"
    check "$1: ... and was not told to die" same "$(grep -c 'does not end: SIGKILL' "$dir/service.log")" 0
    end_freeze "$1"
}

sigterm() {
    recorder memory=32M events=sched keep-enabled=no
    service_is_stuck sigterm
    kill -TERM "$manager"
    check "sigterm: tracing is off at once" wait_until 2 tracing_is_off
    check "sigterm: ... while the file system is frozen" is_frozen
    wait_for_the_thaw_alive sigterm
    check "sigterm: the process ends after the thaw" wait_until 20 is_a_zombie "$manager"
    check "sigterm: ... well" wait "$manager"
    stuck_is_sound sigterm
    check "sigterm: tracing stays off" tracing_is_off
}

restart() {
    recorder memory=32M events=sched
    service_is_stuck restart
    kill -HUP "$manager"
    check "restart: Xen's mask is the recorder's at once" wait_until 2 mask_is 0x0002f000
    check "restart: ... while the file system is frozen" is_frozen
    check "restart: the ring is in the fd store" logged ' stored ring$'
    check "restart: ... and was not removed" same "$(grep -c ' removed .* ring$' "$dir/service.log")" 0
    wait_for_the_thaw_alive restart
    check "restart: the next one comes up after the thaw" wait_until 30 has_been_ready 2
    check "restart: the recorder runs" wait_until 10 recorder_runs
    recorder_status
    check "restart: ... with the ring that was kept" same "$(number "$dir/recorder" ring restored)" 1
    check "restart: a snapshot of it" ctl_soon snapshot after
    check "restart: ... has every record from before and after" \
        "$xensim" verify --kinds 0x0002f000 "$state/after.xentrace"
    check "restart: it was not killed" same "$(grep -c ' killed by ' "$dir/service.log")" 0
    stuck_is_sound restart
    kill -TERM "$manager"
    check "restart: the service ends" wait_until 20 is_a_zombie "$manager"
}

parts=(beside_state beside_output short start first abort abort_stopping sigterm restart)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

run() { # run CASE
    local part=$1
    case $part in
    beside_state | beside_output)
        sim --cpus 4 --paused --rate "$rate" -- on_disks "$part"
        check_ledgers "$part"
        ;;
    short)
        sim --cpus 4 --paused --rate 4M -- on_disks short
        check_ledgers short
        ;;
    abort) sim --cpus 4 --paused --rate "$rate" -- on_disks abort running ;;
    abort_stopping) sim --cpus 4 --paused --rate "$rate" -- on_disks abort stopping ;;
    start | first) sim --cpus 4 --paused --rate 4M -- on_disks "$part" ;;
    sigterm | restart) sim --cpus 4 --rate "$rate" -- on_disks "$part" ;;
    *) fail "there is a case $part" ;;
    esac
    sim_clean
}

main() {
    local part waiting=()
    if ! can_freeze >/dev/null 2>&1; then
        skip frozen "needs root, loop devices, mkfs.ext4 and fsfreeze"
        return
    fi
    for part in "${parts[@]}"; do
        case $part in
        beside_*) run "$part" ;; # they measure how long answers take
        *) waiting+=("$part") ;;
        esac
    done
    together run "${waiting[@]}"
}

dispatch "$@"
