#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The flight recorder's history is not lost by mistake: only root ends the recorder, with an option
# of its own. It stays stopped while the service runs, is restarted or is killed, everybody can see
# who stopped it, and it is started again by `start`, or with the service.

. "$(dirname "$0")/lib.sh"

if [ ! -e "$build/tests/xensim/service" ]; then
    echo "$script: $build/tests/xensim/service is not built: run make check, or set BUILD" >&2
    exit 1
fi

mib=$((1024 * 1024))

# --- The daemon as a service; see docs/xensim.md. ---

service_start() {
    : >"$dir/service.log"
    : >"$dir/log"
    "$build/tests/xensim/service" --log "$dir/service.log" --pid-file "$dir/pid" -- \
        "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" 2>>"$dir/log" &
    manager=$!
    wait_until 20 has_been_ready 1
}
readies() { grep -c ' ready$' "$dir/service.log"; }
has_been_ready() { [ "$(readies)" -ge "$1" ]; }
again() { # again COMMAND...: COMMAND ends the daemon; the next one is waited for
    local n
    n=$(readies)
    "$@"
    wait_until 20 has_been_ready $((n + 1))
}
service_stop() { kill -TERM "$manager" && wait "$manager"; }
kill_daemon() { kill -KILL "$(cat "$dir/pid")"; }
restart() { kill -HUP "$manager"; }

recorder_is() { # recorder_is STATE: as status says
    [ "$(ctl --json status | number /dev/stdin recorder state)" = "$1" ]
}
tracing_is() { same "$("$xensim" stat | tr -d '\n' | grep -o '"enabled":[a-z]*')" "\"enabled\":$1"; }
ring_memory() { # whether the daemon has its ring's file mapped: 1 or 0
    grep -c -m 1 'xentraced-ring' "/proc/$(cat "$dir/pid")/maps"
}

# As a member of control-group=, who may start and stop captures.
as_group() { # as_group GROUP COMMAND...
    local id
    id=$(getent group "$1" | cut -d: -f3)
    shift
    env -u LD_PRELOAD setpriv --reuid=65534 --regid=65534 --groups "$id" "$dir/xentracectl" "$@"
}

# Who stopped it and when, in words and in the document.
tells_who() {
    reports ctl status >"$dir/status" && reports ctl --json status >"$dir/status.json" || return
    grep -Eq "^Flight recorder: stopped by root, UID 0 \(xentracectl, PID $stopper\) .*\. To start it: xentracectl start flight-recorder$" \
        "$dir/status" || { cat "$dir/status"; return 1; }
    same "$(number "$dir/status.json" recorder stopped uid)" 0 &&
        same "$(number "$dir/status.json" recorder stopped user)" root &&
        same "$(number "$dir/status.json" recorder stopped comm)" xentracectl &&
        same "$(number "$dir/status.json" recorder stopped realtime_ns)" "$stopped_ns"
}

stays_stopped() { # stays_stopped WHEN
    check "$1: it is stopped" recorder_is stopped
    check "$1: nothing is traced" tracing_is false
    check "$1: status says who stopped it, and when" tells_who
    check "$1: a snapshot says why there is none, and what to type" refuses \
        "The flight recorder was stopped by root, UID 0 .*To start it: xentracectl start flight-recorder" \
        ctl snapshot
    check "$1: status of it says who" grep -q "topped by root, UID 0 (xentracectl, PID $stopper)" \
        <(ctl status flight-recorder 2>&1)
}

stop_recorder() { # and note who and when
    "$build/xentracectl" --json stop --recorder >"$dir/stopped" &
    stopper=$!
    wait "$stopper" || return
    stopped_ns=$(number "$dir/stopped" stopped realtime_ns)
    same "$(number "$dir/stopped" state)" stopped
}

records_again() { # records_again NAME
    check "$1: it runs" wait_until 10 recorder_runs
    check "$1: nobody has stopped it" recorder_is running
    check "$1: Xen traces" tracing_is true
    check "$1: it fills" wait_until 20 recorder_has $mib
    check "$1: a snapshot" ctl snapshot "$1"
    check "$1: it is complete" whole "$dir/state/$1.xentrace"
    check "$1: the ring is a new one" same "$(number "$dir/recorder" ring restored)" 0
}

