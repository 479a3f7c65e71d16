#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compresses a trace in frames that begin with a round, with a seek table: what docs/file-format.md says of
NAME.xentrace.zst, written from its text. zstd(1) makes the frames.

    pack.py [--cut BYTES] [--lie FIELD] [--skippable] TRACE FILE [FRAME_BYTES]

--cut: frames of so many bytes, wherever that is, as other programs make them. --lie: the table is wrong
(stored, plain, both, count, reserved). --skippable: skippable frames between the others.
"""

import argparse
import struct
import subprocess

CPU_CHANGE = 0x2001f003
SKIPPABLE = 0x184d2a50
TABLE = 0x184d2a5e
SEEKABLE = 0x8f92eab1


def rounds(data):
    """Where rounds begin, and the end."""
    at, last = 0, None
    while at < len(data):
        header, cpu, size = struct.unpack_from("<III", data, at)
        assert header == CPU_CHANGE
        if last is None or cpu <= last:
            yield at
        last = cpu
        at += 12 + size
    yield len(data)


def pieces(data, most, cut):
    if cut:
        return [data[i:i + cut] for i in range(0, len(data), cut)]
    result, begin, end = [], 0, 0
    for at in rounds(data):
        if at - begin > most and end > begin:
            result.append(data[begin:end])
            begin = end
        end = at
    return result + [data[begin:]]


def compress(data):
    return subprocess.run(["zstd", "-1qc", "--no-check"], input=data, stdout=subprocess.PIPE, check=True).stdout


def make_table(frames, lie):
    entries = [list(frame) for frame in frames]
    if lie in ("stored", "both"):
        entries[0][0] += 7
        entries[-1][0] -= 7
    if lie in ("plain", "both"):
        entries[0][1] += 64
        entries[1][1] -= 64
    table = b"".join(struct.pack("<II", *entry) for entry in entries)
    count = len(frames) + (1 if lie == "count" else 0)
    table += struct.pack("<IBI", count, 4 if lie == "reserved" else 0, SEEKABLE)
    return struct.pack("<II", TABLE, len(table)) + table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cut", type=int, default=0)
    parser.add_argument("--lie", default="")
    parser.add_argument("--skippable", action="store_true")
    parser.add_argument("trace")
    parser.add_argument("file")
    parser.add_argument("bytes", nargs="?", type=int, default=131072)
    args = parser.parse_args()

    with open(args.trace, "rb") as file:
        data = file.read()
    frames = []
    with open(args.file, "wb") as file:
        for piece in pieces(data, args.bytes, args.cut):
            stored = compress(piece)
            if args.skippable:
                stored = struct.pack("<II", SKIPPABLE, 5) + b"other" + stored
            file.write(stored)
            frames.append((len(stored), len(piece)))
        file.write(make_table(frames, args.lie))


if __name__ == "__main__":
    main()
