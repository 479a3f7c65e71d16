#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# While a snapshot is written to a slow disk, the recorder borrows memory (pool-max=) instead of
# forgetting: its history stays as long as it was, all of it is given back afterwards, and it survives
# a SIGKILL. At the budget's end history becomes shorter, by no more than that, and it is reported. However
# many snapshots are slow, nothing new is lost: one for which no memory is left is refused, and says why.

. "$(dirname "$0")/lib.sh"

for program in xensim/service xensim/test-service-child; do
    if [ ! -e "$build/tests/$program" ]; then
        echo "$script: $build/tests/$program is not built: run make check, or set BUILD" >&2
        exit 1
    fi
done

mib=$((1024 * 1024))

of_ring() { recorder_status && number "$dir/recorder" ring "$1"; }
of_ring_ledger() { recorder_status && number "$dir/recorder" ledger "$1"; }
borrows() { [ "$(of_ring borrowed_bytes)" -gt "$1" ]; }
is_returned() { [ "$(of_ring borrowed_bytes)" -eq 0 ]; }

# What the kernel has for the ring's memfd.
memfd_bytes() { # memfd_bytes PID
    local fd
    for fd in "/proc/$1/fd"/*; do
        case $(readlink "$fd") in
            */memfd:xentraced-ring*) echo $(($(stat -L -c %b "$fd") * 512)) ;;
        esac
    done
}
as_large_as() { # as_large_as PID BYTES: again
    [ "$(memfd_bytes "$1")" -le $(($2 + 4096)) ]
}

# Nanoseconds, and no less than 7 of 8 of what there was.
history() { recorder_status && echo $(($(number "$dir/recorder" ring newest_ns) - $(number "$dir/recorder" ring oldest_ns))); }
has_history() { # has_history NANOSECONDS
    local now
    now=$(history)
    echo "# $((now / 1000000)) ms of history; $(($1 / 1000000)) before"
    [ "$now" -ge $(($1 / 8 * 7)) ]
}

# A ring that has gone round, and a snapshot of it that is read slowly. Leaves $before, $reader, $client.
begin_slowly() { # begin_slowly [BYTES-A-SECOND]
    wait_until 30 recorder_has $((48 * mib))
    sleep 2
    before=$(history)
    mkfifo "$dir/fifo"
    read_fifo "$dir/fifo" "$dir/slow" "${1:-$mib}"
    ctl --json snapshot -o "$dir/fifo" >"$dir/slow-document" 2>"$dir/slow-error" &
    client=$!
    wait_until 5 test -s "$dir/slow"
}
end_slowly() { # end_slowly NAME
    touch "$dir/go"
    check "$1: the snapshot ends well" wait "$client"
    wait "$reader"
    check "$1: and is complete" whole "$dir/slow"
}

nothing_lost() { # nothing_lost NAME
    settle_recorder
    check "$1: nothing was lost" same "$(number "$dir/recorder" ledger lost)" 0
    check "$1: nothing was dropped" same "$(number "$dir/recorder" ledger dropped)" 0
    check "$1: the ledger balances" balances "$dir/recorder"
}

enough() {
    local own i
    configure '[daemon]' pool=32M pool-max=256M
    recorder_start memory=64M || exit 1
    own=$(memfd_bytes "$daemon")
    begin_slowly
    for i in 1 2 3 4; do # as much as it holds
        sleep 1.5
        check "enough: $i: history is as long as before" has_history "$before"
    done
    check "enough: it has borrowed" borrows $((16 * mib))
    check "enough: status says so" grep -q 'Borrowed' <(ctl status flight-recorder)
    check "enough: another snapshot" ctl snapshot meanwhile
    check "enough: that is complete" whole "$dir/state/meanwhile.xentrace"
    end_slowly enough
    check "enough: it was never shorter" same "$(number "$dir/slow-document" snapshot shortened_bytes)" 0
    check "enough: all of it is given back" wait_until 15 is_returned
    check "enough: to the kernel" wait_until 5 as_large_as "$daemon" "$own"
    check "enough: history is as long as before, then" has_history "$before"
    ctl snapshot after >/dev/null
    check "enough: and complete" whole "$dir/state/after.xentrace"
    nothing_lost enough
    check "enough: nothing was shortened" same "$(number "$dir/recorder" ring shortened_bytes)" 0
}

too_little() {
    local shortened
    configure '[daemon]' pool=32M pool-max=50M # one step
    recorder_start memory=64M || exit 1
    begin_slowly
    check "too little: it borrows what there is" wait_until 10 borrows $((16 * mib - 1))
    sleep 6
    shortened=$(of_ring shortened_bytes)
    check "too little: history becomes shorter" above "$shortened" 0
    # By 56 MiB that the snapshot holds, less the 8 MiB of spare chunks and the 16 that were borrowed.
    check "too little: by no more than must be" below "$shortened" $((34 * mib))
    check "too little: status says so" grep -q 'Shortened' <(ctl status flight-recorder)
    end_slowly too_little
    check "too little: the snapshot says so" above \
        "$(number "$dir/slow-document" snapshot shortened_bytes)" 0
    check "too little: in words" grep -q 'shorter.*pool-max' "$dir/slow-document"
    check "too little: all of it is given back" wait_until 15 is_returned
    check "too little: history grows again" wait_until 20 has_history "$before"
    nothing_lost too_little
}