recorder_stop() {
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be nobody's to read
    recorder memory=16M events=all
    configure '[daemon]' 'control-group = tracers'
    printf '[trigger hand]\ncondition=manual\ncooldown=0\n' >>"$dir/xentraced.conf"
    service_start && wait_until 10 recorder_runs || exit 1
    check "it fills" wait_until 20 recorder_has $mib

    # By mistake, or by somebody who may not.
    check "stop by its name is refused: with what it would mean, and what to type" refuses \
        "discards its history of [0-9].*xentracectl snapshot" \
        ctl stop flight-recorder
    check "stop --abort, too" refuses "discards its history of" ctl stop --abort flight-recorder
    ctl stop --all >/dev/null
    check "stop --all leaves it alone" recorder_runs
    check "the group xentrace may not stop it" refuses "Only root may stop the flight recorder" \
        as_group xentrace stop --recorder
    check "nor may control-group=" refuses "Only root may stop the flight recorder" \
        as_group tracers stop --recorder
    check "nor by its name" refuses "discards its history" as_group tracers stop flight-recorder
    check "start of one that runs: says so" grep -q "is running already, since" \
        <(ctl start flight-recorder)
    check "after all that it runs" recorder_runs
    check "... with its history" same "$(ring_memory)" 1

    # Stopped.
    check "stop --recorder, by root" stop_recorder
    check "its memory is given back" same "$(ring_memory)" 0
    check "the log has a line of who did it" \
        same "$(grep -c "Stopped by root, UID 0 (xentracectl, PID $stopper)" "$dir/log")" 1
    stays_stopped "stopped"
    check "stop --recorder again: nothing to do" ctl stop --recorder
    check "... and it is still the first who did it" tells_who
    check "stopped: a trigger cannot be fired" refuses "was stopped by root" ctl trigger hand
    check "stopped: triggers are off" grep -Eq '^ *hand .* off ' <(ctl list --triggers)
    check "stopped: captures are possible" ctl record -q -T 0.2 beside
    check "... complete" whole "$dir/state/beside.xentrace"

    # Over restarts.
    check "restarted" again restart
    stays_stopped "restarted"
    check "killed" again kill_daemon
    stays_stopped "killed"
    check "killed again" again kill_daemon
    stays_stopped "killed again"

    # Started again.
    check "start with options is refused" refuses "start it without options" ctl start flight-recorder -e sched
    check "... into a file, too" refuses "start it without options" \
        ctl start flight-recorder -o "$dir/mine.xentrace"
    check "... which is not left" test ! -e "$dir/mine.xentrace" -a ! -e "$dir/mine.json"
    check "record is no way to start it" refuses "start it without options" ctl record flight-recorder
    check "the group xentrace may not start it" refuses "Only root may start the flight recorder" \
        as_group xentrace start flight-recorder
    check "nor may control-group=" refuses "Only root may start the flight recorder" \
        as_group tracers start flight-recorder
    check "it is still stopped" recorder_is stopped
    check "start flight-recorder, by root" grep -q "is running again, with a new ring of 16M" \
        <(ctl start flight-recorder)
    check "the log has a line of who did it" \
        grep -q "Audit: Start flight-recorder by root, UID 0 (xentracectl, PID [0-9]*): done" "$dir/log"
    records_again started
    check "started: triggers watch" ctl trigger hand
    check "... and write" wait_until 10 compgen -G "$dir/state/snapshot-hand-*.json"
    check "started: killed, it is continued" again kill_daemon
    check "... " wait_until 10 recorder_runs
    recorder_status
    check "... with its ring" same "$(number "$dir/recorder" ring restored)" 1

    # Many times.
    for _ in 1 2 3 4 5; do
        check "in turn: stopped" stop_recorder
        check "in turn: started" ctl start flight-recorder
    done
    records_again in-turn
    check "the manager has the ring and the event channel only" again kill_daemon
    check "..." same "$(grep ' started ' "$dir/service.log" | tail -n 1 | grep -o 'with [0-9]*')" "with 2"
    check "..." wait_until 10 recorder_runs

    # With the service: the manager drops the note when that is stopped.
    check "stopped before the service is" stop_recorder
    check "the service is stopped" service_stop
    check "... and started" service_start
    records_again "service"
    service_stop
}

