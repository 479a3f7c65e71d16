#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Many clients that misbehave, as strangers, viewers and operators: 1,000 connections, half open ones,
# idle ones, garbage, unfinished messages, bombs, wrong types, every wrong kind of descriptor, clients and
# streams that never read; snapshots without end, names of others, files that are never closed, guests that crash.
# What must hold during each attack: beside.sh. Needs root. RATE: bytes of records a second. ONLY: names of
# attacks, else all.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/beside.sh"

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
    for name in crowd half_open garbage; do
        chmod 0666 "$dir/control" # again: the daemon closes it to those who are locked out
        attack "stranger at an open door" "$name" "$stranger" -1
    done
    chmod "$mode" "$dir/control" # the ACL is still there
    check "strangers are reported, but not each of them" \
        below "$(grep -c "Refused a client .*not in a group with access" "$dir/log")" 5
    for name in crowd half_open idle garbage unfinished almost bombs nested deaf deaf_streams streams \
        oneway upgrade wrong_types snapshots names unread_views unread_live_views; do
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
six="65501 65502 65503 65504 65505 65506"
full_of_users() {
    local uid holders=()
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be nobody's to read
    configure '[daemon]' 'control-group = tracers'
    daemon_start || exit 1
    for uid in $six; do
        mkdir -m 0777 "$dir/of-$uid"
        env -u LD_PRELOAD python3 "$here/clients.py" "$dir/control" attack idle "$dir/of-$uid/began" \
            "$uid" "$(gid_of xentrace)" >/dev/null 2>&1 &
        holders+=($!)
    done
    for uid in $six; do
        check "six users: $uid has its connections" wait_until 30 test -e "$dir/of-$uid/began"
    done
    check "six users: a seventh is refused" wait_until 10 viewer_is_refused
    check "six users: root is served, each time" root_is_answered 20
    check "six users: and does what it wants" ctl record -q -T 0.2 roots
    rm "$dir"/of-*/began
    wait "${holders[@]}"
    check "six users: the seventh is served when they have gone" wait_until 10 as "$viewer" xentrace status
}
root_is_answered() { # root_is_answered TIMES
    local i
    for ((i = 0; i < $1; i++)); do reports ctl status >/dev/null || return; done
}

start_as_operator() { # start_as_operator NAME
    as "$operator" tracers start -o "$dir/theirs/$1.xentrace" "$1"
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
    check "reload: who may only look now may look" grep -q "^status answered" "$dir/stay-looks"
    check "reload: ... and nothing else" grep -q "role operate. may start captures" "$dir/stay-looks"
    check "reload: who may more may at once" grep -q '^{.*"running"' "$dir/stay-wins"
    check "reload: a capture continues" state_is "uid$operator-before" running
    check "reload: root ends it" ctl stop "uid$operator-before"
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
    people "xentrace:64001:$viewer,${six// /,}" "tracers:64002:$operator" "sappers:64003:$viewer"
    sim --cpus 2 -- doors
    sim_clean
    sim --cpus 2 -- full_of_users
    sim_clean
    sim --cpus 2 -- rights_after_reload
    sim_clean
    sim --cpus 4 --workload numbered --rate "${RATE:-20M}" -- attacks
    sim_clean
    people_done
}

dispatch "$@"
