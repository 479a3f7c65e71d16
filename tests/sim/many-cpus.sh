#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# As many CPUs as Xen can have: 16,383 from 4.19 on. Each has 3 pages of buffer then, for Xen numbers
# the lists of their pages with 16 bits.

. "$(dirname "$0")/lib.sh"

nr_cpus=16383

refuses() { # refuses TEXT COMMAND...
    local text=$1
    shift
    ! "$@" >"$dir/refused" 2>&1 && grep -qF "$text" "$dir/refused"
}

inside() {
    recorder_start memory=64M || exit 1
    recorder_status
    check "the recorder's ledger has all of them" same \
        "$("$document" number "$dir/recorder" buffers cpus)" "0-$((nr_cpus - 1))"
    check "a capture of all CPUs" ctl start all
    check "the highest ones may be named" ctl start -c 16380- highest
    check "one beyond is refused" refuses "highest is CPU $((nr_cpus - 1))" ctl start -c $nr_cpus no
    sleep 2
    check "the highest ones' capture ends" ctl stop highest
    check "the capture of all CPUs ends" ctl stop all
    check "a snapshot" ctl snapshot of-all
}

main() {
    sim --cpus $nr_cpus --rate 2M -- inside
    check "the capture is whole" whole "$dir/state/all.xentrace"
    check "its ledger balances" balances "$dir/state/all.json"
    check "the highest ones' is whole" whole "$dir/state/highest.xentrace"
    check "the snapshot is whole" whole "$dir/state/of-all.xentrace"
    check "its sidecar is read" ctl info "$dir/state/of-all.xentrace"
    sim_clean
}

dispatch "$@"
