# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What must hold beside clients that misbehave, for the tests of them, which source this after lib.sh:
# root's status is answered within 200 ms, and 50 ms in the median; its other commands within 1 s; a guest's
# crash has its snapshot; root's capture and the recorder lose and drop nothing; memory and descriptors stay
# within what is configured; the daemon is the same process.
#
#   begin                            the daemon, root's capture, the recorder and a trigger
#   attack WHO NAME [UID GIDS]       runs the attack of clients.py, or the function NAME, and checks all that
#   while_attacked WHAT              the checks alone
#   root_is_served WHAT              those of root's commands alone; measure_quiet was called before
#
# ONLY: names of attacks, else all.

here=$(dirname "$script")
pool_mib=32 pool_max_mib=64 recorder_mib=16
memory_kib_max=$(((pool_max_mib + recorder_mib + 16) * 1024))
descriptors_max=800 # 64 clients with 3 each, those that wait to be closed, and what the daemon has itself
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
    crashes=0
}

attack() { # attack WHO NAME [UID GIDS]: what clients.py has, or the function NAME of the script
    local what="$1: ${2//_/ }" attacker
    [ -z "${ONLY:-}" ] || [[ " $ONLY " == *" $2 "* ]] || return
    rm -rf "$dir/theirs"
    mkdir -m 0777 "$dir/theirs"
    measure_quiet
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
    check "$what: the daemon is the same" kill -0 "$daemon"
}

while_attacked() { # while_attacked WHAT
    local written
    written=$(of_trigger written)
    crashes=$((crashes + 1))
    "$xensim" domain add $((100 + crashes)) "guest-$crashes"
    "$xensim" domain crash $((100 + crashes))
    root_is_served "$1"
    check "$1: a guest's crash has its snapshot" wait_until 20 has_written $((written + 1))
    check "$1: ... which is complete" whole "$(of_trigger last_snapshot)"
    "$xensim" domain remove $((100 + crashes))
    sanitized || check "$1: no more memory than configured, and 16 MiB" below "$(memory_kib)" "$memory_kib_max"
    check "$1: no more descriptors" below "$(descriptors)" "$descriptors_max"
}

measure_quiet() { read -ra quiet <<<"$(measure)"; } # before an attack

# On a machine that is busy with other things, ten times what it takes without an attack.
root_is_served() { # root_is_served WHAT
    local taken limits=(50000 200000 1000000) i
    for i in 0 1 2; do
        [ $((${quiet[i]:-0} * 10)) -le ${limits[i]} ] || limits[i]=$((quiet[i] * 10))
    done
    check "$1: root is served" measures
    read -ra taken <<<"$measured"
    check "$1: its status takes ${limits[0]} us at most in the median" below "${taken[0]:-$never}" "${limits[0]}"
    check "$1: ... and ${limits[1]} us each time" below "${taken[1]:-$never}" "${limits[1]}"
    check "$1: its other commands take ${limits[2]} us at most" below "${taken[2]:-$never}" "${limits[2]}"
    echo "# $1: $measured us (${quiet[*]} without it), $(memory_kib) KiB, $(descriptors) descriptors"
}
never=999999999
measures() { measured=$(measure); }

serve_fuse() {
    mkdir "$dir/theirs/fuse"
    rm -f "$dir/served"
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

