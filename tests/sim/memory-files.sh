#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Files in memory (tmpfs): their pages would be charged to the daemon, which a memory limit then
# kills. xentracectl writes them itself, and the daemon is passed a pipe.

. "$(dirname "$0")/lib.sh"

mib=$((1024 * 1024))
bytes_of() { stat -c %s "$1"; }
describes() { # describes DOCUMENT [SIDECAR]: a file of its own, that has ended
    [ "$(number "$1" output kind)" = file ] && [ "$(number "$1" output sidecar)" = "${2:-$1}" ] &&
        [ "$(number "$1" state)" = ended ] || { cat "$1"; return 1; }
}

# --- A memory limit. ---

# A control group of our own, where its memory is limited and counted: $group.
group_make() {
    local parent
    for parent in /sys/fs/cgroup/memory /sys/fs/cgroup; do
        group=$parent/xentraced-test.$$
        mkdir "$group" 2>/dev/null && [ -e "$group/memory.stat" ] && return
        rmdir "$group" 2>/dev/null
    done
    group=
    return 1
}
group_limit() { # group_limit BYTES
    local file
    for file in memory.limit_in_bytes memory.max; do
        [ ! -e "$group/$file" ] || echo "$1" >"$group/$file"
    done
}
group_shared() { awk '$1 == "shmem" { print $2 }' "$group/memory.stat"; }
group_used() { cat "$group/memory.usage_in_bytes" 2>/dev/null || cat "$group/memory.current"; }

tmpfs() { # tmpfs MIB: $memory
    memory=$dir/memory
    mkdir "$memory" && mount -t tmpfs -o "size=$1M" none "$memory" || exit 1
    trap leave EXIT
}
leave() {
    trap - EXIT
    umount -l "$memory"
    [ -n "${group:-}" ] || return 0
    [ -z "${daemon:-}" ] || kill -9 "$daemon" 2>/dev/null
    wait_until 10 rmdir "$group" >/dev/null
}

charged() {
    local before
    [ "$(id -u)" -eq 0 ] || { skip "a memory limit" "not root"; return; }
    group_make || { skip "a memory limit" "no control group can be made"; return; }
    tmpfs 512
    launcher=(sh -c "echo \$\$ >$group/cgroup.procs; exec \"\$@\"" sh)
    recorder_start memory=16M || exit 1
    before=$(group_shared)
    group_limit $(($(group_used) + 64 * mib))
    check "record into memory, beyond the daemon's limit" \
        ctl record --quiet --max-size 160M -T 60 -o "$memory/large"
    check "the daemon lives" kill -0 "$daemon"
    check "all of it is there" above "$(bytes_of "$memory/large")" $((100 * mib))
    check "it is not charged to the daemon" below "$(($(group_shared) - before))" $((4 * mib))
    check "the daemon ends well" daemon_stop
    unset daemon
    leave
}

# --- What users see. ---

commands() {
    [ "$(id -u)" -eq 0 ] || { skip "files in memory" "not root"; return; }
    tmpfs 400
    recorder_start memory=16M || exit 1

    check "record" ctl record --quiet -T 1 -o "$memory/a"
    check "record: whole" whole "$memory/a"
    check "record: its sidecar" describes "$memory/a.json"
    check "record: balances" balances "$memory/a.json"
    check "record: info reads both" grep -q Records <<<"$(ctl info "$memory/a")"
    ctl record --quiet --json -T 1 -o "$memory/b" >"$dir/b.json"
    check "record --json" describes "$dir/b.json" "$memory/b.json"
    check "record: an existing file stays" refuses 'exists and was not changed' \
        ctl record --quiet -T 1 -o "$memory/a"
    check "record --force" ctl record --quiet --force -T 1 -o "$memory/a"
    check "record --force: whole" whole "$memory/a"
    check "record: no file beside it" same "$(ls -A "$memory")" "$(printf '%s\n' a a.json b b.json)"
    check "record -- COMMAND: its exit status" exits 7 ctl record --quiet -o "$memory/c" -- sh -c 'exit 7'
    check "record -M" ctl record --quiet -M 4M -T 1 -o "$memory/d"
    check "record -M: whole" whole "$memory/d"
    check "record --compress" ctl record --quiet --compress zstd -T 1 -o "$memory/e.zst"
    check "record --compress: whole" whole <(zstd -dcqf "$memory/e.zst")
    check "record --bundle" ctl record --quiet --bundle -T 1 -o "$memory/f.tar"
    check "record --bundle: both" same "$(tar -tf "$memory/f.tar" | wc -l)" 2
    ctl record --quiet -T 1 -o - >"$memory/g" 2>/dev/null
    check "record -o - into memory" whole "$memory/g"

    "$build/xentracectl" record --quiet -o "$memory/h" 2>"$dir/errors.h" &
    local recording=$!
    wait_until 10 test -s "$memory/h"
    check "while it runs there is a sidecar" same "$(number "$memory/h.json" state)" running
    kill -INT "$recording"
    wait "$recording"
    check "Ctrl-C: exit status" same "$?" 0
    check "Ctrl-C: whole" whole "$memory/h"
    check "Ctrl-C: its sidecar" describes "$memory/h.json"

    check "snapshot" ctl snapshot -o "$memory/s"
    check "snapshot: whole" whole "$memory/s"
    check "snapshot: its sidecar" describes "$memory/s.json"
    check "snapshot: too short is 3" exits 3 ctl snapshot --last 1h -o "$memory/t"
    check "snapshot -o - into memory" ctl snapshot -o - >"$memory/u"

    check "start does not stay to copy" refuses \
        'is in memory \(such as tmpfs\).*/var/tmp.*xentracectl record' ctl start -o "$memory/x"
    check "start: no file is left" test ! -e "$memory/x" -a ! -e "$memory/x.json"
    rm -f "$memory"/*

    mount -t tmpfs -o size=16M none "$memory" # over it
    check "the reserve is kept" refuses 'has reached its reserve' ctl record --quiet -T 60 -o "$memory/r"
    check "the reserve: so much is free" above "$(($(stat -f -c '%a * %S' "$memory")))" $((2 * mib))
    check "the reserve: what was written is readable" grep -q Records <<<"$(ctl info "$memory/r")"
    check "the reserve: its sidecar" describes "$memory/r.json"
    rm -f "$memory"/*
    check "without one" refuses 'could not be written: No space left' \
        ctl record --quiet --reserve 0 -T 60 -o "$memory/r"
    umount "$memory"
    leave
}
exits() { # exits CODE COMMAND...
    local code=$1
    shift
    "$@" >/dev/null 2>&1
    [ "$?" -eq "$code" ]
}

main() {
    sim --cpus 2 --rate 20M -- charged
    sim_clean
    sim --cpus 2 --rate 4M -- commands
    sim_clean
}

dispatch "$@"
