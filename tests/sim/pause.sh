#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A disk that accepts nothing for some seconds, at a rate that fills pool= several times meanwhile:
#
#   grows   The pool grows, and not a record is lost. status shows it.
#   fixed   With pool-max= as small as pool= records are dropped, and each is counted.
#
#   tests/sim/pause.sh [CASE]...
#
# RATE (100M) is what the producer makes, PAUSE_SECONDS (3) how long the file system is frozen, at
# least. Needs root and loop devices.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/disks.sh"

mib=$((1024 * 1024))
rate=${RATE:-100M}
pause_seconds=${PAUSE_SECONDS:-3}
state=${dir:-}/state

clean_up() {
    trap - EXIT
    fsfreeze -u "$state" 2>/dev/null # if the test left it frozen
    [ -z "${daemon:-}" ] || kill -KILL "$daemon" 2>/dev/null
    unset daemon
    wait_until 20 umount "$state" 2>/dev/null || umount -l "$state"
    rm -rf "$images"
}

field() { number "$dir/of" "$@" 2>/dev/null || echo 0; } # field KEY...: 0 if it is not there
look() { reports ctl --json status >"$dir/of"; }
pool_bytes() { look && field daemon pool_bytes; }
pool_is_free() { look && [ "$(field daemon pool_free_bytes)" -eq "$(field daemon pool_bytes)" ]; }

paused() { # paused CASE POOL-MAX
    local most=0 bytes
    mounted=()
    images=$(image_folder)
    trap clean_up EXIT
    mount_disk "$state" || exit 1
    # Large buffers of Xen's: nothing is to be lost there while the machine has other things to do.
    sed -i 's/^buffer-pages=.*/buffer-pages=2048/' "$dir/xentraced.conf"
    configure '[daemon]' pool=64M "pool-max=$2"
    recorder memory=32M
    daemon_start && wait_until 10 recorder_runs || exit 1
    check "$1: start" ctl start paused
    check "$1: status has the pool as it was taken" same "$(pool_bytes)" $((64 * mib))
    check "$1: ... and what it may become" same "$(field daemon pool_max_bytes)" $((${2%M} * mib))
    "$xensim" resume
    check "$1: it is written" wait_until 20 test -s "$state/paused.xentrace"
    check "$1: the file system is frozen" freeze "$state" "$pause_seconds" || return
    while is_frozen; do
        bytes=$(pool_bytes)
        most=$((bytes > most ? bytes : most))
        sleep 0.1
    done
    check "$1: it is thawed" wait_until 30 is_thawed
    sleep 1
    "$xensim" pause
    look
    ctl status >"$dir/status.text"
    check "$1: all is written after the thaw" wait_until 60 pool_is_free
    settle_recorder
    check "$1: stop" ctl stop paused
    cp "$state/paused.json" "$dir"
    echo "# $1: the pool had $((most / mib)) MiB, $(number "$dir/paused.json" output bytes) bytes were" \
        "written, $(number "$dir/paused.json" ledger dropped) of" \
        "$(number "$dir/paused.json" ledger produced) records dropped," \
        "$(number "$dir/paused.json" ledger lost) lost"
    check "$1: the ledger balances" balances "$dir/paused.json"
    check "$1: the file is sound, and every gap in it has its count" \
        "$xensim" verify "$state/paused.xentrace"
    check "$1: one that every reader reads" "$xensim" rules "$state/paused.xentrace"
    check "$1: Xen lost nothing" same "$(number "$dir/paused.json" ledger lost)" 0
    check "$1: the recorder dropped nothing" same "$(number "$dir/recorder" ledger dropped)" 0
    "$1" "$most"
    check "$1: the daemon ends well" daemon_stop
    unset daemon
    clean_up
}

grows() { # grows MOST-BYTES
    check "grows: more came than 64 MiB, or the test shows nothing" \
        above "$(number "$dir/paused.json" output bytes)" $((128 * mib))
    check "grows: nothing was dropped" same "$(number "$dir/paused.json" ledger dropped)" 0
    check "grows: status shows how large the pool became" above "$1" $((64 * mib))
    check "grows: ... and never more than it may be" below "$1" $((512 * mib + 1))
    check "grows: ... to people too" grep -q 'emory for records: .* (at most 512M)' "$dir/status.text"
}

fixed() { # fixed MOST-BYTES
    check "fixed: records were dropped" above "$(number "$dir/paused.json" ledger dropped)" 0
    check "fixed: the pool is as large as it was" same "$1" $((64 * mib))
}

parts=(grows fixed)
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

main() {
    local part
    for part in "${parts[@]}"; do
        if ! can_freeze >/dev/null 2>&1; then
            skip "$part" "needs root, loop devices, mkfs.ext4 and fsfreeze"
            continue
        fi
        case $part in
        grows) sim --cpus 2 --paused --rate "$rate" -- paused grows 512M ;;
        fixed) sim --cpus 2 --paused --rate "$rate" -- paused fixed 64M ;;
        *) fail "there is a case $part" ;;
        esac
        check "$part: the ledger is the producer's" produced_as_reported "$dir/paused.json" "$dir/report"
        sim_clean
    done
}

dispatch "$@"
