#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Many clients that misbehave, as strangers, viewers and operators: 1,000 connections, half open ones,
# idle ones, garbage, unfinished messages, wrong types, every wrong kind of descriptor, clients that
# never read. Meanwhile root's status is answered, the daemon's memory and descriptors stay within
# bounds, and neither a capture nor the recorder loses a record. Needs root. RUN_SECONDS: of each
# attack. RATE: bytes of records a second.

. "$(dirname "$0")/lib.sh"

if [ ! -e "$build/tests/xensim/service" ]; then
    echo "$script: $build/tests/xensim/service is not built: run make check, or set BUILD" >&2
    exit 1
fi

run_seconds=${RUN_SECONDS:-4}
here=$(dirname "$script")
memory_growth_kib=$((16 * 1024)) # beyond pool and rings, which are there from the start
descriptors_max=400              # 64 clients with 3 each, and what the daemon has itself
stranger=65533 viewer=65534 operator=65532

gid_of() { getent group "$1" | cut -d: -f3; }
memory_kib() { awk '/^RssAnon/ { print $2 }' "/proc/$daemon/status"; }
descriptors() { ls "/proc/$daemon/fd" | wc -l; }
measure() { python3 "$here/clients.py" "$dir/control" measure 20; }

attack() { # attack ROLE NAME UID GID
    local what="$1: ${2//_/ }" attacker limit taken
    rm -rf "$dir/theirs"
    mkdir -m 0777 "$dir/theirs"
    env -u LD_PRELOAD python3 "$here/clients.py" "$dir/control" attack "$2" "$run_seconds" \
        "$dir/theirs/began" "$3" "$4" >"$dir/attacker" 2>&1 &
    attacker=$!
    check "$what: is under way" wait_until 30 test -e "$dir/theirs/began"
    # On a machine that is busy with other things, ten times what it takes without an attack.
    limit=$((quiet * 10 > 100000 ? quiet * 10 : 100000))
    taken=$(measure)
    echo "# $what: status takes $taken us, and $(($(memory_kib) - kib)) KiB more are used"
    check "$what: root's status takes $limit us at most in the median ($quiet without it)" \
        below "$taken" "$limit"
    check "$what: no more memory" below "$(memory_kib)" $((kib + memory_growth_kib))
    check "$what: no more descriptors" below "$(descriptors)" "$descriptors_max"
    check "$what: ends" wait "$attacker"
    [ "$1" = stranger ] || check "$what: it was connected" grep -q "[1-9]" "$dir/attacker"
    sed "s/^/# $1: /" "$dir/attacker"
}

begin() { # begin POOL-MAX: a capture, and the recorder
    chmod 0755 "$dir"
    configure '[daemon]' 'control-group = tracers' 'pool=32M' "pool-max=$1"
    recorder memory=16M
    daemon_start && wait_until 10 recorder_runs || exit 1
    ctl record --quiet -T 0.2 warm-up >/dev/null
    measure >/dev/null
    kib=$(memory_kib)
    quiet=$(measure)
    ctl start --segment-size 128M --keep-files 4 numbered >/dev/null
}

attacks() {
    local name mode
    begin 32M
    attack stranger crowd "$stranger" -1
    # As on a file system without ACLs.
    mode=$(stat -c %a "$dir/control")
    chmod 0666 "$dir/control"
    for name in crowd half_open garbage; do
        attack "stranger at an open door" "$name" "$stranger" -1
    done
    chmod "$mode" "$dir/control" # the ACL is still there
    check "strangers are reported, but not each of them" \
        below "$(grep -c "could not be served: it is in neither" "$dir/log")" 5
    for name in crowd half_open idle garbage unfinished almost deaf wrong_types; do
        attack viewer "$name" "$viewer" "$(gid_of xentrace)"
    done
    for name in idle unfinished almost deaf wrong_types; do
        attack operator "$name" "$operator" "$(gid_of tracers)"
    done
    nothing_is_missing
}

# Some of them are accepted, and wait for a reader: what that takes is pool-max= at most.
wrong_descriptors() {
    begin 160M
    memory_growth_kib=$((memory_growth_kib + 128 * 1024))
    attack operator descriptors "$operator" "$(gid_of tracers)"
    nothing_is_missing
}

nothing_is_missing() {
    check "the capture stops" ctl stop numbered
    check "it lost nothing" same "$(number "$dir/state/numbered.json" ledger lost)" 0
    check "it dropped nothing" same "$(number "$dir/state/numbered.json" ledger dropped)" 0
    recorder_status
    check "the recorder lost nothing" same "$(number "$dir/recorder" ledger lost)" 0
    check "the recorder dropped nothing" same "$(number "$dir/recorder" ledger dropped)" 0
    check "the log does not overflow" below "$(wc -l <"$dir/log")" 2000
    check "no client writes lines of its own into the log" \
        same "$(grep -avc '^xentraced: ' "$dir/log")" 0
}

as() { # as UID GROUP COMMAND...
    local uid=$1 gid
    gid=$(gid_of "$2")
    shift 2
    env -u LD_PRELOAD setpriv --reuid="$uid" --regid="$uid" --groups "$gid" "$dir/xentracectl" "$@"
}
viewer_is_refused() { refuses "or as one user may have" as "$viewer" xentrace status; }

