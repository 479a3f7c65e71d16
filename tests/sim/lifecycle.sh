#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# However a capture begins and ends, its file is sound, its sidecar says how it ended, and Xen is left
# as was asked for; the daemon survives, keeps nothing, and can do it again.

. "$(dirname "$0")/lib.sh"

tracing_is() { same "$("$xensim" stat | tr -d '\n' | grep -o '"enabled":[a-z]*')" "\"enabled\":$1"; }
document() { cat "$dir/state/$1.json"; }
reason_is() { same "$(number "$1" ended reason)" "$2"; }
is_sound() { ctl info "$1" && "$xensim" verify "${@:2}" "$1"; } # is_sound FILE [VERIFY-OPTION]...
start() { check "start $*" ctl start "$@"; }

ended_well() { # ended_well NAME CAPTURE REASON: a capture in the state directory
    local file=$dir/state/$2.xentrace
    check "$1: the file is sound" is_sound "$file"
    check "$1: the reason is $3" reason_is "$dir/state/$2.json" "$3"
    check "$1: the ledger balances" balances "$dir/state/$2.json"
    check "$1: tracing is off" tracing_is false
}

records_of() { # records_of FILE
    ctl --json info "$1" >"$dir/info"
    number "$dir/info" files 0 records
}

# --- Signals to the daemon. ---

by_signal() {
    local signal
    for signal in TERM INT; do
        daemon_start || exit 1
        start "$signal"
        check "SIG$signal: records come" wait_until 20 test -s "$dir/state/$signal.xentrace"
        kill -"$signal" "$daemon"
        check "SIG$signal: the daemon ends well" wait "$daemon"
        ended_well "SIG$signal" "$signal" daemon-exit
        check "SIG$signal: the socket is gone" test ! -e "$dir/control"
    done
    daemon_start || exit 1
    start twice
    kill -TERM "$daemon"
    kill -TERM "$daemon"
    check "SIGTERM twice: the daemon ends well" wait "$daemon"
    ended_well "SIGTERM twice" twice daemon-exit
    daemon_start || exit 1
    "$build/xentracectl" record --quiet record >"$dir/summary" 2>&1 &
    local client=$! status=0
    wait_until 5 test -s "$dir/state/record.xentrace"
    daemon_stop
    wait "$client" || status=$?
    check "SIGTERM during record: the client ends with status 1" same "$status" 1
    unset daemon
    ended_well "SIGTERM during record" record daemon-exit
}

# A terminal closes, or somebody expects a reload.
hangup() {
    daemon_start --log-level debug || exit 1
    start hangup
    wait_until 20 test -s "$dir/state/hangup.xentrace"
    kill -HUP "$daemon"
    check "SIGHUP: the configuration is read again" \
        wait_until 5 grep -q 'The configuration was reloaded: 0 changes' "$dir/log"
    check "SIGHUP: the daemon answers" reports ctl status
    check "SIGHUP: the capture continues" state_is hangup running
    check "SIGHUP: stop" ctl stop hangup
    ended_well SIGHUP hangup stop
}

# What may be in the file of a daemon that was killed: whole windows, and perhaps a torn last one.
holds_whole_windows() {
    local file=$1 damage
    ctl --json info "$file" >"$dir/info"
    cat "$dir/info"
    damage=$(number "$dir/info" files 0 damage kind 2>/dev/null) || damage=none
    case $damage in
        none | empty) "$xensim" verify "$file" ;;
        torn-window) head -c "$(number "$dir/info" files 0 sound_bytes)" "$file" >"$dir/cut" &&
            "$xensim" verify "$dir/cut" ;;
        *) echo "damage: $damage"; return 1 ;;
    esac
}

has_records() { above "$(records_of "$1")" 0; } # has_records FILE

