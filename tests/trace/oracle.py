#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a trace says, computed the slow and obvious way, straight from the definitions in
docs/measures.md: libxentrace's numbers are compared with these, to the tick.

    oracle.py FILE [FROM UNTIL]   prints the object `measures` of `xentracectl report --json`

FROM and UNTIL are TSCs: of a part of the trace only.
"""

import heapq
import json
import struct
import sys

RUNNING, RUNNABLE, BLOCKED, OFFLINE = range(4)
STATES = "running", "runnable", "blocked", "offline"
KINDS = "wake", "preempt", "other"
IDLE, DEFAULT = 32767, 32768
WRAP, LOST, CONTINUE = 0x1f002, 0x1f001, 0x21002
YIELD, IRQ_HANDLED, INJECTED, EXTERNAL = 0x28005, 0x802008, 0x82004, 0x8200f
FREQUENCY, IDLE_ENTRY, IDLE_EXIT = 0x801001, 0x801002, 0x801003
CPU_CHANGE = 0x2001f003
ACCESSES = {0x82016: "pio_read", 0x82216: "pio_write", 0x82017: "mmio_read", 0x82217: "mmio_write"}
# Events of the scheduler about a vCPU: the word that has it, or the words of its domain and number.
SCHED_PACKED = {**dict.fromkeys((0x2200a, 0x22202, 0x22203, 0x22205, 0x22207, 0x2220a, 0x2220d, 0x2220f,
                                 0x22214, 0x22216, 0x22217, 0x22802, 0x22803, 0x22804, 0x22a01, 0x22a02,
                                 0x22a03, 0x22a04), 0), 0x2220b: 2, 0x22213: 2}
SCHED_PAIR = {**dict.fromkeys((0x22002, 0x22003, 0x22005, 0x22007, 0x22008, 0x28003, 0x28004, 0x28005,
                               0x28006, 0x28007), 0), 0x22004: 1}
# Events about a domain's memory: the word that has it in its low half.
MEMORY = {0x10f001: 0, 0x10f002: 0, 0x10f003: 0, 0x10f004: 5, 0x10f005: 2, 0x10f010: 4, 0x10f011: 4,
          0x10f012: 2}
WORST = 10


def streams(data):
    """Per CPU its records in the order of the file: (event, TSC or None, words)."""
    of = {}
    at = 0
    while at + 12 <= len(data):
        header, cpu, size = struct.unpack_from("<III", data, at)
        if header != CPU_CHANGE:
            break
        at += 12
        end = at + size
        if end > len(data):
            break
        records = of.setdefault(cpu, [])
        while at < end:
            head, = struct.unpack_from("<I", data, at)
            words = head >> 28 & 7
            length = 4 + 4 * words + (8 if head >> 31 else 0)
            if at + length > end:
                return of
            body = struct.unpack_from("<%dI" % (length // 4 - 1), data, at + 4)
            tsc = None
            if head >> 31:
                tsc, body = body[1] << 32 | body[0], body[2:]
            records.append((head & 0xfffffff, tsc, body))
            at += length
    return of


def loss_of(event, tsc, words):
    """(count, first TSC) of a lost_records record of Xen's form."""
    if event != LOST or tsc is None or len(words) != 4:
        return None
    return words[0], words[3] << 32 | words[2]


def part_of(stream, begin, end):
    """What is in it from BEGIN on and before END. Of a loss that is not over at BEGIN, the rest is."""
    for now, cpu, event, words in stream:
        if event == "blind" and now < begin <= words[2]:
            now = begin
        if begin <= now < end:
            yield now, cpu, event, words


def stream_of(cpu, records):
    """Its records with their effective times, and the beginnings of its losses."""
    now = next((tsc for event, tsc, _ in records if tsc is not None and event != WRAP), 0)
    is_head = True
    for event, tsc, words in records:
        if event == WRAP:
            continue
        loss = loss_of(event, tsc, words)
        before, now = now, now if tsc is None else max(now, tsc)
        if loss:
            if is_head:
                before = min(loss[1], before)
            yield min(max(loss[1], before), now), cpu, "blind", (*loss, now)
        is_head = False
        yield now, cpu, event, words


