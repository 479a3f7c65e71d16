#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Clients that misbehave, and those that may not do what they want, cannot disturb a capture nor the
# daemon; one of Python's standard library works on its socket.

. "$(dirname "$0")/lib.sh"

attack() { # attack NAME
    check "attack: ${1//_/ }" timeout 60 python3 "$(dirname "$script")/hostile.py" "$dir/control" "$1"
    check "attack: ${1//_/ }: the next one is served" reports ctl status
}

descriptors() { ls "/proc/$daemon/fd" | wc -l; }
no_more_descriptors() { [ "$(descriptors)" -le "$1" ] || { ls -l "/proc/$daemon/fd"; return 1; }; }
memory_kib() { awk '/^RssAnon/ { print $2 }' "/proc/$daemon/status"; }

attacks() {
    local fds kib name
    daemon_start || exit 1
    ctl record --quiet -T 0.1 -S 128 warm-up >/dev/null
    fds=$(descriptors)
    kib=$(memory_kib)
    check "a capture starts" ctl start numbered
    for name in garbage nested bombs nul_inside invalid_utf8 duplicate_keys two_in_one_segment silence \
        slow crowd crowd_of_the_idle come_and_go too_long unfinished deaf more_without_a_stream \
        deaf_in_a_stream leaves_a_stream call_in_a_stream oneway upgrade \
        descriptors_where_none_belong miscounted_descriptors wrong_types; do
        attack "$name"
    done
    check "the capture ends well" ctl stop numbered
    for name in wrong_outputs start_and_leave; do
        attack "$name"
    done
    check "nothing is left running" wait_until 10 nothing_runs
    check "tracing is off" grep -q '"enabled":false' <(xen_state)
    check "no descriptor is left" wait_until 10 no_more_descriptors "$fds"
    # What the allocator keeps for the largest messages is not lost.
    sanitized || check "no memory is left" below "$(memory_kib)" $((kib + 16384))
    check "no client writes lines of its own into the log" \
        same "$(grep -avc '^xentraced: ' "$dir/log")" 0
    check "the log does not overflow" below "$(wc -l <"$dir/log")" 1000
}
nothing_runs() { [ "$(ctl list --running)" = "No capture is running." ]; }

# More clients than there are descriptors: the last ones wait, and the daemon does not spin.
few_descriptors() {
    local before limit=0 free=0
    daemon_start || exit 1
    # None is to be left when the tenth client comes, at the latest. How many the daemon has open
    # differs with what this script was given.
    while [ "$free" -lt 9 ]; do
        [ -e "/proc/$daemon/fd/$limit" ] || free=$((free + 1))
        limit=$((limit + 1))
    done
    prlimit --pid "$daemon" --nofile="$limit"
    python3 -c 'if True:
        import socket, sys, time
        sys.path.insert(0, sys.argv[2])
        from varlink import Client
        clients = []
        try:
            while len(clients) < 12:
                clients.append(Client(sys.argv[1]))
                clients[-1].status()
        except Exception:
            pass
        time.sleep(60)' "$dir/control" "$(dirname "$script")" &
    check "out of descriptors: a client waits" wait_until 60 client_waits
    before=$(ticks)
    sleep 3
    check "out of descriptors: less than a third of a CPU" below $((($(ticks) - before))) \
        "$(getconf CLK_TCK)"
    kill $!
    check "afterwards clients are served" wait_until 15 reports ctl status
}
ticks() { awk '{ print $14 + $15 }' "/proc/$daemon/stat"; }

full_house() {
    daemon_start || exit 1
    python3 -c 'if True:
        import sys, time
        sys.path.insert(0, sys.argv[2])
        from varlink import Client
        clients = [Client(sys.argv[1]) for _ in range(64)]
        assert not any(client.status().error for client in clients)
        open(sys.argv[3], "x").close()
        time.sleep(60)' "$dir/control" "$(dirname "$script")" "$dir/full" &
    check "64 clients are served" wait_until 20 test -e "$dir/full"
    check "the 65th client is told why" \
        refuses "the limit of clients, in all or per user, is reached. Try again" ctl status
    kill $!
    check "and served when there is room" wait_until 10 reports ctl status
}

# --- Clients that nobody wrote for it; varlinkctl: varlinkctl.sh. ---

plain() { python3 "$(dirname "$script")/varlink.py" "$dir/control" "$@"; } # of Python's standard library

