#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The limits that xentraced.service sets: as root without any capability, with the unit's limits, mask and
# system calls, the daemon does all its work. (The stand-in for Xen itself needs SYS_PTRACE.)

. "$(dirname "$0")/lib.sh"

unit=$(dirname "$script")/../../systemd/xentraced.service.in
setting() { sed -n "s/^$1=//p" "$unit"; } # setting NAME
bytes() { numfmt --from=iec "$1"; }

# Everything at once: captures of all kinds, a snapshot, a reload, a client's own file, a restart.
works() {
    printf '[trigger hand]\ncondition=manual\ncooldown=0\n' >>"$dir/xentraced.conf"
    check "a capture in the state directory" ctl record --quiet -T 0.3 one
    check "a client's file" ctl record --quiet -T 0.3 -o "$dir/two.xentrace"
    check "a pipe" pipes
    check "segments" ctl start --segment-size 1M --keep-files 2 three
    check "memory" ctl start --memory 4M four
    check "a reload" ctl reload
    check "a snapshot" ctl snapshot five
    check "a snapshot into a client's file" ctl snapshot -o "$dir/six.xentrace"
    check "a trigger" ctl trigger hand
    check "a segment is closed" ctl rotate three
    check "all of them end" ctl stop --all
    check "status" ctl status
    check "the files are whole" whole "$dir/state/one.xentrace" "$dir/two.xentrace" \
        "$dir/state/five.xentrace" "$dir/six.xentrace"
}
# shellcheck disable=SC2317 # called by check
pipes() { ctl record --quiet -T 0.3 -o - | cat >"$dir/pipe.xentrace" && whole "$dir/pipe.xentrace"; }

start() {
    recorder memory=8M
    daemon_start && wait_until 10 recorder_runs
}

# shellcheck disable=SC2317 # called by check
has_capabilities() { # has_capabilities SET: of the running daemon, all its threads
    local threads
    threads=$(awk '/^Cap(Eff|Prm|Bnd):/ { print $2 }' "/proc/$daemon/task"/*/status | sort -u)
    same "$threads" "$1"
}
# shellcheck disable=SC2317 # called by check
mode_is() { same "$(stat -c %a "$2")" "$1"; }

capabilities() {
    check "the unit has none" same "$(setting CapabilityBoundingSet)" ""
    umask "$(setting UMask)"
    # shellcheck disable=SC2054 # setpriv's own lists
    launcher=(setpriv --bounding-set=-all,+sys_ptrace --inh-caps=-all --no-new-privs)
    limits=(--memlock="$(bytes "$(setting LimitMEMLOCK)")" --rtprio="$(setting LimitRTPRIO)")
    if prlimit "${limits[@]}" true 2>/dev/null; then
        launcher=(prlimit "${limits[@]}" "${launcher[@]}")
    else
        limits=()
    fi
    start || exit 1
    check "the daemon has no capability but the stand-in's" has_capabilities 0000000000080000
    works
    if [ ${#limits[@]} -gt 0 ]; then
        check "memory is locked, the collector has its priority" lacks_complaint
    else
        echo "ok - memory is locked # SKIP the limits of this machine are lower than the unit's"
    fi
    check "files are not for everybody" mode_is 640 "$dir/state/one.xentrace"
    check "nor sidecars" mode_is 640 "$dir/state/one.json"
}
# shellcheck disable=SC2317 # called by check
lacks_complaint() { ! grep -E 'RLIMIT|locked|priority|ermi' "$dir/log"; }

# The calls that the unit's filter lets pass, a name a line.
allowed_calls() {
    local group
    expand() { # expand GROUP: @-groups have others in them
        local word
        while read -r word; do
            if [[ $word == @* ]]; then expand "$word"; else echo "$word"; fi
        done < <(systemd-analyze syscall-filter "$1" | sed 1d | grep -oE '^ *[@a-z][^ ]*' | tr -d ' ')
    }
    comm -23 <(for group in $(setting SystemCallFilter | grep -v '^~'); do expand "$group"; done | sort -u) \
        <(for group in $(setting SystemCallFilter | sed -n 's/^~//p'); do expand "$group"; done | sort -u)
}
# shellcheck disable=SC2317 # called by check
all_are_allowed() {
    local denied
    denied=$(comm -23 <(grep -oE '^[0-9]+ +[a-z_0-9]+\(' "$dir/calls" | sed -E 's/^[0-9]+ +//; s/\($//' |
        sort -u) <(allowed_calls))
    same "$denied" ""
}

system_calls() {
    launcher=(strace -D -f -qq -e signal=none -o "$dir/calls")
    start || exit 1
    works
    daemon_stop
    sleep 0.2 # strace is no child of ours
    check "calls were seen" grep -q 'io_uring_enter(' "$dir/calls"
    check "the filter lets pass what it uses" grep -qx io_uring_enter <(allowed_calls)
    check "no more than that" test -z "$(allowed_calls | grep -E '^(mount|reboot|init_module|setuid|chown)$')"
    check "all calls of the daemon pass the unit's filter" all_are_allowed
    daemon=
}

main() {
    sim --cpus 2 --rate 1M -- capabilities
    sim_clean
    if type strace systemd-analyze >/dev/null 2>&1; then
        sim --cpus 2 --rate 100K -- system_calls
        sim_clean
    else
        echo "ok - system calls # SKIP needs strace and systemd-analyze"
    fi
}

dispatch "$@"
