#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Why records were dropped: each cause by itself, as the log, status, the metrics and the sidecar have
# it. And what else is told after a disk has failed. Needs root and loop devices.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/disks.sh"

state=${dir:-}/state

# --- The four. ---

by_cause() { # by_cause CAUSE: of $dir/of; 0 if it has none
    number "$dir/of" ledger dropped_by "$1" 2>/dev/null || echo 0
}
drops_by() { # drops_by NAME CAUSE: status has some
    ctl --json status "$1" >"$dir/of" 2>/dev/null && [ "$(by_cause "$2")" -gt 0 ]
}
adds_up() { # adds_up DOCUMENT: the causes to what was dropped
    python3 - "$1" <<'END'
import json, sys
ledger = json.load(open(sys.argv[1]))["ledger"]
sys.exit(sum(ledger["dropped_by"].values()) != ledger["dropped"])
END
}
has_line() { grep -qE -- "$1" "$dir/log"; }
has_metric() { # has_metric NAME CAUSE
    grep -qE "^xentraced_session_dropped_records_by_cause_total\{session=\"$1\",cause=\"$2\"\} [1-9]" <(ctl metrics)
}
is_told() { # is_told NAME CAUSE REGEX: by the log, the status of both kinds, the metrics
    check "$2: status" wait_until 60 drops_by "$1" "$2"
    check "$2: status, for people" grep -qE "Dropped: [0-9,]+: .*$3" <(ctl status "$1")
    check "$2: metrics" has_metric "$1" "$2"
    check "$2: the log" wait_until 30 has_line ": $1: [0-9]+ records? of CPUs? .* dropped: .*$3"
}
ends() { # ends NAME CAUSE COMMAND...: the last of the four, which has the sum, too
    check "$2: it ends" "${@:3}"
    check "$2: the sidecar says that it has ended" wait_until 20 has_ended "$1" # a moment after status, if aborted
    cp "$state/$1.json" "$dir/of"
    check "$2: the sidecar" test "$(by_cause "$2")" -gt 0
    check "$2: the sidecar has all causes" adds_up "$dir/of"
    check "$2: the log blames a slow output only for what it dropped" blames_rightly "$1"
    check "$2: the log says what, and once" same "$(logged "$1")" "$(number "$dir/of" ledger dropped)"
}
has_ended() { [ "$(number "$state/$1.json" state)" = ended ]; }
blames_rightly() { # blames_rightly NAME
    if [ "$(by_cause slow-output)" -gt 0 ]; then
        has_line " $1: .* dropped: .*the output does not keep up"
    else
        lacks_line " $1: .* dropped: .*the output does not keep up"
    fi
}
logged() { # logged NAME: how many were dropped
    sed -nE "s/^.*: $1: ([0-9]+) records? of .* dropped: .*/\1/p" "$dir/log" | awk '{ n += $1 } END { print n + 0 }'
}

# --- The causes. ---

# A state directory that can be frozen, and a recorder that takes the records, too. With 256M a machine that is
# busy for some seconds is not a slow output.
begin() { # begin [LINE]...
    mounted=()
    images=$(image_folder)
    trap clean_up EXIT
    mount_disk "$state" || exit 1
    configure '[daemon]' pool=8M pool-max="${pool_max:-256M}" "$@"
    recorder memory=8M
    daemon_start && wait_until 10 recorder_runs || exit 1
}
clean_up() {
    trap - EXIT
    touch "$dir/thaw"
    [ ! -e "$dir/frozen" ] || wait_until 30 is_thawed
    [ -z "${daemon:-}" ] || { kill -KILL "$daemon" && wait "$daemon"; } 2>/dev/null
    unset daemon
    wait_until 20 umount "$state" 2>/dev/null || umount -l "$state"
    rm -rf "$images"
}
thaw() { touch "$dir/thaw" && wait_until 30 is_thawed; }

slow_output() {
    pool_max=8M begin
    ctl start a >/dev/null
    freeze "$state" 120 || exit 1
    is_told a slow-output 'the output does not keep up.*pool-max='
    thaw
    ends a slow-output ctl stop a
}

aborted() {
    begin
    ctl start a >/dev/null
    freeze "$state" 120 || exit 1
    check "aborted: it has something to drop" wait_until 30 has_queued a
    ctl stop --abort a >/dev/null
    is_told a aborted 'aborted on request'
    thaw
    ends a aborted true
}
has_queued() { ctl --json status "$1" >"$dir/of" && [ "$(number "$dir/of" output queued_bytes)" -gt 1000000 ]; }
lacks_line() { ! has_line "$1"; }

no_space() {
    pool_max=8M begin
    ctl start a --on-reserve pause -r "$(($(stat -f -c '%a * %S / 1048576' "$state") - 8))" >/dev/null
    is_told a no-space 'waits for disk space'
    ends a no-space ctl stop --abort a
}

