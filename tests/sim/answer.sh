#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An incident from end to end: a vCPU is starved by two others on its CPU, then its domain crashes. The
# trigger's snapshot has a finding that names those two, its command shows them, and the first lines
# name the crash. tests/demo ends with the same.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$script")/../answer.sh"

culprit='db v[01]'

has_snapshot() { snapshot=$(compgen -G "$dir/state/snapshot-incident-*.xentrace") && [ -e "${snapshot%.xentrace}.json" ]; }
answer_is_last() {
    show_answer "$snapshot" 'web v0' "$culprit" >"$dir/answer" || { cat "$dir/answer"; return 1; }
    tail -n 2 "$dir/answer" | head -n 1 | grep -E "^  web v0 waited [0-9.]+m?s .*: $culprit ran .* $culprit ran " &&
        tail -n 1 "$dir/answer" | grep '^ *xentracectl why '
}

incident() {
    PATH=$build:$PATH
    configure '[trigger incident]' condition=domain-crash delay=200ms
    recorder_start events=sched-min || return
    sleep 1
    check "nobody is starved in no domain" fails 'no such domain' "$xensim" domain starve 1 9 400
    check "web is starved by db" "$xensim" domain starve 1 2 400
    sleep 0.6
    check "... and crashes" "$xensim" domain crash 1
    check "the trigger writes a snapshot" wait_until 60 has_snapshot
    check "why it was taken" shows '^  Snapshot taken because: Domain 1 \(web\) crashed\.$' xentracectl report "$snapshot"
    check "when it crashed" shows '^  web crashed at [0-9:.]+: its [0-9]+ vCPUs did not run in the last ' \
        xentracectl report "$snapshot"
    check "a finding names the culprits, its command comes last" answer_is_last
    check "another culprit is not found" fails 'No finding names' show_answer "$snapshot" 'web v0' 'Domain-0 v9'
}

main() {
    local truth
    truth=$(mktemp)
    sim --cpus 4 --workload sched --truth "$truth" -- incident
    check "it is true: web waited for 400 ms, while db's vCPUs ran" python3 - "$truth" <<'END'
import json, sys
truth = json.load(open(sys.argv[1]))
longest = max((wait for wait in truth["waits"] if wait["vcpu"] == "d1v0"), key=lambda wait: wait["cycles"])
ran = {vcpu: cycles for vcpu, cycles in longest["ran"].items() if vcpu in ("d2v0", "d2v1")}
print(longest)
sys.exit(len(ran) < 2 or sum(ran.values()) < 0.9 * longest["cycles"])
END
    rm -f "$truth"
    sim_clean
}

dispatch "$@"
