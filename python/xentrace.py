# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads Xen's trace files, through libxentrace (xentrace(3)).

    import xentrace

    with xentrace.open("web.xentrace") as trace:
        for record in trace:
            print(record.nsec, record.cpu, record.name, record.fields)

Times are ticks of the TSC, over all CPUs in order. Errors are OSError, as those of open(); a file that has become
shorter while it is read is one, too. A trace may be used by one thread at a time, else there is a ValueError, and by
one loop: records and intervals are read once, until seek().
"""

import collections
import ctypes
import functools
import json
import os
import threading

__all__ = ["open", "open_fd", "open_memory", "version", "Trace", "Record", "VCpu", "Domain", "Interval", "Exit",
           "CpuInterval"]

# What xentrace.h has, version 1.
_u32, _u64, _int, _text = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p
_NO_CPU = 0xFFFFFFFF
_SIGNED, _VCPU = 1, 4
_RUNSTATES = ("running", "runnable", "blocked", "offline", None)
_WAITS = (None, "wake", "preempt", "other")
_CPU_KINDS = ("c_state", "mhz", "irq")
_BATCH = 16384  # records, between two looks at the intervals that have ended


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("sidecar", _text), ("tsc_khz", _u64)]


class _Record(ctypes.Structure):
    _fields_ = [("tsc", _u64), ("nsec", _u64), ("cpu", _u32), ("event", _u32), ("name", _text), ("nr_words", _u32),
                ("words", _u32 * 7)]


class _Field(ctypes.Structure):
    _fields_ = [("name", _text), ("type", _u32), ("bits", _u32), ("value", _u64), ("text", _text)]


class _Domain(ctypes.Structure):
    _fields_ = [("domid", _u32), ("name", _text), ("uuid", _text), ("first_seen_nsec", _u64),
                ("last_seen_nsec", _u64)]


class _Interval(ctypes.Structure):
    _fields_ = [("domid", _u32), ("vcpu", _u32), ("runstate", _u32), ("wait", _u32), ("cpu", _u32),
                ("begin_cpu", _u32), ("from_tsc", _u64), ("to_tsc", _u64), ("ends_in_loss", _int),
                ("next_runstate", _u32)]


class _Exit(ctypes.Structure):
    _fields_ = [("domid", _u32), ("vcpu", _u32), ("cpu", _u32), ("reason", _u32), ("name", _text),
                ("from_tsc", _u64), ("is_complete", _int), ("to_tsc", _u64), ("cycles", _u64)]


class _CpuInterval(ctypes.Structure):
    _fields_ = [("cpu", _u32), ("kind", _u32), ("value", _u32), ("is_complete", _int), ("from_tsc", _u64),
                ("to_tsc", _u64), ("ends_in_loss", _int)]


_ON_INTERVAL = ctypes.CFUNCTYPE(_int, ctypes.c_void_p, ctypes.POINTER(_Interval))
_ON_EXIT = ctypes.CFUNCTYPE(_int, ctypes.c_void_p, ctypes.POINTER(_Exit))
_ON_CPU_INTERVAL = ctypes.CFUNCTYPE(_int, ctypes.c_void_p, ctypes.POINTER(_CpuInterval))


class _Observer(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("context", ctypes.c_void_p), ("interval", _ON_INTERVAL),
                ("exit", _ON_EXIT), ("cpu_interval", _ON_CPU_INTERVAL)]


_MEMBERS = {_ON_INTERVAL: "interval", _ON_EXIT: "exit", _ON_CPU_INTERVAL: "cpu_interval"}


_lib = ctypes.CDLL("libxentrace.so.1")
_trace = ctypes.c_void_p


def _declare(name, result, *arguments):
    function = getattr(_lib, "xentrace_" + name)
    function.restype, function.argtypes = result, arguments


_declare("version", _text)
_declare("open", _int, _text, ctypes.POINTER(_Options), ctypes.POINTER(_trace))
_declare("open_fd", _int, _int, ctypes.POINTER(_Options), ctypes.POINTER(_trace))
_declare("open_memory", _int, _text, ctypes.c_size_t, ctypes.POINTER(_Options), ctypes.POINTER(_trace))
_declare("close", ctypes.c_void_p, _trace)
_declare("next", _int, _trace, ctypes.POINTER(ctypes.POINTER(_Record)))
_declare("fields", ctypes.c_size_t, _trace, ctypes.POINTER(ctypes.POINTER(_Field)))
_declare("text", _text, _trace)
_declare("tsc_khz", _u64, _trace)
_declare("tsc_khz_is_assumed", _int, _trace)
_declare("first_tsc", _u64, _trace)
_declare("realtime_nsec", _u64, _trace, _u64)
_declare("find_realtime", _int, _trace, _u64, ctypes.POINTER(_u64))
_declare("ticks_to_nsec", _u64, _trace, _u64)
_declare("nsec_to_ticks", _u64, _trace, _u64)
_declare("seek", _int, _trace, _u64)
_declare("select", _int, _trace, _u64, _u64)
for _name in ("hostname", "xen_version", "scheduler", "cpu_vendor", "reason"):
    _declare(_name, _text, _trace)
_declare("complete_from_tsc", _u64, _trace)
_declare("domain", ctypes.POINTER(_Domain), _trace, ctypes.c_size_t)
_declare("domain_name", _text, _trace, _u32, _u64)
_declare("domain_label", _text, _trace, _u32, _u64)
_declare("domain_uuid", _text, _trace, _u32, _u64)
_declare("find_domain", _int, _trace, _text, ctypes.POINTER(_u32))
_declare("observe", _int, _trace, ctypes.POINTER(_Observer))
_declare("run", _int, _trace, _u64)
_declare("measures", _int, _trace, ctypes.POINTER(ctypes.c_void_p))
_declare("damage", _int, _trace, ctypes.POINTER(_u64))
_free = ctypes.CDLL(None).free
_free.restype, _free.argtypes = None, (ctypes.c_void_p,)


class VCpu(collections.namedtuple("VCpu", "domid vcpu")):
    """A vCPU; as text "d1v2"."""
    __slots__ = ()

    def __str__(self):
        return "d%dv%d" % self


Record = collections.namedtuple("Record", "tsc nsec cpu event name words fields")
Record.__doc__ = """A record. `fields` is a dictionary: numbers, VCpu, or the name of a reason or hypercall.
`name` is None if the event is unknown; its fields are word0, word1 and so on."""
Domain = collections.namedtuple("Domain", "domid name uuid first_seen_nsec last_seen_nsec")
Interval = collections.namedtuple("Interval", "vcpu runstate wait cpu begin_cpu from_tsc to_tsc ends_in_loss next_runstate")
Interval.__doc__ = """A vCPU was in a runstate ("running", "runnable", "blocked", "offline"). `wait` is "wake",
"preempt" or "other" while it waited for a CPU, else None; `cpu` is where it ran, else None. `next_runstate` is what the vCPU
did then, None if that is unknown."""
Exit = collections.namedtuple("Exit", "vcpu cpu reason name from_tsc to_tsc cycles")
Exit.__doc__ = "A VM exit. `to_tsc` and `cycles` are None if its end is unknown."

CpuInterval = collections.namedtuple("CpuInterval", "cpu kind value from_tsc to_tsc is_complete ends_in_loss")
CpuInterval.__doc__ = """A CPU was in an idle state (`kind` is "c_state"), at a frequency ("mhz"), or handled an
interrupt ("irq"), whose number is `value`. Unless `is_complete`, it ended at `to_tsc` or before."""


def version():
    """That of the library: "0.2.0"."""
    return _lib.xentrace_version().decode()


def _decode(text):
    return None if text is None else text.decode("utf-8", "replace")


def _check(result, path=None):
    if result < 0:
        raise OSError(-result, os.strerror(-result), path)
    return result


def _value(field):
    if field.text is not None:
        return _decode(field.text)
    if field.type == _VCPU:
        return None if field.value == 0xFFFFFFFF else VCpu(field.value >> 16, field.value & 0xFFFF)
    if field.type == _SIGNED and field.value >> 63:
        return field.value - (1 << 64)
    return field.value


def _options(sidecar, tsc_khz):
    path = None if sidecar is None else os.fsencode(sidecar)
    return ctypes.byref(_Options(ctypes.sizeof(_Options), path, tsc_khz))


def open(path, sidecar=None, tsc_khz=0):
    """Opens the trace at `path`. `sidecar` is its sidecar's path ("-": none); by default the one beside it."""
    trace = _trace()
    _check(_lib.xentrace_open(os.fsencode(path), _options(sidecar, tsc_khz), ctypes.byref(trace)), path)
    return Trace(trace)


