#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The flight recorder outlives its daemon: killed at any moment or restarted, the next one goes on
# with the ring, and per CPU every number is there or told as lost by Xen with its exact count. If
# memory= was changed, the newest records are carried over into the new ring. What cannot be gone on
# with is told and dropped, and never keeps the daemon from starting.

. "$(dirname "$0")/lib.sh"

for program in xensim/service xensim/test-service-child sim/libbroken-uring.so; do
    if [ ! -e "$build/tests/$program" ]; then
        echo "$script: $build/tests/$program is not built: run make check, or set BUILD" >&2
        exit 1
    fi
done

mib=$((1024 * 1024))
times=${KILLS:-10}
seed=${SEED:-$RANDOM}

# --- The daemon as a service; see docs/xensim.md. ---

before_daemon=() # what runs it
service_start() { # service_start [SERVICE-OPTION]...
    : >"$dir/service.log"
    : >"$dir/log"
    "$build/tests/xensim/service" --log "$dir/service.log" --pid-file "$dir/pid" "$@" -- \
        "${before_daemon[@]}" "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" 2>>"$dir/log" &
    manager=$!
    came_up 1
}
readies() { grep -c ' ready$' "$dir/service.log"; }
came_up() { # came_up TIMES: it is ready so many times, and the recorder runs
    wait_until 20 has_been_ready "$1" && wait_until 10 recorder_runs || {
        cat "$dir/service.log" "$dir/log" >&2
        return 1
    }
}
has_been_ready() { [ "$(readies)" -ge "$1" ]; }
service_stop() { # ends well: that of SIGTERM, which xentraced handles
    kill -TERM "$manager" && wait "$manager"
}
kill_daemon() { kill -KILL "$(cat "$dir/pid")"; }
again() { # again COMMAND...: COMMAND ends the daemon; the next one is waited for
    local n
    n=$(readies)
    "$@"
    came_up $((n + 1))
}
restart() { kill -HUP "$manager"; }
restored() { recorder_status && number "$dir/recorder" ring restored; }
tracing_is() { same "$("$xensim" stat | tr -d '\n' | grep -o '"enabled":[a-z]*')" "\"enabled\":$1"; }
pause_random() { sleep "$(printf 0.%03d $((RANDOM % 450 + 50)))"; }

# --- Killed, and killed again. ---

# Of a snapshot before, the next one has everything that the ring did not evict, and goes on from it.
goes_on() { # goes_on BEFORE AFTER
    "$xensim" verify --overlap "$dir/state/$1.xentrace" "$dir/state/$2.xentrace" &&
        "$xensim" rules "$dir/state/$2.xentrace"
}
begins_no_later() { # begins_no_later BEFORE AFTER: nothing that fits was thrown away
    [ "$(number "$dir/state/$2.json" snapshot first_tsc)" -le \
        "$(number "$dir/state/$1.json" snapshot first_tsc)" ]
}

killed() { # killed SIGNAL: of the daemon KILL, of its manager HUP
    local i before=before end=kill_daemon
    [ "$1" = KILL ] || end=restart
    RANDOM=$seed
    recorder memory=64M
    service_start || exit 1
    for i in $(seq "$times"); do
        pause_random
        ctl snapshot "before-$i" >/dev/null
        pause_random
        check "$1 $i: the next one comes up" again "$end"
        check "$1 $i: it goes on with the ring" same "$(restored)" "$i"
        ctl snapshot "after-$i" >/dev/null
        check "$1 $i: what there was is there, and what came then" goes_on "before-$i" "after-$i"
        [ "$i" -gt 2 ] || check "$1 $i: from its beginning on" begins_no_later "before-$i" "after-$i"
        rm -f "$dir"/state/before-*.xentrace "$dir/state/after-$((i - 1)).xentrace"
    done
    "$xensim" pause
    "$xensim" stat >"$dir/stat"
    ctl snapshot all >/dev/null
    check "$1: everything, to the last record" \
        "$xensim" verify --report "$dir/stat" "$dir/state/all.xentrace"
    check "$1: one that every reader reads" "$xensim" rules "$dir/state/all.xentrace"
    recorder_status
    cp "$dir/recorder" "$dir/document"
    echo "# $(number "$dir/document" ledger lost) of $(number "$dir/document" ledger produced) were lost by Xen meanwhile"
    check "$1: it was started $((times + 1)) times" same "$(readies)" $((times + 1))
    check "$1: the manager ends" ends_as_signalled
}
ends_as_signalled() {
    local status=0
    service_stop || status=$?
    [ "$status" -eq 0 ] || { echo "status $status"; tail -n 3 "$dir/service.log"; return 1; }
}

