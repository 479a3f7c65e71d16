# SPDX-License-Identifier: GPL-2.0-or-later
"""Damaged traces, made from the samples: bytes flipped, cut, windows doubled, swapped or left out, numbers
made senseless. The same for the same seed."""

import os
import random
import struct
import subprocess

HERE = os.path.dirname(os.path.realpath(__file__))
LIMIT_BYTES = 600000


def windows_of(data):
    at = 0
    while at + 12 <= len(data):
        size, = struct.unpack_from("<I", data, at + 8)
        yield data[at:at + 12 + size]
        at += 12 + size


def read_samples():
    """By name: a list of windows, of LIMIT_BYTES in all."""
    folder = os.path.join(HERE, "..", "samples")
    samples = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".zst"):
            data = subprocess.run(["zstd", "-dqc", os.path.join(folder, name)], check=True,
                                  capture_output=True).stdout
            windows, size = [], 0
            for window in windows_of(data):
                size += len(window)
                if size > LIMIT_BYTES:
                    break
                windows.append(window)
            samples[name.split(".")[0]] = windows
    return samples


def flip(rng, data, windows):
    data = bytearray(data)
    for _ in range(rng.choice((1, 10, 1000))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def cut(rng, data, windows):
    return data[:rng.randrange(len(data))]


def behead(rng, data, windows):
    return data[rng.randrange(len(data)) & ~3:]


def double(rng, data, windows):
    i = rng.randrange(len(windows))
    return b"".join(windows[:i] + [windows[i]] * rng.choice((2, 50)) + windows[i:])


def swap(rng, data, windows):
    windows = list(windows)
    for _ in range(rng.choice((1, 20))):
        i, j = rng.randrange(len(windows)), rng.randrange(len(windows))
        windows[i], windows[j] = windows[j], windows[i]
    return b"".join(windows)


def leave_out(rng, data, windows):
    return b"".join(w for w in windows if rng.random() < 0.5)


def senseless(rng, data, windows):
    """Words with values that somebody may believe: sizes, CPUs, TSCs, counts."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 30, 500))):
        at = rng.randrange(len(data) // 4) * 4
        struct.pack_into("<I", data, at, rng.choice((
            0, 1, 0xffffffff, 0x7fffffff, 0x2001f003, 0xc001f001, 0x0001f002, 0x80021001,
            0x90021101, 16383, 16384, rng.randrange(1 << 32))))
    return data


def zeroes(rng, data, windows):
    return data[:rng.randrange(len(data))] + bytes(rng.randrange(1 << 16))


def holes(rng, data, windows):
    """Pages that never reached the disk, and bytes that are not there at all."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 5))):
        at = rng.randrange(len(data)) & ~4095
        data[at:at + 4096] = bytes(min(4096, len(data) - at))
    if rng.random() < 0.5:
        at = rng.randrange(len(data))
        del data[at:at + rng.randrange(1, 100000)]
    return data


def random_records(rng, data, windows):
    out = b""
    for _ in range(200):
        body = bytes(rng.randrange(256) for _ in range(4 * rng.randrange(50)))
        out += struct.pack("<III", 0x2001f003, rng.choice((0, 1, 77, 16383)), len(body)) + body
    return out


MUTATIONS = [flip, cut, behead, double, swap, leave_out, senseless, zeroes, holes, random_records]


def mutate(samples, seed, i):
    """File I of those from SEED on: the names of the sample and the mutation, and the bytes."""
    rng = random.Random(seed + i)
    sample = rng.choice(list(samples))
    mutation = MUTATIONS[i % len(MUTATIONS)]
    return sample, mutation.__name__, bytes(
        mutation(rng, b"".join(samples[sample]), samples[sample]))
