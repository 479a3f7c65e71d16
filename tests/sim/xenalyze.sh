#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Xen's own reader reads what xentraced writes: a schedule, and traces of real Xens, padded chunks and
# all, without a complaint about order or framing.

. "$(dirname "$0")/lib.sh"

samples=$(dirname "$script")/../samples

schedule() {
    daemon_start || exit 1
    ctl record --quiet -T 3 -o "$dir/f.xentrace" >/dev/null 2>&1
}

replay() {
    daemon_start || exit 1
    ctl start -s 10 -o "$dir/f.xentrace" replay >/dev/null
    "$xensim" resume
    "$xensim" wait
    sleep 0.3
    ctl stop replay >/dev/null
}

reads_it() {
    local mode=()
    # It takes the exits of Xen up to 4.18 for Intel's, unless told otherwise.
    "$build/xentracectl" --json report --view exits "$dir/f.xentrace" >"$dir/report"
    ! grep '"vendor": *"svm"' "$dir/report" >"$dir/svm" || mode=(--svm-mode)
    xenalyze "${mode[@]}" --cpu-hz 2.3G --summary "$dir/f.xentrace" >"$dir/summary" 2>"$dir/complaints" || {
        tail -n 5 "$dir/complaints"
        return 1
    }
    # Exits of AMD without a record of their handler are Xen's, in the original trace, too.
    grep -q "Total time" "$dir/summary" &&
        ! grep -v 'missing a handler$' "$dir/complaints" | grep -iE 'error|fatal|strange|skew'
}

main() {
    local sample part=/tmp/part.$$
    sim --cpus 8 --workload sched --rate 20M -- schedule
    check "a schedule is read" reads_it
    check "its dom0 is in the summary" grep -q "Domain 0" "$dir/summary"
    sim_clean
    for sample in "$samples"/*.zst; do
        "$samples/unpack" "$sample" "$part" 4000000
        sim --cpus 4 --replay "$part" --loops 1 --tsc-exact --speed 4 --paused -- replay
        check "$(basename "$sample") is read" reads_it
        sim_clean
    done
    rm -f "$part"
}

dispatch "$@"