# The sim's report lists what was told by records; a loss before the last record is told by it.
check_killed() { # check_killed SIGNAL
    check "$1: the ledger balances" balances "$dir/document"
    check "$1: the ledger is the producer's, over $times lives" produced_as_reported "$dir/document" "$dir/report"
}

# --- What is changed in between. ---

reconfigured() {
    recorder memory=8M
    service_start || exit 1
    sleep 0.3
    again kill_daemon || exit 1
    check "nothing is changed: the ring is continued" same "$(restored)" 1

    recorder memory=8M events=sched
    again kill_daemon || exit 1
    check "events= is changed: the ring stays" same "$(restored)" 2
    check "events= is changed: it holds from now on" grep -q '"event_mask":"0x0002f000"' <(xen_state)
    check "events= is changed: a snapshot" ctl snapshot changed
    check "events= is changed: its records are those it has" tells_its_records changed
    "$xensim" pause
    recorder memory=8M
    again kill_daemon || exit 1
    check "events= has more again: a snapshot is complete from then on only" is_short_of_an_hour joined
    "$xensim" resume

    recorder memory=8M enabled=no
    n=$(readies)
    kill_daemon
    wait_until 10 has_been_ready $((n + 1))
    check "the recorder is switched off: there is none" refuses "No ring is running" ctl snapshot
    check "the recorder is switched off: it is forgotten" grep -q ' removed 1 of ring$' "$dir/service.log"
    check "the recorder is switched off: tracing, too" tracing_is false
    recorder memory=8M
    again kill_daemon || exit 1
    check "it is switched on again: anew" same "$(restored)" 0
    service_stop
}

is_short_of_an_hour() { # is_short_of_an_hour BECAUSE
    local status=0
    ctl --json snapshot --last 1h "hour-$1" >"$dir/hour" || status=$?
    same "$status" 3 && same "$(number "$dir/hour" snapshot shorter_because)" "$1"
}
tells_its_records() { # tells_its_records SNAPSHOT: what it says is what is in the file
    ctl --json info "$dir/state/$1.xentrace" >"$dir/info" || return
    above "$(number "$dir/info" files 0 records)" 0 &&
        same "$(number "$dir/state/$1.json" snapshot records)" "$(number "$dir/info" files 0 records)"
}

# --- Carried over into a ring of another size. ---

