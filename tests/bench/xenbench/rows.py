# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of the table: what is measured, and what is to be reached.

A row is a function of a Bench that returns its lines. A line has figures of the two programs, each
a list with one number for each run, in turn; what is to be reached in words; and whether it is.
"""

import statistics

from . import bounds, disk, sim

MB = 1000000
MIB = 1 << 20
RATES = (100, 200, 500, 800)
PROGRAMS = ("xentrace", "xentraced")
OFF = "enabled=no"  # the recorder's section; the rows that do not say have it as shipped


class Bench:
    """How long and how often; and the runs that several rows use."""

    def __init__(self, seconds, repeat, say):
        self.seconds = seconds
        self.repeat = repeat
        self.say = say
        self.runs = {}

    def run(self, program, **changes):
        self.say(f"{program}: " + ", ".join(f"{key} {value}" for key, value in changes.items()))
        result = sim.run(**({"seconds": self.seconds} | changes | {"program": program}))
        if result["attempts"] > 1:
            self.say(f"CPUs were stolen: that was run {result['attempts']} times")
        return result

    def pair(self, repeat=0, **changes):
        """Both programs on the same producer, in turn; a list of results of each.

        REPEAT: so many of xentraced's, which has to be sure, and as many as usual of xentrace's.
        """
        key = repr(sorted(changes.items()))
        runs = self.runs.setdefault(key, {program: [] for program in PROGRAMS})
        for i in range(max(repeat, self.repeat)):
            for program in PROGRAMS:
                wanted = max(repeat, self.repeat) if program == "xentraced" else self.repeat
                if len(runs[program]) <= i < wanted:
                    runs[program].append(self.run(program, **changes))
        return runs

    def variants(self, *variants, **changes):
        """xentraced as each of VARIANTS, dictionaries of changes, in turn; a list for each."""
        runs = [[] for _ in variants]
        for _ in range(self.repeat):
            for results, variant in zip(runs, variants):
                results.append(self.run("xentraced", **(changes | variant)))
        return runs


def line(case, unit, figures, target, reached, bound="", bound_value=0):
    """FIGURES of one program or of both; REACHED is asked with the median of each.

    BOUND says what is physically possible; BOUND_VALUE, if there is one, is it in the same unit.
    """
    medians = [statistics.median(values) for values in figures.values()]
    return {"case": case, "unit": unit, "target": target, "reached": bool(reached(*medians)),
            "bound": bound, "bound_value": bound_value} | figures


def of_best(case, unit, pair, value, *rest):
    """As of_pair, of the best run of each: for what other guests of a machine can only make worse."""
    return line(case, unit, {p: [min(value(r) for r in pair[p])] for p in PROGRAMS}, *rest)


def of_pair(case, unit, pair, value, *rest):
    """VALUE takes the figure out of a run's result."""
    return line(case, unit, {p: [value(r) for r in pair[p]] for p in PROGRAMS}, *rest)


# --- Loss. ---

def made(pair):
    """What the producer really made: it may not get to the rate that is asked for."""
    rates = [r["rate"] for p in PROGRAMS for r in pair[p]]
    return f"made: {statistics.median(rates) / MB:.0f} MB/s"


def lost_percent(result):
    return 100 * result["lost_share"]


NOTHING = ("0", lambda xentrace, xentraced: xentraced == 0)
LITTLE = ("0.2", lambda xentrace, xentraced: xentraced <= 0.2)
SURE = 7  # runs, where the target is nothing or next to it and the machine is not quiet


def loss(bench, pages, targets):
    lines = []
    for rate, target in zip(RATES, targets):
        pair = bench.pair(rate=rate * MB, pages=pages, repeat=SURE if rate >= 500 else 0)
        bound = (f"{made(pair)}, the disk writes {bounds.write_bytes_per_second() / MB:.0f}; "
                 + bounds.pauses())
        lines.append(of_pair(f"{rate} MB/s", "% lost", pair, lost_percent, *target, bound))
    return lines


def loss_small(bench):
    return loss(bench, 32, (NOTHING, NOTHING, LITTLE, LITTLE))


def loss_large(bench):
    return loss(bench, 256, (NOTHING,) * 4)


def loss_without(bench):
    """Without the recorder, as the rows above were measured until now."""
    lines = []
    for rate, pages in ((500, 32), (500, 256), (800, 256)):
        runs = [bench.run("xentraced", rate=rate * MB, pages=pages, recorder=OFF)
                for _ in range(bench.repeat)]
        lines.append(line(f"{rate} MB/s, {pages} pages", "% lost",
                          {"xentraced": list(map(lost_percent, runs))}, "", lambda xentraced: True))
    return lines


