#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who is one user. A viewer with subordinate UIDs, in a user namespace of its own, is not 65,536 users; what
# users have used outlasts the daemon; and what root needs is not theirs: memory, the log, names, Xen's state.

. "$(dirname "$0")/lib.sh"

mib=1048576
viewers=64001 operators=64002 # groups
viewer=64011 member=64012     # users whom the group database knows; the first one attacks
unit=64013                    # the group is its primary one, as of xentraced-snapshot@.service
operator=64014
stranger=64099 # whom it does not know

as() { # as UID GROUP COMMAND...: xentracectl
    env -u LD_PRELOAD setpriv --reuid="$1" --regid=65534 --groups "$2" "$dir/xentracectl" "${@:3}"
}
subordinates() { # subordinates COUNT COMMAND...: xentracectl as so many UIDs of the viewer at once; how many succeed
    env -u LD_PRELOAD python3 "$here/persons.py" run "$viewer" "$viewers" "$1" "$dir/xentracectl" "${@:2}" \
        2>>"$dir/answers"
}
here=$(dirname "$(readlink -f "$0")")
files() { find "$dir/state" -type f -name "$1" | wc -l; }
logged() { grep -c -- "$1" "$dir/log"; }

begin() { # begin [KEY=VALUE]...: a recorder
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be others' to read
    recorder "$@"
    daemon_start && wait_until 10 recorder_runs || exit 1
    wait_until 20 recorder_has $((8 * mib))
}
again() { # the daemon, started again
    daemon_stop && daemon_start && wait_until 10 recorder_runs
}
snapshots() {
    configure '[limits]' snapshot-interval=0 snapshots-per-day=3 keep-for-triggers=0
    begin memory=16M
    check "64 subordinate UIDs: no more snapshots than one user" \
        below "$(subordinates 64 snapshot --max-size 2M)" 4
    while [ "$(subordinates 8 snapshot --max-size 2M)" -gt 0 ]; do
        sleep 0.2
    done
    check "... of a day, in all" same "$(files 'snapshot-*.xentrace')" 3
    check "a stranger with the group is one of them" refuses "3 snapshots in the last 24 hours" \
        as "$stranger" "$viewers" snapshot
    check "a member is not affected" as "$member" "$viewers" snapshot --max-size 2M
    check "nor is the unit for OnFailure=" as "$unit" "$viewers" snapshot --max-size 2M --label unit
    check "nor is the attacker's own UID one of them" as "$viewer" "$viewers" snapshot --max-size 2M
    check "what was used is saved" wait_until 5 test -s "$dir/state/users.usage"
    check "a restart" again
    check "it resets nothing for the others" same "$(subordinates 8 snapshot --max-size 2M)" 0
    check "a member has what was left" as "$member" "$viewers" snapshot --max-size 2M
    check "... and no more" as "$member" "$viewers" snapshot --max-size 2M
    check "... for a day" refuses "3 snapshots in the last 24 hours" as "$member" "$viewers" snapshot
    head -c 5000 /dev/urandom >"$dir/state/users.usage"
    check "a damaged file: the daemon starts" again
    check "a damaged file: the log reports it" grep -q "users.usage in the state directory is damaged" "$dir/log"
    check "a damaged file: usage counts from now on" as "$member" "$viewers" snapshot --max-size 2M
    check "root has no limit" ctl snapshot --max-size 2M
}

connections() {
    begin memory=16M
    coproc crowd { env -u LD_PRELOAD python3 "$here/persons.py" connect "$viewer" "$viewers" 60 "$dir/control"; }
    read -r open <&"${crowd[0]}"
    check "60 connections of subordinate UIDs: some stay" above "$open" 0
    check "... no more than of one user" below "$open" 9
    check "the log says of whom" grep -Eq "Refused a client .*8 connections of users whom the group database" "$dir/log"
    check "a member is served" as "$member" "$viewers" status
    check "root is served" ctl status
    exec {crowd[1]}>&-
    wait "$crowd_PID" 2>/dev/null
}