carried() { # carried SIGNAL: of the daemon KILL, of its manager HUP
    local end=kill_daemon
    [ "$1" = KILL ] || end=restart
    recorder memory=8M
    service_start || exit 1
    wait_until 20 recorder_has $((6 * mib))
    ctl snapshot before-larger >/dev/null
    recorder memory=16M
    check "$1, larger: the next daemon comes up" again "$end"
    carried_into larger $((16 * mib)) 1
    check "$1, larger: all of it" begins_no_later before-larger after-larger
    check "$1, larger: the log reports what was carried over" \
        grep -Eq "History of [0-9a-z.]+ carried over from a ring of 8M\.$" "$dir/log"

    wait_until 20 recorder_has $((10 * mib))
    ctl snapshot before-smaller >/dev/null
    "$xensim" pause # a small ring, and a machine that may be slow
    recorder memory=4M
    check "$1, smaller: the next daemon comes up" again "$end"
    carried_into smaller $((4 * mib)) 2
    check "$1, smaller: not all of it" begins_later before-smaller after-smaller
    check "$1, smaller: the log reports what was carried over, and what was not" \
        grep -Eq "History of [0-9a-z.]+ carried over from a ring of 16M; records older than [0-9:]{8} did not fit\.$" \
        "$dir/log"

    ctl snapshot before-same >/dev/null
    "$xensim" pause
    check "$1, as it is: the next daemon comes up" again "$end"
    carried_into same $((4 * mib)) 3
    sleep 0.2
    check "$1: the manager has only that ring" same \
        "$(grep ' started ' "$dir/service.log" | tail -n 1 | grep -o 'with [0-9]*')" "with 2"
    "$xensim" pause
    "$xensim" stat >"$dir/stat"
    ctl snapshot all >/dev/null
    check "$1: everything, to the last record" \
        "$xensim" verify --report "$dir/stat" "$dir/state/all.xentrace"
    recorder_status
    cp "$dir/recorder" "$dir/document"
    check "$1: the manager ends" ends_as_signalled
}
carried_into() { # carried_into CASE BYTES TIMES
    check "$1: it is continued" same "$(restored)" "$3"
    check "$1: it has the size of the configuration" same "$(number "$dir/recorder" ring memory_bytes)" "$2"
    ctl snapshot "after-$1" >/dev/null
    "$xensim" resume
    check "$1: the records from before are there, and continue" goes_on "before-$1" "after-$1"
    check "$1: a file that every reader reads" whole "$dir/state/after-$1.xentrace"
}
begins_later() { # begins_later BEFORE AFTER: and before BEFORE ends
    local first
    first=$(number "$dir/state/$2.json" snapshot first_tsc)
    [ "$first" -gt "$(number "$dir/state/$1.json" snapshot first_tsc)" ] &&
        [ "$first" -lt "$(number "$dir/state/$1.json" snapshot last_tsc)" ]
}

# Killed again at any moment of that: one of the two rings is there, and nothing is lost with the other.
kills() { grep -c ' killed by ' "$dir/service.log"; }
has_been_killed() { [ "$(kills)" -ge "$1" ]; }
has_been_started() { [ "$(grep -c ' started ' "$dir/service.log")" -ge "$1" ]; }
ready_after_kill() { [ "$(sed -nE 's/.* (ready|killed) ?.*/\1/p' "$dir/service.log" | tail -n 1)" = ready ]; }
carried_and_killed() {
    local i n sizes=(16M 24M)
    RANDOM=$seed
    recorder memory=16M
    service_start || exit 1
    wait_until 20 recorder_has $((8 * mib))
    for i in $(seq "$times"); do
        ctl snapshot "before-$i" >/dev/null
        recorder "memory=${sizes[i % 2]}"
        n=$(kills)
        kill_daemon
        wait_until 5 has_been_started $((n + 2))
        sleep "$(printf 0.%03d $((RANDOM % 80)))"
        kill_daemon
        wait_until 5 has_been_killed $((n + 2))
        check "killed while carrying $i: the next one comes up" wait_until 20 ready_after_kill
        wait_until 10 recorder_runs
        ctl snapshot "after-$i" >/dev/null
        check "killed while carrying $i: the records from before are there" goes_on "before-$i" "after-$i"
        rm -f "$dir/state/before-$i.xentrace" "$dir/state/after-$i.xentrace"
    done
    echo "# $(readies) of $((2 * times + 1)) were ready"
    check "killed while carrying: nothing was dropped" refute grep -q "was discarded" "$dir/log"
    settle_recorder
    cp "$dir/recorder" "$dir/document"
    check "killed while carrying: the manager ends" ends_as_signalled
}
refute() { ! "$@"; }

