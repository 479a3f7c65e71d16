#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The main thread never drops the last reference of what a client made, as that may wait: for a peer that
# reads nothing (linger; nested: in messages of a socket that was passed), for a server (fuse), for a file
# system that is frozen (frozen), for a writer that holds a pipe's lock (pipe). Each kind goes each way in which
# the daemon may drop it, closing.py has them, and what must hold meanwhile is beside.sh. Then the daemon ends
# and starts with such descriptors open, and keeps its ring. Needs root.
#
#   tests/sim/closing.sh [KIND]...

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/beside.sh"

descriptors_max=1100 # four messages of 253, beside what the daemon has itself

viewers=(takes_none takes_fewer ninth all_253 wrong_call no_reply never_finished at_the_door disconnected
    deaf full_queues)
operators=(takes_fewer wrong_call full_queues output)
roots=(takes_none disconnected)

# --- File systems that do not answer: of those in $dir/theirs. ---

prepare() { # prepare KIND
    rm -rf "$dir/theirs"
    mkdir -m 0777 "$dir/theirs"
    case $1 in
        fuse | pipe) serve_fuse ;;
        frozen) mount_small ;;
    esac
}
mount_small() {
    # What ext4 waits for when such a file is closed depends on the kernel.
    truncate -s 256M "$dir/small" &&
        { mkfs.btrfs -qf "$dir/small" 2>/dev/null || mkfs.ext4 -qF -N 4096 "$dir/small"; } && mkdir "$dir/theirs/frozen" && mount -o loop "$dir/small" "$dir/theirs/frozen" &&
        chmod 0777 "$dir/theirs/frozen"
}
# Until the attack ends, whatever becomes of this script.
freeze_small() {
    setsid bash -c '
        trap "" TERM INT HUP
        cd / && until [ -e "$1/opened" ] || [ ! -d "$1" ]; do sleep 0.05; done
        fsfreeze -f "$1/frozen" && touch "$1/hang"
        for ((i = 0; i < 600; i++)); do
            [ ! -e "$1/thaw" ] && kill -0 "$2" 2>/dev/null || break
            sleep 0.1
        done
        fsfreeze -u "$1/frozen"
        touch "$1/thawed"' bash "$dir/theirs" $$ </dev/null >/dev/null 2>&1 &
    disown
}
# All that waits goes on, or fails, now.
release() { # release KIND
    case $1 in
        fuse | pipe) stop_fuse ;;
        frozen)
            touch "$dir/theirs/thaw"
            wait_until 60 test -e "$dir/theirs/thawed"
            wait_until 20 umount "$dir/theirs/frozen"
            ;;
    esac
}

give() { # give KIND WAY UID GIDS: $attacker
    rm -f "$dir/theirs/began"
    [ "$1" != frozen ] || freeze_small
    env -u LD_PRELOAD python3 "$here/closing.py" "$dir/control" "$1" "$2" "$dir/theirs/began" "$3" "$4" \
        >"$dir/attacker" 2>&1 &
    attacker=$!
    check "$what: is under way" wait_until 30 test -e "$dir/theirs/began"
}
end_attack() { # end_attack KIND
    rm -f "$dir/theirs/began"
    release "$1"
    check "$what: ends" wait "$attacker"
    sed 's/^/# /' "$dir/attacker"
    check "$what: it had some effect" grep -q "[1-9]" "$dir/attacker"
}

# Nobody else has it: its last close waits, or all that follows shows nothing.
waits_itself() { # waits_itself KIND
    local what="$1: itself" server
    prepare "$1" || return
    [ "$1" != frozen ] || freeze_small
    python3 "$here/closing.py" none "$1" itself "$dir/theirs/began" "$viewer" -1 >"$dir/attacker" 2>&1 &
    attacker=$!
    wait_until 20 itself_is_known
    if [ -e "$dir/theirs/began" ]; then
        end_attack "$1"
        return
    fi
    release "$1"
    skip "$1" "$(tail -n 1 "$dir/attacker")"
    return 1
}
itself_is_known() { [ -e "$dir/theirs/began" ] || ! kill -0 "$attacker" 2>/dev/null; }

way() { # way WHO KIND WAY UID GIDS
    local what="$2: ${3//_/ } ($1)"
    [ -z "${ONLY:-}" ] || [[ " $ONLY " == *" $3 "* ]] || return
    measure_quiet
    prepare "$2" || return
    give "$2" "$3" "$4" "$5"
    root_is_served "$what"
    end_attack "$2"
    check "$what: root's capture and the recorder have lost and dropped nothing" same \
        "$(ledger_of numbered) $(ledger_of flight-recorder)" "0 0 0 0"
    check "$what: the daemon is the same" kill -0 "$daemon"
}