by_sigkill() {
    local i booted
    booted=$(xen_state)
    for i in $(seq 7); do
        daemon_start || exit 1 # on the socket that the last one left
        check "SIGKILL $i: Xen traces for nobody" same "$(xen_state)" "$booted"
        ctl start "killed-$i" >/dev/null || echo "not ok - start after SIGKILL"
        check "SIGKILL $i: records come" \
            wait_until 20 has_records "$dir/state/killed-$i.xentrace"
        sleep "0.$i"
        kill -KILL "$daemon"
        wait "$daemon" 2>/dev/null
        check "SIGKILL $i: the sidecar says that it ran" \
            same "$(number "$dir/state/killed-$i.json" state)" running
        check "SIGKILL $i: the file holds whole windows" \
            holds_whole_windows "$dir/state/killed-$i.xentrace"
        check "SIGKILL $i: and not none" has_records "$dir/state/killed-$i.xentrace"
    done
    daemon_start || exit 1
    check "SIGKILL: --keep-enabled" ctl start --keep-enabled kept
    ctl stop kept >/dev/null
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null
    daemon_start || exit 1
    check "SIGKILL: tracing stays enabled that was to" grep -q '"enabled":true' <(xen_state)
    check "SIGKILL: the daemon ends well" daemon_stop
    local started=0
    for i in $(seq 40); do
        daemon_start || continue
        started=$((started + 1))
        ctl start "restart-$i" >/dev/null
        kill -KILL "$daemon"
        wait "$daemon" 2>/dev/null
    done
    check "SIGKILL and start at once: 40 of 40 come up" same "$started" 40
    daemon_start || exit 1
    start after
    check "a capture after it ends" ctl stop after
    ended_well "after SIGKILL" after stop
    check "nothing but captures and sidecars is left" \
        same "$(ls -A "$dir/state" | grep -vcE '^[a-z0-9-]+\.(xentrace|json)$')" 0
}

# --- Starting and stopping. ---

descriptors() { ls "/proc/$daemon/fd" | wc -l; }
has_descriptors() { same "$(descriptors)" "$1"; } # a worker closes files, after the answer
memory_kib() { awk '/^RssAnon/ { print $2 }' "/proc/$daemon/status"; }

again_and_again() {
    local i fds kib
    daemon_start || exit 1
    for i in $(seq 70); do
        ctl start "n$i" >/dev/null && ctl stop "n$i" >/dev/null || echo "not ok - start and stop $i"
        if [ "$i" -eq 20 ]; then # the list of ended sessions is full by now
            sleep 1 # all files are closed
            fds=$(descriptors)
            kib=$(memory_kib)
        fi
    done
    check "50 captures later: as many descriptors" wait_until 10 has_descriptors "$fds"
    sanitized ||
        check "50 captures later: no more memory" below "$(memory_kib)" $((kib + 512))
    check "all 70 files are there" same "$(ls "$dir/state"/*.xentrace | wc -l)" 70
    check "and the last is complete" is_sound "$dir/state/n70.xentrace"
}

stopping() {
    daemon_start || exit 1
    local i
    start twice
    ctl stop twice >/dev/null &
    check "stop" ctl stop twice
    check "stop, at the same time" wait $!
    check "stop of one that has ended" ctl stop twice
    ended_well "stop twice" twice stop

    check "Start and Stop in one packet: both are answered" \
        python3 "$(dirname "$script")/varlink.py" "$dir/control" start-stop early
    wait_until 10 ended early
    ended_well "Start and Stop in one packet" early stop

    for i in $(seq 10); do
        ctl start "race-$i" >/dev/null 2>&1 &
        ctl stop >/dev/null 2>&1
        wait $!
        ctl stop --all >/dev/null
    done
    check "start and stop at the same time: none is left running" ctl stop --all
    check "tracing is off" tracing_is false
}

by_limits() {
    local size bytes
    daemon_start || exit 1
    check "-T 1" ctl record --quiet -T 1 time
    ended_well "-T 1" time time
    bytes=$(number "$dir/state/time.json" ended realtime_ns)
    check "-T 1: not less than a second" above \
        $(((bytes - $(number "$dir/state/time.json" started realtime_ns)) / 1000000)) 998
    for size in 1 5000 1048577 3000000; do
        check "--max-size $size" timeout 20 "$build/xentracectl" record --quiet --max-size "$size" "size-$size"
        ended_well "--max-size $size" "size-$size" max-size
        bytes=$(stat -c %s "$dir/state/size-$size.xentrace")
        check "--max-size $size: not exceeded" below "$bytes" $((size + 1))
        check "--max-size $size: and made use of" above "$bytes" $((size - 4200))
        timeout 20 "$build/xentracectl" record --quiet --max-size "$size" -o - 2>/dev/null |
            cat >"$dir/pipe-$size"
        bytes=$(stat -c %s "$dir/pipe-$size")
        check "--max-size $size, into a pipe: not exceeded" below "$bytes" $((size + 1))
        check "--max-size $size, into a pipe: and made use of" above "$bytes" $((size - 100))
        check "--max-size $size, into a pipe: sound" is_sound "$dir/pipe-$size"
    done
}

# --- Xen's side: -x, -X, -D and the boot trace. ---

