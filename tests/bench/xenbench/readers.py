# SPDX-License-Identifier: GPL-2.0-or-later
"""For programs that read traces: large files, and what reading them costs."""

import glob
import os
import shlex
import shutil
import struct
import subprocess
import sys
import time

SAMPLES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../samples")
LOST, CPU_CHANGE = 0x1f001, 0x2001f003
PAUSE = 1000000  # cycles


def times_of(data):
    """Of a trace: the offset of each TSC, the CPUs, the first TSC and the last one."""
    offsets, cpus, at, least, most = [], set(), 0, 1 << 64, 0
    while at + 12 <= len(data):
        _, cpu, size = struct.unpack_from("<III", data, at)
        cpus.add(cpu)
        at, end = at + 12, at + 12 + size
        while at < end:
            header, = struct.unpack_from("<I", data, at)
            body = at + 4
            if header >> 31:
                tsc, = struct.unpack_from("<Q", data, body)
                least, most = min(least, tsc), max(most, tsc)
                offsets.append(body)
                body += 8
            words = header >> 28 & 7
            if header & 0xfffffff == LOST and words == 4:
                offsets.append(body + 8)
            at = body + 4 * words
    return offsets, sorted(cpus), least, most


def loss(cpu, begin, end):
    """A window with a loss: the states of the last round are not those of the next one."""
    return struct.pack("<III", CPU_CHANGE, cpu, 28) + struct.pack(
        "<IQIIQ", 1 << 31 | 4 << 28 | LOST, end, 1, 32767 | cpu << 16, begin)


def make(sample, path, size):
    """The file at PATH: a sample, again and again, with its times moved on. Returns its bytes."""
    data = subprocess.run(["zstd", "-dqc", sample], stdout=subprocess.PIPE, check=True).stdout
    offsets, cpus, first, last = times_of(data)
    data = bytearray(data)
    now, step = first, last - first + 2 * PAUSE
    with open(path, "wb") as file:
        while file.tell() < size:
            if now > first:
                for cpu in cpus:
                    file.write(loss(cpu, now - PAUSE, now - 1))
            file.write(data)
            for at in offsets:
                tsc, = struct.unpack_from("<Q", data, at)
                struct.pack_into("<Q", data, at, tsc + step)
            now += step
    return os.path.getsize(path)


def seconds_of(command):
    """What a process computes, its time in user mode; and that with what the kernel does for it."""
    with open(os.devnull, "wb") as null:
        process = subprocess.Popen(command, stdout=null, stderr=null)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit("%s: exit status %d" % (" ".join(command), process.returncode))
    return usage.ru_utime, usage.ru_utime + usage.ru_stime


def in_turn(runs, *commands):
    """Of each of the commands, which are run in turn, the least of both times: others only add to them."""
    seconds = [[seconds_of(command) for command in commands] for _ in range(runs)]
    return [tuple(map(min, zip(*column))) for column in zip(*seconds)]


def anonymous_bytes(command, standard_input=None):
    """The most memory that a process has while it runs, without the pages of files."""
    with open(os.devnull, "wb") as null:
        process = subprocess.Popen(command, stdin=standard_input, stdout=null, stderr=null)
        most = 0
        while process.poll() is None:
            try:
                with open("/proc/%d/status" % process.pid) as file:
                    fields = dict(line.split(":", 1) for line in file)
            except OSError:
                break
            most = max(most, int(fields.get("RssAnon", "0 kB").split()[0]) * 1024)
            time.sleep(0.002)
    if process.wait() != 0:
        sys.exit("%s: exit status %d" % (" ".join(command), process.returncode))
    return most


def xenalyze(sample):
    """The command that reads SAMPLE: $XENALYZE, or Debian's; None: it cannot. Without one, ends with 77."""
    command = shlex.split(os.environ.get("XENALYZE", "xenalyze"))
    if not shutil.which(command[0]):
        print("there is no xenalyze")
        sys.exit(77)
    if name_of(sample) == "pvh-xen420":  # most of it are AMD exits of Xen 4.19 and later
        return None
    # AMD's exits before.
    return command + ["--cpu-hz", "2300M"] + (["--svm-mode"] if name_of(sample) == "pvh-steady" else [])


def samples(named):
    """The paths of those that were named, or of all."""
    return named or sorted(glob.glob(os.path.join(SAMPLES, "*.zst")))


def name_of(sample):
    return os.path.basename(sample).split(".")[0]
