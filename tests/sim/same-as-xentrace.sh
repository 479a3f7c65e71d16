#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# xentrace's own binary and xentraced, each on the same replayed trace of a real Xen: the same records
# of each CPU, byte for byte.

. "$(dirname "$0")/lib.sh"

xentrace=/usr/lib/xen-4.17/bin/xentrace
samples=$(dirname "$script")/../samples

by_xentrace() {
    "$xentrace" -e 0x0ffff000 -s 10 "$dir/xentrace" &
    local pid=$!
    replay_all
    kill -INT "$pid"
    wait "$pid"
}

by_xentraced() {
    daemon_start || exit 1
    ctl start -e 0x0ffff000 -s 10 -o "$dir/xentraced.xentrace" replay >/dev/null
    replay_all
    check "xentraced stops" ctl stop replay
}

# The producer waits until both are there, so that neither misses the beginning.
replay_all() {
    wait_until 5 is_enabled
    "$xensim" resume
    "$xensim" wait
    sleep 0.3
}
is_enabled() { "$xensim" stat | tr -d ' \n' | grep '"enabled":true' >/dev/null; }

main() {
    local sample options part=/tmp/part.$$
    if [ ! -x "$xentrace" ]; then
        echo "not ok - $xentrace is not installed (apt-get install xen-utils-4.17)"
        exit 1
    fi
    for sample in "$samples"/*.zst; do
        # xentrace is too slow for the busiest seconds of the largest one, at this speed.
        "$samples/unpack" "$sample" "$part" 4000000
        options=(--cpus 8 --pages 64 --replay "$part" --loops 1 --tsc-exact --speed 4 --paused)
        sim "${options[@]}" -- by_xentrace
        "$xensim" records "$dir/xentrace" >"/tmp/records.$$"
        sim_clean
        sim "${options[@]}" -- by_xentraced
        "$xensim" records "$dir/xentraced.xentrace" >"$dir/records"
        check "$(basename "$sample"): the same records" diff "/tmp/records.$$" "$dir/records"
        check "$(basename "$sample"): and not none" above "$(wc -l <"$dir/records")" 0
        rm -f "/tmp/records.$$"
        sim_clean
    done
    rm -f "$part"
}

dispatch "$@"