keep_enabled() {
    daemon_start || exit 1
    check "-x" ctl record --quiet -T 0.3 -x -e sched -c 0-1 kept
    check "-x: tracing stays on, with its masks" same "$(xen_state)" \
        '"enabled":true,"event_mask":"0x0002f000","cpu_mask":"0x3"'
    check "-x: the file is sound" is_sound "$dir/state/kept.xentrace" --cpus 0-1 --kinds 0x2f000
    check "the daemon ends well" daemon_stop
    check "-x: even then" tracing_is true
    daemon_start || exit 1
    check "the next capture ends" ctl record --quiet -T 0.3 next
    ended_well "after -x" next time
}

start_disabled() {
    daemon_start || exit 1
    start -X disabled
    sleep 0.5
    check "-X: tracing is not enabled" tracing_is false
    check "-X: Xen was never asked to trace" same "$(attempts)" 0
    check "-X: stop" ctl stop disabled
    check "-X: no record" same "$(number "$dir/state/disabled.json" ledger produced)" 0
    check "-X: the masks are there for whoever enables" ctl start -X -e sched -c 0-1 masks
    check "-X: masks" same "$(xen_state)" \
        '"enabled":false,"event_mask":"0x0002f000","cpu_mask":"0x3"'
    ctl stop >/dev/null
}

start_disabled_but_booted() {
    daemon_start || exit 1
    check "-X, booted with tracing" ctl record --quiet -T 0.5 -X booted
    check "-X, booted with tracing: the records are there" \
        is_sound "$dir/state/booted.xentrace" --from-start
}

firsts() { "$xensim" verify "$1" | grep -o '"first":[0-9]*'; }

booted() { # booted OPTION...: full buffers of the boot trace, then a capture
    check "the boot trace's buffers are full" wait_until 60 xen_loses
    daemon_start || exit 1
    check "record $*" ctl record --quiet -T 0.5 "$@" booted
}

# --- The client. ---

client_killed() {
    daemon_start || exit 1
    "$build/xentracectl" record --quiet gone >/dev/null 2>&1 &
    wait_until 5 test -s "$dir/state/gone.xentrace"
    kill -KILL $!
    check "the client is killed: the capture ends" wait_until 5 ended gone
    ended_well "the client is killed" gone client-gone

    "$build/xentracectl" record interrupted >"$dir/summary" 2>&1 &
    wait_until 5 test -s "$dir/state/interrupted.xentrace"
    kill -INT $!
    check "Ctrl-C: the client ends well" wait $!
    ended_well "Ctrl-C" interrupted stop
    check "Ctrl-C: a summary" grep -q "interrupted ended after" "$dir/summary"

    # The name of a capture that has ended may come again: the first one's client leaving must not
    # end the second.
    python3 "$(dirname "$script")/varlink.py" "$dir/control" attach same &
    wait_until 5 ended same
    start -o "$dir/same.xentrace" same
    kill $!
    wait $! 2>/dev/null
    sleep 0.3
    check "a client goes: its name's next owner runs on" \
        grep -q '"state": *"running"' <(ctl --json status same)
    check "and is stopped" ctl stop same
}

# --- Other outputs. ---

pipes() {
    local status
    daemon_start || exit 1
    ctl record --quiet -T 0.5 -o - 2>/dev/null | cat >"$dir/piped"
    check "into a pipe: sound" is_sound "$dir/piped"
    ctl record -T 0.5 -o - 2>"$dir/summary" >"$dir/redirected"
    check "into a redirection: sound" is_sound "$dir/redirected"
    check "into a redirection: the summary is on standard error" grep -q "ended after" "$dir/summary"
    ctl record --quiet -T 0.5 -o - 2>/dev/null >>"$dir/redirected"
    check "appended: sound" ctl info "$dir/redirected"

    ctl record --quiet -o - closed 2>"$dir/summary" | head -c 100000 >"$dir/head"
    status=${PIPESTATUS[0]}
    check "into head -c 100000: it ended early" same "$status" 1
    check "into head -c 100000: the reason is reported" shows 'ended early.*reader closed' \
        cat "$dir/summary"
    check "into head -c 100000: all of that came" same "$(stat -c %s "$dir/head")" 100000
    ctl --json status closed >"$dir/closed"
    check "into head: the reason" reason_is "$dir/closed" output-closed
    check "into head: the ledger balances" balances "$dir/closed"
    check "into head: tracing is off" tracing_is false

    mkfifo "$dir/fifo"
    cat "$dir/fifo" >"$dir/from-fifo" &
    wait_until 5 ctl start -o "$dir/fifo" fifo
    check "into a FIFO: records come" wait_until 20 test -s "$dir/from-fifo"
    check "into a FIFO: stop" ctl stop fifo
    check "into a FIFO: its reader comes to the end" wait $!
    check "into a FIFO: sound" is_sound "$dir/from-fifo"
    check "after all this a capture works" ctl record --quiet -T 0.3 works
    ended_well "after pipes" works time
}

