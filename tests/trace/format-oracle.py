#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What xentrace_format(1) prints, with Python's own % operator: format-oracle.py FORMATS <TRACE"""

import struct
import sys


def read_formats(path):
    formats = {}
    with open(path, newline="\n") as file:
        for line in file:
            if line[0] in "#\n":
                continue
            number, text = line.rstrip("\n").split(None, 1)
            formats[int(number, 0)] = text
    return formats


def main():
    formats = read_formats(sys.argv[1])
    data = sys.stdin.buffer.read()
    at, cpu, last, irqs, cycles, most = 0, 0, {}, 0, 0, 0
    while at + 4 <= len(data):
        header, = struct.unpack_from("<I", data, at)
        words, event, has_tsc = header >> 28 & 7, header & 0xfffffff, header >> 31
        tsc = struct.unpack_from("<Q", data, at + 4)[0] if has_tsc else 0
        at += 4 + 8 * has_tsc
        values = list(struct.unpack_from("<%dI" % words, data, at)) + [0] * (7 - words)
        at += 4 * words
        if event == 0x1f003:
            cpu = values[0]
        if event == 0x1f004:
            if values[2] < values[1]:
                break
            took = values[2] - values[1]
            irqs, cycles, most = irqs + 1, cycles + took, max(most, took)
            values[1:4] = irqs, cycles, most
        if event in (0x20100d, 0x20100e):
            values[0] &= 0xfffff
        before, reltsc = last.get(cpu, 0), 0
        if has_tsc:
            if tsc < before:
                print("TSC stepped backward cpu %d !  %d %d" % (cpu, tsc, before))
            reltsc = tsc - before if before else 0
            last[cpu] = tsc
        text = formats.get(event, formats.get(0))
        if text is not None:
            fields = {"cpu": cpu, "tsc": tsc, "event": event, "reltsc": reltsc}
            fields.update((str(i + 1), value) for i, value in enumerate(values))
            print(text % fields)


main()