# Snapshots that take all the memory there is, one after the other, until one is refused.
produced_more() { # produced_more RECORDS
    recorder_status && [ "$(number "$dir/recorder" ledger produced)" -gt "$1" ]
}
has_begun() { # has_begun SNAPSHOT: its output, or its error
    [ -s "$dir/slow$1" ] || [ -s "$dir/error$1" ]
}
stuck() {
    local i clients=() readers=()
    configure '[daemon]' pool=32M pool-max=32M # nothing to borrow
    recorder_start memory=16M || exit 1
    wait_until 30 recorder_has $((11 * mib))
    for i in 1 2 3 4 5 6 7; do
        mkfifo "$dir/fifo$i"
        read_fifo "$dir/fifo$i" "$dir/slow$i" 20000 # a chunk in 13 s
        readers+=("$reader")
        ctl snapshot -o "$dir/fifo$i" 2>"$dir/error$i" &
        clients+=($!)
        wait_until 10 has_begun "$i"
        [ ! -s "$dir/error$i" ] || break
        recorder_status
        wait_until 30 produced_more $(($(number "$dir/recorder" ledger produced) + 200000)) # more than is spare
    done
    check "stuck: one is refused, and says why" \
        grep -q "Other snapshots hold the memory of 'flight-recorder'" "$dir/error$i"
    wait "${clients[i - 1]}"
    check "stuck: it fails" same "$?" 1
    kill "$reader" 2>/dev/null # if it has not ended with the snapshot
    check "stuck: not the first two" above "$i" 2
    check "stuck: the first one goes on" kill -0 "${clients[0]}"
    recorder_status
    wait_until 30 produced_more $(($(number "$dir/recorder" ledger produced) + 200000))
    check "stuck: nothing was lost" same "$(number "$dir/recorder" ledger lost)" 0
    check "stuck: nothing was dropped" same "$(number "$dir/recorder" ledger dropped)" 0
    touch "$dir/go"
    for i in $(seq $((i - 1))); do
        check "stuck: $i ends well" wait "${clients[i - 1]}"
        wait "${readers[i - 1]}"
        check "stuck: $i is complete" whole "$dir/slow$i"
    done
    check "stuck: then there is memory again" wait_until 30 recorder_has $((11 * mib))
    check "stuck: for a snapshot, too" ctl snapshot after
    check "stuck: which is complete" whole "$dir/state/after.xentrace"
    nothing_lost stuck
}

# The daemon is killed while it has borrowed: the next one has all of it.
killed() {
    local manager own used
    configure '[daemon]' pool=32M pool-max=256M
    recorder memory=64M
    : >"$dir/service.log"
    "$build/tests/xensim/service" --log "$dir/service.log" --pid-file "$dir/pid" -- \
        "$build/xentraced" --config "$dir/xentraced.conf" --socket "$dir/control" \
        --state-dir "$dir/state" 2>>"$dir/log" &
    manager=$!
    wait_until 20 recorder_runs || exit 1
    own=$(memfd_bytes "$(cat "$dir/pid")")
    begin_slowly
    check "killed: it borrows" wait_until 15 borrows $((40 * mib))
    "$xensim" pause # so that nothing is evicted that the test would look for
    check "killed: all is in the ring" wait_until 10 has_all
    used=$(of_ring used_bytes)
    kill -KILL "$(cat "$dir/pid")"
    touch "$dir/go"
    wait "$client" "$reader" 2>/dev/null
    check "killed: the next one goes on with the ring" wait_until 20 is_restored
    check "killed: its history begins where it did" begins_at "$used"
    ctl snapshot after >/dev/null
    check "killed: complete" whole "$dir/state/after.xentrace"
    "$xensim" stat >"$dir/stat"
    check "killed: to the very last record" "$xensim" verify --report "$dir/stat" "$dir/state/after.xentrace"
    "$xensim" resume
    check "killed: what was borrowed is given back" wait_until 15 is_returned
    check "killed: to the kernel" wait_until 5 as_large_as "$(cat "$dir/pid")" "$own"
    check "killed: history is as long as before" has_history "$before"
    nothing_lost killed
    kill -TERM "$manager" && wait "$manager"
}
is_restored() { [ "$(of_ring restored 2>/dev/null)" = 1 ]; }
has_all() { [ "$(of_ring_ledger produced)" -eq "$(attempts)" ]; }
begins_at() { # begins_at BYTES: but for a chunk of 2 MiB, as the one that was being filled is closed
    local now
    now=$(of_ring used_bytes)
    echo "# $now bytes, $1 before"
    [ "$now" -ge $(($1 - 2 * mib)) ]
}

# A GiB to a disk of 20 MB/s while 5 MB/s are recorded, as shipped but for memory=: five minutes.
a_gib() {
    local i
    recorder_start memory=1G || exit 1
    wait_until 400 recorder_has $((880 * mib))
    begin_slowly 20000000
    for ((i = 0; i < 40; i++)); do
        kill -0 "$client" 2>/dev/null || break
        sleep 2
        [ $((i % 5)) -ne 0 ] || check "1 GiB: after $((2 * i)) s history is as long as before" has_history "$before"
    done
    echo "# $((2 * i)) s"
    end_slowly a_gib
    check "1 GiB: it was never shorter" same "$(number "$dir/slow-document" snapshot shortened_bytes)" 0
    nothing_lost a_gib
}

parts=(enough too_little killed) # a_gib, and stuck, whose producer must be faster than its readers, only
                                 # if they are asked for
[ -n "${SIM_INSIDE:-}" ] || [ $# -eq 0 ] || parts=("$@")

main() {
    local part
    for part in "${parts[@]}"; do
        case $part in
            a_gib) sim --cpus 4 --rate 5M -- "$part" ;;
            *) buffer_pages=32 sim --cpus 4 --rate 10M -- "$part" ;;
        esac
        sim_clean
    done
}

dispatch "$@"
