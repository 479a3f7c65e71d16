#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A xenstored that hangs, or does not run, costs names and nothing else: start, status, stop and
# SIGTERM are answered as fast as with one that answers, captures lose nothing, and names appear when
# it answers again. A guest chooses its name: whatever the name is, status and stop are answered.

. "$(dirname "$0")/lib.sh"

hang() { "$xensim" fault xenstore-hangs "$1"; } # hang on|off

# Runs COMMAND; prints how many ms that took. A command that does not return within 20 s has failed.
msec_of() {
    local begin
    begin=$(date +%s%N)
    timeout 20 "$@" >"$dir/answer" 2>&1 || return
    echo $((($(date +%s%N) - begin) / 1000000))
}

# What a user does, in order. The times go to FILE, a line each: "start 12".
# do_all NAME FILE
do_all() {
    local msec
    msec=$(msec_of "$build/xentracectl" start "$1") || return
    echo "start $msec" >"$2"
    msec=$(msec_of "$build/xentracectl" status) || return
    echo "status $msec" >>"$2"
    sleep 1
    msec=$(msec_of "$build/xentracectl" --json status "$1") || return
    echo "json $msec" >>"$2"
    msec=$(msec_of "$build/xentracectl" stop "$1") || return
    echo "stop $msec" >>"$2"
}

# Each took no longer than without the fault, but for what other programs on the machine take: a
# daemon that waits for xenstored needs more than 20 s. as_fast_as HUNG FREE
as_fast_as() {
    paste -d' ' "$1" "$2" | awk '{ print } $2 > 5 * $4 + 300 { slow++ } END { exit NR < 4 || slow }'
}

names_of() { # names_of DOCUMENT: "0=Domain-0 1=web 2=db"
    python3 -c 'if True:
        import json, sys
        domains = json.load(open(sys.argv[1]))["domains"]
        print(*("%d=%s" % (d["domid"], d["name"]) for d in domains))' "$1"
}
knows() { # knows NAMES SESSION
    ctl --json status "$2" >"$dir/known" && same "$(names_of "$dir/known")" "$1"
}

crash_trigger() { printf '%s\n' '[trigger crash]' condition=domain-crash cooldown=0 >>"$dir/xentraced.conf"; }
has_fired() { ctl --json status >"$dir/status" && same "$(number "$dir/status" triggers name=crash fired)" "$1"; }
fired_for() { grep -q "$1" <(number "$dir/status" triggers name=crash last_reason); }

# SIGTERM, while xenstored hangs: the daemon ends, and well.
ends_at_once() {
    local msec
    msec=$(msec_of bash -c "kill -TERM $daemon; while kill -0 $daemon 2>/dev/null; do sleep 0.01; done") || return
    wait "$daemon" || return
    echo "$msec ms"
    [ "$msec" -lt "${1:-3000}" ]
}

# --- It hangs from the beginning. ---