failed() {
    begin
    ctl start a >/dev/null
    prlimit --pid "$daemon" --fsize=$((4 << 20))
    check "output-failed: it ends" wait_until 60 ended a
    prlimit --pid "$daemon" --fsize=unlimited
    is_told a output-failed 'the output failed'
    ends a output-failed true
}

# In memory when the daemon was killed. There may be nothing, just after a chunk was closed.
restart() {
    local name
    begin
    for name in a{0..9}; do
        ctl start "$name" --persist --segment-size 4M >/dev/null
        wait_until 20 test -s "$state/$name.00002.xentrace" # amid a segment
        kill -KILL "$daemon"
        wait "$daemon" 2>/dev/null
        daemon_start && wait_until 20 has_line " $name: Continued after a restart" || exit 1
        ! drops_by "$name" restart || break
        ctl stop "$name" >/dev/null
    done
    is_told "$name" restart 'in memory when the previous xentraced ended'
    ends "$name" restart ctl stop "$name"
}

# And then the next one waits for the disk.
resuming() {
    begin
    ctl start a --persist --segment-size 4M >/dev/null
    wait_until 20 test -s "$state/a.00002.xentrace" # amid a segment
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null
    freeze "$state" 120 || exit 1
    daemon_start || exit 1
    check "resuming: status" wait_until 30 drops_by a resuming
    thaw
    is_told a resuming 'waiting for its first segment'
    ends a resuming ctl stop a
}

# --- After the disk has failed. ---

# The file system is as after errors=remount-ro.
disk_fails() {
    begin '[capture always]' segment-size=2M
    check "a capture of the configuration" wait_until 20 state_is always running
    check "it can be written to" is_repaired
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null
    wait_until 30 mount -o remount,ro "$state" 2>/dev/null || exit 1 # once nothing writes any more
    daemon_start || exit 1
    check "the next daemon says so" wait_until 30 says_broken
    check "... and not that all is well" not_well
    check "... in its log" wait_until 5 has_line "Cannot write to $state: Read-only file system"
    check "... and what has become of the capture" \
        wait_until 10 says '^ *Warning: always is to be recorded over restarts, but has ended'
    ctl --json status >"$dir/of"
    check "... in the document, too" same "$(number "$dir/of" disk error)" 'Read-only file system'
    mount -o remount,rw "$state"
    ctl snapshot >/dev/null # after which it looks soon
    check "it is noticed when it is repaired" wait_until 90 is_repaired
    check "... in the log, too" has_line "$state can be written again"
}
says() { ctl status | grep -E -- "$1" >/dev/null; }
says_broken() { says "Warning: The directory $state cannot be written: Read-only file system"; }
not_well() { ! says '^All is well'; }
is_repaired() { ! says_broken; }

# The sidecar of a capture of the configuration: its own is replaced, another's is not.
foreign_sidecar() {
    daemon_start || exit 1
    ctl start always >/dev/null && ctl stop always >/dev/null
    check "there is a trace of that name" test -e "$state/always.xentrace"
    cp "$state/always.json" "$dir/before.json"
    daemon_stop
    configure '[capture always]' segment-size=2M
    daemon_start || exit 1
    check "the capture runs" wait_until 20 test -e "$state/always.00002.xentrace"
    check "another's sidecar stays as it is" cmp "$dir/before.json" "$state/always.json"
    check "the log says so, once" same "$(grep -c 'always.json is another capture' "$dir/log")" 1
    daemon_stop
    check "and at the end" cmp "$dir/before.json" "$state/always.json"
    check "nothing else is said about it" lacks_line 'Cannot update the sidecar'
    rm "$state/always.json" "$state/always.xentrace"
    daemon_start || exit 1
    check "without it" wait_until 20 test -e "$state/always.json"
    daemon_stop
    check "its own" same "$(number "$state/always.json" state)" ended
    daemon_start || exit 1
    check "is replaced by the next run's" wait_until 20 runs_in "$state/always.json"
    check "without a complaint" lacks_line 'Cannot update the sidecar'
}
runs_in() { [ "$(number "$1" state)" = running ]; }

on_disk() { # on_disk PART: nothing stays mounted
    "$1"
    [ -z "${images:-}" ] || clean_up
}

main() {
    local part
    for part in ${PARTS:-slow_output aborted no_space failed restart resuming disk_fails foreign_sidecar}; do
        if [ "$part" != foreign_sidecar ] && ! can_freeze >/dev/null 2>&1; then
            skip "$part" "needs root, loop devices, mkfs.ext4 and fsfreeze"
            continue
        fi
        sim --cpus 2 --workload numbered --rate 20M -- on_disk "$part"
        sim_clean
    done
}

dispatch "$@"
