#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Many clients that misbehave, as strangers, viewers and operators: 1,000 connections, half open ones,
# idle ones, garbage, unfinished messages, wrong types, every wrong kind of descriptor, clients that
# never read; snapshots without end, names of others, files that are never closed, guests that crash.
# During each attack root's status is answered, a guest's crash has its snapshot, and the daemon's
# memory and descriptors stay within bounds; neither a capture nor the recorder loses a record. Needs
# root. RATE: bytes of records a second. ONLY: names of attacks, else all.

. "$(dirname "$0")/lib.sh"

if [ ! -e "$build/tests/xensim/service" ]; then
    echo "$script: $build/tests/xensim/service is not built: run make check, or set BUILD" >&2
    exit 1
fi

here=$(dirname "$script")
pool_mib=32 pool_max_mib=64 recorder_mib=16
memory_kib_max=$(((pool_max_mib + recorder_mib + 16) * 1024))
descriptors_max=400 # 64 clients with 3 each, and what the daemon has itself
stranger=65533 viewer=65534 operator=65532

gid_of() { getent group "$1" | cut -d: -f3; }
# The ring, too; the trace buffers are Xen's.
memory_kib() { awk '/^Rss(Anon|Shmem)/ { n += $2 } END { print n }' "/proc/$daemon/status"; }
descriptors() { ls "/proc/$daemon/fd" | wc -l; }
measure() { python3 "$here/clients.py" "$dir/control" measure 15; }

# --- The attacks of many, one after the other, beside root's capture and the recorder. ---

# The exit status says whether an operator's capture drops records.
of_trigger() { ctl --json status >"$dir/status"; number "$dir/status" triggers name=crash "$@"; }
has_written() { [ "$(of_trigger written)" = "$1" ]; }
ledger_of() { # ledger_of SESSION: what it lost, and dropped
    ctl --json status "$1" >"$dir/session"
    echo "$(number "$dir/session" ledger lost) $(number "$dir/session" ledger dropped)"
}

begin() { # a capture, the recorder, and a trigger
    chmod 0755 "$dir"
    configure '[daemon]' 'control-group = tracers' "pool=${pool_mib}M" "pool-max=${pool_max_mib}M" \
        memory-share=5 '[limits]' snapshot-interval=0 snapshots-per-day=1000 keep-for-triggers=0
    recorder "memory=${recorder_mib}M"
    printf '%s\n' '[trigger crash]' condition=domain-crash cooldown=0 max-per-day=1000 max-per-domain=3 \
        last=500ms \
        >>"$dir/xentraced.conf"
    daemon_start && wait_until 10 recorder_runs || exit 1
    ctl record --quiet -T 0.2 warm-up >/dev/null
    ctl start --segment-size 128M --keep-files 4 numbered >/dev/null
    measure >/dev/null
    quiet=$(measure)
    crashes=0
}

