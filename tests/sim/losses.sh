#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The collector is kept from running and Xen loses records: file, ledger and `status` tell the same
# number, and it is the producer's own. Losses at the very end are told too.

. "$(dirname "$0")/lib.sh"

info_lost() {
    ctl --json info "$1" >"$dir/info"
    number "$dir/info" files 0 lost
}

ledger_above() { # ledger_above KEY NUMBER: in the status of the capture that runs
    ctl --json status lossy >"$dir/live"
    above "$(number "$dir/live" ledger "$1")" "$2"
}

# shellcheck disable=SC2317 # called by check
within_seconds() { # within_seconds NS SECONDS: that was so long ago at most
    local now
    now=$(date +%s%N)
    ((now - $1 >= 0 && now - $1 < $2 * 1000000000))
}

# shellcheck disable=SC2317
status_is_4() { # records are being lost: at most 10 s ago
    local status=0
    ctl status >/dev/null || status=$?
    same "$status" 4
}

in_the_middle() {
    daemon_start || exit 1
    ctl start -e all lossy >/dev/null
    check "middle: records come" wait_until 60 ledger_above delivered 0
    lose_for 2
    kill -CONT "$daemon"
    check "middle: status tells it while it runs" wait_until 60 ledger_above lost 0
    check "middle: and when it was" within_seconds "$(number "$dir/live" ledger last_loss_ns)" 60
    check "middle: exit status 4" status_is_4
    check "middle: records come again" wait_until 60 \
        ledger_above delivered "$(number "$dir/live" ledger delivered)"
    ctl stop lossy >/dev/null
    ctl --json status lossy >"$dir/status"
}

# Stopped until the very end: nothing drains in between, so all losses are still untold then.
at_the_end() {
    daemon_start || exit 1
    ctl start -e all lossy >/dev/null
    check "end: records come" wait_until 60 ledger_above delivered 0
    lose_until_the_end 1 lossy
    ctl --json status lossy >"$dir/status"
}

# What was lost is the producer's own count. It may have made a few records more than were asked for:
# those that gave Xen the occasion to tell.
lost_as_reported() { # lost_as_reported DOCUMENT REPORT
    python3 - "$1" "$2" <<'END'
import json, sys
ledger = json.load(open(sys.argv[1]))["ledger"]
report = {c["cpu"]: c for c in json.load(open(sys.argv[2]))["cpus"]}
for line in ledger["cpus"]:
    cpu = report[line["cpu"]]
    assert line["lost"] == cpu["lost"], (line, cpu)
    assert line["produced"] <= cpu["attempted"], (line, cpu)
END
}

check_losses() { # check_losses NAME
    local sidecar=$dir/state/lossy.json file=$dir/state/lossy.xentrace
    check "$1: records were lost" above "$(number "$sidecar" ledger lost)" 0
    check "$1: the ledger balances" balances "$sidecar"
    check "$1: every gap has exactly its count" "$xensim" verify --from-start "$file"
    check "$1: the file tells the same number" same "$(info_lost "$file")" \
        "$(number "$sidecar" ledger lost)"
    check "$1: status tells the same number" same "$(number "$dir/status" ledger lost)" \
        "$(number "$sidecar" ledger lost)"
    check "$1: no CPU's losses are unknown" same \
        "$(number "$sidecar" ledger loss_unknown_cpus)" ""
    check "$1: it is the producer's own account" lost_as_reported "$sidecar" "$dir/report"
}

main() {
    sim --cpus 4 --workload numbered --rate 20M -- in_the_middle
    check_losses middle
    sim_clean
    sim --cpus 4 --workload numbered --rate 20M -- at_the_end
    check_losses end
    sim_clean
}

dispatch "$@"