ticks() { awk '{ print $14 + $15 }' "/proc/$daemon/stat"; }

# Its reader is there and reads nothing; or has made the pipe non-blocking, which is no reason to spin.
stubborn_reader() {
    daemon_start || exit 1
    mkfifo "$dir/fifo"
    exec 9<>"$dir/fifo" # it is open before anybody writes to it
    sleep 60 <&9 &
    local reader=$! before
    exec 9>&-
    start -o "$dir/fifo" stubborn
    check "a reader that does not read: there is more than a pipe holds" \
        wait_until 20 has_made 10000 # 64 KiB are 2,700 of the smallest
    before=$SECONDS
    ctl stop stubborn >"$dir/stopped" 2>&1
    check "a reader that does not read is given up after 5 s" below $((SECONDS - before)) 9
    check "it was given time" above $((SECONDS - before)) 3
    ctl --json status stubborn >"$dir/stubborn"
    check "that is an error of the output" reason_is "$dir/stubborn" output-error
    check "stubborn: the ledger balances" balances "$dir/stubborn"
    check "stubborn: tracing is off" tracing_is false

    python3 -c 'if True:
        import os, subprocess, sys, time
        r, w = os.pipe2(os.O_NONBLOCK)
        p = subprocess.Popen(sys.argv[1:], stdout=w)
        time.sleep(4); os.close(r); os.close(w); sys.exit(p.wait())' \
        "$build/xentracectl" record --quiet -o - nonblocking 2>/dev/null &
    sleep 1
    before=$(ticks)
    sleep 2
    check "a full non-blocking pipe: less than half a CPU" below $(($(ticks) - before)) \
        "$(getconf CLK_TCK)"
    wait $!
    check "a full non-blocking pipe: it ends" wait_until 5 ended nonblocking
    kill "$reader"
    check "after all this a capture works" ctl record --quiet -T 0.3 works
    ended_well "after stubborn readers" works time
}

own_files() {
    daemon_start || exit 1
    check "-o FILE" ctl record --quiet -T 0.3 -o "$dir/f.xentrace"
    check "-o FILE: sound" is_sound "$dir/f.xentrace"
    check "-o FILE: its sidecar" reason_is "$dir/f.json" time
    check "-o FILE: as long as the sidecar says" same "$(stat -c %s "$dir/f.xentrace")" \
        "$(number "$dir/f.json" output bytes)"
    check "-o FILE --force" ctl record --quiet -T 0.1 --force -o "$dir/f.xentrace"
    check "-o FILE --force: sound" is_sound "$dir/f.xentrace"
    check "-o FILE --force: its sidecar" same "$(number "$dir/f.json" output bytes)" \
        "$(stat -c %s "$dir/f.xentrace")"
    (cd "$dir" && ctl record --quiet -T 0.1 -o plain) >/dev/null
    check "-o without a suffix: the sidecar" reason_is "$dir/plain.json" time
    check "nothing else was made" same \
        "$(ls "$dir" | grep -E '^(f|plain)' | tr '\n' ' ')" "f.json f.xentrace plain plain.json "
}

# --- CPUs and buffers. ---

offline() {
    daemon_start || exit 1
    start offline
    check "offline: records come" wait_until 20 test -s "$dir/state/offline.xentrace"
    ctl --json status offline >"$dir/status"
    check "the CPUs with a buffer are told" same "$(number "$dir/status" buffers cpus)" 0-5
    check "and to people those without" same "$(ctl status offline | grep -c 'no buffer')" 2
    check "stop" ctl stop offline
    ended_well offline offline stop
    check "only CPUs with a buffer are in it" \
        "$xensim" verify --from-start --cpus 0-5 "$dir/state/offline.xentrace"
}