audit() {
    local i
    begin memory=16M
    for i in 1 2 3; do
        subordinates 30 start -o /dev/null -e all squat >/dev/null
    done
    check "90 calls of subordinate UIDs: as many lines as of one user" below "$(logged 'Audit: Start')" 21
    check "the sum follows, in one line" wait_until 25 \
        grep -Eq "[0-9]+ lines about calls and captures of users whom the group database" "$dir/log"
    check "root's lines are not limited" root_starts_many
}
root_starts_many() {
    local i before
    before=$(logged 'Audit: Start root')
    for i in $(seq 30); do
        ctl start -o /dev/null --force "root$i" >/dev/null && ctl stop "root$i" >/dev/null || return
    done
    same $(($(logged 'Audit: Start root') - before)) 30
}

# --- What an operator takes. ---

operators() {
    local i before
    configure '[daemon]' control-group=tracers memory-share=50
    begin memory=16M
    mkdir -m 0777 "$dir/mine"
    check "keep-enabled is root's" refuses "Only root may leave tracing enabled.*Leave --keep-enabled out" \
        as "$operator" "$operators" start --keep-enabled -o "$dir/mine/a" a
    check "buffer-pages is root's" refuses "Only root may choose the size of Xen's.*Leave --buffer-pages out" \
        as "$operator" "$operators" start --buffer-pages 1 -o "$dir/mine/a" a
    check "a capture" as "$operator" "$operators" start -o "$dir/mine/nightly" nightly
    check "it has a name of its own" state_is "uid$operator-nightly" running
    check "root's name is free" ctl start nightly
    check "root may not take a user's" refuses "'uid1-x' is not a valid name for a capture of root" ctl start uid1-x
    check "the user may leave the prefix out" as "$operator" "$operators" stop nightly
    check "... which ended its own capture" state_is nightly running
    check "root's is not the user's" ctl start daily
    check "... to stop" refuses "Another user started this one" as "$operator" "$operators" stop daily
    check "the end of root's" ctl stop nightly
    check "... and of the other one" ctl stop daily
    before=$(logged .)
    for i in $(seq 60); do
        as "$operator" "$operators" start -o "$dir/mine/loop$i" loop >/dev/null
        as "$operator" "$operators" stop --abort loop >/dev/null
    done
    echo "# $(($(logged .) - before)) lines, $SECONDS s"
    check "Start and Abort in a loop: few lines" below $(($(logged .) - before)) $((25 + 3 * SECONDS))
    check "... and their sum" wait_until 25 grep -q "lines about calls and captures of UID $operator" "$dir/log"
    check "a label that is a trigger's name" as "$operator" "$operators" snapshot --max-size 2M --label crash
    check "... makes no name of a trigger's" same "$(files 'snapshot-crash-*') $(files 'snapshot-user-crash-*.xentrace')" "0 1"
}

# Half of the memory that rings may have is root's, whoever comes first.
memory() {
    local share
    configure '[daemon]' control-group=tracers memory-share=1
    begin memory=4M
    mkdir -m 0777 "$dir/mine"
    share=$(($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) / 1024 / 100)) # MiB
    [ "$share" -ge 24 ] || {
        skip "memory" "there are ${share}M for rings"
        return
    }
    check "an operator's ring of more than half of the share" refuses "rings of users other than root may have" \
        as "$operator" "$operators" start -M $((share * 6 / 10))M -o "$dir/mine/a" a
    check "one of less" as "$operator" "$operators" start -M $((share * 4 / 10))M -o "$dir/mine/b" b
    check "another one" refuses "rings of users other than root may have" \
        as "$operator" "$operators" start -M $((share * 2 / 10))M -o "$dir/mine/c" c
    check "root's has the rest" ctl start -M $((share * 4 / 10))M of-root
}

parts=(snapshots connections audit operators memory)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

main() {
    local part
    if [ -z "${PERSONS_GROUPS:-}" ]; then
        unshare --mount --user true 2>/dev/null || {
            skip "who is one user" "this needs root and user namespaces"
            return
        }
        PERSONS_GROUPS=1 exec unshare --mount "$script" "${parts[@]}"
    fi
    people "xentrace:$viewers:$viewer,$member" "tracers:$operators:$operator"
    echo "unit:x:$unit:$viewers::/nonexistent:/usr/sbin/nologin" >>"$people_files/passwd"
    for part in "${parts[@]}"; do
        sim --cpus 2 --rate 4M -- "$part"
        sim_clean
    done
    people_done
}

dispatch "$@"
