# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run costs: CPU, wake-ups, memory.

CPU of a process is that of wait4(): the scheduler's own sum over all of its threads, those of
io_uring included, not ticks. CPU that the kernel spends elsewhere on its behalf is that of the
threads below, on the whole machine, from before the start until all is on the disk: nothing else
writes meanwhile. What interrupts and completions cost in somebody else's time is not told by Linux.
"""

import os
import re

KERNEL_THREADS = re.compile(r"kworker|kswapd|jbd2|loop|xfs|btrfs|flush|dm")


def cpu_seconds_of_thread(pid, tid):
    try:
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0]) / 1e9
    except (OSError, IndexError):
        return 0.0  # it has ended


def cpu_seconds(pid):
    """Of all threads that PID has now."""
    return sum(cpu_seconds_of_thread(pid, tid) for tid in threads(pid))


def threads(pid):
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def wakeups(pid):
    """Context switches that PID's threads made of their own accord: each is a sleep, and a wake-up."""
    count = 0
    for tid in threads(pid):
        try:
            with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as f:
                count += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", f.read(), re.M)[1])
        except OSError:
            pass
    return count


def kernel_threads():
    """Seconds by thread ID, of those that write back and complete."""
    seconds = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                name, rest = re.match(r"\d+ \((.*)\) (.*)", f.read()).groups()
        except OSError:
            continue
        if rest.split()[1] == "2" and KERNEL_THREADS.search(name):
            seconds[pid] = cpu_seconds_of_thread(pid, pid)
    return seconds


def kernel_seconds_since(before):
    """Of threads that have ended meanwhile nothing is known, of those that began all is."""
    return sum(seconds - before.get(pid, 0) for pid, seconds in kernel_threads().items())


def meminfo():
    """In bytes."""
    with open("/proc/meminfo", encoding="ascii") as f:
        return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in f}


def page_cache_bytes():
    """What is dirty included; without memory files, which are the stand-in's."""
    m = meminfo()
    return m["Cached"] - m["Shmem"]


def resident_bytes(pid):
    """With the recorder's memory file; without other shared memory: Xen's buffers are Xen's."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        status = f.read()
    return ring_bytes(pid) + 1024 * sum(
        int(re.search(rf"^{name}:\s*(\d+)", status, re.M)[1]) for name in ("RssAnon", "RssFile"))


def ring_bytes(pid):
    """Of the recorder's memory file, what is memory."""
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as f:
        mappings = f.read()
    return 1024 * sum(map(int, re.findall(r"memfd:xentraced-ring.*?^Rss:\s*(\d+)", mappings,
                                          re.M | re.S)))
