#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A capture into a pipe is stopped while its reader is slow, and the reader stops reading at some
# moment after that: the daemon gives up 5 s after that moment, no matter when it looks. A capture
# writes from the collector thread, one in memory from its worker.

. "$(dirname "$0")/lib.sh"

# Reads FIFO, 64 KiB ten times a second, until $dir/stop-reading is there. It then keeps the FIFO open.
read_until_told() { # read_until_told FIFO
    python3 - "$1" "$dir/stop-reading" <<'END' &
import os, sys, time
fifo, stop = sys.argv[1:]
fd = os.open(fifo, os.O_RDWR) # waits for no writer
open(stop + ".open", "w").close()
while not os.path.exists(stop):
    os.read(fd, 65536)
    time.sleep(0.1)
time.sleep(600)
END
    reader=$!
    wait_until 10 test -e "$dir/stop-reading.open"
}

now_msec() { date +%s%3N; }

gives_up() { # gives_up NAME [OPTION]...: of start
    local name=$1 client reader since msec
    shift
    daemon_start || exit 1
    mkfifo "$dir/fifo"
    read_until_told "$dir/fifo"
    check "$name: start" ctl start "$@" -o "$dir/fifo" "$name"
    sleep 1.5
    "$build/xentracectl" stop "$name" >"$dir/stopped" 2>&1 &
    client=$!
    sleep 2
    check "$name: the slow reader is waited for" kill -0 "$client"
    touch "$dir/stop-reading"
    since=$(now_msec)
    wait "$client"
    msec=$(($(now_msec) - since))
    echo "# $name: ended $msec ms after its reader stopped reading"
    check "$name: not before 5 s have passed" above "$msec" 4800
    check "$name: not long after 5 s have passed" below "$msec" 6500
    kill "$reader"
}

run() { # run CASE
    case $1 in
        capture) sim --cpus 4 --rate 20M -- gives_up capture ;;
        memory) sim --cpus 4 --rate 20M -- gives_up memory -M 32M ;;
    esac
    sim_clean
}

main() {
    together run capture memory
}

dispatch "$@"
