# SPDX-License-Identifier: GPL-2.0-or-later
"""What any program must pay that brings records from Xen's buffers to this disk; see bounds.c."""

import functools
import json
import os
import subprocess
import tempfile

from .sim import BUILD

BOUNDS = os.path.join(BUILD, "tests/bench/bounds")
BYTES = 4 * 10**9


def measure(*arguments):
    return json.loads(subprocess.run([BOUNDS, *map(str, arguments)], check=True,
                                     capture_output=True, text=True).stdout)


@functools.cache
def copy_per_gb():
    result = measure("copy", BYTES)
    return result["seconds"] / result["bytes"] * 1e9


@functools.cache
def walk_per_gb():
    """Of a copy and a walk over it: what it takes to account for every record."""
    result = measure("walk", BYTES)
    return result["seconds"] / result["bytes"] * 1e9


@functools.cache
def write():
    with tempfile.TemporaryDirectory(prefix="xentraced-bench.") as directory:
        return measure("write", os.path.join(directory, "file"), BYTES)


def write_cpu_per_gb():
    return write()["cpu_seconds"] / write()["bytes"] * 1e9


def write_bytes_per_second():
    return write()["bytes"] / write()["seconds"]


@functools.cache
def pauses():
    """How long the longest time was that a disk, and a CPU, did nothing for who wants it; ms."""
    return (f"the disk paused for up to {write()['longest_seconds'] * 1e3:.0f} ms, "
            f"a CPU for {measure('pauses', 10)['longest_seconds'] * 1e3:.1f} ms")


def idle_round_usec(cpus):
    """What a round over CPUS costs when nothing is in their buffers; see round.c."""
    return json.loads(subprocess.run([os.path.join(BUILD, "tests/bench/round"), str(cpus)],
                                     check=True, capture_output=True, text=True).stdout)["usec"]