# Without a service manager it lasts as long as the daemon.
by_hand() {
    recorder_start memory=8M || exit 1
    check "by hand: stopped" grep -q "No service manager has confirmed" <(ctl stop --recorder)
    check "by hand: it is stopped" recorder_is stopped
    check "by hand: the daemon ends" daemon_stop
    daemon_start || exit 1
    check "by hand: the next daemon starts it" wait_until 10 recorder_runs
    configure
    recorder memory=8M enabled=no
    check "by hand: the daemon ends" daemon_stop
    daemon_start || exit 1
    check "switched off: status says nothing of a stop" recorder_is off
    check "switched off: cannot be started" refuses "disabled.*enabled=yes" ctl start flight-recorder
    check "switched off: nothing to stop" refuses "disabled" ctl stop --recorder
}

# A vCPU that was waiting when the recorder was stopped has not waited since then.
waited() {
    recorder memory=8M
    printf '[trigger late]\nrunnable-latency=1s\ncooldown=0\n' >>"$dir/xentraced.conf"
    daemon_start && wait_until 10 recorder_runs || exit 1
    "$xensim" pause
    vcpu waits
    sleep 1.2
    vcpu runs
    check "waited: the trigger fires" wait_until 10 has_fired 1
    sleep 1.2 # it is armed again
    vcpu waits
    check "waited: stopped" ctl stop --recorder
    sleep 1.2
    check "waited: started" ctl start flight-recorder
    vcpu runs
    sleep 0.5
    check "waited: not while it was stopped" has_fired 1
    vcpu waits
    sleep 1.2
    vcpu runs
    check "waited: the trigger watches again" wait_until 10 has_fired 2
}
vcpu() { # vcpu waits|runs: domain 1's vCPU 2
    local event=0x00021211 # from blocked to runnable
    [ "$1" = waits ] || event=0x00021101
    "$xensim" event 0 "$event" 0x00010002 >/dev/null
    for _ in 1 2 3; do # rounds
        ctl snapshot --max-size 1M -o - >/dev/null 2>&1
    done
}
has_fired() { [ "$(ctl --json status | number /dev/stdin triggers 0 fired)" -eq "$1" ]; }

# A GiB is unmapped and made on a worker: who asks meanwhile is answered.
large() {
    recorder memory=1G
    configure '[daemon]' 'memory-share=90'
    daemon_start && wait_until 20 recorder_runs || {
        echo "# no memory for a ring of 1 GiB: it is not tested"
        return
    }
    check "1 GiB: its memory is freed by a worker" by_worker munmap ctl stop --recorder
    check "1 GiB: its memory is made by a worker" by_worker mmap ctl start flight-recorder
    check "1 GiB: it runs" recorder_runs
}
# by_worker CALL COMMAND...: while COMMAND is run, CALL of much memory is not made by the main thread.
by_worker() {
    local call=$1 tracer
    shift
    command -v strace >/dev/null || { echo "# no strace: $call is not looked at" && "$@"; return; }
    env -u LD_PRELOAD strace -f -qq -y -e trace="$call" -p "$daemon" -o "$dir/strace" 2>/dev/null &
    tracer=$!
    sleep 0.5
    "$@" >/dev/null || return
    sleep 0.2
    kill "$tracer"
    wait "$tracer"
    grep -Eq "$call\(.*, [0-9]{8}" "$dir/strace" || { tail -n 5 "$dir/strace"; return 1; }
    ! grep -E "^$daemon +$call\(.*, [0-9]{8}" "$dir/strace"
}

main() {
    # Groups of our own, seen by nobody else.
    if [ -z "${STOP_GROUPS:-}" ] && unshare --mount true 2>/dev/null; then
        STOP_GROUPS=1 exec unshare --mount "$script"
    fi
    if [ -n "${STOP_GROUPS:-}" ]; then
        local groups
        groups=$(mktemp)
        grep -vE '^(xentrace|tracers):' /etc/group >"$groups"
        printf 'xentrace:x:64001:\ntracers:x:64002:\n' >>"$groups"
        chmod 0644 "$groups"
        mount --bind "$groups" /etc/group
        sim --cpus 4 --rate 4M -- recorder_stop
        sim_clean
        umount /etc/group
        rm -f "$groups"
    else
        echo "# not root: permissions are not tested"
    fi
    sim --cpus 4 --rate 4M -- by_hand
    sim_clean
    sim --cpus 4 --rate 1M -- waited
    sim_clean
    sim --cpus 4 --rate 4M -- large
    sim_clean
}

dispatch "$@"