LOSSLESS_RATES = (100, 200, 300, 400, 500, 600, 800, 1000, 1200, 1400, 1600, 1800, 2000)


def why_lost(bench, rate):
    """Traced, in a run at the first rate that lost: whose the loss was, and what held us up."""
    result = bench.run("xentraced", rate=rate * MB, pages=256, trace=True)
    half_msec = 256 * 4096 * 4 / 2 / max(result["rate"], 1) * 1e3
    waited = result["waited_msec"]
    return (f"traced at {result['rate'] / MB:.0f} MB/s: {lost_percent(result):.3g} % lost, "
            f"{result['ledger']['dropped']} records of it for want of a chunk; half a buffer lasts "
            f"{half_msec:.1f} ms, the collector waited for a CPU for up to "
            + (f"{waited:.1f} ms" if waited is not None else "(no perf)"))


def highest_lossless(bench, program, notes):
    """The last rate, as it was really made, before the first at which two runs lose; MB/s."""
    best = 0.0
    for rate in LOSSLESS_RATES:
        for _ in range(2):
            result = bench.run(program, rate=rate * MB, pages=256)
            if result["lost_share"] == 0:
                break
        else:
            if program == "xentraced":
                notes.append(why_lost(bench, rate))
            return best
        best = result["rate"] / MB
        if best < 0.95 * rate:
            break  # the producer's own limit
    return best


def lossless(bench):
    disk_rate = bounds.write_bytes_per_second() / MB
    producer_rate = bench.run("xentraced", rate="max", pages=256, seconds=4)["rate"] / MB
    limit = 0.9 * min(disk_rate, producer_rate)
    notes = []
    figures = {program: [highest_lossless(bench, program, notes)] for program in PROGRAMS}
    return [line("256 pages", "MB/s", figures, "90 % of what the disk writes, or the producer makes",
                 lambda xentrace, xentraced: xentraced >= limit,
                 "; ".join([f"bare O_DIRECT write: {disk_rate:.0f}, "
                            f"the producer: {producer_rate:.0f}", *notes]),
                 min(disk_rate, producer_rate))]


# --- CPU. ---

def cpu_per_gb(result):
    return (result["cpu_seconds"] + result["kernel_seconds"]) / result["gigabytes"]


def copy_and_walk():
    return f"copy {bounds.copy_per_gb():.3f}, with a walk {bounds.walk_per_gb():.3f}"


BELOW = ("below xentrace's, aim at 1/2", lambda xentrace, xentraced: xentraced < xentrace)
HALF = ("1/2 of xentrace's", lambda xentrace, xentraced: xentraced <= xentrace / 2)
QUARTER = ("1/4 of xentrace's, aim at 1/5", lambda xentrace, xentraced: xentraced <= xentrace / 4)


def cpu_file(bench):
    walk, write = bounds.walk_per_gb(), bounds.write_cpu_per_gb()
    return [of_pair(f"{rate} MB/s, {pages} pages", "CPU s/GB",
                    bench.pair(rate=rate * MB, pages=pages), cpu_per_gb, *target,
                    f"{copy_and_walk()} + write {write:.3f}", walk + write)
            for rate, target in ((100, BELOW), (500, QUARTER)) for pages in (32, 256)]


def beside_recorder(bench):
    """A file beside the recorder, over the same file alone."""
    lines = []
    for rate in (300, 500):
        for name, recorder in (("as shipped", ""), ("of all events", "events=all")):
            alone, beside = bench.variants({"recorder": OFF}, {"recorder": recorder},
                                           rate=rate * MB, pages=256)
            base = statistics.median(map(cpu_per_gb, alone))
            lines.append(line(f"{rate} MB/s, the recorder {name}", "of the CPU per GB without",
                              {"xentraced": [cpu_per_gb(r) / base for r in beside]},
                              "1.3, aim at 1.15" if not recorder else "",
                              lambda xentraced, recorder=recorder: xentraced <= 1.3 or recorder,
                              f"without: {base:.3f} s/GB; {copy_and_walk()}"))
    return lines


def recorder_alone(bench):
    """What a host pays all the time."""
    lines = []
    for rate in (1, 5, 20, 100):
        runs = [bench.run("xentraced", rate=rate * MB, pages=256, measure="alone",
                          recorder="events=all") for _ in range(bench.repeat)]
        wakeups = statistics.median(r["wakeups_per_second"] for r in runs)
        lines.append(line(f"{rate} MB/s recorded, no capture", "% of a CPU",
                          {"xentraced": [100 * r["cpu_share"] for r in runs]}, "",
                          lambda xentraced: True, f"{wakeups:.0f} wake-ups/s"))
    return lines