tools() {
    local i served=0
    printf '[flight-recorder]\n[trigger button]\ncondition=manual\n' >"$dir/xentraced.conf"
    daemon_start || exit 1
    for i in $(seq 40); do
        plain call Status >"$dir/reply" 2>&1 && grep -q xentraced-status "$dir/reply" && served=$((served + 1))
    done
    check "a plain client: 40 of 40 calls are served" same "$served" 40
    check "it can look the interface up" shows 'method Start\(' plain call \
        org.varlink.service.GetInterfaceDescription interface=org.xentraced.Control
    check "... and the service's own" shows 'method GetInfo\(\)' plain call \
        org.varlink.service.GetInterfaceDescription interface=org.varlink.service
    check "it knows whom it talks to" plain_info
    ctl start -M 4M ring >/dev/null
    check "it takes a snapshot" plain call Snapshot name=by-hand session=ring last_usec=60000000
    check "... a file" ctl info "$dir/state/by-hand.xentrace"
    check "it follows one to its end" shows '"by-stream"' plain more Snapshot name=by-stream session=ring
    check "it fires a trigger" plain call Trigger name=button
    check "... and there is its snapshot" wait_until 10 compgen -G "$dir/state/snapshot-button-*.json"
    check "it follows a capture" follows
}
plain_info() {
    python3 - "$(dirname "$script")" "$dir/control" "$build/xentracectl" <<'END'
import subprocess, sys
sys.path.insert(0, sys.argv[1])
from varlink import Client
info = Client(sys.argv[2]).call("org.varlink.service.GetInfo").parameters
version = subprocess.run([sys.argv[3], "--version"], capture_output=True, text=True).stdout
assert info["interfaces"] == ["org.varlink.service", "org.xentraced.Control"], info
assert info["version"] in version, (info, version)
assert info["vendor"] and info["product"] and "url" in info, info
END
}
# One reply at once, then one each interval, and the last when it has ended.
follows() {
    plain call Start name=followed time_usec=1000000 >/dev/null &&
        plain more Status name=followed interval_usec=200000 >"$dir/followed" || return
    local replies
    mapfile -t replies <"$dir/followed"
    [ ${#replies[@]} -ge 3 ] && [ ${#replies[@]} -le 10 ] || { echo "${#replies[@]} replies"; return 1; }
    [[ ${replies[0]} == *'"state": "running"'* ]] && [[ ${replies[-1]} == *'"state": "ended"'* ]]
}

# --- Who may do what. Groups as in the file that main() puts over /etc/group. ---

as_group() { # as_group GROUP|none COMMAND...: xentracectl as nobody
    local groups=(--clear-groups)
    [ "$1" = none ] || groups=(--groups "$(getent group "$1" | cut -d: -f3)")
    shift
    env -u LD_PRELOAD setpriv --reuid=65534 --regid=65534 "${groups[@]}" "$dir/xentracectl" "$@"
}

permissions() {
    local command i
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be nobody's to read
    configure '[daemon]' 'control-group = tracers'
    daemon_start || exit 1
    for command in status list start stop "record -T 1"; do
        check "nobody: $command" refuses "Not permitted to reach.*group xentrace .status and snapshots.*control-group=" \
            as_group none $command
    done
    check "group xentrace: status" as_group xentrace status
    check "group xentrace: list" as_group xentrace list
    check "group xentrace: version" as_group xentrace version
    check "group xentrace: no start" refuses "role operate. may start captures.*sudo" \
        as_group xentrace start
    check "group xentrace: no start with a file" refuses "role operate. may start captures.*sudo" \
        as_group xentrace start -o - </dev/null
    ctl start running >/dev/null
    check "group xentrace: no stop" refuses "role operate. may stop captures" as_group xentrace stop
    check "nobody has started or stopped anything" same \
        "$(ctl list --running --names)" running
    check "control-group: status" as_group tracers status running
    for command in "stop running" "stop --abort running" "rotate running"; do
        check "control-group: no $command: it is root's" \
            refuses "Another user started this one: only root may" as_group tracers $command
    done
    check "control-group: no start of the recorder" refuses "Only root may start the flight recorder" \
        as_group tracers start flight-recorder
    check "control-group: no capture into the state directory" \
        refuses "Only root may capture into the state directory. Name a file of your own with -o" \
        as_group tracers start
    check "root's capture still runs" same "$(ctl list --running --names)" running
    ctl stop running >/dev/null
    mkdir -m 0777 "$dir/mine"
    check "control-group: a capture into a file of its own" \
        as_group tracers record --quiet -T 0.3 -o "$dir/mine/f.xentrace"
    check "control-group: it is its own" same "$(stat -c %u "$dir/mine/f.xentrace")" 65534
    check "control-group: and is complete" "$xensim" verify "$dir/mine/f.xentrace"
    check "control-group: its sidecar says who asked" same 65534 \
        "$(number "$dir/mine/f.json" requested_by uid)"
    check "control-group: a capture of its own" as_group tracers start -o "$dir/mine/own.xentrace" own
    check "control-group: ... stopped by another of the group" refuses "Another user started this one" \
        env -u LD_PRELOAD setpriv --reuid=65533 --regid=65533 \
        --groups "$(getent group tracers | cut -d: -f3)" "$dir/xentracectl" stop uid65534-own
    check "control-group: ... stopped by its owner" as_group tracers stop own
    for i in 1 2 3 4; do
        as_group tracers start -o "$dir/mine/$i.xentrace" "many-$i" >/dev/null
    done
    check "control-group: four captures at once, and no more" \
        refuses "The limit is 4 running captures per user" \
        as_group tracers start -o "$dir/mine/5.xentrace" many-5
    check "root may start another" ctl record -q -T 0.2 roots
    for i in 1 2 3 4; do
        as_group tracers stop "many-$i" >/dev/null
    done
    check "audit: who did it" grep -q "Audit: Stop uid65534-own by UID 65534 (xentracectl, PID [0-9]*): done" \
        "$dir/log"
    check "audit: who did not" \
        grep -q "Audit: Stop running by UID 65534 (xentracectl, PID [0-9]*): refused. Another user" "$dir/log"
    check "audit: root, too" grep -q "Audit: Start running by root, UID 0 (xentracectl, PID [0-9]*): done" \
        "$dir/log"
}

# --- Files on a file system that does not answer: closing them waits for ever. ---

never_closed() {
    local here server
    here=$(dirname "$script")
    chmod 0755 "$dir"
    cp "$build/xentracectl" "$dir/xentracectl" # the build directory may be nobody's to read
    recorder_start memory=16M || exit 1
    mkdir "$dir/fuse"
    env -u LD_PRELOAD python3 "$here/outputs.py" fuse "$dir/fuse" "$dir/hang" >"$dir/served" 2>&1 &
    server=$!
    if ! wait_until 5 grep -q mounted "$dir/served"; then
        skip "files that are never closed" "$(cat "$dir/served")"
        return
    fi
    env -u LD_PRELOAD python3 "$here/clients.py" "$dir/control" never-closed "$dir/fuse/output" \
        "$dir/hang" 65534 "$(getent group xentrace | cut -d: -f3)" >"$dir/passed" 2>&1 &
    check "never closed: a viewer opens one" wait_until 10 grep -q opened "$dir/passed"
    touch "$dir/hang"
    check "never closed: it passes some, and is then refused" wait_until 30 \
        grep -Eq "^after [1-9][0-9]* (.* files that you passed are not closed yet|None)" "$dir/passed"
    check "never closed: the daemon answers" reports timeout 2 "$build/xentracectl" status
    check "never closed: the viewer, too" reports as_group xentrace status
    check "never closed: it can still not pass anything" refuses "are not closed yet" live_view 65534
    check "never closed: another viewer may" live_view 65533
    umount -l "$dir/fuse"
    kill "$server" # all that waits fails now
    check "never closed: when they are closed, it may again" wait_until 20 live_view 65534
}
live_view() { # live_view UID
    env -u LD_PRELOAD setpriv --reuid="$1" --regid=65534 \
        --groups "$(getent group xentrace | cut -d: -f3)" "$dir/xentracectl" \
        snapshot --last 1s -o - 2>"$dir/refusal" | timeout 10 cat >/dev/null # a refused pipe waits with the files
    case ${PIPESTATUS[0]} in 0 | 3) return 0 ;; esac # 3: the recorder has not run for a second yet
    cat "$dir/refusal"
    return 1
}

main() {
    # Groups of our own, seen by nobody else.
    if [ -z "${HOSTILE_GROUPS:-}" ] && unshare --mount true 2>/dev/null; then
        HOSTILE_GROUPS=1 exec unshare --mount "$script"
    fi
    sim -- tools
    sim_clean
    if [ -n "${HOSTILE_GROUPS:-}" ]; then
        people xentrace:64001:65533,65534 tracers:64002:65533,65534
        sim --rate 5M -- permissions
        sim_clean
        sim --rate 5M -- never_closed
        sim_clean
        people_done
    else
        echo "# not root: permissions are not tested"
    fi
    sim -- few_descriptors
    sim_clean
    sim -- full_house
    sim_clean
    sim --rate 10M -- attacks
    check "the capture is complete" "$xensim" verify "$dir/state/numbered.xentrace"
    check "and nothing was lost" same "$(number "$dir/state/numbered.json" ledger lost)" 0
    check "the ledger balances" balances "$dir/state/numbered.json"
    sim_clean
}

dispatch "$@"