# The socket itself keeps strangers out, so that they cost nobody anything.
doors() {
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be nobody's to read
    configure '[daemon]' 'control-group = tracers'
    daemon_start || exit 1
    check "the socket has no rights for others" same "$(stat -c %A "$dir/control")" "srw-rw----"
    check "a stranger is refused" refuses "Not permitted to reach" as "$stranger" nogroup status
    check "... by the kernel: it is no line of the log" \
        same "$(grep -c "could not be served" "$dir/log")" 0
    check "a viewer is served" as "$viewer" xentrace status
    check "an operator is served" as "$operator" tracers status
    mkdir -m 0777 "$dir/theirs"
    env -u LD_PRELOAD python3 "$here/clients.py" "$dir/control" attack idle 10 "$dir/theirs/began" \
        "$viewer" "$(gid_of xentrace)" >/dev/null 2>&1 &
    check "a user has as many connections as there may be" wait_until 10 viewer_is_refused
    check "another is served" as "$operator" tracers status
    check "root is served" ctl status
    kill $!
    check "they are served when there is room" wait_until 10 as "$viewer" xentrace status
}

attached() {
    daemon_start || exit 1
    check "two captures that end with their client" \
        python3 "$here/clients.py" "$dir/control" attached "$dir/a" "$dir/b"
    check "... both end" wait_until 10 both_ended
    check "... whole" whole "$dir/a" "$dir/b"
}
both_ended() { ended attached-0 && ended attached-1; }

# --- Descriptors that libsystemd keeps: the daemon restarts itself, through its service manager. ---

service_start() {
    : >"$dir/service.log"
    : >"$dir/log"
    "$build/tests/xensim/service" --log "$dir/service.log" --pid-file "$dir/pid" -- \
        "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" 2>>"$dir/log" &
    manager=$!
    wait_until 20 has_been_ready 1
}
has_been_ready() { [ "$(grep -c ' ready$' "$dir/service.log")" -ge "$1" ]; }
leak() { # leak MESSAGES UID GID
    env -u LD_PRELOAD python3 "$here/clients.py" "$dir/control" leak "$@"
}
start_as_operator() { # start_as_operator NAME
    as "$operator" tracers start -o "$dir/theirs/$1.xentrace" "$1"
}

leaks() {
    local pid
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be nobody's to read
    mkdir -m 0777 "$dir/theirs"
    configure '[daemon]' 'control-group = tracers'
    recorder memory=8M
    ulimit -n 256 # a sixteenth of it is reason enough for a restart
    service_start && wait_until 10 recorder_runs || exit 1
    pid=$(cat "$dir/pid")
    ctl start numbered >/dev/null
    check "an operator may pass an output" start_as_operator one
    check "an operator that leaks is disconnected" leak 4 "$operator" "$(gid_of tracers)"
    check "... and after some of that it may pass nothing any more" refuses "only root" \
        start_as_operator two
    check "... as the log reports" grep -q "Malformed messages of UID $operator have cost 8 desc" \
        "$dir/log"
    check "root that leaks is disconnected" leak 10 0 0
    sleep 6
    check "while a capture runs, nothing is restarted" same "$(cat "$dir/pid")" "$pid"
    check "root may" ctl record -q -T 0.2 -o "$dir/mine.xentrace"
    ctl stop one >/dev/null
    check "the capture stops" ctl stop numbered
    check "then the daemon restarts itself" wait_until 20 has_been_ready 2
    check "... as the log reports" grep -q "Restarting: malformed messages have cost" "$dir/log"
    check "the recorder runs" wait_until 10 recorder_runs
    recorder_status
    check "... and continues its ring" same "$(number "$dir/recorder" ring restored)" 1
    check "an operator may pass an output again" start_as_operator three
    ctl stop three >/dev/null
    kill -TERM "$manager"
    check "the service ends well" wait "$manager"
}

main() {
    # Groups of our own, seen by nobody else.
    if [ -z "${CLIENTS_GROUPS:-}" ] && unshare --mount true 2>/dev/null; then
        CLIENTS_GROUPS=1 exec unshare --mount "$script"
    fi
    sim --cpus 4 --rate 2M -- attached
    sim_clean
    [ -n "${CLIENTS_GROUPS:-}" ] || {
        echo "# not root: roles are not tested"
        return
    }
    local groups
    groups=$(mktemp)
    grep -vE '^(xentrace|tracers):' /etc/group >"$groups"
    printf 'xentrace:x:64001:\ntracers:x:64002:\n' >>"$groups"
    chmod 0644 "$groups"
    mount --bind "$groups" /etc/group
    sim --cpus 2 -- doors
    sim_clean
    sim --cpus 2 --rate 1M -- leaks
    check "the capture beside leaks is whole" whole "$dir/state/numbered.xentrace"
    sim_clean
    sim --cpus 4 --workload numbered --rate "${RATE:-20M}" -- attacks
    sim_clean
    sim --cpus 4 --workload numbered --rate "${RATE:-20M}" -- wrong_descriptors
    sim_clean
    umount /etc/group
    rm -f "$groups"
}

dispatch "$@"