def cpu_slow(bench):
    """Where wake-ups are what costs."""
    lines = []
    for rate in (1, 5, 20):
        pair = bench.pair(rate=rate * MB, pages=256)
        wakeups = statistics.median(r["wakeups_per_second"] for r in pair["xentraced"])
        lines.append(of_pair(f"{rate} MB/s, 256 pages", "CPU s/GB", pair, cpu_per_gb, *BELOW,
                             f"{wakeups:.0f} wake-ups/s"))
    return lines


def cpu_ring(bench):
    return [of_pair(f"-M 256M, 500 MB/s, {pages} pages", "CPU s/GB",
                    bench.pair(rate=500 * MB, pages=pages, ring_bytes=256 * MIB, recorder=OFF),
                    cpu_per_gb, *HALF, copy_and_walk(), bounds.walk_per_gb())
            for pages in (32, 256)]


def event_filter(bench):
    """The mask that Xen gets is the same in both: one class's subclass too much of each."""
    kept = "sched-min,hvm-handler"
    without, with_filter = [], []
    for _ in range(bench.repeat):
        without.append(bench.run("xentraced", rate=500 * MB, pages=256, events="0x000a3000"))
        with_filter.append(bench.run("xentraced", rate=500 * MB, pages=256, events=kept))
    limit = 1.3 * statistics.median(map(cpu_per_gb, without))
    return [line(f"-e {kept}", "CPU s/GB that Xen wrote",
                 {"xentraced": [cpu_per_gb(r) for r in with_filter]}, "1.3 of that without",
                 lambda xentraced: xentraced <= limit,
                 f"without: {limit / 1.3:.3f}; {copy_and_walk()}", bounds.walk_per_gb())]


# --- Memory. ---

def memory(bench):
    pair = {p: [bench.run(p, rate=500 * MB, pages=256, seconds=20)] for p in PROGRAMS}
    taken = pair["xentraced"][0]["gigabytes"]
    return [of_pair(f"{taken:.1f} GB captured", "MB", pair,
                    lambda r: (r["resident_bytes"] + r["cache_bytes"]) / MB,
                    "pool-max (512 MiB) + recorder (64 MiB) + 8 MB",
                    lambda xentrace, xentraced: xentraced <= 576 * MIB / MB + 8)]


def memory_after(bench):
    """The pool has grown for a disk that paused, and goes back."""
    with disk.small_file_system(4096 * MIB) as mount:
        result = bench.run("xentraced", rate=300 * MB, pages=256, seconds=4, freeze_seconds=1,
                           mount=mount, rest_seconds=120)
    return [line("at its peak", "MB", {"xentraced": [result["resident_bytes"] / MB]}, "",
                 lambda xentraced: True),
            line("two minutes later", "MB", {"xentraced": [result["rested_bytes"] / MB]},
                 "pool (64 MiB) + recorder (64 MiB) + 8 MB",
                 lambda xentraced: xentraced <= 128 * MIB / MB + 8)]


# --- Wake-ups. ---

def idle(bench):
    def lines():
        for case, changes, most in (("a file, nothing traced", {"recorder": OFF}, 1),
                                    ("as shipped: the recorder", {"captures": False}, 0.5)):
            figures = {p: [bench.run(p, measure="idle", seconds=20,
                                     **(changes if p == "xentraced" else {}))
                           ["wakeups_per_second"]] for p in PROGRAMS}
            yield line(case, "wake-ups/s", figures, f"{most}",
                       lambda xentrace, xentraced, most=most: xentraced <= most)

    return list(lines())


# --- What goes wrong, and what comes at once. ---

def stall(bench):
    lines = []
    for rate, seconds in ((300, 1), (40, 8)):
        with disk.small_file_system(4096 * MIB) as mount:
            pair = {p: [bench.run(p, rate=rate * MB, pages=256, seconds=seconds + 3,
                                  freeze_seconds=seconds, mount=mount)
                        for _ in range(bench.repeat)] for p in PROGRAMS}
        lines.append(of_pair(f"{rate} MB/s, for {seconds} s", "% lost", pair, lost_percent,
                             *NOTHING, "ext4 on a loop device, frozen"))
    return lines


def burst(bench):
    pair = bench.pair(rate="max", burst_usec=50000, cpus=8, pages=256)
    return [of_pair("50 ms every second, 8 CPUs x 256 pages", "% lost", pair, lost_percent,
                    *NOTHING, made(pair))]


# --- Snapshots. ---