# One CPU's buffer is broken: it is set aside and named, the file stays sound.
broken() { # broken WHAT
    daemon_start || exit 1
    start -s 10 broken
    check "$1: records come" wait_until 20 test -s "$dir/state/broken.xentrace"
    # A record that is none shows as long as nothing follows it.
    "$xensim" pause
    check "$1: poke" "$xensim" poke "$1" 2
    check "$1: status names the CPU" wait_until 5 is_set_aside 2
    "$xensim" resume
    check "$1: to people too" grep -q "CPU 2 is set aside" <(ctl status broken)
    ctl --json status broken >"$dir/status"
    stops_xen "$1" || check "$1: the others go on" wait_until 20 others_went_on
    check "$1: stop" ctl stop broken
    cat "$dir/log" # for the record
}
is_set_aside() {
    ctl --json status broken >"$dir/status"
    same "$(number "$dir/status" buffers set_aside)" "$1"
}
stops_xen() { [[ $1 = bogus-prod || $1 = unaligned-prod ]]; } # Xen itself stops tracing, for all CPUs
others_went_on() { # since $dir/status
    ctl --json status broken >"$dir/live"
    above "$(number "$dir/live" ledger cpus 3 delivered)" \
        "$(number "$dir/status" ledger cpus 3 delivered)"
}
check_broken() {
    local sidecar=$dir/state/broken.json
    check "$1: the file is sound" is_sound "$dir/state/broken.xentrace"
    check "$1: the ledger balances" balances "$sidecar"
    stops_xen "$1" ||
        check "$1: what came after it is there" above "$(number "$sidecar" ledger cpus 3 delivered)" \
            "$(number "$dir/status" ledger cpus 3 delivered)"
}

# Stopped until the end, so that all losses are still untold then; and while Xen tells them it loses
# more, which are nobody's.
lossy() { # lossy OPTION...
    daemon_start || exit 1
    start "$@" lossy
    check "lossy: Xen makes enough to compare CPUs" wait_until 60 has_made 400000
    lose_until_the_end 0.2 lossy
}
check_lossy() { # check_lossy NAME
    local sidecar=$dir/state/lossy.json
    check "$1: records were lost" above "$(number "$sidecar" ledger lost)" 0
    check "$1: every gap has exactly its count" is_sound "$dir/state/lossy.xentrace" --from-start
    check "$1: the ledger balances" balances "$sidecar"
    check "$1: no CPU's loss is unknown" same "$(number "$sidecar" ledger loss_unknown_cpus)" ""
    check "$1: nothing is counted that came after its end" in_step "$sidecar"
}
# The producer makes as many records for each CPU, up to a tick. That is worth 400 us at most: 420
# records of 100,000, or 3 of 1,500.
in_step() {
    python3 - "$1" <<'PYTHON'
import json, sys
produced = [c["produced"] for c in json.load(open(sys.argv[1]))["ledger"]["cpus"]]
assert max(produced) - min(produced) <= max(produced) // 200, (min(produced), max(produced))
PYTHON
}

# --- Each on a Xen of its own. ---

boot_trace() {
    local boot=(--cpus 4 --rate 2M --preset-pages 4 --preset-mask 0x00fff000)
    sim "${boot[@]}" -- booted
    check "the boot trace comes first" "$xensim" verify --from-start "$dir/state/booted.xentrace"
    sim_clean
    sim "${boot[@]}" -- booted -D
    check "-D: it is discarded" same "$(firsts "$dir/state/booted.xentrace" | grep -c ':0$')" 0
    check "-D: and what came then is there" is_sound "$dir/state/booted.xentrace"
    sim_clean
    sim "${boot[@]}" -- booted -e sched-min,hw-irq -c 2-3
    check "the boot trace is filtered to what was asked for" "$xensim" verify --cpus 2-3 \
        --kinds 0x00021000,0x00802000 "$dir/state/booted.xentrace"
    sim_clean
    sim --rate 1M --preset-pages 16 -- start_disabled_but_booted
}

broken_buffers() {
    local what
    for what in bogus-prod unaligned-prod far-prod bogus-record; do
        sim --rate 2M -- broken "$what"
        check_broken "$what"
        sim_clean
    done
}

losses() {
    sim --cpus 256 --rate 40M -- lossy -S 1
    check_lossy "256 CPUs, 1 page"
    sim_clean
    sim --cpus 4 --rate 100M -- lossy -S 1
    check_lossy "4 CPUs, 1 page"
}

# Named parts only: lifecycle.sh PART...
parts=(by_signal hangup by_sigkill again_and_again stopping by_limits keep_enabled start_disabled
    client_killed pipes stubborn_reader own_files boot_trace offline broken_buffers losses)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

main() {
    local part
    for part in "${parts[@]}"; do
        case $part in
            boot_trace | broken_buffers | losses) "$part" ;;
            by_limits) sim --rate 20M -- by_limits ;;
            offline) sim --rate 5M --offline 6-7 -- offline ;;
            *) sim --rate 5M -- "$part" ;;
        esac
        sim_clean
    done
}

dispatch "$@"
