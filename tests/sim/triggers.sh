#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A trigger writes the snapshot that its condition asks for, once, with what led to it and, with
# delay=, what came after it; every time that it does not, status says why.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/disks.sh"

trigger() { # trigger NAME LINE...: in the configuration, after the recorder
    local name=$1
    shift
    printf '%s\n' "[trigger $name]" "$@" >>"$dir/xentraced.conf"
}

# of_trigger NAME KEY...: out of its object
of_trigger() {
    reports ctl --json status >"$dir/status" && number "$dir/status" triggers "name=$1" "${@:2}"
}
is_of() { [ "$(of_trigger "${@:1:$#-1}")" = "${!#}" ]; } # is_of NAME KEY... VALUE
written() { is_of "$1" written "$2"; }
has_written() { check "$1: writes one" wait_until 10 written "$1" "${2:-1}"; }
reason() { grep -Eq -- "$2" <<<"$(of_trigger "$1" last_reason)" || { of_trigger "$1"; return 1; }; }
writes_nothing() { # writes_nothing REGEX NAME
    local output status=0
    output=$(ctl trigger "$2" 2>&1) || status=$?
    echo "$output"
    same "$status" 1 && grep -q "Outcome: no snapshot" <<<"$output" && grep -q "$1" <<<"$output"
}
name_is_known() { ctl --json status flight-recorder | grep -c "\"$1\"" >/dev/null; }
snapshot_of() { of_trigger "$1" last_snapshot; }

# Events of other kinds than the numbered ones are in it.
whole_but() { # whole_but EVENTS FILE
    "$xensim" verify --warn-rounds --ignore "$1" "$2"
}
has_events() { # has_events FILE EVENT COUNT: so many records of it
    python3 - "$@" <<'END'
import struct, sys
data, event, wanted = open(sys.argv[1], "rb").read(), int(sys.argv[2], 0), int(sys.argv[3])
at = found = 0
while at < len(data):
    head, = struct.unpack_from("<I", data, at)
    found += head & 0xfffffff == event
    at += 4 + 4 * (head >> 28 & 7) + (8 if head >> 31 else 0)
assert found == wanted, (found, wanted)
END
}

# --- Conditions. ---

conditions() {
    recorder memory=16M
    trigger crash condition=domain-crash cooldown=0
    trigger single event=0x00202000 cooldown=0
    trigger burst event=0x00804000 count=100 within=10ms cooldown=0
    trigger wait runnable-latency=50ms cooldown=0
    trigger by-hand condition=manual cooldown=0
    daemon_start && wait_until 10 recorder_runs || exit 1
    sleep 0.5

    "$xensim" domain shutdown 2 poweroff
    "$xensim" domain crash 1
    has_written crash
    check "crash: says who" reason crash "^Domain 1 \(web\) crashed\.$"
    check "crash: the snapshot is complete" whole "$(snapshot_of crash)"
    check "crash: is named after it" grep -q '/snapshot-crash-2.*\.xentrace$' <(snapshot_of crash)
    check "crash: one crash is one" is_of crash fired 1
    "$xensim" domain remove 1
    "$xensim" domain add 7 new
    wait_until 5 name_is_known new # a crash is reported without waiting for the name
    "$xensim" domain crash 7
    has_written crash 2
    check "crash: says who, again" reason crash "^Domain 7 \(new\) crashed\.$"

    "$xensim" event 1 0x00202f0c 1 >/dev/null
    has_written single
    check "event: says which, and where" reason single "^Event 0x00202f0c \(pv\) on CPU 1\.$"
    check "event: the snapshot has it" has_events "$(snapshot_of single)" 0x00202f0c 1
    check "event: the snapshot is complete" whole_but 0x00202f0c "$(snapshot_of single)"
    check "event: its cause" same "$(number "$(snapshot_of single | sed 's/xentrace$/json/')" snapshot cause)" trigger

    "$xensim" event --times 99 2 0x00804f0d 1 >/dev/null
    sleep 1.2
    check "count: 99 are not 100" is_of burst fired 0
    "$xensim" event --times 100 2 0x00804f0d 1 >/dev/null
    has_written burst
    check "count: says so" reason burst "^100 events within 10ms, one of them 0x00804f0d .* CPU 2\.$"
    check "count: the snapshot has them all" has_events "$(snapshot_of burst)" 0x00804f0d 199

    # 49 ms are not enough; 60 ms are, on another CPU.
    waits 5 49000
    sleep 2.2
    check "runnable-latency: 49 ms are not 50" is_of wait fired 0
    waits 5 60000
    has_written wait
    check "runnable-latency: says who, and how long" \
        reason wait "^vCPU 5 of domain 7 \(new\) waited (59\.[0-9]+|60(\.[0-9]+)?)ms for CPU 3\.$"
    check "runnable-latency: the snapshot has both" has_events "$(snapshot_of wait)" 0x00021101 2

    check "manual" ctl trigger by-hand
    has_written by-hand
    check "manual: says so" reason by-hand "^Fired on request\.$"
    check "manual: the snapshot is complete" \
        whole_but 0x00202f0c,0x00804f0d,0x00021211,0x00021101 "$(snapshot_of by-hand)"
    check "manual: only those can be fired so" refuses "has the condition domain-crash; only.*condition=manual" ctl trigger crash
    check "manual: one that is not there" refuses "no trigger 'none'" ctl trigger none
    recorder_status
    check "nothing was lost" same "$(number "$dir/recorder" ledger lost)" 0
}
# Domain 7's vCPU is woken, and runs so many microseconds later by their TSCs, on CPU 3. Both in the
# past, so that no record is late for a round that is over; TSCs are exact.
waits() { # waits VCPU USEC
    local tsc khz vcpu
    vcpu=$(printf '0x%08x' $((7 << 16 | $1)))
    "$xensim" stat >"$dir/stat"
    tsc=$(tr -d ' \n' <"$dir/stat" | grep -o '"tsc":[0-9]*' | cut -d: -f2)
    khz=$(ctl --json status flight-recorder | tr -d ' \n' | grep -o '"tsc_khz":[0-9]*' | cut -d: -f2)
    "$xensim" event --tsc "$tsc" 0 0x00021211 "$vcpu" >/dev/null
    "$xensim" event --tsc $((tsc + khz * $2 / 1000)) 3 0x00021101 "$vcpu" >/dev/null
}

lost() {
    recorder memory=16M
    trigger lost condition=lost-records delay=300ms
    daemon_start && wait_until 10 recorder_runs || exit 1
    sleep 0.5
    check "lost: nothing yet" is_of lost fired 0
    lose_for 1
    kill -CONT "$daemon"
    has_written lost
    check "lost: says how much, and where" reason lost "^Xen lost [1-9][0-9]* records on CPU [0-3]\.$"
    check "lost: the snapshot is complete but for that" whole "$(snapshot_of lost)"
    check "lost: and tells it" above "$(number "$(snapshot_of lost | sed 's/xentrace$/json/')" snapshot lost)" 0
}

# Records of losses, made by hand: they name who ran, which the stand-in's own are not about.
lost_by() { # lost_by DOMID...: a loss while each of them ran, one after the other
    local domid fired
    for domid in "$@"; do
        fired=$(of_trigger lost fired)
        "$xensim" event 1 0x0001f001 5 "$(printf '0x%08x' "$domid")" 0 0 >/dev/null
        wait_until 10 has_fired_since "$fired" || return
    done
}
has_fired_since() { above "$(of_trigger lost fired)" "$1" && ! is_of lost state writing; }

# One guest that overruns the buffers does not use up the trigger for the others.
lost_budgets() {
    recorder memory=16M
    trigger lost condition=lost-records cooldown=0 max-per-day=5 max-per-domain=2
    daemon_start && wait_until 10 recorder_runs || exit 1
    wait_until 10 name_is_known web
    check "lost, budgets: a guest's" lost_by 1 1 1
    check "lost, budgets: it has its part of the day" is_of lost written 2
    check "lost, budgets: one more is counted" is_of lost suppressed max_per_domain 1
    check "lost, budgets: another guest's" lost_by 2
    check "lost, budgets: is written" is_of lost written 3
    check "lost, budgets: nothing was left out for the day" is_of lost suppressed max_per_day 0
    check "lost, budgets: status shows it" grep -q "max-per-domain 1" <(ctl status)
}

# --- Delay, cooldown, so many in a day. ---

policy() {
    local snapshot fired
    recorder memory=16M
    trigger after event=0x00202000 delay=700ms cooldown=3s
    trigger hour condition=manual cooldown=1h
    trigger daily condition=manual cooldown=0 max-per-day=2
    trigger short condition=manual cooldown=0 last=500ms
    trigger long condition=manual cooldown=0 last=1h
    daemon_start && wait_until 10 recorder_runs || exit 1
    sleep 0.5

    "$xensim" event 0 0x00202f0c 1 >/dev/null
    wait_until 5 is_of after state delaying
    "$xensim" event --times 7 1 0x00804f0d 1 >/dev/null # the aftermath
    sleep 0.1
    has_written after
    snapshot=$(snapshot_of after)
    fired=$(of_trigger after last_fired_ns)
    check "cooldown: it cools" is_of after state cooling
    check "cooldown: what comes then is counted" wait_until 3 suppresses_another
    check "cooldown: with its reason" grep -q '^Event 0x00202f0c' <(of_trigger after last_suppressed_reason)
    check "cooldown: once" is_of after suppressed cooldown 1
    check "cooldown: writes none" is_of after written 1
    check "delay: the event is in it" has_events "$snapshot" 0x00202f0c 1
    check "delay: and what came after it" has_events "$snapshot" 0x00804f0d 7
    check "delay: for so long" python3 - "${snapshot/%xentrace/json}" "$fired" <<'END'
import json, sys
last = json.load(open(sys.argv[1]))["snapshot"]["last_ns"]
assert last - int(sys.argv[2]) >= 0.65e9, last - int(sys.argv[2])
END
    check "cooldown: it is over" wait_until 10 is_of after state armed
    "$xensim" event 0 0x00202f0c 1 >/dev/null
    has_written after 2
    check "every time is in one of the counts" is_of after fired 3

    ctl trigger hour >/dev/null
    has_written hour
    check "cooldown, manual: writes nothing, and says so" writes_nothing "State: cooling" hour
    check "cooldown, manual: counted" is_of hour suppressed cooldown 1
    ctl trigger daily >/dev/null
    has_written daily 1
    ctl trigger daily >/dev/null
    has_written daily 2
    check "max-per-day: exhausted" is_of daily state exhausted
    check "max-per-day: the third writes nothing, and says so" writes_nothing "State: exhausted" daily
    check "max-per-day: counted" is_of daily suppressed max_per_day 1
    check "max-per-day: its file is not there" same "$(ls "$dir/state" | grep -c '^snapshot-daily.*xentrace$')" 2

    ctl trigger short >/dev/null
    has_written short
    check "last: complete" whole_but 0x00202f0c,0x00804f0d "$(snapshot_of short)"
    check "last: no more than that" python3 - "$(snapshot_of short | sed 's/xentrace$/json/')" \
        "$(snapshot_of hour | sed 's/xentrace$/json/')" <<'END'
import json, sys
short, hour = ((s["last_ns"] - s["first_ns"]) / 1e9
               for s in (json.load(open(p))["snapshot"] for p in sys.argv[1:]))
print(short, hour)
assert 0.4 < short < 0.6 * hour # it begins with the window that was taken before that time
END
    ctl trigger long >/dev/null
    has_written long
    check "last, longer than there is: the sidecar has the reason" grep -Eq '"shorter_because":"(began|evicted)"' \
        <(tr -d ' \n' <"$(snapshot_of long | sed 's/xentrace$/json/')")
    check "last, longer than there is: so has the log" grep -q 'trigger long.*Wrote .* of the 1h requested' "$dir/log"
    check "status, to people: the triggers" grep -Eq 'daily.*exhausted' <(ctl status)
    check "list --triggers" same "$(ctl list --triggers --names | tr '\n' ' ')" "after hour daily short long "
    check "triggers write nothing else" same "$(ls "$dir/state" | grep -c 'xentrace$')" 7
}

# It is looked for again a second after it was found.
suppresses_another() {
    "$xensim" event 0 0x00202f0c 1 >/dev/null
    ! is_of after suppressed cooldown 0
}

# While one is being written; and several at once.
busy() {
    local i pids=()
    recorder memory=64M
    for i in $(seq 16); do trigger "t$i" event=0x00202000 cooldown=0; done
    daemon_start && wait_until 10 recorder_runs || exit 1
    sleep 1
    # The state directory is slow: its writes wait while the daemon's threads compete.
    "$xensim" event 0 0x00202f0c 1 >/dev/null
    for i in $(seq 16); do
        wait_until 20 written "t$i" 1 || echo "not ok - t$i: it was not written"
    done
    ctl --json status >"$dir/status"
    check "16 at once: each was written, those for which there was no pin a second later" \
        python3 - "$dir/status" <<'END'
import json, sys
triggers = json.load(open(sys.argv[1]))["triggers"]
print([(t["fired"], t["written"], t["last_error"]) for t in triggers])
assert all((t["fired"], t["written"], t["last_error"]) == (1, 1, "") for t in triggers)
END
    check "16 at once: those that were are complete" all_complete
    recorder_status
    check "16 at once: nothing was lost" same "$(number "$dir/recorder" ledger lost)" 0
    check "16 at once: nothing was dropped" same "$(number "$dir/recorder" ledger dropped)" 0
}
all_complete() {
    local file
    for file in "$dir"/state/snapshot-*.xentrace; do whole_but 0x00202f0c "$file" || return; done
}

# A snapshot of somebody's is being written: the trigger's comes as well.
beside() {
    local client reader
    recorder memory=16M
    trigger hand condition=manual cooldown=0
    daemon_start && wait_until 10 recorder_runs || exit 1
    sleep 1
    mkfifo "$dir/fifo"
    read_fifo "$dir/fifo" "$dir/slow" $((2 * 1024 * 1024))
    ctl snapshot -o "$dir/fifo" >/dev/null 2>&1 &
    client=$!
    wait_until 10 test -s "$dir/slow"
    ctl trigger hand >/dev/null
    has_written hand
    check "while a snapshot is written: it still is" kill -0 "$client"
    check "while a snapshot is written: complete" whole "$(snapshot_of hand)"
    touch "$dir/go"
    check "and the other ends well" wait "$client"
    wait "$reader"
    check "and is complete" whole "$dir/slow"
}

# --- Without a ring. ---

off() {
    printf '[flight-recorder]\nenabled=no\n[trigger hand]\ncondition=manual\n[trigger crash]\ncondition=domain-crash\n' \
        >"$dir/xentraced.conf"
    daemon_start || exit 1
    check "no recorder: off" is_of hand state off
    check "no recorder: is refused" refuses "The flight recorder is not running.*enabled=yes" ctl trigger hand
    "$xensim" domain crash 1
    sleep 0.3
    check "no recorder: a crash writes nothing" is_of crash written 0
    check "no recorder: no file" same "$(ls "$dir/state" | wc -l)" 0
    check "the daemon lives" kill -0 "$daemon"
}

# --- Who may. ---

as_user() { # as_user GROUP COMMAND...: xentracectl as nobody, in that group
    local id
    id=$(getent group "$1" | cut -d: -f3)
    shift
    env -u LD_PRELOAD setpriv --reuid=65534 --regid=65534 --groups "$id" "$dir/xentracectl" "$@"
}

# A disk that does not answer holds up one attempt of a trigger, and none of one that a reload removes.
waiting() {
    on_small 64 || exit 1
    trap 'fsfreeze -u "$dir/state" 2>/dev/null; umount -l "$dir/state"' EXIT
    recorder memory=8M
    cp "$dir/xentraced.conf" "$dir/without"
    trigger crash condition=domain-crash cooldown=0
    cp "$dir/xentraced.conf" "$dir/with"
    daemon_start && wait_until 10 recorder_runs || exit 1
    wait_until 60 recorder_has $((1 << 20))
    fsfreeze -f "$dir/state"
    "$xensim" domain crash 1
    check "waiting: the crash is tried again" wait_until 30 is_of crash state retrying
    check "waiting: not anew while an attempt waits" wait_until 30 grep -q \
        "No snapshot (trigger crash). The disk of .* has not answered since the last attempt" "$dir/log"
    check "waiting: there is one" writes 1
    cp "$dir/without" "$dir/xentraced.conf"
    check "waiting: a reload without the trigger" ctl reload
    check "waiting: it is gone" fails "no trigger 'crash'" ctl trigger crash
    sleep 5 # it would have tried again by then
    cp "$dir/with" "$dir/xentraced.conf"
    check "waiting: a reload with the trigger" ctl reload
    check "waiting: it begins anew" is_of crash fired 0
    "$xensim" domain crash 2
    check "waiting: nor is it tried for the new one" wait_until 30 is_of crash state retrying
    check "waiting: there is still one" writes 1
    fsfreeze -u "$dir/state"
    check "waiting: when the disk answers, it is written" wait_until 60 is_of crash written 1
    check "waiting: it is complete" whole "$(snapshot_of crash)"
    check "waiting: nothing else is left" wait_until 30 none_is_left
    check "waiting: the daemon ends well" daemon_stop
    unset daemon
    umount "$dir/state"
    trap - EXIT
}
none_is_left() { [ "$(find "$dir/state" -name '*.xentrace*' | wc -l)" -eq 1 ]; }

permissions() {
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be nobody's to read
    recorder memory=8M
    trigger hand condition=manual cooldown=0
    daemon_start && wait_until 10 recorder_runs || exit 1
    sleep 0.5
    check "group xentrace: trigger" as_user xentrace trigger hand
    has_written hand
    check "group xentrace: complete" whole "$(snapshot_of hand)"
    check "group xentrace: snapshot" as_user xentrace snapshot theirs
    check "group xentrace: the snapshot is complete" whole "$dir/state/snapshot-user-theirs.xentrace"
    check "group xentrace: it is the daemon's" same "$(stat -c %u:%a "$dir/state/snapshot-user-theirs.xentrace")" "0:640"
    check "group xentrace: its sidecar says who asked" same \
        "$(number "$dir/state/snapshot-user-theirs.json" requested_by uid)" 65534
    local sidecar
    sidecar=$(snapshot_of hand | sed 's/xentrace$/json/')
    check "group xentrace: so does a trigger's" same "$(number "$sidecar" requested_by uid)" 65534
    check "group xentrace: ... with the process" same "$(number "$sidecar" requested_by comm)" xentracectl
    check "group xentrace: ... and the cause" same "$(number "$sidecar" snapshot cause)" trigger
    check "group xentrace: no file of its own" refuses "." as_user xentrace snapshot -o - </dev/null
    check "group xentrace: no stop of the recorder" refuses "role operate. may stop captures" \
        as_user xentrace stop flight-recorder
    check "group xentrace: no reload" refuses "Only root may reload" as_user xentrace reload
    check "others: no trigger" refuses "Not permitted" as_user nogroup trigger hand
    check "others: no snapshot" refuses "Not permitted" as_user nogroup snapshot
    check "that is all there is" same "$(ls "$dir/state" | grep -c 'xentrace$')" 2
}

# The stand-in has no systemd, so the unit's work is done by hand, with its own command line.
reported() {
    local name report
    recorder memory=16M
    trigger by-hand condition=manual cooldown=0 report=yes
    daemon_start && wait_until 10 recorder_runs || exit 1
    sleep 0.5
    ctl trigger by-hand >/dev/null
    has_written by-hand
    name=$(basename "$(snapshot_of by-hand)" .xentrace)
    report=$dir/state/$name.report.txt
    check "report: its place is known" is_of by-hand last_report "$report"
    check "report: the unit was to be started" \
        wait_until 10 grep -q "systemd did not start xentraced-report@$name.service: " "$dir/log"
    check "report: none yet" test -z "$(ctl status | grep 'Last report')"
    unit_writes "$name" >"$report"
    check "report: it is one" grep -q '^DOMAIN ' "$report"
    ctl report --html - "$dir/state/$name.xentrace" >"${report%.txt}.html"
    check "report: status shows what it found" shows '^ +Last report: [^ ]' ctl status
    check "report: it counts for the limits" same "$(ctl --json list --files | grep -o '"bytes": *[0-9]*' |
        tail -n 1 | grep -o '[0-9]*')" "$(cat "$dir/state/$name".* | wc -c)"
    check "report: the snapshot is removed" ctl remove "$name"
    check "report: ... and the report and the page with it" same "$(compgen -G "$dir/state/$name*")" ""
    sed -i '/^report=yes/d' "$dir/xentraced.conf"
    ctl reload >/dev/null
    ctl trigger by-hand >/dev/null
    has_written by-hand 2
    sleep 0.2
    check "report: not without report=yes" same "$(grep -c 'xentraced-report@' "$dir/log")" 1
}
unit_writes() { # unit_writes NAME: what the unit's command prints
    local command
    command=$(sed -n 's/^ExecStart=[^ ]*xentracectl //p' "$build/systemd/xentraced-report@.service")
    # shellcheck disable=SC2086 # words
    ctl ${command//\/var\/lib\/xentraced\/%i/$dir/state/$1}
}

parts=(conditions lost lost_budgets policy busy beside off waiting permissions reported)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

main() {
    local part
    # Groups of our own, seen by nobody else.
    if [ -z "${TRIGGERS_GROUPS:-}" ] && unshare --mount true 2>/dev/null; then
        TRIGGERS_GROUPS=1 exec unshare --mount "$script" "${parts[@]}"
    fi
    for part in "${parts[@]}"; do
        case $part in
            permissions)
                [ -n "${TRIGGERS_GROUPS:-}" ] || {
                    echo "# not root: permissions are not tested"
                    continue
                }
                local groups
                groups=$(mktemp)
                grep -v '^xentrace:' /etc/group >"$groups"
                printf 'xentrace:x:64001:\n' >>"$groups"
                chmod 0644 "$groups"
                mount --bind "$groups" /etc/group
                sim --rate 2M -- permissions
                umount /etc/group
                rm -f "$groups"
                ;;
            waiting)
                can_freeze || {
                    skip "a disk that does not answer" "needs root and fsfreeze"
                    continue
                }
                sim --cpus 4 --rate 4M -- waiting
                ;;
            lost) sim --cpus 4 --rate 20M -- lost ;;
            busy) sim --cpus 4 --rate 20M -- busy ;;
            conditions) sim --cpus 4 --rate 1M -- conditions ;;
            *) sim --cpus 4 --rate 4M -- "$part" ;;
        esac
        sim_clean
    done
}

dispatch "$@"