def snapshots(bench):
    lines = []
    for ring_bytes in (64 * MIB, 1024 * MIB):
        result = bench.run("xentraced", rate=200 * MB, pages=256, measure="snapshots",
                           ring_bytes=ring_bytes, snapshots=5)
        taken = result["snapshots"]
        bare = statistics.median(s["bytes"] for s in taken) / bounds.write_bytes_per_second()
        case = f"{ring_bytes // MIB}M"
        lines += [
            line(f"{case}: pinned", "us", {"xentraced": [s["pin_usec"] for s in taken]}, "1000",
                 lambda xentraced: xentraced < 1000),
            line(f"{case}: written", "of the bare write's time",
                 {"xentraced": [s["write_usec"] / 1e6 / bare for s in taken]}, "1.3",
                 lambda xentraced: xentraced <= 1.3, f"bare O_DIRECT write: {bare * 1e3:.0f} ms",
                 1),
            line(f"{case}: lost meanwhile", "records", {"xentraced": [result["lost"]]}, "0",
                 lambda xentraced: xentraced == 0),
        ]
    return lines


# --- Many CPUs. ---

def many_cpus(bench):
    lines = []
    for cpus in (1, 16, 64, 256):
        lines.append(line(f"{cpus} CPUs: a round, nothing to take", "us",
                          {"xentraced": [bounds.idle_round_usec(cpus)]},
                          "20" if cpus == 256 else "", lambda xentraced: xentraced < 20))
    for cpus in (1, 16, 64, 256):
        pair = {p: [bench.run(p, rate=100 * MB, cpus=cpus)] for p in PROGRAMS}
        lines.append(of_pair(f"{cpus} CPUs, 100 MB/s", "CPU s/GB", pair, cpu_per_gb,
                             "grows with the bytes",
                             lambda xentrace, xentraced: xentraced < xentrace))
    return lines


# --- Start and stop. ---

def start_stop(bench):
    start = {p: [bench.run(p, rate=100 * MB, measure="start") for _ in range(bench.repeat)]
             for p in PROGRAMS}
    return [
        of_pair("from the command to the first record", "ms", start,
                lambda r: r["start_seconds"] * 1e3, "50",
                lambda xentrace, xentraced: xentraced < 50),
        of_pair("from the command to the finished file, 100 MB/s", "ms",
                bench.pair(rate=100 * MB, pages=32), lambda r: r["stop_seconds"] * 1e3,
                "100 + what is queued", lambda xentrace, xentraced: xentraced < 100),
    ]


# --- The short form. ---

def short(bench):
    """With margins for a machine that has other things to do: it tells a fault, not a figure.

    With 256 pages, buffers last for 10 ms at 200 MB/s, and for 2.5 ms at 800 MB/s, behind the wake-up. With 32 pages,
    each millisecond for which a host takes a CPU away is a loss, whatever the program.
    """
    slow, fast = (bench.pair(rate=rate * MB, pages=256) for rate in (200, 800))
    return [
        of_best("lost at 200 MB/s", "%", slow, lost_percent, "xentrace's and 0.1",
                lambda xentrace, xentraced: xentraced <= xentrace + 0.1),
        of_best("lost at 800 MB/s", "%", fast, lost_percent, "1/10 of xentrace's",
                lambda xentrace, xentraced: xentraced <= xentrace / 10, made(fast)),
        of_pair("CPU at 800 MB/s", "s/GB", fast, cpu_per_gb, "xentrace's",
                lambda xentrace, xentraced: xentraced <= xentrace),
    ]


ROWS = {
    "loss-32": ("Lost: 32 pages per CPU, 4 CPUs, into a file", loss_small),
    "loss-256": ("Lost: 256 pages per CPU, 4 CPUs, into a file", loss_large),
    "loss-without": ("Lost without the recorder, 4 CPUs, into a file", loss_without),
    "lossless": ("The highest rate without a loss", lossless),
    "cpu-file": ("CPU, into a file", cpu_file),
    "cpu-slow": ("CPU, into a file, at low rates", cpu_slow),
    "beside": ("CPU of a file beside the recorder, over that of a file alone", beside_recorder),
    "recorder": ("CPU of the recorder, all events", recorder_alone),
    "cpu-ring": ("CPU, into a ring", cpu_ring),
    "filter": ("CPU, with an event filter", event_filter),
    "memory": ("Memory: resident, and page cache", memory),
    "memory-after": ("Memory, after a disk paused", memory_after),
    "idle": ("Wake-ups when nothing happens", idle),
    "stall": ("The disk accepts nothing", stall),
    "burst": ("As fast as the producer can", burst),
    "snapshot": ("Snapshots while 200 MB/s are recorded", snapshots),
    "many-cpus": ("Many CPUs", many_cpus),
    "start-stop": ("Start and stop", start_stop),
}