# More than dom0 can spare: nothing is carried over, and nothing is lost.
not_carried() {
    recorder memory=8M
    service_start || exit 1
    sleep 0.3
    ctl snapshot before-share >/dev/null
    recorder memory=64G
    configure '[daemon]' memory-share=1
    check "dom0 cannot spare it: the next daemon comes up" again kill_daemon
    check "dom0 cannot spare it: the log reports that nothing is carried over" \
        grep -q "The ring keeps its size of 8M: its records cannot be carried over, as dom0 cannot spare 64G beside it" "$dir/log"
    carried_into share $((8 * mib)) 1
    ctl snapshot before-again >/dev/null
    recorder memory=16M
    check "dom0 can spare it: the next daemon comes up" again kill_daemon
    carried_into again $((16 * mib)) 2
    check "dom0 can spare it: each ring was kept once" same \
        "$(grep -Ec ' stored ring(-carried)?$' "$dir/service.log")" 2
    service_stop
}

# --- What cannot be gone on with. ---

# Runs COMMAND on a duplicate of the ring's descriptor, which stays the manager's.
on_ring() {
    python3 -c 'if True:
        import os, sys
        pid, what = sys.argv[1:]
        for fd in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{fd}"
            if "xentraced-ring" in os.readlink(path):
                break
        else:
            sys.exit("there is no ring")
        ring = os.open(path, os.O_RDWR)
        def add(at, n):
            os.pwrite(ring, bytes([(os.pread(ring, 1, at)[0] + n) % 256]), at)
        if what == "magic": add(0, 1)
        elif what == "version": add(8, 1)
        elif what == "cpus": add(12, 1)
        elif what == "chunks": add(16, 1)
        elif what == "states":
            size = os.fstat(ring).st_size
            os.pwrite(ring, os.urandom(4096), 4096)
        elif what == "everything": os.pwrite(ring, os.urandom(1 << 20), 0)
        else: sys.exit("what?")' "$manager" "$1"
}

damaged() {
    local what
    recorder memory=8M
    service_start || exit 1
    while IFS='|' read -r what regex; do
        sleep 0.3
        kill -STOP "$(cat "$dir/pid")"
        check "$what: it is damaged" on_ring "$what"
        : >"$dir/log"
        check "$what: the daemon comes up" again kill_daemon
        check "$what: it is told and dropped" \
            grep -Eq "kept across the restart was discarded: $regex.*Recording starts with" "$dir/log"
        check "$what: recording begins anew" same "$(restored)" 0
        sleep 0.3
        check "$what: a snapshot of an hour is short of that" is_short_of_an_hour began
        rm -f "$dir/state"/hour-*
        ctl snapshot "$what" >/dev/null
        check "$what: a snapshot is complete" whole "$dir/state/$what.xentrace"
    done <<'END'
magic|it is not a ring
version|it is from another version of xentraced
cpus|
chunks|its size differs from its header
states|
everything|it is not a ring
END
    check "damaged: none is piling up in the manager" same \
        "$(grep ' started ' "$dir/service.log" | tail -n 1 | grep -o 'with [0-9]*')" "with 2"
    service_stop
}

# Somebody else's descriptors, with our names.
foreign() {
    local log=$dir/log
    recorder memory=8M
    for what in ring evtchn-7; do
        : >"$dir/service.log"
        : >"$dir/log"
        "$build/tests/xensim/service" --log "$dir/service.log" --pid-file "$dir/pid" -- \
            bash -c '
                [ -z "${LISTEN_FDS:-}" ] || exec "$@"
                exec "$BUILD/tests/xensim/test-service-child" memfd '"$what"' nonsense notify READY=1 barrier wait' \
            bash "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
            --state-dir "$dir/state" 2>>"$log" &
        manager=$!
        wait_until 10 has_been_ready 1
        check "a foreign $what: the daemon comes up" again kill_daemon
        check "a foreign $what: it is told" grep -Eq "kept across the restart (was discarded|is unusable)" "$dir/log"
        sleep 0.3
        check "a foreign $what: a snapshot" ctl snapshot "foreign-$what"
        check "a foreign $what: complete" whole "$dir/state/foreign-$what.xentrace"
        service_stop
    done
}

# --- Tracing over the end. ---

# What Xen does when the daemon is started the Nth time: told by a shell that becomes the daemon.
tells_at_start=(bash -c '"$BUILD/tests/xensim/xensim" stat | tr -d "\n" | grep -o "\"enabled\":[a-z]*" \
    >>"$dir/at-start"; "$BUILD/tests/xensim/xensim" stat | grep -o "\"event_mask\":\"[^\"]*\"" \
    >>"$dir/mask-at-start"; exec "$@"' bash)
