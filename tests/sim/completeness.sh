#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Every record that Xen produced is in the file, once and in order, or told as lost with its exact
# count; with and without filters. The producer's own account, the ledger and the file agree.
#
#   BUFFER_PAGES=32 tests/sim/completeness.sh    with xentrace's buffers: on a machine that is quiet

. "$(dirname "$0")/lib.sh"

seconds=${SECONDS_PER_CAPTURE:-8}

capture() { # capture OPTION...: one capture from the first record of the producer to its last
    # 64 MiB are a second of records; a disk that others use, too, may pause for longer.
    printf '[daemon]\npool=256M\n' >>"$dir/xentraced.conf"
    daemon_start || exit 1
    check "it records ${*:-everything}" ctl record --quiet -T "$seconds" "$@" numbered
    cp "$dir/state/numbered.json" "$dir/document"
}

verify_all() { # verify_all NAME XENTRACECTL-OPTION...
    local name=$1
    shift
    sim --cpus 8 --workload numbered --rate 50M -- capture "$@"
    check "$name: the ledger balances" balances "$dir/document"
    check "$name: nothing was lost" same "$(number "$dir/document" ledger lost)" 0
    check "$name: the file is sound" ctl info "$dir/state/numbered.xentrace"
}

main() {
    verify_all "all CPUs"
    check "all CPUs: every number is there" "$xensim" verify "$dir/state/numbered.xentrace"
    check "all CPUs: the ledger is the producer's" produced_as_reported "$dir/document" "$dir/report"
    sim_clean

    verify_all "CPUs 2-3" -c 2-3
    check "CPUs 2-3: every number is there, and no other CPU" \
        "$xensim" verify --cpus 2-3 "$dir/state/numbered.xentrace"
    sim_clean

    # One mask of Xen's would let hw-pm and the other sched subclasses pass too.
    verify_all "an event filter" -e sched-min,hw-irq
    check "an event filter: it is one that Xen's mask cannot express" \
        same "$(number "$dir/document" events filtered)" true
    check "an event filter: every record of these kinds is there, and no other" \
        "$xensim" verify --kinds 0x00021000,0x00802000 "$dir/state/numbered.xentrace"
    sim_clean
}

dispatch "$@"