def open_fd(fd, sidecar=None, tsc_khz=0):
    """Reads a trace from a descriptor, such as that of a pipe. The descriptor stays the caller's."""
    trace = _trace()
    _check(_lib.xentrace_open_fd(os.dup(fd), _options(sidecar, tsc_khz), ctypes.byref(trace)))
    return Trace(trace)


def open_memory(data, sidecar=None, tsc_khz=0):
    """Reads a trace that is in `data`, of bytes."""
    trace, data = _trace(), bytes(data)
    _check(_lib.xentrace_open_memory(data, len(data), _options(sidecar, tsc_khz), ctypes.byref(trace)))
    return Trace(trace, data)


def _alone(method):
    """Calls `method`, unless another thread is in one of the trace's: the library has no locks."""

    @functools.wraps(method)
    def call(self, *arguments, **named):
        if not self._lock.acquire(blocking=False):
            raise ValueError("the trace is being used by another thread")
        try:
            return method(self, *arguments, **named)
        finally:
            self._lock.release()

    return call


class Trace:
    """A trace: iterate over it for its records. Made by open(), open_fd(), open_memory()."""

    def __init__(self, trace, data=None):
        self._as_parameter_ = self._trace = trace
        self._data = data  # borrowed by the library
        self._lock = threading.RLock()

    @_alone
    def close(self):
        if self._trace:
            _lib.xentrace_close(self._trace)
        self._trace = self._as_parameter_ = self._data = None

    def _open(self):
        if not self._trace:
            raise ValueError("the trace is closed")
        return self._trace

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    # --- Records. ---

    def __iter__(self):
        return self

    @_alone
    def __next__(self):
        record = ctypes.POINTER(_Record)()
        if _check(_lib.xentrace_next(self._open(), ctypes.byref(record))) == 0:
            raise StopIteration
        record = record.contents
        fields = ctypes.POINTER(_Field)()
        count = _lib.xentrace_fields(self._trace, ctypes.byref(fields))
        return Record(record.tsc, record.nsec, record.cpu, record.event, _decode(record.name),
                      tuple(record.words[:record.nr_words]),
                      {_decode(fields[i].name): _value(fields[i]) for i in range(count)})

    @_alone
    def text(self):
        """The last record as `xentracectl dump` prints it."""
        return _decode(_lib.xentrace_text(self._open()))

    @_alone
    def seek(self, tsc):
        """Continues with the first record that is not before `tsc`. 0: from the beginning."""
        _check(_lib.xentrace_seek(self._open(), tsc))

    @_alone
    def select(self, from_tsc, until_tsc):
        """Takes the part from `from_tsc` on and before `until_tsc`, from its beginning."""
        _check(_lib.xentrace_select(self._open(), from_tsc, until_tsc))

    # --- Intervals and exits. ---

    def intervals(self):
        """Reads on, and yields each Interval when it has ended."""
        return self._observe(_ON_INTERVAL, lambda of: Interval(
            VCpu(of.domid, of.vcpu), _RUNSTATES[of.runstate], _WAITS[of.wait],
            None if of.cpu == _NO_CPU else of.cpu, of.begin_cpu, of.from_tsc, of.to_tsc, bool(of.ends_in_loss),
            _RUNSTATES[of.next_runstate]))

    def exits(self):
        """Reads on, and yields each VM Exit when it has ended."""
        return self._observe(_ON_EXIT, lambda of: Exit(
            VCpu(of.domid, of.vcpu), None if of.cpu == _NO_CPU else of.cpu, of.reason, _decode(of.name),
            of.from_tsc, of.to_tsc if of.is_complete else None, of.cycles if of.is_complete else None))

    def cpu_intervals(self):
        """Reads on, and yields each CpuInterval when it has ended."""
        return self._observe(_ON_CPU_INTERVAL, lambda of: CpuInterval(
            of.cpu, _CPU_KINDS[of.kind], of.value, of.from_tsc, of.to_tsc, bool(of.is_complete),
            bool(of.ends_in_loss)))

    def _observe(self, kind, convert):
        ended = []

        def note(_, of):
            ended.append(convert(of.contents))
            return 0

        function = kind(note)
        observer = _Observer(ctypes.sizeof(_Observer))
        setattr(observer, _MEMBERS[kind], function)
        self._set_observer(ctypes.byref(observer))
        try:
            more = 1
            while more:
                more = self._run()
                yield from ended
                ended.clear()
        finally:
            if self._trace:
                self._set_observer(None)

    @_alone
    def _set_observer(self, observer):
        _check(_lib.xentrace_observe(self._open(), observer))

    @_alone
    def _run(self):
        return _check(_lib.xentrace_run(self._open(), _BATCH))

    @_alone
    def measures(self):
        """The measures of the trace or its selected part, as docs/measures.md defines them."""
        text = ctypes.c_void_p()
        _check(_lib.xentrace_measures(self._open(), ctypes.byref(text)))
        try:
            return json.loads(ctypes.string_at(text.value))
        finally:
            _free(text)

    # --- Time. ---

    @property
    @_alone
    def tsc_khz(self):
        return _lib.xentrace_tsc_khz(self._open())

    @property
    @_alone
    def tsc_khz_is_assumed(self):
        return bool(_lib.xentrace_tsc_khz_is_assumed(self._open()))

    @property
    @_alone
    def first_tsc(self):
        return _lib.xentrace_first_tsc(self._open())

    @_alone
    def realtime_nsec(self, tsc):
        """The wall clock at `tsc`, in nanoseconds since 1970; None: unknown."""
        return _lib.xentrace_realtime_nsec(self._open(), tsc) or None

    @_alone
    def find_realtime(self, nsec):
        """The first TSC at which the wall clock is not before `nsec`."""
        tsc = _u64()
        _check(_lib.xentrace_find_realtime(self._open(), nsec, ctypes.byref(tsc)))
        return tsc.value

    @_alone
    def ticks_to_nsec(self, ticks):
        return _lib.xentrace_ticks_to_nsec(self._open(), ticks)

    @_alone
    def nsec_to_ticks(self, nsec):
        return _lib.xentrace_nsec_to_ticks(self._open(), nsec)

    # --- Facts. ---

    @property
    @_alone
    def hostname(self):
        return _decode(_lib.xentrace_hostname(self._open()))

    @property
    @_alone
    def xen_version(self):
        return _decode(_lib.xentrace_xen_version(self._open()))

    @property
    @_alone
    def scheduler(self):
        return _decode(_lib.xentrace_scheduler(self._open()))

    @property
    @_alone
    def cpu_vendor(self):
        return _decode(_lib.xentrace_cpu_vendor(self._open()))

    @property
    @_alone
    def reason(self):
        """Why the snapshot was taken; None: unknown."""
        return _decode(_lib.xentrace_reason(self._open()))

    @property
    @_alone
    def complete_from_tsc(self):
        return _lib.xentrace_complete_from_tsc(self._open()) or None

    @property
    @_alone
    def domains(self):
        """What the sidecar lists, as Domain."""
        domains = []
        while True:
            domain = _lib.xentrace_domain(self._open(), len(domains))
            if not domain:
                return domains
            of = domain.contents
            domains.append(Domain(of.domid, _decode(of.name), _decode(of.uuid), of.first_seen_nsec,
                                  of.last_seen_nsec))

    @_alone
    def domain_name(self, domid, tsc=0):
        """The name of the domain that had that ID at `tsc` (0: the last one); None: unknown."""
        return _decode(_lib.xentrace_domain_name(self._open(), domid, tsc))

    @_alone
    def domain_label(self, domid, tsc=0):
        """The name for people: with the ID, as in "web (d5)", if it may be taken for that of another domain."""
        return _decode(_lib.xentrace_domain_label(self._open(), domid, tsc))

    @_alone
    def domain_uuid(self, domid, tsc=0):
        return _decode(_lib.xentrace_domain_uuid(self._open(), domid, tsc))

    @_alone
    def find_domain(self, name):
        """The ID of the newest domain with that name or UUID; None: there is none."""
        domid = _u32()
        found = _lib.xentrace_find_domain(self._open(), name.encode(), ctypes.byref(domid))
        return domid.value if found == 0 else None

    @property
    @_alone
    def damage(self):
        """After the end: the offset at which something else than a window begins; None: there is none."""
        offset = _u64()
        return offset.value if _lib.xentrace_damage(self._open(), ctypes.byref(offset)) else None
