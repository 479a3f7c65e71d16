# SPDX-License-Identifier: GPL-2.0-or-later
"""What held up the collector in a run that loses: perf's record of the scheduler."""

import contextlib
import os
import re
import shutil
import signal
import subprocess


def collector(pid):
    """Its thread's ID."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as f:
            if f.read() == "collector\n":
                return tid
    return pid


class Trace:
    """Between begin() and end(), all CPUs; nothing if perf is not there or may not."""

    def __init__(self, directory):
        self.file = os.path.join(directory, "sched")
        self.process = None

    def begin(self):
        if not shutil.which("perf"):
            return
        self.process = subprocess.Popen(["perf", "sched", "record", "-a", "-o", self.file],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self, pid):
        """The longest time that PID's collector was runnable and did not run, ms; or None."""
        if not self.process:
            return None
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        with contextlib.suppress(subprocess.CalledProcessError):
            text = subprocess.run(["perf", "sched", "latency", "-p", "-i", self.file], check=True,
                                  capture_output=True, text=True).stdout
            waits = re.findall(rf":{collector(pid)} .*?max:\s*([\d.]+) ms", text)
            return max(map(float, waits), default=None)
        return None
