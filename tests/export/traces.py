# SPDX-License-Identifier: GPL-2.0-or-later
"""For tests of `xentracectl export`: samples with a sidecar, what the client and the library say of a trace, and
lines that tests/all counts.

To be run in a build directory. EXPORT_SAMPLES names some of the samples; by default all are used, as far as their
last 1.5 MB."""

import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
SAMPLES = os.path.join(HERE, "../samples")
CTL = os.path.join(os.getcwd(), "xentracectl")
MOST_BYTES = 1500000
KHZ = 2300000
BEGIN_NSEC = 1764201600 * 10**9 + 123456789  # a second before midnight is in the trace
HOST, BOOT_ID = "dom0 \"one\"", "0123456789abcdef0123456789abcdef"
IDLE, NOBODY = 32767, 0xffffffff

sys.path.insert(0, os.path.join(HERE, "../../python"))
sys.dont_write_bytecode = True

failed = 0


def need_a_build():
    if not os.access(CTL, os.X_OK) or not os.path.exists(".libs/libxentrace.so.1"):
        print("not in a build directory")
        sys.exit(77)
    if ".libs" not in os.environ.get("LD_LIBRARY_PATH", ""):  # the loader has read it by now
        os.environ["LD_LIBRARY_PATH"] = os.path.join(os.getcwd(), ".libs")
        os.execv(sys.executable, [sys.executable, *sys.argv])


def check(name, good, why=""):
    global failed
    print("%s - %s" % ("ok" if good else "not ok", name))
    if not good:
        failed += 1
        print("#   %s" % str(why)[-1000:].replace("\n", "\n#   "))
    sys.stdout.flush()


def same(name, expected, found):
    """Two lists; the first difference is shown."""
    why = "%d, expected %d" % (len(found), len(expected))
    for i, (a, b) in enumerate(zip(expected, found)):
        if a != b:
            why += "; number %d is %s, expected %s" % (i, b, a)
            break
    check("%s (%d)" % (name, len(expected)), expected == found and len(expected) > 0, why)


def finish():
    print("# %d failed" % failed)
    sys.exit(failed > 0)


# --- The client. ---

def ctl(*arguments, stdin=None, status=0):
    """Its standard output; of one that fails as expected, its standard error."""
    result = subprocess.run([CTL, *arguments], stdin=stdin, capture_output=True, check=False)
    text = result.stderr.decode(errors="replace")
    assert result.returncode == status, "%s: status %d: %s" % (" ".join(arguments), result.returncode, text)
    return result.stdout if status == 0 else text


def lines(*arguments):
    return [json.loads(line) for line in ctl("--json", *arguments).splitlines()]


def measures(path, *options):
    return json.loads(ctl("--json", "report", *options, path))["measures"]


# --- Traces. ---

def name_of(sample):
    return os.path.basename(sample).split(".")[0]


def samples():
    wanted = os.environ.get("EXPORT_SAMPLES", "").split()
    found = sorted(glob.glob(os.path.join(SAMPLES, "*.zst")))
    return [sample for sample in found if not wanted or name_of(sample) in wanted]


def unpack(sample, directory, most=MOST_BYTES):
    """The path of the trace, which has no sidecar."""
    path = os.path.join(directory, name_of(sample) + ".xentrace")
    subprocess.run([os.path.join(SAMPLES, "unpack"), sample, path, str(most)], check=True)
    return path


def random_trace(directory, seed=7):
    path = os.path.join(directory, "random-%d.xentrace" % seed)
    with open(path, "wb") as file:
        subprocess.run([os.path.join(HERE, "../trace/random-trace.py"), str(seed), "4", "20000", "details"],
                       stdout=file, check=True)
    return path