at_start() { same "$(sed -n "$1p" "$dir/at-start")" "\"enabled\":$2"; }

keep_enabled() {
    recorder memory=8M keep-enabled=yes
    before_daemon=("${tells_at_start[@]}")
    service_start || exit 1
    sleep 0.3
    check "keep-enabled=yes: restarted" again restart
    check "keep-enabled=yes: it goes on" same "$(restored)" 1
    check "keep-enabled=yes: tracing was off at first" at_start 1 false
    check "keep-enabled=yes: tracing stays on over a restart" at_start 2 true
    recorder memory=8M keep-enabled=no
    again restart # this one reads it
    check "keep-enabled=no: restarted" again restart
    check "keep-enabled=no: tracing was off in between" at_start 4 false
    check "keep-enabled=no: it begins anew" same "$(restored)" 0
    check "keep-enabled=no: killed" again kill_daemon
    check "keep-enabled=no: who is killed disables nothing, and is gone on with" same "$(restored)" 1
    check "keep-enabled=no: stopped" service_stop
    check "keep-enabled=no: tracing is off at the end" tracing_is false
}

# Killed without a service manager: Xen has the mask of the daemon that is gone, and only the boot's
# is to be restored.
boot_mask() {
    local life
    check "boot's mask: so Xen was booted" mask_is 0x0008f000
    for life in 1 2; do
        daemon_start || exit 1
        ctl start --events sched "life-$life" >/dev/null
        check "boot's mask, killed $life: a capture sets its own" mask_is 0x0002f000
        kill -KILL "$daemon"
        wait "$daemon"
        check "boot's mask, killed $life: which is left over" mask_is 0x0002f000
    done
    daemon_start || exit 1
    ctl start --events sched last >/dev/null
    check "boot's mask: a capture ends well" ctl stop last
    check "boot's mask: it is restored" mask_is 0x0008f000
    check "boot's mask: tracing is disabled" tracing_is false
}
mask_is() { same "$("$xensim" stat | grep -o '"event_mask":"[^"]*"')" "\"event_mask\":\"$1\""; }

# --- The collector fails. ---

# A capture is being written and a snapshot waits for its reader: it must not be waited for, and its
# worker still reads the ring.
collector_fails() {
    recorder memory=32M
    export BROKEN_URING=$dir/broken
    before_daemon=("${tells_at_start[@]}" env
        "LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$build/tests/sim/libbroken-uring.so")
    service_start || exit 1
    ctl start file >/dev/null
    wait_until 20 test -s "$dir/state/file.xentrace"
    wait_until 20 recorder_has $((8 * mib))
    mkfifo "$dir/fifo"
    read_fifo "$dir/fifo" "$dir/unread" 0
    "$build/xentracectl" snapshot -o "$dir/fifo" >"$dir/snapshot" 2>&1 &
    sleep 0.5
    touch "$dir/broken"
    check "the collector fails: the daemon ends with an error" wait_until 5 has_failed
    rm "$dir/broken"
    check "the collector fails: the log says why, and that Xen is told" \
        grep -q "The collector has failed: Input/output error. .* Tracing is disabled\." "$dir/log"
    check "the collector fails: the next daemon comes up" came_up 2
    check "the collector fails: tracing was disabled, although sessions ran" at_start 2 false
    check "the collector fails: the mask is the boot's" same "$(sed -n 2p "$dir/mask-at-start")" \
        "$(sed -n 1p "$dir/mask-at-start")"
    check "the collector fails: the next daemon continues the ring" same "$(restored)" 1
    cut_torn file
    check "the collector fails: the capture's file is sound" whole "$dir/state/file.xentrace"
    ctl snapshot after >/dev/null
    check "the collector fails: so is the ring" whole "$dir/state/after.xentrace"
    kill "$reader"
    service_stop
}
has_failed() { grep -q ' exited with 1$' "$dir/service.log"; }
cut_torn() { # cut_torn CAPTURE: at its last whole window, if it does not end there
    ctl --json info "$dir/state/$1.xentrace" >"$dir/info"
    [ "$(number "$dir/info" files 0 damage kind 2>/dev/null)" != torn-window ] ||
        truncate -s "$(number "$dir/info" files 0 sound_bytes)" "$dir/state/$1.xentrace"
}

# --- A capture beside it. ---

capture() {
    local damage i
    recorder memory=32M
    service_start || exit 1
    for i in 1 2 3; do
        ctl start "file-$i" >/dev/null
        sleep 1.3
        again kill_daemon || exit 1
        check "a capture, killed $i: the recorder goes on" same "$(restored)" "$i"
        check "a capture, killed $i: it does not" refuses "no capture 'file-$i'" ctl status "file-$i"
        ctl --json info "$dir/state/file-$i.xentrace" >"$dir/info"
        damage=$(number "$dir/info" files 0 damage kind 2>/dev/null) || damage=none
        if [ "$damage" = torn-window ]; then
            truncate -s "$(number "$dir/info" files 0 sound_bytes)" "$dir/state/file-$i.xentrace"
            damage=none
        fi
        check "a capture, killed $i: whole windows" same "$damage" none
        check "a capture, killed $i: complete as far as it goes" whole "$dir/state/file-$i.xentrace"
        check "a capture, killed $i: and not nothing" above "$(number "$dir/info" files 0 records)" 0
    done
    check "Xen's masks are the recorder's again" grep -q '"event_mask":"0x00fff000","cpu_mask":"0xff"' <(xen_state)
    ctl start after >/dev/null
    sleep 0.3
    check "a capture afterwards" ctl stop after
    check "a capture afterwards: complete" whole "$dir/state/after.xentrace"
    ctl snapshot all >/dev/null
    check "the recorder has it all" whole "$dir/state/all.xentrace"
    service_stop
}

# --- An event that nobody has read. ---

# VIRQ_TBUF fires while the daemon cannot run, and once more; then it is killed. Linux wakes nobody for
# an event that it adds to an unread one: whoever leaves one unread never hears of VIRQ_TBUF again.
unread_virq() {
    local i
    recorder memory=8M
    service_start || exit 1
    "$xensim" pause # from now on only our own
    sleep 0.2
    kill -STOP "$(cat "$dir/pid")"
    "$xensim" poke virq 0 && "$xensim" poke virq 0
    check "unread VIRQ: the next daemon comes up" again kill_daemon
    check "unread VIRQ: it continues the ring" same "$(restored)" 1
    sleep 0.2
    before_virqs=$(virqs)
    for i in 1 2 3 4 5; do
        "$xensim" poke virq 0
        sleep 0.1
    done
    check "unread VIRQ: it takes every later one" same "$(virqs)" $((before_virqs + 5))
    service_stop
}
virqs() { reports ctl --json status >"$dir/status" && number "$dir/status" daemon virqs; }

# --- A manager that hangs. ---

hanging_manager() {
    recorder memory=8M
    service_start || exit 1
    kill -STOP "$manager"
    # It waits 2 s for the manager to have the note that it was stopped.
    check "the manager hangs: stop of the recorder" timeout 4 "$build/xentracectl" stop --recorder
    check "the manager hangs: status" reports timeout 2 "$build/xentracectl" status
    check "the manager hangs: a capture starts" timeout 2 "$build/xentracectl" start beside
    sleep 0.3
    check "the manager hangs: and stops" timeout 2 "$build/xentracectl" stop beside
    check "the manager hangs: the capture is complete" whole "$dir/state/beside.xentrace"
    kill -TERM "$(cat "$dir/pid")"
    check "the manager hangs: SIGTERM ends the daemon" wait_until 5 has_exited
    kill -CONT "$manager"
    check "the manager goes on: it forgets the ring" \
        wait_until 10 grep -q ' removed 1 of ring$' "$dir/service.log"
    check "the manager goes on: the next one comes up" wait_until 20 has_been_ready 2
    check "the manager goes on: the recorder stays stopped" refuses "was stopped by root" ctl snapshot
    check "the manager goes on: until it is started" ctl start flight-recorder
    check "the manager goes on: with a ring of its own" same "$(restored)" 0
    service_stop
}
# Its manager hangs: nobody has asked how it ended.
has_exited() { grep -q '^State:.Z' "/proc/$(cat "$dir/pid")/status"; }

# --- The watchdog. ---

fed() { grep -c ' fed$' "$dir/service.log"; }
has_been_fed() { [ "$(fed)" -ge "$1" ]; }
not_fed() { grep -q ' watchdog was not fed' "$dir/service.log"; }

watchdog() {
    local tracer
    recorder memory=8M
    service_start --watchdog 2000 || exit 1
    check "watchdog: it is fed" wait_until 20 has_been_fed 3
    "$xensim" pause
    check "watchdog: it is fed while nothing is recorded" wait_until 20 has_been_fed $(($(fed) + 3))
    check "watchdog: nothing is restarted" same "$(readies)" 1
    stop_collector "$(cat "$dir/pid")" &
    tracer=$!
    check "watchdog: the collector hangs: it is not fed" wait_until 20 not_fed
    check "watchdog: ... and the log says why" grep -q "The collector has not run for" "$dir/log"
    check "watchdog: ... and the next daemon comes up" came_up 2
    check "watchdog: ... and continues the ring" same "$(restored)" 1
    check "watchdog: ... and feeds it" wait_until 20 has_been_fed $(($(fed) + 2))
    kill "$tracer" 2>/dev/null
    service_stop
}
# Only that thread, as a debugger does; for as long as it lives.
stop_collector() { # stop_collector PID
    exec env -u LD_PRELOAD python3 -c 'if True:
        import ctypes, glob, os, sys
        task, = [t for t in glob.glob("/proc/%s/task/*" % sys.argv[1])
                 if open(t + "/comm").read() == "collector\n"]
        tid = int(task.split("/")[-1])
        libc = ctypes.CDLL(None, use_errno=True)
        for request in 0x4206, 0x4207: # PTRACE_SEIZE, PTRACE_INTERRUPT
            assert libc.ptrace(request, tid, None, None) == 0, ctypes.get_errno()
        while os.WIFSTOPPED(os.waitpid(tid, 0x40000000)[1]): # __WALL; it is reaped in the end
            pass' "$1"
}

parts=(killed_by_sigkill restarted carried_kill carried_restart carried_and_killed not_carried watchdog
    reconfigured damaged foreign keep_enabled hanging_manager capture boot_mask collector_fails unread_virq)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

sim_carried() { # sim_carried SIGNAL
    sim --cpus 4 --rate 5M -- carried "$1"
    check_ledger "carried, $1"
}
check_ledger() { # check_ledger CASE
    check "$1: the ledger balances" balances "$dir/document"
    check "$1: the ledger is the producer's: nothing is lost, or there twice" \
        produced_as_reported "$dir/document" "$dir/report"
}

main() {
    local part
    echo "# SEED=$seed"
    export SEED=$seed
    for part in "${parts[@]}"; do
        case $part in
            killed_by_sigkill)
                sim --cpus 4 --rate 10M -- killed KILL
                check_killed KILL
                ;;
            restarted)
                times=$(((times + 1) / 2))
                export KILLS=$times
                sim --cpus 4 --rate 10M -- killed HUP
                check_killed HUP
                ;;
            carried_kill) sim_carried KILL ;;
            carried_restart) sim_carried HUP ;;
            carried_and_killed)
                sim --cpus 4 --rate 3M -- carried_and_killed
                check_ledger "killed while carrying"
                ;;
            boot_mask) sim --rate 1M --preset-pages 32 --preset-mask 0x0008f000 -- boot_mask ;;
            *) sim --cpus 8 --rate 5M -- "$part" ;;
        esac
        sim_clean
    done
}

dispatch "$@"