beginning() {
    recorder memory=8M
    crash_trigger
    check "it hangs from the beginning: the daemon comes up" daemon_start
    check "it hangs from the beginning: the recorder runs" wait_until 10 recorder_runs
    check "it hangs from the beginning: start, status, stop" do_all hung "$dir/hung"
    check "it hangs from the beginning: the capture is complete" whole "$dir/state/hung.xentrace"
    check "it hangs from the beginning: ids are known, names are not" \
        same "$(names_of "$dir/state/hung.json")" "0= 1= 2="
    check "it hangs from the beginning: the sidecar reports that names are missing" \
        same "$(number "$dir/state/hung.json" domain_names)" unavailable
    check "it hangs from the beginning: info, too" shows 'names are missing: xenstored was not reached' \
        ctl info "$dir/state/hung.xentrace"
    check "it hangs from the beginning: the UUIDs are known" shows ' - +7765620.-' \
        ctl info "$dir/state/hung.xentrace"
    check "it hangs from the beginning: the log says so" \
        wait_until 10 grep -q "Xenstore does not answer. Until it does" "$dir/log"
    ctl start over >/dev/null
    "$xensim" domain crash 1

    hang off
    check "it answers: the names are there" wait_until 5 knows "0=Domain-0 1=web 2=db" over
    check "it answers: the log says so" grep -q "Xenstore answers again" "$dir/log"
    check "it answers: of the recorder, too" wait_until 5 knows "0=Domain-0 1=web 2=db" flight-recorder
    check "it answers: who crashed meanwhile is reported" wait_until 5 has_fired 1
    check "it answers: with or without a name" fired_for '^Domain 1 .*crashed\.$'
    check "it answers: no name is missing" same \
        "$(ctl --json status over | number /dev/stdin domain_names)" complete
    check "it answers: stop" ctl stop over
    check "it answers: the sidecar has the names" \
        same "$(names_of "$dir/state/over.json")" "0=Domain-0 1=web 2=db"
    check "it answers: the capture is complete" whole "$dir/state/over.xentrace"
    check "it answers: start, status, stop" do_all free "$dir/free"
    check "it hung: no command took longer for it" as_fast_as "$dir/hung" "$dir/free"
    recorder_status
    check "it hung: the recorder lost nothing" same "$(number "$dir/recorder" ledger lost)" 0
    check "it hung: and dropped nothing" same "$(number "$dir/recorder" ledger dropped)" 0
}

# --- It hangs in the middle. ---

middle() {
    recorder memory=8M
    crash_trigger
    daemon_start && wait_until 10 recorder_runs || exit 1
    check "before: start, status, stop" do_all free "$dir/free"
    ctl start through >/dev/null
    check "before: the names are known" wait_until 5 knows "0=Domain-0 1=web 2=db" through

    hang on
    "$xensim" domain add 7 new
    check "it hangs: what was known is known still, and who is new" \
        wait_until 10 knows "0=Domain-0 1=web 2=db 7=" through
    check "it hangs: start, status, stop" do_all hung "$dir/hung"
    check "it hangs: the capture is complete" whole "$dir/state/hung.xentrace"
    check "it hangs: no command took longer for it" as_fast_as "$dir/hung" "$dir/free"
    check "it hangs: a snapshot" ctl snapshot now
    check "it hangs: the snapshot is complete" whole "$dir/state/now.xentrace"

    hang off
    check "it answers: the new one's name is there" \
        wait_until 5 knows "0=Domain-0 1=web 2=db 7=new" through
    "$xensim" domain crash 7
    check "it answers: crashes are reported" wait_until 5 has_fired 1
    check "it answers: by name" fired_for '^Domain 7 (new) crashed\.$'
    check "stop" ctl stop through
    check "the capture that went through it is complete" whole "$dir/state/through.xentrace"
}

# --- Domains come and go. ---

spans_of() { # spans_of DOCUMENT: "7=short 3 4": who, and how many seconds it was there
    python3 -c 'if True:
        import json, sys
        for d in json.load(open(sys.argv[1]))["domains"]:
            print("%d=%s %d" % (d["domid"], d["name"], (d["last_seen_ns"] - d["first_seen_ns"]) / 1e9))' "$1"
}

# Between two looks of a recorder, which are a minute apart.
short() {
    recorder memory=8M
    daemon_start && wait_until 10 recorder_runs || exit 1
    wait_until 5 knows "0=Domain-0 1=web 2=db" flight-recorder
    "$xensim" domain add 7 short
    wait_until 5 knows "0=Domain-0 1=web 2=db 7=short" flight-recorder
    sleep 2
    "$xensim" domain remove 7
    sleep 2
    check "a domain that is gone: a snapshot" ctl snapshot gone
    check "a domain that is gone: it is in the snapshot" \
        same "$(names_of "$dir/state/gone.json")" "0=Domain-0 1=web 2=db 7=short"
    check "a domain that is gone: with its time" shows '^7=short [23]$' spans_of "$dir/state/gone.json"
    "$xensim" domain add 8 other
    wait_until 5 knows "0=Domain-0 1=web 2=db 7=short 8=other" flight-recorder
    sleep 3
    check "a domain that is gone for longer: a snapshot" ctl snapshot --last 1s later
    check "a domain that is gone for longer: it is none of that" \
        same "$(names_of "$dir/state/later.json")" "0=Domain-0 1=web 2=db 8=other"
    check "who runs, until now" shows '^0=Domain-0 ([6-9]|1[0-9])$' spans_of "$dir/state/later.json"
}

