#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `xentracectl report` says, held against what really happened (`xensim run --truth`).

    truth.py same TRUTH REPORT       REPORT, of a whole trace: every number is the true one, to the tick
    truth.py inside TRUTH INTERVALS  of a trace with losses: every interval of `--view intervals`
                                     begins with a true one of the same state, on the same CPU, and
                                     ends with it, or inside where a loss begins
    truth.py alike TRUTH TRUTH       of two runs with one seed: the same happened, as far as both go
"""

import bisect
import json
import sys

KINDS = "wake", "preempt", "other"
WORST = 10


def number_of(vcpu):
    """Of "d1v2": the order of vCPUs."""
    return tuple(map(int, vcpu[1:].split("v")))


def percentile(lengths, thousandths):
    return lengths[-(-len(lengths) * thousandths // 1000) - 1] if lengths else 0


def latency(waits, kind):
    lengths = sorted(wait["cycles"] for wait in waits if wait["kind"] == kind)
    return {"count": len(lengths), "total": sum(lengths), "p50": percentile(lengths, 500),
            "p99": percentile(lengths, 990), "p999": percentile(lengths, 999),
            "max": lengths[-1] if lengths else 0, "log2": log2(lengths)}


def log2(lengths):
    return {str(bits): count for bits in range(64)
            if (count := sum(max(length, 1).bit_length() - 1 == bits for length in lengths))}


def worst(waits, kind):
    of = sorted((wait for wait in waits if wait["kind"] == kind),
                key=lambda wait: (-wait["cycles"], wait["start"], number_of(wait["vcpu"])))
    return [{key: wait[key] for key in wait if key != "kind"} for wait in of[:WORST]]


def measures(truth):
    """What the report should say."""
    span = truth["span"]
    waits = {}
    for wait in truth["waits"]:
        waits.setdefault(wait["vcpu"], []).append(wait)
    for name, vcpu in truth["vcpus"].items():
        vcpu["latency"] = {kind: latency(waits.get(name, ()), kind) for kind in KINDS}
    for cpu in truth["cpus"].values():
        cpu["unknown"] = span["cycles"] - cpu["busy"] - cpu["idle"]
    return {"span": span, "records": truth["records"], "mismatches": 0,
            "lost": {"records": 0, "gaps": 0, "list": []}, "cpus": truth["cpus"],
            "vcpus": truth["vcpus"],
            "worst": {kind: worst(truth["waits"], kind) for kind in KINDS}}


def at_end(truth):
    """Which vCPU runs on each CPU when the trace ends, and for how long."""
    return {str(cpu): {"vcpu": vcpu, "cycles": truth["span"]["last_tsc"] - begin}
            for vcpu, state, cpu, begin, end in truth["intervals"]
            if state == "running" and end is None and begin < truth["span"]["last_tsc"]}


def differ(path, true, reported):
    if isinstance(true, dict) and isinstance(reported, dict) and true.keys() == reported.keys():
        return [line for key in true for line in differ(f"{path}.{key}", true[key], reported[key])]
    return [] if true == reported else [f"{path}: {true}, reported {reported}"]


def same(truth, report):
    reported = json.load(report)["measures"]
    reported["records"] -= reported["events"].get("0x0001f002", 0) # wrap_buffer: not the scheduler's
    expected = measures(truth)
    ends = {cpu: of.pop("at_end") for cpu, of in reported["cpus"].items() if "at_end" in of}
    found = differ("measures", expected, {key: reported[key] for key in expected})
    found += differ("at_end", at_end(truth), ends)
    busy = [vcpu for vcpu in truth["vcpus"].values() if vcpu["intervals"]["running"]]
    assert len(busy) > len(truth["cpus"]) and truth["waits"], "nothing happened"
    kinds = {wait["kind"] for wait in truth["waits"]}
    assert kinds == set(KINDS), f"only {kinds}"
    assert all(sum(vcpu["cycles"][state] for vcpu in truth["vcpus"].values())
               for state in ("running", "runnable", "blocked", "offline"))
    assert len(truth["cpus"]) == 1 or sum(vcpu["migrations"] for vcpu in truth["vcpus"].values())
    return found


def inside(truth, lines):
    true = {}
    for vcpu, state, cpu, begin, end in truth["intervals"]:
        true.setdefault((vcpu, state, cpu), []).append((begin, (1 << 64) if end is None else end))
    kinds = {(wait["vcpu"], wait["start"]): wait["kind"] for wait in truth["waits"]}
    found, counted, cut = [], 0, 0
    for of in true.values():
        of.sort()
    for line in lines:
        interval = json.loads(line)
        begin, end = interval["from_tsc"], interval["to_tsc"]
        of = true.get((interval["vcpu"], interval["state"], interval.get("cpu")), [])
        at = bisect.bisect_right(of, (begin, 1 << 65)) - 1
        counted += 1
        cut += "lost" in interval
        if at < 0 or begin != of[at][0] or end > of[at][1] or \
                (end < of[at][1] and "lost" not in interval):
            found.append(f"not true: {line.strip()}, but {of[at] if at >= 0 else None}")
        kind = kinds.get((interval["vcpu"], begin))
        if interval["state"] == "runnable" and kind and interval["wait"] != kind:
            found.append(f"not true: {line.strip()}, but {kind}")
    closed = sum(interval[4] is not None for interval in truth["intervals"])
    print(f"{counted} intervals of {closed} are counted, {cut} up to a loss")
    assert closed > counted > 100 and cut, "nothing was lost, or everything"
    return found


def alike(truth, file):
    pairs = list(zip(truth["intervals"], json.load(file)["intervals"]))
    pairs = pairs[:len(pairs) - 2 * len(truth["vcpus"])] # what is open at the end comes last
    assert len(pairs) > 300, "too little happened"
    return [f"{a} and {b}" for a, b in pairs if a[:3] != b[:3]]


def main():
    what, truth, other = sys.argv[1:]
    with open(truth, encoding="utf-8") as file:
        truth = json.load(file)
    with open(other, encoding="utf-8") as file:
        found = {"same": same, "inside": inside, "alike": alike}[what](truth, file)
    print(*found[:5], sep="\n")
    sys.exit(bool(found))


main()