def add_sidecar(path):
    """Domain 0 and those of the trace have names, but for one of them; one of the names is a hard one."""
    first = json.loads(ctl("--json", "report", "--tsc-khz", str(KHZ), path))["measures"]["span"]["first_tsc"]
    names = {0: "Domain-0", 1: 'web,"one"', 3: "db", 5: "mail"}
    document = {
        "format": "xentraced-session", "version": 1,
        "host": {"tsc_khz": KHZ, "hostname": HOST, "boot_id": BOOT_ID},
        "clock": [{"tsc": first, "realtime_ns": BEGIN_NSEC}],
        "domains": [{"domid": domid, "name": name, "uuid": "", "first_seen_ns": BEGIN_NSEC - 10**12,
                     "last_seen_ns": BEGIN_NSEC + 10**12} for domid, name in names.items()],
    }
    with open(path[:-len(".xentrace")] + ".json", "w", encoding="utf-8") as file:
        json.dump(document, file)
    return path


# --- What the library says. ---

def intervals(path, *options):
    """All intervals, as export has them: dictionaries with its names, sorted. With options, which the library does
    not have: those that `report --view intervals` has, without exits and losses."""
    found = of_report(path, options) if options else of_library(path)
    return sorted(found, key=order)


def order(interval):
    return [str(interval[key]) for key in ("from_tsc", "to_tsc", "kind", "domain", "vcpu", "cpu", "value")]


def of_library(path):
    import xentrace
    found = []
    with xentrace.open(path) as trace:
        for of in trace.intervals():
            found.append(interval(of.from_tsc, of.to_tsc, of.runstate, vcpu=of.vcpu, cpu=of.cpu,
                                  begin_cpu=of.begin_cpu, wait=of.wait, next=of.next_runstate, lost=of.ends_in_loss))
        trace.seek(0)
        for of in trace.exits():
            whole = of.to_tsc is not None
            found.append(interval(of.from_tsc, of.to_tsc if whole else of.from_tsc, "exit", vcpu=of.vcpu, cpu=of.cpu,
                                  begin_cpu=of.cpu, value=of.reason, name=of.name, cycles=of.cycles or 0,
                                  complete=whole))
        trace.seek(0)
        for of in trace.cpu_intervals():
            found.append(interval(of.from_tsc, of.to_tsc, of.kind, cpu=of.cpu, begin_cpu=of.cpu, value=of.value,
                                  complete=of.is_complete, lost=of.ends_in_loss))
        for of in trace.measures()["lost"]["list"]:
            found.append(interval(of["from"], of["to"], "lost", cpu=of["cpu"], begin_cpu=of["cpu"],
                                  value=of["count"]))
    return found


def of_report(path, options):
    found = []
    for line in lines("report", "--view", "intervals", *options, path):
        vcpu = tuple(map(int, re.fullmatch(r"d(\d+)v(\d+)", line["vcpu"]).groups())) if "vcpu" in line else None
        kind = line.get("state") or next(key for key in ("c_state", "mhz", "irq") if key in line)
        found.append(interval(line["from_tsc"], line["to_tsc"], kind, vcpu=vcpu, cpu=line.get("cpu"),
                              wait=line.get("wait"), value=line.get(kind), complete="incomplete" not in line,
                              lost=line.get("lost", False)))
    return found


def interval(from_tsc, to_tsc, kind, vcpu=None, cpu=None, begin_cpu=None, wait=None, next=None, value=None, name="",
             cycles=None, complete=True, lost=False):
    return {"from_tsc": from_tsc, "to_tsc": to_tsc, "kind": kind,
            "domain": None if vcpu is None else vcpu[0], "vcpu": None if vcpu is None else vcpu[1],
            "cpu": cpu, "begin_cpu": begin_cpu, "wait": wait or "", "next": next or "", "value": value, "name": name,
            "cycles": to_tsc - from_tsc if cycles is None else cycles, "complete": complete, "lost": lost}


class Clock:
    """Times and names of a trace with a sidecar, or without one."""

    def __init__(self, path):
        import xentrace
        self.trace = xentrace.open(path)

    def realtime(self, tsc):
        return self.trace.realtime_nsec(tsc)

    def nsec(self, tsc):
        return self.trace.ticks_to_nsec(max(0, tsc - self.trace.first_tsc))

    def domain(self, domid, tsc):
        return "idle" if domid == IDLE else self.trace.domain_name(domid, tsc) or "d%d" % domid
