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


@functools.cache
def copy():
    return json.loads(subprocess.run([BOUNDS, "copy", str(BYTES)], check=True, capture_output=True,
                                     text=True).stdout)


@functools.cache
def write():
    with tempfile.TemporaryDirectory(prefix="xentraced-bench.") as directory:
        return json.loads(subprocess.run(
            [BOUNDS, "write", os.path.join(directory, "file"), str(BYTES)], check=True,
            capture_output=True, text=True).stdout)


def copy_per_gb():
    return copy()["seconds"] / copy()["bytes"] * 1e9


def write_cpu_per_gb():
    return write()["cpu_seconds"] / write()["bytes"] * 1e9


def write_bytes_per_second():
    return write()["bytes"] / write()["seconds"]


def idle_round_usec(cpus):
    """What a round over CPUS costs when nothing is in their buffers; see round.c."""
    return json.loads(subprocess.run([os.path.join(BUILD, "tests/bench/round"), str(cpus)],
                                     check=True, capture_output=True, text=True).stdout)["usec"]
