#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Looks at trace files with eyes of its own, not xentraced's: what dom0 brought back is judged here.
#
#   records.py domains FILE DOMID...     all of them are in its runstate records
#   records.py end-of FILE DOMID SIDECAR
#                                        the vCPU 0 of DOMID ran, and ends offline; prints when, before
#                                        the file's own end
#   records.py goes-on OLD NEW           NEW has all records of OLD, CPU by CPU, at its begin, and later ones
#   records.py hole FILE FROM_NS TO_NS SIDECAR
#                                        prints the longest time without a record of any CPU between
#                                        two moments, and what was lost in all
#   records.py clock FILE SIDECAR PROBES MS
#                                        the hypercalls of PROBES (see pvh-job.dom0.sh) are in it, and the
#                                        sidecar's clock pairs date them by no more than MS wrong; prints
#                                        by how much, and how far the records are ahead of dom0's TSC
#   records.py last FILE SIDECAR MS FROM_NS TO_NS
#                                        it has about the last MS; it was asked for at FROM_NS and made by TO_NS
#
# Exit status 1, and a sentence, if it is not so. The format: docs/file-format.md.

import json
import struct
import sys

CPU_CHANGE = 0x2001F003
LOST = 0x0001F001
WRAP = 0x0001F002
RUNSTATE_CHANGE = 0x00021001  # and old << 8 | new << 4; first word: domain << 16 | vcpu
RUNNING, OFFLINE = 0, 3
HVM_VMMCALL = 0x00082012  # first word: the hypercall
PROBE = 62
BUSY_MS = 500  # under load, the longest time without a record


def read_records(path):
    """Yields (cpu, event, tsc, words, bytes) in the file's order."""
    with open(path, "rb") as file:
        data = file.read()
    offset, last_tsc = 0, {}
    while offset < len(data):
        header, cpu, size = struct.unpack_from("<III", data, offset)
        if header != CPU_CHANGE:
            sys.exit(f"{path}: no window at {offset:#x}")
        offset += 12
        end = offset + size
        while offset < end:
            (header,) = struct.unpack_from("<I", data, offset)
            words, has_tsc = header >> 28 & 7, header >> 31
            bytes_ = 4 + 8 * has_tsc + 4 * words
            if has_tsc:
                (last_tsc[cpu],) = struct.unpack_from("<Q", data, offset + 4)
            extra = struct.unpack_from(f"<{words}I", data, offset + 4 + 8 * has_tsc)
            yield cpu, header & 0x0FFFFFFF, last_tsc.get(cpu, 0), extra, data[offset:offset + bytes_]
            offset += bytes_
        if offset != end:
            sys.exit(f"{path}: records and window end apart at {offset:#x}")


def is_runstate(event):
    return event & 0x0FFFF00F == RUNSTATE_CHANGE


def is_of_xen(event):
    """Neither padding nor a count."""
    return event not in (LOST, WRAP)


def host_value(sidecar, key):
    with open(sidecar) as file:
        return json.load(file)["host"].get(key)


def tsc_hz(sidecar):
    return host_value(sidecar, "tsc_khz") * 1000


def domains(path, *wanted):
    found = {extra[0] >> 16 for _, event, _, extra, _ in read_records(path)
             if event & 0x0FFFF000 == 0x00021000 and extra}
    missing = {int(domid) for domid in wanted} - found
    if missing:
        sys.exit(f"{sorted(found)} lack {sorted(missing)}")


def end_of(path, domid, sidecar):
    vcpu, states, last, end = int(domid) << 16, [], 0, 0
    for _, event, tsc, extra, _ in read_records(path):
        end = max(end, tsc if is_of_xen(event) else 0)
        if is_runstate(event) and extra[0] == vcpu:
            states.append((tsc, event >> 4 & 15))
    if not states:
        sys.exit(f"{path} has no runstate of domain {domid}")
    states.sort()
    last, state = states[-1]
    ran = sum(1 for _, state in states if state == RUNNING)
    if state != OFFLINE or not ran:
        sys.exit(f"domain {domid} ran {ran} times, and its last runstate is {state}")
    hz = tsc_hz(sidecar)
    print(f"domain {domid}: {len(states)} runstates over {(last - states[0][0]) / hz:.3f} s, ran {ran} "
          f"times; offline {(end - last) / hz:.3f} s before the end of the snapshot")


def goes_on(old, new):
    def by_cpu(path):
        cpus = {}
        for cpu, event, tsc, _, raw in read_records(path):
            if is_of_xen(event):
                cpus.setdefault(cpu, []).append((tsc, raw))
        return cpus
    before, after = by_cpu(old), by_cpu(new)
    count = sum(len(records) for records in before.values())
    if count == 0:
        sys.exit(f"{old} has no records")
    for cpu, records in before.items():
        both = after.get(cpu, [])
        if both[:len(records)] != records:
            at = next((i for i, pair in enumerate(zip(records, both)) if pair[0] != pair[1]),
                      min(len(records), len(both)))
            sys.exit(f"CPU {cpu}: record {at} of {len(records)} is another one, or gone")
    later = sum(len(records) for records in after.values()) - count
    if later <= 0:
        sys.exit(f"nothing came after the {count} records of {old}")
    print(f"{count} records of before are there, and {later} later ones")


