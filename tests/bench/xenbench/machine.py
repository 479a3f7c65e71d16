# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine in general terms."""

import datetime
import os
import platform
import re
import subprocess
import tempfile


def stolen_seconds():
    """Of a CPU, since boot: it had something to do, and the hypervisor below ran somebody else."""
    with open("/proc/stat", encoding="ascii") as f:
        stolen = int(f.readline().split()[8])
    return stolen / os.sysconf("SC_CLK_TCK") / os.cpu_count()


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return re.search(r"^model name\s*: (.*)", f.read(), re.M)[1]


def file_system():
    return subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", tempfile.gettempdir()],
                          check=True, capture_output=True, text=True).stdout.strip()


def describe(build):
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    version = subprocess.run([os.path.join(build, "xentraced"), "--version"], check=True,
                             capture_output=True, text=True).stdout.split("\n")[0]
    return {
        "date": f"{datetime.date.today()}",
        "CPUs": f"{os.cpu_count()}, {cpu_model()}",
        "memory": f"{round(memory / 2**30)} GiB",
        "kernel": "Linux " + ".".join(platform.release().split(".")[:2]),
        "file system": file_system(),
        "xentraced": version,
    }
