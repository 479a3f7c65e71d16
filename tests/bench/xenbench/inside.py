# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs inside `xensim run`: one program captures, and is watched. See sim.py for the outside.

The producer has one CPU for itself; the program, and what waits here, have the others.
"""

import json
import os
import signal
import subprocess
import time

from . import account, trace

XENTRACE = "/usr/lib/xen-4.17/bin/xentrace"
PRODUCERS_CPU = 0


class Gone(Exception):
    """A program did not do what it was started for."""


def wait_for(what, seconds=20.0):
    end = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > end:
            raise Gone(f"{what.__name__} did not come true within {seconds} s")
        time.sleep(0.002)
    return found


class Capture:
    """One program, from its start to its end; subclasses say how it is started and stopped."""

    def __init__(self, spec):
        self.spec = spec
        self.directory = spec["directory"]
        self.file = os.path.join(self.directory, "bench.xentrace")
        self.log = open(os.path.join(self.directory, "log"), "w", encoding="utf-8")
        self.process = None
        self.usage = None
        self.cpu_before = 0.0

    def spawn(self, *command):
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)

    @property
    def pid(self):
        return self.process.pid

    def end(self, number):
        """Sends the signal, waits, and keeps what it used; a process is waited for once."""
        self.process.send_signal(number)
        _, status, self.usage = os.wait4(self.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.process.returncode

    def xensim(self, *command):
        return subprocess.run([self.spec["xensim"], *command], check=True, capture_output=True,
                              text=True).stdout

    def state(self):
        return json.loads(self.xensim("stat"))

    def is_tracing(self):
        if self.process.poll() is not None:
            raise Gone("it has ended by itself: see its log")
        return self.state()["enabled"]


class Xentrace(Capture):
    def start(self):
        options = ["-e", self.spec["events"], "-S", str(self.spec["pages"])]
        if self.spec["ring_bytes"]:
            options += ["-M", str(self.spec["ring_bytes"])]
        self.spawn(XENTRACE, *options, self.file)
        wait_for(self.is_tracing)

    def stop(self):
        self.end(signal.SIGINT)

    def ledger(self):
        return {}

    def done(self):
        if not self.usage:
            self.stop()


class Xentraced(Capture):
    def __init__(self, spec):
        super().__init__(spec)
        self.build = spec["build"]
        self.socket = os.path.join(self.directory, "control")
        os.environ["XENTRACED_SOCKET"] = self.socket

    def ctl(self, *command):
        return subprocess.run([os.path.join(self.build, "xentracectl"), *command], check=True,
                              capture_output=True, text=True).stdout

    def document(self, *command):
        return json.loads(self.ctl("--json", *command))

    def is_ready(self):
        with open(self.log.name, encoding="utf-8") as f:
            return "Ready at" in f.read()

    def serve(self, recorder=None):
        recorder = self.spec["recorder"] if recorder is None else recorder
        config = os.path.join(self.directory, "xentraced.conf")
        with open(config, "w", encoding="ascii") as f:
            f.write(f"[daemon]\n{self.spec['daemon']}\n[flight-recorder]\n{recorder}\n"
                    f"[capture]\nbuffer-pages={self.spec['pages']}\n")
        self.spawn(os.path.join(self.build, "xentraced"), "--config", config, "--socket",
                   self.socket, "--state-dir", os.path.join(self.directory, "state"))
        wait_for(self.is_ready)
        self.cpu_before = account.cpu_seconds(self.pid)

    def start(self):
        if not self.process:
            self.serve()
        options = ["-e", self.spec["events"], "-S", str(self.spec["pages"])]
        if self.spec["ring_bytes"]:
            options += ["-M", str(self.spec["ring_bytes"])]
        self.ctl("start", *options, "-o", self.file, "bench")

    def stop(self):
        self.ctl("stop", "bench")

    def ledger(self):
        ledger = self.document("status", "bench")["ledger"]
        return {key: ledger[key] for key in ("produced", "delivered", "lost", "dropped", "evicted")}

    def done(self):
        self.end(signal.SIGTERM)


PROGRAMS = {"xentrace": Xentrace, "xentraced": Xentraced}


def pin(capture):
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(capture.state()["producer_pid"], {PRODUCERS_CPU})
    os.sched_setaffinity(0, cpus - {PRODUCERS_CPU})


def freeze(directory, seconds):
    """The file system under DIRECTORY takes nothing for so long."""
    subprocess.run(["fsfreeze", "--freeze", directory], check=True)
    try:
        time.sleep(seconds)
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", directory], check=True)


def pass_time(capture, seconds):
    """Until SECONDS are over; returns the most that the page cache and the program's memory had."""
    cache = resident = 0
    end = time.monotonic() + seconds
    if capture.spec["freeze_seconds"]:
        time.sleep(1)
        freeze(capture.spec["mount"], capture.spec["freeze_seconds"])
    while (rest := end - time.monotonic()) > 0:
        time.sleep(min(rest, 0.25))
        cache = max(cache, account.page_cache_bytes())
        resident = max(resident, account.resident_bytes(capture.pid))
    return cache, resident