kind() { # kind KIND
    local view operate way what
    view=$(gid_of xentrace) operate=$(gid_of tracers)
    begin
    waits_itself "$1" || return
    for way in "${viewers[@]}"; do
        way viewer "$1" "$way" "$viewer" "$view"
    done
    for way in "${operators[@]}"; do
        way operator "$1" "$way" "$operator" "$operate"
    done
    for way in "${roots[@]}"; do
        BUSY=1 way root "$1" "$way" 0 -1
    done
    what="$1: everything at once"
    [ -z "${ONLY:-}" ] || return 0
    measure_quiet
    prepare "$1" || return
    give "$1" full_queues "$viewer" "$view"
    while_attacked "$what"
    end_attack "$1"
    check "$1: root's capture has lost and dropped nothing" same "$(ledger_of numbered)" "0 0"
    check "$1: nor has the recorder" same "$(ledger_of flight-recorder)" "0 0"
    check "$1: all are closed at last" wait_until 30 few_descriptors
    check "$1: a viewer is served again" wait_until 20 env -u LD_PRELOAD setpriv --reuid="$viewer" \
        --regid="$viewer" --groups "$view" python3 "$here/varlink.py" "$dir/control" call Status
}
few_descriptors() { [ "$(descriptors)" -lt 100 ] || { ls -l "/proc/$daemon/fd"; return 1; }; }

# --- The end of the daemon, and its restart. ---

service_start() {
    : >"$dir/service.log"
    : >"$dir/log"
    "$build/tests/xensim/service" --watchdog 10000 --log "$dir/service.log" --pid-file "$dir/pid" -- \
        "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" 2>>"$dir/log" &
    manager=$!
    wait_until 20 has_been_ready 1
}
has_been_ready() { [ "$(grep -c ' ready$' "$dir/service.log")" -ge "$1" ]; }

# Nothing ends a process while a thread of it waits for a file system, or for a pipe: where it does, what
# matters is that the ring is kept, and that it ends when they answer.
restart() { # restart KIND
    local what="$1: restart" since
    chmod 0755 "$dir"
    configure '[daemon]' 'control-group = tracers'
    recorder memory=8M
    service_start && wait_until 10 recorder_runs || exit 1
    prepare "$1" || return
    give "$1" full_queues "$viewer" "$(gid_of xentrace)"
    sleep 1 # in the middle of it
    since=$SECONDS
    kill -HUP "$manager"
    check "$what: the ring is in the fd store" wait_until 10 grep -q ' stored ring$' "$dir/service.log"
    case $1 in
        linger | nested) ;;
        *)
            rm -f "$dir/theirs/began"
            release "$1"
            ;;
    esac
    check "$what: the next one comes up" wait_until 20 has_been_ready 2
    echo "# $what: $((SECONDS - since)) s"
    check "$what: the recorder runs" wait_until 10 recorder_runs
    recorder_status
    check "$what: ... with the ring that was kept" same "$(number "$dir/recorder" ring restored)" 1
    check "$what: it was not killed" same "$(grep -c ' killed by ' "$dir/service.log")" 0
    rm -f "$dir/theirs/began"
    check "$what: the attack ends" wait "$attacker"
    # Those that wait in the listening socket are dropped with it.
    what="$1: stop"
    prepare "$1"
    daemon=$(cat "$dir/pid")
    kill -STOP "$daemon"
    wait_until 10 daemon_is_stopped
    give "$1" not_accepted "$viewer" "$(gid_of xentrace)"
    since=$SECONDS
    kill -TERM "$manager"
    kill -CONT "$daemon"
    case $1 in
        linger | nested) ;;
        *)
            rm -f "$dir/theirs/began"
            release "$1"
            ;;
    esac
    check "$what: the service ends" wait_until 10 has_ended "$manager"
    check "$what: ... well" wait "$manager"
    check "$what: it was not killed" same "$(grep -c ' killed by ' "$dir/service.log")" 0
    echo "# $what: $((SECONDS - since)) s"
    unset daemon
    rm -f "$dir/theirs/began"
    wait "$attacker"
}
has_ended() { [ ! -e "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status"; }

kinds=(linger nested fuse frozen pipe)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || kinds=("$@")

main() {
    local kind
    # Groups of our own, and mounts, seen by nobody else.
    if [ -z "${CLOSING_GROUPS:-}" ]; then
        unshare --mount true 2>/dev/null || {
            skip "descriptors whose last close waits" "this needs root"
            return
        }
        CLOSING_GROUPS=1 exec unshare --mount "$script" "${kinds[@]}"
    fi
    people "xentrace:64001:$viewer" "tracers:64002:$operator"
    for kind in "${kinds[@]}"; do
        sim --cpus 4 --workload numbered --rate "${RATE:-20M}" -- kind "$kind"
        sim_clean
        sim --cpus 2 -- restart "$kind"
        sim_clean
    done
    people_done
}

dispatch "$@"