def hole(path, from_ns, to_ns, sidecar):
    with open(sidecar) as file:
        document = json.load(file)
    khz, clock = document["host"]["tsc_khz"], document["clock"][-1]

    def tsc_at(ns):
        return clock["tsc"] - (clock["realtime_ns"] - int(ns)) * khz // 10**6
    first, last = tsc_at(from_ns), tsc_at(to_ns)
    tscs, lost = [], 0
    for _, event, tsc, extra, _ in read_records(path):
        if event == LOST:
            lost += extra[0]
        elif is_of_xen(event) and first <= tsc <= last:
            tscs.append(tsc)
    tscs.sort()
    gaps = [b - a for a, b in zip([first] + tscs, tscs + [last])]
    print(f"{(last - first) / khz:.0f} ms, {len(tscs)} records in them, the longest time without one "
          f"{max(gaps) / khz:.0f} ms; lost in the whole file: {lost}")
    if not tscs:
        sys.exit("nothing was traced in that time")


def wall_clock(sidecar):
    """Returns the function that docs/file-format.md has: TSC to ns."""
    with open(sidecar) as file:
        document = json.load(file)
    khz = document["host"]["tsc_khz"]
    pairs = [(pair["tsc"], pair["realtime_ns"]) for pair in document["clock"]]

    def ns_of(tsc):
        at = sum(1 for pair in pairs if pair[0] <= tsc)
        tsc_p, ns_p = pairs[max(at - 1, 0)]
        if at in (0, len(pairs)):
            return ns_p + (tsc - tsc_p) * 10**6 // khz
        tsc_q, ns_q = pairs[at]
        return ns_p + (tsc - tsc_p) * (ns_q - ns_p) // (tsc_q - tsc_p)
    return ns_of


def clock(path, sidecar, probes, limit_ms):
    with open(probes) as file:
        probes = [[int(word) for word in line.split()] for line in file]
    tscs = sorted(tsc for _, event, tsc, extra, _ in read_records(path)
                  if event == HVM_VMMCALL and extra[0] == PROBE)
    if not tscs or len(tscs) != len(probes):
        sys.exit(f"{len(probes)} hypercalls, {len(tscs)} of them in the records")
    ns_of, khz = wall_clock(sidecar), tsc_hz(sidecar) // 1000
    # Both are brackets: the record was made between the two readings. The narrowest tells most.
    errors, at_least, at_most = [], [], []
    for (ns_before, tsc_before, tsc_after, ns_after), tsc in zip(probes, tscs):
        ns = ns_of(tsc)
        errors.append(max(ns - ns_after, ns_before - ns, 0) * (1 if ns > ns_before else -1))
        at_least.append(tsc - tsc_after)
        at_most.append(tsc - tsc_before)
    worst = max(errors, key=abs) / 10**6
    print(f"{len(tscs)} hypercalls, each within {max(p[3] - p[0] for p in probes) / 10**6:.3f} ms; "
          f"dated by up to {worst:.3f} ms wrong. The records are ahead of dom0's TSC by "
          f"{max(at_least)} to {min(at_most)} ticks ({max(at_least) / khz:.3f} ms); the sidecar has "
          f"{host_value(sidecar, 'tsc_offset')}")
    if min(at_most) < max(at_least):
        sys.exit("the difference of the TSCs is not constant")
    if abs(worst) > float(limit_ms):
        sys.exit(f"that is more than {limit_ms} ms")


def rounds(path):
    """The TSCs of Xen's records, a list for each round: CPUs ascend in it."""
    last_cpu, found = -1, []
    for cpu, event, tsc, _, _ in read_records(path):
        if cpu < last_cpu or not found:
            found.append([])
        last_cpu = cpu
        if is_of_xen(event) and tsc:
            found[-1].append(tsc)
    return [tscs for tscs in found if tscs]


def last(path, sidecar, ms, from_ns, to_ns):
    """It begins with a whole round, so it may hold more than MS: but no round that is older."""
    tscs = rounds(path)
    if not tscs:
        sys.exit(f"{path} has no record")
    ns_of, asked_ns = wall_clock(sidecar), int(from_ns)
    begin_ms, round_ms, end_ms = ((ns_of(tsc) - asked_ns) / 10**6
                                  for tsc in (min(tscs[0]), max(tscs[0]), max(map(max, tscs))))
    took_ms = (int(to_ns) - asked_ns) / 10**6
    print(f"{sum(map(len, tscs))} records, the first round from {-begin_ms:.0f} to {-round_ms:.0f} "
          f"ms before it was asked for, which took {took_ms:.0f} ms, to {end_ms:.0f} ms after")
    if round_ms + float(ms) < 0:
        sys.exit(f"its first round is older than {ms} ms")
    if begin_ms + float(ms) > took_ms + BUSY_MS:
        sys.exit(f"it begins later than {ms} ms before it was made")
    if not -BUSY_MS <= end_ms <= took_ms:
        sys.exit("its end is not when it was made")


COMMANDS = {"domains": domains, "end-of": end_of, "goes-on": goes_on, "hole": hole, "clock": clock,
            "last": last}
COMMANDS[sys.argv[1]](*sys.argv[2:])