class Vcpu:
    def __init__(self):
        self.state = None
        self.since = self.cpu = self.kind = None
        self.shown = None
        self.cycles = [0] * 4
        self.intervals = [0] * 4
        self.switches = self.migrations = 0
        self.on = {}
        self.waits = {kind: [] for kind in KINDS}
        self.exit = None     # reason, time, and how long it had run by then
        self.access = None   # the last one since the exit: its tally
        self.preempted = None # since its last preemption: CPU
        self.by = None       # and who ran there afterwards
        self.run = 0         # in closed intervals since the exit


class Trace:
    def __init__(self, data, svm=False, begin=0, end=1 << 64):
        self.vcpus, self.cpus = {}, {}
        self.running = {}    # CPU: key of the vCPU known to run there
        self.blind = set()
        self.ran = {}        # CPU: counted running intervals
        self.worst = {kind: [] for kind in KINDS}
        self.intervals = []  # counted: (key, state, CPU, from, to, whether a loss ends it)
        self.waits = []      # (key, CPU, from, to)
        self.hardware = []   # of CPUs: (CPU, what, value, from, to, how it ended: None, "incomplete", "lost")
        self.events = {}
        self.mismatches = self.incomplete = 0
        self.reasons, self.io, self.losses = {}, {}, []
        self.svm = svm
        self.exits, self.interrupts, self.injected, self.external = {}, {}, {}, {}
        self.addresses = {name: {} for name in ACCESSES.values()}
        self.pv, self.hypercalls, self.subcalls = {}, {}, {}
        self.scheduler, self.moves, self.preemptions, self.memory = {}, {}, {}, {}
        self.c_states, self.frequencies, self.unfinished = {}, {}, {}
        self.idle, self.mhz = {}, {} # CPU: since when, and in which state, at which frequency
        self.first = self.last = None
        of = streams(data)
        for cpu, records in of.items():
            self.cpus[cpu] = [0, 0]
            self.ran[cpu] = []
            if begin == 0 and end == 1 << 64:
                self.count(WRAP, sum(event == WRAP for event, _, _ in records))
        merged = heapq.merge(*(part_of(stream_of(cpu, of[cpu]), begin, end) for cpu in sorted(of)),
                             key=lambda item: item[:2])
        for now, cpu, event, words in merged:
            if event == "blind":
                self.begin_blind(now, cpu)
                self.lose_power(now, cpu)
                for vcpu in self.vcpus.values():
                    vcpu.preempted = None if vcpu.preempted == cpu else vcpu.preempted
                self.losses.append([cpu, words[0], now, None])
                continue
            if self.first is None:
                self.first = now
            self.last = now
            self.count(event, 1)
            self.record(now, cpu, event, words)
        for vcpu in self.vcpus.values():
            self.drop_exit(vcpu)
        for loss in self.losses:
            loss[3] = max(loss[2], self.last or 0) if loss[3] is None else loss[3]

    # --- Runstates. ---

    def of(self, key):
        return self.vcpus.setdefault(key, Vcpu())

    def count(self, event, number):
        if number:
            self.events[event] = self.events.get(event, 0) + number

    def count_interval(self, key, vcpu, state, to, lost=False):
        length = to - vcpu.since
        self.intervals.append((key, state, vcpu.cpu, vcpu.since, to, lost))
        vcpu.cycles[state] += length
        vcpu.intervals[state] += 1
        if state == RUNNING:
            vcpu.on[vcpu.cpu] = vcpu.on.get(vcpu.cpu, 0) + length
            vcpu.run += length
            self.cpus[vcpu.cpu][key >> 16 == IDLE] += length
            self.ran[vcpu.cpu].append((vcpu.since, to, key))

    def forget(self, vcpu):
        if vcpu.state == RUNNING:
            del self.running[vcpu.cpu]
        vcpu.state = None
        self.drop_exit(vcpu)

    def begin_blind(self, now, cpu):
        for key, vcpu in self.vcpus.items():
            if vcpu.state is None or (vcpu.state == RUNNING and vcpu.cpu != cpu):
                continue
            self.count_interval(key, vcpu, vcpu.state, now, True)
            self.forget(vcpu)
        self.blind.add(cpu)

    def end_blind(self, now, cpu):
        if cpu in self.blind:
            next(loss for loss in reversed(self.losses) if loss[0] == cpu)[3] = now
        self.blind.discard(cpu)

    def change(self, now, cpu, key, old, new, switch):
        vcpu = self.of(key)
        matches = vcpu.state == old and (old != RUNNING or vcpu.cpu == cpu)
        wait = None
        if matches:
            self.count_interval(key, vcpu, old, now)
            if old == RUNNABLE and new == RUNNING and key >> 16 not in (IDLE, DEFAULT):
                wait = vcpu.kind, vcpu.since
        elif vcpu.state is not None:
            self.mismatches += 1
            self.drop_exit(vcpu)
        if vcpu.state == RUNNING:
            del self.running[vcpu.cpu]
        vcpu.state, vcpu.since = new, now
        vcpu.kind = {BLOCKED: "wake", RUNNING: "preempt"}.get(old, "other")
        if new == RUNNING:
            vcpu.switches += switch
            self.run_on(key, vcpu, cpu)
        elif self.blind:
            vcpu.state = None
            self.drop_exit(vcpu)
        if RUNNING in (old, new):
            if vcpu.shown not in (None, cpu):
                vcpu.migrations += 1
                add(self.moves, (name(key), str(vcpu.shown), str(cpu)))
            vcpu.shown = cpu
        if wait:
            self.end_wait(key, vcpu, cpu, wait[0], wait[1], now)
        if new == RUNNING and switch:
            for other_key, other in self.vcpus.items():
                if other.preempted == cpu:
                    other.by = other_key != key and name(key) or None
                    other.preempted = None
        elif (old, new) == (RUNNING, RUNNABLE):
            vcpu.preempted, vcpu.by = cpu, None
            for other in self.vcpus.values(): # of several, the last one counts
                if other is not vcpu and other.preempted == cpu:
                    other.preempted = None

    def run_on(self, key, vcpu, cpu):
        other = self.running.get(cpu)
        if other is not None and other != key:
            self.mismatches += 1
            self.forget(self.vcpus[other])
        self.running[cpu] = key
        vcpu.cpu = cpu

    # --- Waits. ---

    def end_wait(self, key, vcpu, cpu, kind, start, now):
        vcpu.waits[kind].append(now - start)
        if kind == "preempt":
            add(self.preemptions, (name(key), vcpu.by or "unknown"), now - start)
            vcpu.preempted = None
        self.waits.append((key, cpu, start, now))
        worst = self.worst[kind]
        if len(worst) >= WORST and now - start < worst[-1][0]:
            return
        ran = {}
        for begin, end, who in reversed(self.ran[cpu]):
            if end <= start:
                break
            length = min(end, now) - max(begin, start)
            if length > 0:
                ran[who] = ran.get(who, 0) + length
        worst.append((now - start, start, key, cpu, ran))
        worst.sort(key=lambda w: (-w[0], w[1], w[2]))
        del worst[WORST:]

    # --- Exits. ---

    def drop_exit(self, vcpu):
        if vcpu.exit:
            self.incomplete += 1
            vcpu.exit = vcpu.access = None

    def begin_exit(self, now, cpu, reason):
        entry = self.reasons.setdefault(reason, dict.fromkeys(
            ("count", "timed", "cycles", "max", "unattributed"), 0))
        entry["count"] += 1
        if cpu not in self.running:
            entry["unattributed"] += 1
            return
        vcpu = self.vcpus[self.running[cpu]]
        self.drop_exit(vcpu)
        vcpu.access = None
        count(self.exits, (name(self.running[cpu]), "0x%x" % reason))
        # In the interval that is open, what it has run by now is not counted yet.
        vcpu.exit, vcpu.run = (reason, now - vcpu.since), 0

    def end_exit(self, now, cpu):
        if cpu not in self.running:
            return
        vcpu = self.vcpus[self.running[cpu]]
        if not vcpu.exit:
            return
        reason, before = vcpu.exit
        length = vcpu.run + now - vcpu.since - before
        spend(self.exits, (name(self.running[cpu]), "0x%x" % reason), length)
        if vcpu.access:
            spend(*vcpu.access, length)
        vcpu.exit = vcpu.access = None
        entry = self.reasons[reason]
        entry["timed"] += 1
        entry["cycles"] += length
        entry["max"] = max(entry["max"], length)

    # --- All. ---

    def record(self, now, cpu, event, words):
        if event & ~0x330 == 0x21001 and words:
            self.change(now, cpu, words[0], event >> 8 & 3, event >> 4 & 3, True)
        elif event == CONTINUE and words:
            self.change(now, cpu, words[0], RUNNING, RUNNING, False)
        elif event == LOST:
            self.end_blind(now, cpu)
        elif event & ~0x500 in (0x81002, 0x81003) and words:
            self.begin_exit(now, cpu, words[0])
        elif event & ~0x400 == 0x81001:
            self.end_exit(now, cpu)
        elif event & ~0x100 in ACCESSES:
            self.count_io(cpu, event)
            self.count_access(cpu, event, words)
        self.detail(now, cpu, event, words)

    # --- Details. ---

    def count_access(self, cpu, event, words):
        words_of_address = 2 if event & 0x100 else 1
        if cpu not in self.running or len(words) < words_of_address:
            return
        address = words[1] << 32 | words[0] if event & 0x100 else words[0]
        tally = (self.addresses[ACCESSES[event & ~0x100]],
                 ("d%d" % (self.running[cpu] >> 16), "0x%x" % address))
        count(*tally)
        vcpu = self.vcpus[self.running[cpu]]
        if vcpu.exit:
            vcpu.access = tally

    def detail(self, now, cpu, event, words):
        who = name(self.running[cpu]) if cpu in self.running else "unknown"
        if event == IRQ_HANDLED and words:
            self.interrupt(now, cpu, words)
        elif event == INJECTED and words and who != "unknown":
            add(self.injected, (who, str(words[0])))
        elif event == EXTERNAL and words and who != "unknown":
            add(self.external, (who, str(words[0])))
        elif event >> 16 == 0x20:
            self.count_pv(who, event, words)
        elif event >> 16 == 0x10 and len(words) > MEMORY.get(event, 7):
            add(self.memory, ("d%d" % (words[MEMORY[event]] & 0xffff), "0x%08x" % event,
                              who.split("v")[0] if who != "unknown" else who))
        elif event in SCHED_PACKED and len(words) > SCHED_PACKED[event]:
            add(self.scheduler, (name(words[SCHED_PACKED[event]]), "0x%08x" % event))
        elif event in SCHED_PAIR and len(words) > SCHED_PAIR[event] + 1:
            domain, vcpu = words[SCHED_PAIR[event]:][:2]
            add(self.scheduler, (name((domain << 16 | vcpu & 0xffff) & 0xffffffff), "0x%08x" % event))
        elif event == FREQUENCY and len(words) > 1:
            self.end_frequency(now, cpu, words[0])
            self.mhz[cpu] = words[1], now
        elif event == IDLE_ENTRY and words:
            self.drop_idle(now, cpu, "incomplete")
            self.idle[cpu] = words[0], now
        elif event == IDLE_EXIT and cpu in self.idle:
            c_state, since = self.idle.pop(cpu)
            self.hardware.append((cpu, "c_state", c_state, since, now, None))
            add(self.c_states, (str(cpu), str(c_state)), now - since)

    def interrupt(self, now, cpu, words):
        length = words[2] - words[1] & 0xffffffff if len(words) > 2 else 0
        add(self.interrupts, (str(cpu), str(words[0])), length)
        end = max(now - (now - words[2] & 0xffffffff), 0) if len(words) > 2 else now
        self.hardware.append((cpu, "irq", words[0], max(end - length, 0), end,
                              None if len(words) > 2 else "incomplete"))

    def end_frequency(self, now, cpu, mhz):
        """MHZ: at which the CPU was, as the next record has it; or "lost"."""
        of, since = self.mhz.pop(cpu, (0, 0))
        if of:
            how = "lost" if mhz == "lost" else None if mhz == of else "incomplete"
            self.hardware.append((cpu, "mhz", of, since, now, how))
            if not how:
                add(self.frequencies, (str(cpu), str(of)), now - since)

    def drop_idle(self, now, cpu, how):
        if cpu in self.idle:
            c_state, since = self.idle.pop(cpu)
            self.hardware.append((cpu, "c_state", c_state, since, now, how))
            add(self.unfinished, (str(cpu),))

    def lose_power(self, now, cpu):
        self.drop_idle(now, cpu, "lost")
        self.end_frequency(now, cpu, "lost")

    def count_pv(self, who, event, words):
        add(self.pv, (who, "0x%08x" % (event & ~0x100)))
        of = {0x20100d: (self.hypercalls, 0, 0xfffff), 0x20200e: (self.subcalls, 0, 0xfffff),
              0x201001: (self.hypercalls, 1, 0xffffffff), 0x201101: (self.hypercalls, 2, 0xffffffff)}
        if event in of and len(words) > of[event][1]:
            tallies, word, mask = of[event]
            add(tallies, (who, str(words[word] & mask)))

    def count_io(self, cpu, event):
        if cpu not in self.running:
            return
        name = "%s_%s" % ("pio" if event & 0xf == 6 else "mmio",
                          "write" if event & 0x200 else "read")
        domain = self.io.setdefault(self.running[cpu] >> 16, dict.fromkeys(
            ("mmio_read", "mmio_write", "pio_read", "pio_write"), 0))
        domain[name] += 1

    def is_svm(self):
        return (self.svm or any(event & ~0x500 == 0x81003 for event in self.events) or
                any(reason & 0xffff > 0x4b for reason in self.reasons))

    def at_end(self, cpu):
        """Who runs there since the last change, of which the trace does not have the end."""
        vcpu = self.vcpus.get(self.running.get(cpu))
        if vcpu is None or cpu in self.blind or vcpu.since == self.last:
            return {}
        return {"at_end": {"vcpu": name(self.running[cpu]), "cycles": self.last - vcpu.since}}

    def measures(self):
        span = self.last - self.first if self.first is not None else 0
        return {
            "span": {"first_tsc": self.first or 0, "last_tsc": self.last or 0, "cycles": span},
            "records": sum(self.events.values()),
            "events": {"0x%08x" % event: n for event, n in sorted(self.events.items())},
            "mismatches": self.mismatches,
            "lost": {"records": sum(loss[1] for loss in self.losses), "gaps": len(self.losses),
                     "list": [{"cpu": cpu, "from": first, "to": to, "count": count}
                              for cpu, count, first, to in self.losses]},
            "cpus": {str(cpu): {"busy": busy, "idle": idle, "unknown": span - busy - idle,
                                **self.at_end(cpu)}
                     for cpu, (busy, idle) in sorted(self.cpus.items())},
            "vcpus": {name(key): self.vcpu(vcpu) for key, vcpu in sorted(self.vcpus.items())},
            "worst": {kind: [self.wait(*wait) for wait in self.worst[kind]]
                      for kind in KINDS},
            "exits": {"vendor": "svm" if self.is_svm() else "vmx", "incomplete": self.incomplete,
                      "reasons": {"0x%x" % reason: entry
                                  for reason, entry in sorted(self.reasons.items())},
                      "vcpus": times(self.exits)},
            "io": {"domains": {"d%d" % domain: io for domain, io in sorted(self.io.items())}},
            "addresses": {access: times(tallies) for access, tallies in self.addresses.items()},
            "pv": {"events": counts(self.pv), "hypercalls": counts(self.hypercalls),
                   "subcalls": counts(self.subcalls)},
            "interrupts": {"cpus": times(self.interrupts), "injected": counts(self.injected),
                           "external": counts(self.external)},
            "power": {"c_states": times(self.c_states), "frequencies": times(self.frequencies),
                      "incomplete": counts(self.unfinished)},
            "scheduler": counts(self.scheduler),
            "migrations": counts(self.moves),
            "preemptions": times(self.preemptions),
            "memory": counts(self.memory),
            "domains": {"d%d" % domain: self.domain(domain) for domain in
                        sorted({key >> 16 for key in self.vcpus} - {IDLE, DEFAULT})},
        }

    def domain(self, domain):
        vcpus = {key: vcpu for key, vcpu in self.vcpus.items() if key >> 16 == domain}
        waits = distribution([wait for vcpu in vcpus.values() for of in vcpu.waits.values()
                              for wait in of])
        del waits["log2"]
        return {
            "vcpus": len(vcpus),
            "cycles": {state: sum(vcpu.cycles[i] for vcpu in vcpus.values())
                       for i, state in enumerate(STATES)},
            "switches_in": sum(vcpu.switches for vcpu in vcpus.values()),
            "migrations": sum(vcpu.migrations for vcpu in vcpus.values()),
            "wakes": sum(len(vcpu.waits["wake"]) for vcpu in vcpus.values()),
            "latency": waits,
            "exits": sum(entry[0] for (who, _), entry in self.exits.items()
                         if who in map(name, vcpus)),
        }

    @staticmethod
    def vcpu(vcpu):
        return {
            "cycles": dict(zip(STATES, vcpu.cycles)),
            "intervals": dict(zip(STATES, vcpu.intervals)),
            "switches_in": vcpu.switches,
            "migrations": vcpu.migrations,
            "pcpu_cycles": {str(cpu): cycles for cpu, cycles in sorted(vcpu.on.items())},
            "latency": {kind: distribution(waits) for kind, waits in vcpu.waits.items()},
        }

    @staticmethod
    def wait(length, start, key, cpu, ran):
        who = {name(other): cycles for other, cycles in sorted(ran.items())}
        who["unknown"] = length - sum(ran.values())
        return {"vcpu": name(key), "start": start, "cycles": length, "cpu": cpu, "ran": who}