attack() { # attack WHO NAME [UID GIDS]: what clients.py has, or the function NAME here
    local what="$1: ${2//_/ }" attacker
    [ -z "${ONLY:-}" ] || [[ " $ONLY " == *" $2 "* ]] || return
    rm -rf "$dir/theirs"
    mkdir -m 0777 "$dir/theirs"
    if [ $# -eq 2 ]; then
        "$2" >"$dir/attacker" 2>&1 &
    else
        [ "$2" != fuse ] || serve_fuse || return
        env -u LD_PRELOAD python3 "$here/clients.py" "$dir/control" attack "$2" "$dir/theirs/began" \
            "$3" "$4" >"$dir/attacker" 2>&1 &
    fi
    attacker=$!
    check "$what: is under way" wait_until 30 test -e "$dir/theirs/began"
    while_attacked "$what"
    rm -f "$dir/theirs/began"
    [ "$2" != fuse ] || stop_fuse
    check "$what: ends" wait "$attacker"
    sed "s/^/# $1: /" "$dir/attacker"
    [ "$1" = stranger ] || check "$what: it had some effect" grep -q "[1-9]" "$dir/attacker"
    check "$what: root's capture has lost and dropped nothing" same "$(ledger_of numbered)" "0 0"
    check "$what: nor has the recorder" same "$(ledger_of flight-recorder)" "0 0"
}

while_attacked() { # while_attacked WHAT
    local taken limit written
    written=$(of_trigger written)
    crashes=$((crashes + 1))
    "$xensim" domain add $((100 + crashes)) "guest-$crashes"
    "$xensim" domain crash $((100 + crashes))
    # On a machine that is busy with other things, ten times what it takes without an attack.
    limit=$((quiet * 10 > 100000 ? quiet * 10 : 100000))
    taken=$(measure)
    check "$1: root's status takes $limit us at most in the median" below "$taken" "$limit"
    check "$1: a guest's crash has its snapshot" wait_until 20 has_written $((written + 1))
    check "$1: ... which is complete" whole "$(of_trigger last_snapshot)"
    "$xensim" domain remove $((100 + crashes))
    echo "# $1: status takes $taken us ($quiet without it), $(memory_kib) KiB"
    sanitized || check "$1: no more memory than configured, and 16 MiB" below "$(memory_kib)" "$memory_kib_max"
    check "$1: no more descriptors" below "$(descriptors)" "$descriptors_max"
}

serve_fuse() {
    mkdir "$dir/theirs/fuse"
    env -u LD_PRELOAD python3 "$here/outputs.py" fuse "$dir/theirs/fuse" "$dir/theirs/hang" \
        >"$dir/served" 2>&1 &
    server=$!
    wait_until 5 grep -q mounted "$dir/served" || {
        skip "$what" "$(cat "$dir/served")"
        return 1
    }
}
stop_fuse() { # all that waits fails now
    umount -l "$dir/theirs/fuse"
    kill "$server"
}

# A guest that crashes again and again, under another ID each time: it has had its part of the day.
one_guest() {
    local id=1000
    until [ $id -gt 1003 ] && [ ! -e "$dir/theirs/began" ]; do
        id=$((id + 1))
        "$xensim" domain add $id loop && wait_until 5 is_known $id && "$xensim" domain crash $id
        "$xensim" domain remove $id
        [ $id -lt 1003 ] || [ -e "$dir/had-enough" ] || has_had_enough || id=1003
    done
    echo "$((id - 1000)) crashes"
}
is_known() { ctl --json status flight-recorder | grep -c "\"domid\": *$1," >/dev/null; }
has_had_enough() {
    [ "$(ctl --json status | number /dev/stdin triggers name=crash suppressed max_per_domain)" -gt 0 ] &&
        touch "$dir/had-enough" "$dir/theirs/began"
}

# What root's command would follow into somebody else's hands.
planted() {
    mkdir -m 1777 "$dir/theirs/sticky"
    mkfifo -m 0666 "$dir/theirs/sticky/fifo"
    ln -s /etc/shadow "$dir/theirs/sticky/link"
    chown -h "$viewer" "$dir/theirs/sticky/fifo" "$dir/theirs/sticky/link"
    touch "$dir/theirs/began"
    local n=0
    while [ -e "$dir/theirs/began" ]; do
        refuses "was created by another user" ctl snapshot -o "$dir/theirs/sticky/fifo" >"$dir/refusal" &&
            refuses "created by another user" ctl snapshot -o "$dir/theirs/sticky/link" >"$dir/refusal" ||
            return 1
        n=$((n + 1))
    done
    echo "$n times"
}

attacks() {
    local name mode view operate
    view=$(gid_of xentrace) operate=$(gid_of tracers)
    begin
    attack stranger crowd "$stranger" -1
    # As on a file system without ACLs.
    mode=$(stat -c %a "$dir/control")
    chmod 0666 "$dir/control"
    for name in crowd half_open garbage; do
        attack "stranger at an open door" "$name" "$stranger" -1
    done
    chmod "$mode" "$dir/control" # the ACL is still there
    check "strangers are reported, but not each of them" \
        below "$(grep -c "Refused a client .*not in a group with access" "$dir/log")" 5
    for name in crowd half_open idle garbage unfinished almost deaf wrong_types \
        snapshots names unread_views; do
        attack viewer "$name" "$viewer" "$view"
    done
    for name in deaf wrong_types descriptors unread rings fuse; do
        attack operator "$name" "$operator" "$operate"
    done
    attack guest one_guest
    attack user planted
    check "the capture stops" ctl stop numbered
    check "its segments are root's: nobody has replaced one" whole_segments
    check "the log does not overflow" below "$(wc -l <"$dir/log")" 4000
    check "no client writes lines of its own into the log" \
        same "$(grep -avc '^xentraced: ' "$dir/log")" 0
}
whole_segments() {
    whole "$dir"/state/numbered.0*.xentrace &&
        same "$(number "$dir/state/numbered.json" format)" xentraced-session
}

as() { # as UID GROUP COMMAND...
    local uid=$1 gid
    gid=$(gid_of "$2")
    shift 2
    env -u LD_PRELOAD setpriv --reuid="$uid" --regid="$uid" --groups "$gid" "$dir/xentracectl" "$@"
}
viewer_is_refused() { refuses "in all or per user, is reached" as "$viewer" xentrace status; }

# The socket itself keeps strangers out, so that they cost nobody anything.
doors() {
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be nobody's to read
    configure '[daemon]' 'control-group = tracers'
    daemon_start || exit 1
    check "the socket has no rights for others" same "$(stat -c %A "$dir/control")" "srw-rw----"
    check "a stranger is refused" refuses "Not permitted to reach" as "$stranger" nogroup status
    check "... by the kernel: it is no line of the log" \
        same "$(grep -c "Refused a client" "$dir/log")" 0
    check "a viewer is served" as "$viewer" xentrace status
    check "an operator is served" as "$operator" tracers status
    mkdir -m 0777 "$dir/theirs"
    env -u LD_PRELOAD python3 "$here/clients.py" "$dir/control" attack idle "$dir/theirs/began" \
        "$viewer" "$(gid_of xentrace)" >/dev/null 2>&1 &
    check "a user has as many connections as there may be" wait_until 10 viewer_is_refused
    check "another is served" as "$operator" tracers status
    check "root is served" ctl status
    kill $!
    check "they are served when there is room" wait_until 10 as "$viewer" xentrace status
}

# Six users hold all connections that users may have.
full_of_users() {
    local uid holders=()
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be nobody's to read
    configure '[daemon]' 'control-group = tracers'
    daemon_start || exit 1
    for uid in 65501 65502 65503 65504 65505 65506; do
        mkdir -m 0777 "$dir/of-$uid"
        env -u LD_PRELOAD python3 "$here/clients.py" "$dir/control" attack idle "$dir/of-$uid/began" \
            "$uid" "$(gid_of xentrace)" >/dev/null 2>&1 &
        holders+=($!)
    done
    for uid in 65501 65502 65503 65504 65505 65506; do
        check "six users: $uid has its connections" wait_until 30 test -e "$dir/of-$uid/began"
    done
    check "six users: a seventh is refused" wait_until 10 viewer_is_refused
    check "six users: root is served, each time" root_is_served 20
    check "six users: and does what it wants" ctl record -q -T 0.2 roots
    rm "$dir"/of-*/began
    wait "${holders[@]}"
    check "six users: the seventh is served when they have gone" wait_until 10 as "$viewer" xentrace status
}
root_is_served() { # root_is_served TIMES
    local i
    for ((i = 0; i < $1; i++)); do reports ctl status >/dev/null || return; done
}

# A reload that changes control-group=: who may connect, and what those who are connected may do.
stay() { # stay NAME UID GIDS
    env -u LD_PRELOAD python3 "$here/clients.py" "$dir/control" stay "$dir/reloaded" "$2" "$3" \
        >"$dir/stay-$1" 2>&1 &
    stays+=($!)
    wait_until 10 grep -q connected "$dir/stay-$1"
}
rights_after_reload() {
    local stays=() view operate later
    view=$(gid_of xentrace) operate=$(gid_of tracers) later=$(gid_of sappers)
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be nobody's to read
    mkdir -m 0777 "$dir/theirs"
    configure '[daemon]' 'control-group = tracers'
    daemon_start || exit 1
    check "reload: before it, the later operators are strangers" \
        refuses "Not permitted to reach" as "$viewer" sappers status
    check "reload: an operator's capture" start_as_operator before
    check "reload: an operator stays connected" stay loses "$operator" "$operate"
    check "reload: so does one who may look in any case" stay looks "$operator" "$view,$operate"
    check "reload: ... and a viewer who is to be an operator" stay wins "$viewer" "$view,$later"
    sed -i 's/tracers/sappers/' "$dir/xentraced.conf"
    check "reload: control-group= is another" ctl reload
    check "reload: the later operators may connect" as "$viewer" sappers status
    check "reload: ... and start a capture" as "$viewer" sappers record -q -T 0.2 -o "$dir/theirs/new"
    check "reload: those before may not even connect" refuses "Not permitted to reach" start_as_operator late
    check "reload: viewers may as before" as "$viewer" xentrace status
    touch "$dir/reloaded"
    wait "${stays[@]}"
    check "reload: who has no right any more is disconnected" grep -q "^disconnected" "$dir/stay-loses"
    check "reload: who may only look now may look" grep -q "^status 2" "$dir/stay-looks"
    check "reload: ... and nothing else" grep -q "role operate. may start captures" "$dir/stay-looks"
    check "reload: who may more may at once" grep -q '^(2, .*"running"' "$dir/stay-wins"
    check "reload: a capture continues" state_is before running
    check "reload: root ends it" ctl stop before
    sed -i '/control-group/d' "$dir/xentraced.conf"
    check "reload: no group at all" ctl reload
    check "reload: nobody but viewers and root" refuses "Not permitted to reach" as "$viewer" sappers status
    mv "$dir/control" "$dir/away"
    printf '%s\n' '[daemon]' 'control-group = tracers' >>"$dir/xentraced.conf"
    kill -HUP "$daemon"
    check "reload: a socket whose rights cannot be set: nothing is changed" wait_until 10 grep -q \
        "not reloaded, the running one stays in force. Cannot set who may connect to $dir/control" "$dir/log"
    mv "$dir/away" "$dir/control"
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
    check "... as the log reports" grep -q "Malformed messages of UID $operator have leaked 8 desc" \
        "$dir/log"
    check "root that leaks is disconnected" leak 10 0 0
    sleep 6
    check "while a capture runs, nothing is restarted" same "$(cat "$dir/pid")" "$pid"
    check "root may" ctl record -q -T 0.2 -o "$dir/mine.xentrace"
    ctl stop one >/dev/null
    check "the capture stops" ctl stop numbered
    check "then the daemon restarts itself" wait_until 20 has_been_ready 2
    check "... as the log reports" grep -q "Restarting: malformed messages have leaked" "$dir/log"
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
    grep -vE '^(xentrace|tracers|sappers):' /etc/group >"$groups"
    printf 'xentrace:x:64001:\ntracers:x:64002:\nsappers:x:64003:\n' >>"$groups"
    chmod 0644 "$groups"
    mount --bind "$groups" /etc/group
    sim --cpus 2 -- doors
    sim_clean
    sim --cpus 2 -- full_of_users
    sim_clean
    sim --cpus 2 -- rights_after_reload
    sim_clean
    if ! sanitized; then # they would find what libsystemd leaks
        sim --cpus 2 --rate 1M -- leaks
        check "the capture beside leaks is whole" whole "$dir/state/numbered.xentrace"
        sim_clean
    fi
    sim --cpus 4 --workload numbered --rate "${RATE:-20M}" -- attacks
    sim_clean
    umount /etc/group
    rm -f "$groups"
}

dispatch "$@"
