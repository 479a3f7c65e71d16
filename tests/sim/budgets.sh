#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Users who may only look cannot use up what root and the triggers need: disk, names, pins, memory. Root's
# files are never replaced, a trigger that had no luck tries again, and one guest does not use up a trigger.

. "$(dirname "$0")/lib.sh"

mib=1048576
viewer=64001 # the group xentrace, in the file that main() puts over /etc/group
other=64003  # a group that may do nothing

# as UID COMMAND...: xentracectl, as a member of the group xentrace
as() { as_member "$1" "$viewer" "${@:2}"; }
as_member() { # as_member UID GROUP COMMAND...
    env -u LD_PRELOAD setpriv --reuid="$1" --regid=65534 --groups "$2" "$dir/xentracectl" "${@:3}"
}

trigger() { # trigger NAME LINE...: in the configuration, after the recorder
    local name=$1
    shift
    printf '%s\n' "[trigger $name]" "$@" >>"$dir/xentraced.conf"
}
of_trigger() { # of_trigger NAME KEY...: out of its object
    ctl --json status >"$dir/status" && number "$dir/status" triggers "name=$1" "${@:2}"
}
is_of() { [ "$(of_trigger "${@:1:$#-1}")" = "${!#}" ]; } # is_of NAME KEY... VALUE
has_written() { check "$1" wait_until "${4:-10}" is_of "$2" written "$3"; } # has_written WHAT TRIGGER COUNT [SECONDS]

files() { find "$dir/state" -type f -name "$1" | wc -l; }
available() { echo $(($(stat -f -c '%a * %S' "$dir/state"))); }
logged() { grep -c -- "$1" "$dir/log"; }

begin() { # begin [KEY=VALUE]...: a recorder and a trigger for crashes
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be others' to read
    recorder "$@"
    trigger crash condition=domain-crash cooldown=0
    daemon_start && wait_until 10 recorder_runs || exit 1
    wait_until 20 recorder_has $((8 * mib))
}

# --- Attacks of one who may look. ---

# As fast as it goes, with the crash's own label.
in_a_loop() {
    local i kib times=() idle=() limit
    configure '[limits]' snapshot-interval=1s snapshots-per-day=3 keep-for-triggers=0
    begin memory=16M
    ctl start root >/dev/null
    kib=$(memory_kib)
    for i in $(seq 9); do
        idle+=("$(milliseconds ctl status)")
    done
    idle=($(printf '%s\n' "${idle[@]}" | sort -n))
    SECONDS=0
    for i in $(seq 30); do
        as 65534 snapshot --label crash >>"$dir/answers" 2>&1 &
        as 65533 snapshot --label crash >>"$dir/answers" 2>&1 &
        as 65534 snapshot --label crash >>"$dir/answers" 2>&1
        times+=("$(milliseconds ctl status)")
    done
    wait_until 10 no_client
    times=($(printf '%s\n' "${times[@]}" | sort -n))
    limit=$((idle[4] * 5 > 100 ? idle[4] * 5 : 100)) # three other clients have the processors, too
    echo "# root's status took ${times[15]} ms, ${idle[4]} ms without the loop; the longest ${times[-1]} ms"
    check "a loop: root's commands are answered within 100 ms, or five times as long as without it" \
        below "${times[15]}" "$limit"
    sanitized || check "a loop: no more memory is used" below "$(memory_kib)" $((kib + 16384))
    check "a loop: the end of root's capture" ctl stop root
    check "a loop: nothing of it is lost" same "$(number "$dir/state/root.json" ledger lost)" 0
    check "a loop: ... or dropped" same "$(number "$dir/state/root.json" ledger dropped)" 0
    recorder_status
    check "a loop: nor of the recorder" same \
        "$(number "$dir/recorder" ledger lost) $(number "$dir/recorder" ledger dropped)" "0 0"
    check "a loop: some are written" above "$(files 'snapshot-user-crash-*.xentrace')" 0
    check "a loop: no more than the limit of two users" below "$(files 'snapshot-user-crash-*.xentrace')" 7
    check "a loop: one at a time" grep -q "is still being written.*one at a time" "$dir/answers"
    check "a loop: one in a second" \
        grep -Eq "less than 1s ago. Try again in [0-9.m]+s\. Root.*snapshot-interval=" "$dir/answers"
    while as 65534 snapshot >/dev/null 2>"$dir/answer" || grep -q interval= "$dir/answer"; do
        sleep 0.3
    done
    check "a loop: three a day" grep -Eq \
        "3 snapshots in the last 24 hours, which is the limit. Try again in (1d|23h)" "$dir/answer"
    check "a loop: another user is not affected" as 65532 snapshot
    check "a loop: root has no limit" ctl snapshot first
    check "a loop: ... at all" ctl snapshot second
    "$xensim" domain crash 1
    has_written "a loop: the crash has its snapshot" crash 1
    check "a loop: it is complete" whole "$(of_trigger crash last_snapshot)"
    check "a loop: not each refusal is logged" below "$(logged "Audit: Snapshot by .*: failed")" \
        $((45 + 2 * SECONDS)) # ten lines of each user in ten seconds
}
memory_kib() { awk '/^RssAnon/ { print $2 }' "/proc/$daemon/status"; }
milliseconds() { # milliseconds COMMAND...: that it takes
    local from
    from=$(date +%s%3N)
    "$@" >/dev/null
    echo $(($(date +%s%3N) - from))
}
no_client() { ! pgrep -P $$ -x xentracectl >/dev/null; }

bytes() {
    configure '[limits]' snapshot-interval=0 snapshot-bytes-per-day=20M keep-for-triggers=0
    begin memory=16M
    mkdir -m 0777 "$dir/mine"
    wait_until 20 recorder_has $((13 * mib))
    check "bytes: the first" as 65534 snapshot
    check "bytes: one that is too long" refuses \
        "would have 1[0-9.]+M, and of the 20M .* in 24 hours, [0-9.]+M is left; more is available in (1d|23h)" \
        as 65534 snapshot
    check "bytes: it leaves nothing" same "$(files 'snapshot-*')" 2
    check "bytes: a shorter one" as 65534 snapshot --max-size 3M
    check "bytes: an output of its own is none of them" refuses "Only root and members.*control-group=" \
        as 65534 snapshot -o "$dir/mine/own"
    "$xensim" domain crash 1
    has_written "bytes: the crash has its snapshot" crash 1
}

disk() {
    on_small 96 || exit 1
    trap 'umount -l "$dir/state"' EXIT
    configure '[trigger button]' condition=manual '[limits]' snapshot-interval=0 keep-for-triggers=40M
    begin memory=16M
    while as 65534 snapshot --max-size 8M >/dev/null 2>"$dir/answer"; do
        :
    done
    check "the disk: is told what is kept" \
        grep -Eq "and the reserve is .* Of this, 40M is kept for triggers and root: keep-for-triggers=" "$dir/answer"
    check "the disk: at least that is left" above "$(available)" $((40 * mib))
    as 65534 trigger button >/dev/null
    check "the disk: nor is a button's snapshot written" wait_until 5 is_of button state retrying
    check "the disk: nobody has touched what is kept" above "$(available)" $((40 * mib))
    "$xensim" domain crash 1
    has_written "the disk: the crash has its snapshot" crash 1
    check "the disk: it is complete" whole "$(of_trigger crash last_snapshot)"
    check "the disk: root may write" ctl snapshot --max-size 8M by-root
    check "the daemon ends well" daemon_stop
    unset daemon
    umount "$dir/state"
    trap - EXIT
}

# A snapshot on a disk that does not answer has failed for its client, but holds its place.
frozen() {
    local i
    on_small 96 || exit 1
    trap 'fsfreeze -u "$dir/state" 2>/dev/null; umount -l "$dir/state"' EXIT
    configure '[limits]' snapshot-interval=0 keep-for-triggers=0
    begin memory=16M
    fsfreeze -f "$dir/state"
    check "frozen: the disk does not answer" refuses "has not answered for 2 s" as 65534 snapshot
    for i in $(seq 5); do
        as 65534 snapshot >/dev/null 2>>"$dir/answers"
    done
    check "frozen: no more than one waits for it" same "$(grep -c "still being written" "$dir/answers")" 5
    check "frozen: ... of the daemon's" writes 1
    "$xensim" domain crash 1
    check "frozen: the crash is tried again" wait_until 10 is_of crash state retrying
    check "frozen: it waits, too" writes 2
    check "frozen: and is not tried anew as long as it does" wait_until 10 grep -q \
        "No snapshot (trigger crash). The disk of .* has not answered since the last attempt" "$dir/log"
    check "frozen: there is one of it" writes 2
    fsfreeze -u "$dir/state"
    has_written "frozen: when the disk answers, the crash has its snapshot" crash 1 20
    check "frozen: it is complete" whole "$(of_trigger crash last_snapshot)"
    check "frozen: the user has its place again" wait_until 5 as 65534 snapshot
    check "frozen: nothing is left over" same "$(find "$dir/state" -name '.*.xentrace*' | wc -l)" 0
    check "the daemon ends well" daemon_stop
    unset daemon
    umount "$dir/state"
    trap - EXIT
}

# Root's names: a segment that is still to come, the sidecar of all.
names() {
    local sum
    configure '[limits]' snapshot-interval=0 keep-for-triggers=0
    begin memory=16M
    ctl start --segment-time 2s nightly >/dev/null
    ctl start -T 100 daily >/dev/null
    for name in nightly nightly.00001 nightly.00002 nightly.00003 daily; do
        check "names: $name is a snapshot's" as 65534 snapshot --max-size 8M "$name"
        check "names: $name has the prefix" test -e "$dir/state/snapshot-user-$name.xentrace"
    done
    check "names: one with the prefix has no other" as 65534 snapshot --max-size 8M snapshot-user-mine
    check "names: ... has no other" test -e "$dir/state/snapshot-user-mine.json"
    check "names: nothing is replaced" refuses "snapshot-user-mine.xentrace exists, and captures are never overwritten" \
        as 65534 snapshot --max-size 8M mine
    check "names: one that is too long" refuses "is too long: names given by users other than root begin with 'snapshot-user-'" \
        as 65534 snapshot 0123456789012345678901234567890123456789012345678901234567
    check "names: root's have no prefix" ctl snapshot --max-size 8M by-root
    check "names: ... have no prefix" test -e "$dir/state/by-root.xentrace"
    wait_until 20 test -e "$dir/state/nightly.00003.json"
    ctl stop nightly >/dev/null
    ctl stop daily >/dev/null
    for name in nightly daily; do
        check "names: $name.json is root's capture" same "$(number "$dir/state/$name.json" format)" xentraced-session
    done
    check "names: the segments have theirs" whole "$dir"/state/nightly.0000[123].xentrace
    # A sidecar that is not ours, although no trace of that name is there.
    echo theirs >"$dir/state/orphan.json"
    check "names: a sidecar is in use, too" refuses "orphan.json exists, and sidecars are never overwritten" \
        ctl snapshot orphan
    check "names: it is as it was" same "$(cat "$dir/state/orphan.json")" theirs
}

# A pipe that nobody reads holds the ring's memory.
pins() {
    local uid readers=()
    configure '[limits]' snapshot-interval=0 keep-for-triggers=0
    begin memory=16M
    for uid in 65530 65531 65532 65533; do
        as "$uid" snapshot --last 1s -o - 2>"$dir/pipe-$uid" | sleep 60 &
        readers+=($!)
    done
    check "pins: as many as there are places" wait_until 10 writes 4
    check "pins: no more" refuses \
        "4 snapshots of users other than root are being written, which is the limit" \
        as 65534 snapshot --label more
    check "pins: root has one" ctl snapshot by-root
    "$xensim" domain crash 1
    has_written "pins: the crash has its snapshot" crash 1
    check "pins: they have them for 5 s" wait_until 12 as 65534 snapshot --label late
    check "pins: their clients are told" grep -q "has read nothing for 5 s" "$dir/pipe-65530"
    recorder_status
    check "pins: nothing is lost" same "$(number "$dir/recorder" ledger lost)" 0
    check "pins: nothing is dropped" same "$(number "$dir/recorder" ledger dropped)" 0
    kill "${readers[@]}" 2>/dev/null
    pkill -P $$ -x sleep
}

# --- Live views. ---

live() {
    local i before
    configure '[limits]' snapshot-interval=1h snapshots-per-day=1 keep-for-triggers=0
    begin memory=16M
    check "live: its only snapshot of the day" as 65534 snapshot --label once
    before=$(wc -l <"$dir/log")
    for i in 1 2 3; do
        check "live: the newest second, $i" read_second "$dir/second-$i"
        check "live: it is complete, $i" whole "$dir/second-$i"
        sleep 1
    done
    check "live: not twice in a second" twice
    sleep 1
    check "live: a reader that trickles is given up" trickles
    check "live: nothing is logged" same "$(($(wc -l <"$dir/log") - before))" 0
    check "live: no more than a second" refuses "read the newest second from a pipe" as 65534 snapshot --last 2s -o - \
        < <(:)
    check "live: not into a file" live_into_file
    check "live: whoever tries that is logged" same "$(logged "Audit: Snapshot by UID 65534 .*: refused")" 2
    ctl --json status >"$dir/status"
    check "live: one snapshot is listed" same "$(grep -o '"format": *"xentraced-snapshot"' "$dir/status" | wc -l)" 1
}
read_second() { as 65534 snapshot --last 1s -o - 2>"$dir/summary" | cat >"$1"; }
twice() {
    read_second /dev/null
    as 65534 snapshot --last 1s -o - 2>/dev/null | cat >/dev/null
    as 65534 snapshot --last 1s -o - 2>"$dir/answer" | cat >/dev/null
    grep -q "newest second once a second. Try again in" "$dir/answer"
}
trickles() { # 64 KiB a second
    timeout 20 python3 -c 'if True:
        import sys, time
        while sys.stdin.buffer.raw.read(65536):
            time.sleep(1)' < <(as 65534 snapshot --last 1s -o - 2>"$dir/answer") || return
    grep -q "was not read within 10 s" "$dir/answer"
}
live_into_file() { # shown by its error alone: standard output is a file
    : >"$dir/of-mine"
    ! as 65534 snapshot --last 1s -o - 2>"$dir/answer" >>"$dir/of-mine" &&
        grep -q "members of the group set by control-group= may write to files" "$dir/answer"
}

# --- Guests that crash. ---

# crashes DOMID NAME COUNT: a guest that is started, and crashes, the COUNTth. As with a toolstack, it is
# there for long enough to be asked about: one that is gone at once may not be seen
# (daemon/host/domain-watch.h).
crashes() {
    "$xensim" domain add "$1" "$2"
    wait_until 5 name_is_known "$2"
    "$xensim" domain crash "$1"
    wait_until 10 has_fired crash "$3"
    "$xensim" domain remove "$1"
}
name_is_known() { ctl --json status flight-recorder | grep -c "\"$1\"" >/dev/null; }
has_fired() { is_of "$1" fired "$2" && ! is_of "$1" state writing; } # has_fired TRIGGER COUNT

guests() {
    local i
    begin memory=16M
    trigger of-db condition=domain-crash cooldown=0 domain='d?'
    trigger of-uuid condition=domain-crash cooldown=0 domain=6C6F6F70-0000-0000-0000-000000000000
    check "guests: the daemon ends well" daemon_stop
    daemon_start && wait_until 10 recorder_runs || exit 1
    wait_until 20 recorder_has $((8 * mib))
    for i in 1 2 3 4 5; do # under another id each time, as the toolstack does it
        crashes $((10 + i)) loop "$i"
    done
    check "guests: one that crashes in a loop has its part of the day" is_of crash written 3
    check "guests: ... by its UUID" is_of crash suppressed max_per_domain 2
    check "guests: status shows it" grep -q "max-per-domain 2" <(ctl status)
    "$xensim" domain crash 2
    has_written "guests: another one has its snapshot" crash 4
    check "guests: of that one" same "$(of_trigger crash last_reason)" "Domain 2 (db) crashed."
    for i in 1 2 3 4 5 6; do
        crashes $((20 + i)) "new-$i" $((6 + i))
    done
    check "guests: ten a day" is_of crash written 10
    check "domain=: a glob" is_of of-db fired 1
    check "domain=: of that one" same "$(of_trigger of-db last_reason)" "Domain 2 (db) crashed."
    check "domain=: a UUID" is_of of-uuid fired 5
    check "domain=: in status" grep -Eq "of-db +domain-crash of d\? " <(ctl status)
}

# --- A trigger that has no luck. ---

tries_again() {
    local full
    on_small 64 || exit 1
    trap 'umount -l "$dir/state"' EXIT
    begin memory=16M
    full=$(($(available) / mib - 4))
    fallocate -l "${full}M" "$dir/state/full"
    "$xensim" domain crash 1
    check "no space: it is tried again" wait_until 10 is_of crash state retrying
    check "no space: status says why" grep -q "There is no space for" <(of_trigger crash last_error)
    check "no space: the log says when" grep -q "Trigger crash: no snapshot was written. Trying again in 1s" "$dir/log"
    check "no space: so does status" grep -q "retrying" <(ctl status)
    rm "$dir/state/full"
    has_written "no space: as soon as there is some, it is written" crash 1 20
    check "no space: it is complete" whole "$(of_trigger crash last_snapshot)"
    check "no space: the crash is one" is_of crash fired 1
    check "the daemon ends well" daemon_stop
    unset daemon
    umount "$dir/state"
    trap - EXIT
}

# --- Whose files they are. ---

modes() {
    configure '[limits]' snapshot-interval=1s keep-for-triggers=0
    begin memory=16M
    check "modes: a snapshot" as 65534 snapshot --label mode
    local file
    for file in "$dir"/state/snapshot-user-mode-*; do
        check "modes: ${file##*.}" same "$(stat -c '%a %u %g' "$file")" "640 0 $viewer"
    done
    check "modes: the directory" same "$(stat -c '%a %u %g' "$dir/state")" "750 0 $viewer"
    sleep 1
    as 65534 snapshot --label next >"$dir/answer"
    check "modes: Next: is for who asked" grep -q "Next: xentracectl report" "$dir/answer"
    check "modes: who can do that" as 65534 report "$(sed -n 's/.*Next: xentracectl report //p' "$dir/answer")"
    chgrp "$other" "$dir/state" # as an administrator who wants it so
    sleep 1
    as 65534 snapshot --label sudo >"$dir/answer"
    check "modes: Next: where it takes root" grep -q "Next: sudo xentracectl report" "$dir/answer"
    check "modes: ... with every command" same "$(grep -c "sudo xen" "$dir/answer")" 2
}

parts=(in_a_loop bytes disk frozen names pins live guests tries_again modes)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

main() {
    local part
    # Groups of our own, seen by nobody else.
    if [ -z "${BUDGETS_GROUPS:-}" ]; then
        unshare --mount true 2>/dev/null || {
            skip "limits of users" "this needs root"
            return
        }
        BUDGETS_GROUPS=1 exec unshare --mount "$script" "${parts[@]}"
    fi
    people "xentrace:$viewer:65530,65531,65532,65533,65534"
    for part in "${parts[@]}"; do
        case $part in
            in_a_loop) sim --cpus 4 --rate 20M -- "$part" ;;
            *) sim --cpus 4 --rate 8M -- "$part" ;;
        esac
        sim_clean
    done
    people_done
}

dispatch "$@"
