#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The totals of `report --json` beside those of `xenalyze -s`: prints each that differs by more than
docs/from-xenalyze.md explains.

    compare-xenalyze.py REPORT XENALYZE      the outputs of the two
"""

import json
import re
import sys

PV_EVENTS = {"page_fault": 0x201004, "emulate privop": 0x201006, "math state restore": 0x201008,
             "ptwr": 0x20100b}
# A mean in whole cycles, and the intervals at the edges of the trace, which only xenalyze counts: the
# one before the first record of a vCPU, and the one after its last.
EDGES = 2


def vcpus_of(path):
    """{"d0v1": {"running": (count, mean), "hypercalls": {23: n}, "events": {...}, "exits": ...}}"""
    vcpus, domain, vcpu = {}, None, None
    with open(path, encoding="latin-1") as file:
        for line in file:
            if match := re.match(r"\|-- Domain (\d+) --\|", line):
                domain, vcpu = match[1], None
            elif match := re.match(r"-- v(\d+) --", line):
                vcpu = vcpus.setdefault("d%sv%s" % (domain, match[1]),
                                        {"states": {}, "waits": {}, "hypercalls": {}, "events": {},
                                         "exits": {}})
            elif vcpu is None or line.startswith("Emulate"):
                continue
            elif match := re.match(r" +(running|runnable|blocked|offline|wake|preempt): +(\d+) +[\d.]+s +(\d+)",
                                   line):
                kind = "waits" if match[1] in ("wake", "preempt") else "states"
                vcpu[kind][match[1]] = int(match[2]), int(match[3])
            elif match := re.match(r"    \w+ +\[ ?(\d+)\]: +(\d+)", line):
                vcpu["hypercalls"][match[1]] = int(match[2])
            elif match := re.match(r"  ([\w ]+?)  +(\d+)$", line):
                if match[1] in PV_EVENTS:
                    vcpu["events"]["0x%08x" % PV_EVENTS[match[1]]] = int(match[2])
            elif match := re.match(r" (?:VMEXIT_)?([A-Z_]+) +(\d+) +[\d.]+s", line):
                vcpu["exits"][match[1]] = int(match[2])
    return vcpus


def close(a, b, slack):
    """Sums of cycles: within 0.1 %, or SLACK cycles."""
    return abs(a - b) <= max(a, b) // 1000 + slack


def compare(name, measures, theirs):
    ours = measures["vcpus"].get(name)
    if ours is None:
        return ["%s: only xenalyze has it" % name]
    found = []
    for state, (count, mean) in theirs["states"].items():
        n, cycles = ours["intervals"][state], ours["cycles"][state]
        if abs(n - count) > EDGES:
            found.append("%s: %s %d times, xenalyze %d" % (name, state, n, count))
        elif n == count and not close(cycles, mean * count, count):
            found.append("%s: %s %d cycles, xenalyze %d" % (name, state, cycles, mean * count))
    for kind, (count, _) in theirs["waits"].items():
        n = ours["latency"][kind]["count"] + (ours["latency"]["other"]["count"] if kind == "wake" else 0)
        if not name.startswith("d32767") and abs(n - count) > EDGES:
            found.append("%s: waits (%s) %d, xenalyze %d" % (name, kind, n, count))
    return found


def totals(vcpus, key):
    sums = {}
    for vcpu in vcpus:
        for number, count in vcpu.get(key, {}).items():
            sums[number] = sums.get(number, 0) + count
    return sums


def main():
    with open(sys.argv[1]) as file:
        measures = json.load(file)["measures"]
    theirs = vcpus_of(sys.argv[2])
    found = [] if theirs else ["xenalyze found no vCPU"]
    for name, vcpu in theirs.items():
        if not name.startswith("d32768"):
            found += compare(name, measures, vcpu)
    pv = measures["pv"]
    for key, kinds in ("hypercalls", ("hypercalls", "subcalls")), ("events", ("events",)):
        known = totals([{key: of} for kind in kinds for vcpu, of in pv[kind].items()
                        if vcpu != "unknown"], key)
        unknown = totals([{key: pv[kind].get("unknown", {})} for kind in kinds], key)
        for number, count in totals(theirs.values(), key).items():
            n = known.get(number, 0)
            if not n <= count <= n + unknown.get(number, 0):
                found.append("%s %s: %d and %d of unknown vCPUs, xenalyze %d" % (
                    key, number, n, unknown.get(number, 0), count))
    reasons = {of["name"]: of["count"] for of in measures["exits"]["reasons"].values()}
    exits = totals(theirs.values(), "exits")
    # xenalyze 4.17 knows the events of VMX, and those of SVM up to Xen 4.18.
    if not exits and any(int(event, 0) & ~0x500 == 0x81002 for event in measures["events"]):
        found.append("xenalyze found no exit")
    for name, count in exits.items():
        if name in reasons and not 0 <= reasons[name] - count <= measures["exits"]["incomplete"]:
            found.append("exits %s: %d, xenalyze %d" % (name, reasons[name], count))
    print(*found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
