#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace that nobody made: vCPUs that change their runstates at random, mostly as a scheduler would,
exits, I/O, losses, records without TSCs, wrap_buffer records, late and senseless ones. Rounds are as
Xen's readers need them, so that it can be read from a pipe.

    random-trace.py SEED CPUS RECORDS [lossless] [details] >FILE

With details, there are interrupts, idle states, hypercalls, grants and events of schedulers, too.

A loss is reported with the CPU's next record, which may come when a reader of a pipe has long passed its
beginning: for those there are lossless ones.
"""

import random
import struct
import sys

RUNNING, RUNNABLE, BLOCKED, OFFLINE = range(4)


def record(event, tsc, *words):
    head = event | len(words) << 28 | (0 if tsc is None else 1 << 31)
    body = () if tsc is None else (tsc & 0xffffffff, tsc >> 32)
    return struct.pack("<%dI" % (1 + len(body) + len(words)), head, *body, *words)


class Host:
    def __init__(self, rng, cpus, details):
        self.rng = rng
        self.details = details
        self.cpus = cpus
        self.running = [None] * cpus
        self.state = {}     # vCPU: runstate
        self.where = {}     # vCPU: CPU on which it runs
        keys = [dom << 16 | vcpu for dom in range(rng.randint(1, 6))
                for vcpu in range(rng.randint(1, 2 * cpus))]
        for key in keys + [32767 << 16 | cpu for cpu in range(cpus)] + [32768 << 16]:
            self.state[key] = rng.choice((RUNNABLE, BLOCKED, OFFLINE))

    def set(self, key, new, cpu):
        """The records of KEY becoming NEW, as CPU writes them."""
        old = self.state[key]
        self.state[key] = new
        if old == RUNNING:
            self.running[self.where.pop(key)] = None
        if new == RUNNING:
            self.running[cpu] = key
            self.where[key] = cpu
        return 0x21001 | old << 8 | new << 4, key

    def schedule(self, cpu):
        """CPU switches to somebody else; what it had goes somewhere."""
        events = []
        if self.running[cpu] is not None:
            events.append(self.set(self.running[cpu], self.rng.choice((RUNNABLE, BLOCKED)), cpu))
        waiting = [key for key, state in self.state.items() if state == RUNNABLE]
        if waiting:
            events.append(self.set(self.rng.choice(waiting), RUNNING, cpu))
        return events

    def detail(self):
        """A record of a class that is not sched or an exit, or about a scheduler's decision."""
        rng = self.rng
        words = rng.choice(list(self.state)), rng.randrange(4), rng.choice((0, 1, 800, 2400))
        if rng.random() < 0.5:
            return (rng.choice((0x82016, 0x82217, 0x82117, 0x82316)),
                    *rng.choices((0xfee00000, 0x3f8), k=rng.randint(0, 3)))
        event = rng.choice((
            0x20100d, 0x20200e, 0x201001, 0x201101, 0x201006, 0x201104, 0x802008, 0x801001, 0x801002,
            0x801003, 0x82004, 0x8200f, 0x10f001, 0x10f004, 0x10f012, 0x28005, 0x28004, 0x22004, 0x22207,
            0x2220b))
        if event == 0x801001:
            words = rng.choices((800, 2400), k=2)
        return event, *(words + words)[:rng.randint(0, 6)]

    def step(self, cpu):
        """What CPU writes now: (event, words...)."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.45:
            return self.schedule(cpu)
        if kind < 0.6:
            key = rng.choice(list(self.state))
            if self.state[key] == RUNNING:
                return []
            return [self.set(key, rng.choice((RUNNABLE, RUNNABLE, BLOCKED, OFFLINE)), cpu)]
        if kind < 0.7 and self.running[cpu] is not None:
            return [(0x21002, self.running[cpu])]
        if kind < 0.85:
            reason = rng.choice((0x1e, 0x30, 0x4b, 0x78, 0x7b, 0x400, 0xffffffff))
            if rng.random() < 0.5:
                return [(rng.choice((0x81002, 0x81003, 0x81102, 0x81503)), reason, 1, 2)]
            return [(rng.choice((0x81001, 0x81401)),)]
        if kind < 0.9 and self.details:
            return [self.detail()]
        if kind < 0.9:
            return [(rng.choice((0x82016, 0x82217, 0x82117, 0x82316)), 0xfee00000)]
        if kind < 0.92: # senseless
            return [(0x21001 | rng.randrange(4) << 8 | rng.randrange(4) << 4,
                     rng.choice(list(self.state)))]
        return [(rng.randrange(1 << 28) & 0xfff0fff | 0x40000, 1, 2, 3)]


class Buffers:
    """Xen's trace buffers, and who drains them: rounds over the CPUs, each at its turn."""

    def __init__(self, rng, cpus, lossless):
        self.rng = rng
        self.loss = 0 if lossless else 0.002
        self.windows = [b""] * cpus
        self.losing = [None] * cpus # since when, and how many; None: there is room
        self.is_full = [False] * cpus
        self.drained = [0] * cpus   # when
        self.turn = 0

    def put(self, cpu, now, event, words):
        rng = self.rng
        if not self.is_full[cpu] and rng.random() < self.loss:
            self.is_full[cpu] = True
        if self.is_full[cpu]:
            self.losing[cpu] = self.losing[cpu] or [now, 0]
            self.losing[cpu][1] += 1
            return
        if self.losing[cpu]:
            first, count = self.losing[cpu]
            first = rng.choice((first, first, first, now))
            self.losing[cpu] = None
            self.windows[cpu] += record(0x1f001, now, count, rng.randrange(1 << 32),
                                        first & 0xffffffff, first >> 32)
        tsc = now
        if self.windows[cpu] and rng.random() < 0.1: # else a reader of a pipe is too late for it
            tsc = None
        elif rng.random() < 0.02:
            tsc = max(now - rng.randrange(500), self.drained[cpu]) # interrupted
        self.windows[cpu] += record(event, tsc, *words)
        if rng.random() < 0.005:
            self.windows[cpu] += record(0x1f002, rng.choice((None, now)))

    def drain(self, now, out):
        cpu = self.turn
        self.turn = (self.turn + 1) % len(self.windows)
        if self.windows[cpu]:
            out.write(struct.pack("<III", 0x2001f003, cpu, len(self.windows[cpu])))
            out.write(self.windows[cpu])
        self.windows[cpu] = b""
        self.is_full[cpu] = False
        self.drained[cpu] = now


def main():
    seed, cpus, records = (int(argument) for argument in sys.argv[1:4])
    rng = random.Random(seed)
    host, buffers = Host(rng, cpus, "details" in sys.argv[4:]), Buffers(rng, cpus, "lossless" in sys.argv[4:])
    now = rng.randrange(1 << 40)
    made = 0
    while made < records:
        cpu = rng.randrange(cpus)
        now += rng.choice((0, 1, 7, 300, 20000))
        for event, *words in host.step(cpu):
            made += 1
            buffers.put(cpu, now, event, words)
        while rng.random() < 0.3:
            buffers.drain(now, sys.stdout.buffer)
    for _ in range(2 * cpus):
        buffers.drain(now, sys.stdout.buffer)


if __name__ == "__main__":
    main()
