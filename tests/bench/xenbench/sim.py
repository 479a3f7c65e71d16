# SPDX-License-Identifier: GPL-2.0-or-later
"""A simulation with one program that captures, seen from outside: specification in, figures out."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from . import machine

BUILD = os.environ.get("BUILD", os.getcwd())
XENSIM = os.path.join(BUILD, "tests/xensim/xensim")
ME = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "run")

SETTLE_SECONDS = 1.5
STOLEN_MAX = 0.005  # of a CPU's time
ATTEMPTS = 4

DEFAULTS = {
    "program": "xentraced",
    "cpus": 4,
    "pages": 32,
    "rate": 0,  # bytes a second over all CPUs
    "seconds": 10.0,
    "events": "all",
    "ring_bytes": 0,  # 0: into a file
    "recorder": "",  # lines of its section: "" is what is shipped
    "daemon": "",  # lines of that section
    "burst_usec": 0,  # of each second; 0: all of it
    "captures": True,  # of "idle": False: only the recorder
    "measure": "capture",  # see MEASURES in inside.py
    "settle_seconds": 8.0,
    "rest_seconds": 0,  # behind the capture, when nothing is produced any more
    "freeze_seconds": 0,
    "mount": None,  # the file system to write to, and to freeze
    "snapshots": 0,
    "trace": False,  # what held up the collector: trace.py
}


class Failed(Exception):
    """A run that has no figures."""


def prepare(directory, changes):
    spec = DEFAULTS | changes | {"directory": directory, "build": BUILD, "xensim": XENSIM}
    path = os.path.join(directory, "spec")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(spec, f)
    return spec, path


def simulate(spec, path):
    report = os.path.join(spec["directory"], "report")
    command = [XENSIM, "run", "--quiet", "--cpus", str(spec["cpus"]), "--rate", str(spec["rate"]),
               "--burst", str(spec["burst_usec"]), "--report", report, "--", sys.executable, ME,
               "--inside", path]
    log = os.path.join(spec["directory"], "output")
    with open(log, "w", encoding="utf-8") as f:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                                check=False).returncode
    if status:
        with open(log, encoding="utf-8") as f:
            raise Failed(f"{spec['program']} on xensim ends with {status}: {f.read()[-2000:]}")
    with open(path + ".result", encoding="utf-8") as f:
        result = json.load(f)
    with open(report, encoding="utf-8") as f:
        result["report"] = json.load(f)
    return result


def run(**changes):
    """One run; what Xen lost, how much came and how fast are the producer's own account.

    Where this machine is a guest and its CPUs were taken away, that is done again: it would tell
    of other guests.
    """
    for attempt in range(1, ATTEMPTS + 1):
        started, stolen = time.monotonic(), machine.stolen_seconds()
        result = run_once(**changes)
        if machine.stolen_seconds() - stolen <= STOLEN_MAX * (time.monotonic() - started):
            break
    return result | {"attempts": attempt}


def run_once(**changes):
    directory = tempfile.mkdtemp(prefix="xentraced-bench.", dir=changes.get("mount"))
    try:
        spec, path = prepare(directory, changes)
        result = simulate(spec, path)
    finally:
        shutil.rmtree(directory)
        settle()
    return result | figures(result)


def settle():
    """A disk that is told what was deleted, mount -o discard, does little else meanwhile."""
    os.sync()
    time.sleep(SETTLE_SECONDS)


def figures(result):
    """Lost is what Xen had no room for, and what the program took and did not keep."""
    total = result["report"]["total"]
    lost = total["lost"] + result.get("ledger", {}).get("dropped", 0)
    return {
        "lost_share": lost / total["attempted"] if total["attempted"] else 0.0,
        "gigabytes": total["inserted_bytes"] / 1e9,
        "rate": result["report"]["rate_achieved"],
    }
