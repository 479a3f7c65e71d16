#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The picture of `xentracectl timeline`, computed the slow and obvious way from docs/measures.md.

    oracle-timeline.py cpu|vcpu COLUMNS FILE [FROM UNTIL LEAD]

prints `rows` and `longest_wait` of `xentracectl --json timeline`. FROM and UNTIL are TSCs: of a part of the
trace, before which runstates are followed for LEAD cycles.
"""

import json
import sys

import oracle

STATES = *oracle.STATES, "lost"
TIES = "runnable", "running", "blocked", "offline", "lost", "unknown"
KEPT = 3


class Picture:
    def __init__(self, data, columns, part):
        begin, end, lead = part
        self.trace = oracle.Trace(data, begin=max(begin - lead, 0), end=end)
        self.first = begin if begin else self.trace.first
        self.until = end if begin else self.trace.last + 1
        span = self.until - self.first
        self.columns = min(columns, span)
        self.edges = [self.first + span * k // self.columns for k in range(self.columns + 1)]
        self.intervals, self.waits = list(self.trace.intervals), list(self.trace.waits)
        self.open = set()
        for key, vcpu in self.trace.vcpus.items():
            if vcpu.state is None:
                continue
            self.intervals.append((key, vcpu.state, vcpu.cpu, vcpu.since, self.until, False))
            if vcpu.state == oracle.RUNNABLE and vcpu.shown is not None and key >> 16 < oracle.IDLE:
                self.waits.append((key, vcpu.shown, vcpu.since, self.until))
                self.open.add((key, vcpu.since))

    def within(self, begin, end):
        return max(0, min(end, self.until) - max(begin, self.first))

    def shares(self, items):
        """Of (what, from, to), per column how much of it is which."""
        shares = [{} for _ in range(self.columns)]
        for what, begin, end in items:
            for k in range(self.columns):
                cycles = min(end, self.edges[k + 1]) - max(begin, self.edges[k])
                if cycles > 0:
                    shares[k][what] = shares[k].get(what, 0) + cycles
        for k, of in enumerate(shares):
            of["unknown"] = self.edges[k + 1] - self.edges[k] - sum(of.values())
        return shares

    def cpu(self, cpu):
        runs = [(key, begin, end) for key, state, where, begin, end, _ in self.intervals
                if state == oracle.RUNNING and where == cpu]
        losses = [("lost", begin, end) for where, _, begin, end in self.trace.losses if where == cpu]
        if cpu in self.trace.blind: # the last one is not over
            losses[-1] = ("lost", losses[-1][1], self.until)
        def order(what):
            return (0, what) if isinstance(what, int) else (1, ("lost", "unknown").index(what))
        def candidates(of):
            idle = {what for what in of if isinstance(what, int) and what >> 16 == oracle.IDLE}
            busy = sum(of[what] for what in of if isinstance(what, int) and what not in idle)
            return set(of) - idle if busy > sum(of[what] for what in idle) else of
        cells = [min(candidates(of), key=lambda what: (-of[what], order(what)))
                 for of in self.shares(runs + losses)]
        total = lambda items: sum(self.within(begin, end) for _, begin, end in items)
        waits = [(key, begin, end) for key, where, begin, end in self.waits if where == cpu]
        return {
            "cycles": {"busy": total(run for run in runs if run[0] >> 16 != oracle.IDLE),
                       "idle": total(run for run in runs if run[0] >> 16 == oracle.IDLE),
                       "lost": total(losses), "waits": total(waits)},
            "cpu": cpu,
            "cells": [oracle.name(what) if isinstance(what, int) else what for what in cells],
            "waiting": self.waiting(waits),
        }

    def waiting(self, waits):
        found = []
        for k, of in enumerate(self.shares(waits)):
            width = self.edges[k + 1] - self.edges[k]
            del of["unknown"]
            long = sorted(((-cycles, key) for key, cycles in of.items() if 4 * cycles >= width))
            if long:
                found.append({"column": k, "vcpus": len(long),
                              "longest": {oracle.name(key): -cycles for cycles, key in long[:KEPT]}})
        return found

    def vcpu(self, key):
        items, lost_from = [], None
        for _, state, _, begin, end, lost in sorted(
                (i for i in self.intervals if i[0] == key), key=lambda i: i[3:5]):
            if lost_from is not None:
                items.append(("lost", lost_from, begin))
            items.append((oracle.STATES[state], begin, end))
            lost_from = end if lost else None
        if lost_from is not None:
            items.append(("lost", lost_from, self.until))
        cells = [min(of, key=lambda what: (-of[what], TIES.index(what))) for of in self.shares(items)]
        cycles = {state: sum(self.within(begin, end) for what, begin, end in items if what == state)
                  for state in STATES}
        return {"cycles": cycles, "vcpu": oracle.name(key), "domain": None, "cells": cells}

    def rows(self, by):
        if by == "cpu":
            return [self.cpu(cpu) for cpu in sorted(self.trace.cpus)]
        keys = sorted({key for key, *_ in self.intervals if key >> 16 < oracle.IDLE})
        return [row for row in map(self.vcpu, keys) if any(row["cycles"].values())]

    def longest(self):
        waits = [wait for wait in self.waits if self.within(wait[2], wait[3])]
        return max((end - begin for _, _, begin, end in waits), default=0)


def main():
    by, columns, path, *part = sys.argv[1:]
    with open(path, "rb") as file:
        data = file.read()
    picture = Picture(data, int(columns), tuple(map(int, part)) or (0, 1 << 64, 0))
    json.dump({"rows": picture.rows(by), "longest": picture.longest()}, sys.stdout)


if __name__ == "__main__":
    main()