# --- SIGTERM. ---

term() {
    recorder memory=8M
    crash_trigger
    daemon_start && wait_until 10 recorder_runs || exit 1
    ctl start last >/dev/null
    wait_until 5 knows "0=Domain-0 1=web 2=db" last
    hang on
    "$xensim" domain add 7 new
    sleep 0.2
    check "SIGTERM while it hangs: the daemon ends well, at once" ends_at_once
    check "SIGTERM while it hangs: the capture is complete" whole "$dir/state/last.xentrace"
    check "SIGTERM while it hangs: tracing is disabled" grep -q '"enabled":false' <(xen_state)
    check "it hangs: the next daemon comes up" daemon_start
    check "SIGTERM while it hangs from the beginning" ends_at_once
    hang off
}

# --- It does not run. ---

absent() {
    recorder memory=8M
    crash_trigger
    check "it does not run: the daemon comes up" daemon_start
    check "it does not run: start, status, stop" do_all without "$dir/without"
    check "it does not run: the log says what that means" \
        grep -q "Cannot watch xenstore: .*crashes of domains fire no trigger" "$dir/log"
    ctl start over >/dev/null
    "$xensim" fault no-xenstore off
    check "it is started: the names are there" wait_until 15 knows "0=Domain-0 1=web 2=db" over
    ctl stop over >/dev/null
    check "it is started: the capture is complete" whole "$dir/state/over.xentrace"
}

# --- Names. ---

names() {
    local digits=0123456789012345678901234567890123456789012345678901234567890 # 61
    daemon_start || exit 1
    "$xensim" domain add 5 $'M\xfcnchen'
    "$xensim" domain add 6 "${digits}€uro" # 63 bytes end in the middle of the Euro sign
    "$xensim" domain add 7 $'red\x1b[31m\xc2\x9b31m\nnew line'
    "$xensim" domain add 8 $'\xed\xa0\x80\xc0\xaf\xef\xbf\xbe'
    "$xensim" domain add 9 "größer" # nothing is wrong with that one
    check "names: start" ctl start named
    check "names: they are shown, as valid UTF-8 without control characters" wait_until 10 knows "$(
        printf '%s' "0=Domain-0 1=web 2=db 5=M�nchen 6=${digits%?}…" \
            ' 7=red\x1b[31m\x9b31m\x0anew line 8=������ 9=größer'
    )" named
    check "names: status" ctl status
    check "names: status of one" ctl status named
    check "names: list" ctl list
    check "names: stop is answered" timeout 20 "$build/xentracectl" stop named
    check "names: the capture is complete" whole "$dir/state/named.xentrace"
    check "names: the sidecar is valid UTF-8" iconv -f UTF-8 -t UTF-8 "$dir/state/named.json"
}

parts=(beginning middle short term absent names)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

main() {
    local part
    for part in "${parts[@]}"; do
        case $part in
            beginning) sim --cpus 2 --rate 4M --fault xenstore-hangs -- beginning ;;
            absent) sim --cpus 2 --rate 4M --fault no-xenstore -- absent ;;
            short) sim --cpus 2 --rate 200K -- short ;; # the ring holds all of it
            *) sim --cpus 2 --rate 4M -- "$part" ;;
        esac
        sim_clean
    done
}

dispatch "$@"