def rest(capture):
    """What is resident when nothing has come for so long."""
    if not capture.spec["rest_seconds"]:
        return 0
    capture.xensim("pause")
    time.sleep(capture.spec["rest_seconds"])
    return account.resident_bytes(capture.pid)


def measure_alone(capture):
    """The recorder, without a capture: what a host pays all the time."""
    capture.serve()
    before = account.cpu_seconds(capture.pid), account.wakeups(capture.pid)
    time.sleep(capture.spec["seconds"])
    after = account.cpu_seconds(capture.pid), account.wakeups(capture.pid)
    capture.done()
    return {"cpu_share": (after[0] - before[0]) / capture.spec["seconds"],
            "wakeups_per_second": (after[1] - before[1]) / capture.spec["seconds"]}


def measure_capture(capture):
    """One capture, with what it cost."""
    seconds = capture.spec["seconds"]
    kernel = account.kernel_threads()
    cache = account.page_cache_bytes()
    capture.start()
    tracer = trace.Trace(capture.directory)
    if capture.spec["trace"]:
        tracer.begin()
    wakeups = account.wakeups(capture.pid)
    cache_peak, resident = pass_time(capture, seconds)
    wakeups = account.wakeups(capture.pid) - wakeups
    waited = tracer.end(capture.pid)
    begun = time.monotonic()
    capture.stop()
    stopped = time.monotonic()
    ledger = capture.ledger()
    rested = rest(capture)
    capture.done()
    with open(capture.file, "rb") as f:
        os.fsync(f.fileno())
    usage = capture.usage
    return {
        "ledger": ledger,
        "file_bytes": os.path.getsize(capture.file),
        "cpu_seconds": usage.ru_utime + usage.ru_stime - capture.cpu_before,
        "kernel_seconds": account.kernel_seconds_since(kernel),
        "wakeups_per_second": wakeups / seconds,
        "resident_bytes": resident,
        "rested_bytes": rested,
        "waited_msec": waited,
        "cache_bytes": max(cache_peak - cache, 0),
        "stop_seconds": stopped - begun,
    }


def first_tsc(path):
    """Of the first window's first record that has one; see <xen/trace.h>."""
    with open(path, "rb") as f:
        data = f.read(1 << 16)
    offset = 12  # behind the window's header
    while True:
        header = int.from_bytes(data[offset:offset + 4], "little")
        if header >> 31:
            return int.from_bytes(data[offset + 4:offset + 12], "little")
        offset += 4 + 4 * (header >> 28 & 7)


def measure_start(capture):
    """From the command to the first record, for a daemon that runs."""
    if capture.spec["program"] == "xentraced":
        capture.serve()
    state = capture.state()
    capture.start()
    time.sleep(0.5)
    capture.stop()
    capture.done()
    return {"start_seconds": (first_tsc(capture.file) - state["tsc"]) / state["cpu_khz"] / 1e3}


def measure_idle(capture):
    """Once it has noticed that nothing happens."""
    if capture.spec["program"] == "xentraced":
        capture.serve()
    if capture.spec["captures"]:
        capture.start()
    time.sleep(capture.spec["settle_seconds"])
    before = account.wakeups(capture.pid)
    time.sleep(capture.spec["seconds"])
    wakeups = account.wakeups(capture.pid) - before
    capture.done()
    return {"wakeups_per_second": wakeups / capture.spec["seconds"]}


def measure_snapshots(capture):
    """Of a ring that is full, while recording goes on."""
    ring_bytes = capture.spec["ring_bytes"]
    capture.serve(f"events=all\nmemory={ring_bytes}")

    def is_full():
        return capture.document("status", "flight-recorder")["ledger"]["evicted"] > 0

    wait_for(is_full, 60)
    lost = capture.document("status", "flight-recorder")["ledger"]["lost"]
    taken = []
    for i in range(capture.spec["snapshots"]):
        document = capture.document("snapshot", f"number-{i}")
        os.unlink(document["output"]["path"])
        taken.append({key: document["snapshot"][key] for key in ("pin_usec", "write_usec")} |
                     {"bytes": document["output"]["bytes"]})
        time.sleep(0.2)
    lost = capture.document("status", "flight-recorder")["ledger"]["lost"] - lost
    capture.done()
    return {"snapshots": taken, "lost": lost}


MEASURES = {"capture": measure_capture, "alone": measure_alone, "idle": measure_idle, "start": measure_start,
            "snapshots": measure_snapshots}


def run(path):
    """Does what the specification at PATH says and writes the result beside it."""
    with open(path, encoding="utf-8") as f:
        spec = json.load(f)
    capture = PROGRAMS[spec["program"]](spec)
    pin(capture)
    try:
        result = MEASURES[spec["measure"]](capture)
    finally:
        if capture.process and capture.process.poll() is None and not capture.usage:
            capture.process.kill()
    with open(path + ".result", "w", encoding="utf-8") as f:
        json.dump(result, f)