# Tallies: their keys are the keys on the way through the object; [count, cycles, max].

def count(tallies, key):
    tallies.setdefault(key, [0, 0, 0])[0] += 1


def spend(tallies, key, cycles):
    entry = tallies[key]
    entry[1] += cycles
    entry[2] = max(entry[2], cycles)


def add(tallies, key, cycles=0):
    count(tallies, key)
    spend(tallies, key, cycles)


def nested(tallies, value_of):
    root = {}
    for key, entry in tallies.items():
        at = root
        for part in key[:-1]:
            at = at.setdefault(part, {})
        at[key[-1]] = value_of(entry)
    return root


def counts(tallies):
    return nested(tallies, lambda entry: entry[0])


def times(tallies):
    return nested(tallies, lambda entry: dict(zip(("count", "cycles", "max"), entry)))


def name(key):
    return "d%dv%d" % (key >> 16, key & 0xffff)


def distribution(waits):
    waits = sorted(waits)

    def percentile(part, whole):
        return waits[(len(waits) * part + whole - 1) // whole - 1] if waits else 0
    return {"count": len(waits), "total": sum(waits), "p50": percentile(1, 2),
            "p99": percentile(99, 100), "p999": percentile(999, 1000),
            "max": waits[-1] if waits else 0, "log2": histogram(waits)}


def histogram(waits):
    powers = [max(wait.bit_length() - 1, 0) for wait in waits]
    return {str(power): powers.count(power) for power in set(powers)}


def main():
    svm = "--svm" in sys.argv[1:]
    path, *part = (argument for argument in sys.argv[1:] if not argument.startswith("--"))
    with open(path, "rb") as file:
        data = file.read()
    json.dump(Trace(data, svm, *map(int, part)).measures(), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
