/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef XENTRACE_H
#define XENTRACE_H

/*
 * libxentrace reads Xen's trace files: those of xentraced, with their sidecars, and those of
 * xentrace. xentrace(3) has an example.
 *
 * A trace is read in the order of time over all CPUs. Times are ticks of the TSC; the wall clock is
 * known if there is a sidecar. The definitions of intervals, waits, exits and measures are those of
 * docs/measures.md.
 *
 * Functions return 0 or more, or a negative errno. Traces and sidecars are untrusted: nothing in
 * them can crash the caller; damage ends a trace. The library never prints, exits or changes signal
 * handlers. Each trace may be used by one thread at a time; there is no state besides.
 *
 * Pointers that functions return belong to the trace. They are valid until the next call for it, or
 * for as long as the function says.
 *
 * Compatibility: what is here stays. Structures that the library fills in may grow at their ends,
 * so their size is not part of the interface; those that the caller fills in begin with their size.
 * Enumerations may grow: be prepared for values that are not here.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Of this header; and "0.2.0", of the library that is loaded. */
#define XENTRACE_API_VERSION 1
const char *xentrace_version(void);

/* --- Open. --- */

struct xentrace;

struct xentrace_options {
    size_t size;         /* sizeof(struct xentrace_options) */
    const char *sidecar; /* its path; "-": none. NULL: the one beside the file, if it is there */
    uint64_t tsc_khz;    /* the frequency of the TSC; 0: the sidecar's, or else 2400000 */
};

/*
 * Opens a trace. OPTIONS may be NULL. -EBADMSG: it does not begin with a window of trace records.
 * -EINVAL: options of an unknown size. -EISDIR, -ENOTSOCK, -ENOTTY: a directory, a socket, a
 * device. -ENXIO: a FIFO that no program opens for writing within 2 s. Other errors are those of
 * open(2) and read(2), and -ENOMEM. A file without a byte is a trace without records.
 *
 * xentrace_open_fd() reads from where FD stands: a file, or a pipe, of which some windows are held
 * in memory. FD is closed in any case. xentrace_open_memory() borrows DATA until xentrace_close().
 * A trace that is compressed with zstd is unpacked as it is read. Without a seek table it is read
 * once, as a pipe is.
 *
 * Files are read, never mapped: if a file becomes shorter, or its disk fails, the function that
 * reads returns -EIO, or what read(2) says. After that there are no more records. -EFBIG: windows
 * of a pipe, or of what is compressed, need more than 768 MiB at once.
 */
int xentrace_open(const char *path, const struct xentrace_options *options,
                  struct xentrace **ret_trace);
int xentrace_open_fd(int fd, const struct xentrace_options *options, struct xentrace **ret_trace);
int xentrace_open_memory(const void *data, size_t bytes, const struct xentrace_options *options,
                         struct xentrace **ret_trace);

/* NULL is fine. Returns NULL. */
struct xentrace *xentrace_close(struct xentrace *trace);

/* --- Records. --- */

#define XENTRACE_WORDS_MAX 7

struct xentrace_record {
    uint64_t tsc;  /* effective time: never less than that of the record before it on its CPU */
    uint64_t nsec; /* since the first record of the trace */
    uint32_t cpu;
    uint32_t event;   /* as in <xen/trace.h>: TRC_*, without the number of words */
    const char *name; /* "runnable_to_running"; NULL: the event is unknown. Static. The events that
                       * guests make are called "guest": the low 12 bits of `event` are theirs */
    uint32_t nr_words;
    uint32_t words[XENTRACE_WORDS_MAX];
};

/*
 * Reads the next record. Returns 1, or 0 at the end of the trace or its part, or a negative errno.
 * The record is valid until the next call for the trace. Records of padding (wrap_buffer) are
 * passed over.
 */
int xentrace_next(struct xentrace *trace, const struct xentrace_record **ret_record);

enum xentrace_type {
    XENTRACE_NUMBER = 0, /* unsigned */
    XENTRACE_SIGNED,     /* value is an int64_t */
    XENTRACE_HEX,        /* a mask, a value that people read in hexadecimal */
    XENTRACE_ADDRESS,    /* virtual, physical, a frame number */
    XENTRACE_VCPU,       /* domain << 16 | vCPU; UINT32_MAX: none */
    XENTRACE_DOMAIN,
    XENTRACE_CPU,
    XENTRACE_NSEC,
    XENTRACE_USEC,
    XENTRACE_TICKS,  /* of the TSC; the low bits, if the field has 32 */
    XENTRACE_REASON, /* of a VM exit */
    XENTRACE_HYPERCALL,
    XENTRACE_FLAG, /* 0 or 1 */
    XENTRACE_MHZ,
    XENTRACE_SHUTDOWN, /* why a domain shuts down */
    XENTRACE_ARGUMENT, /* of a hypercall; read in hexadecimal */
};

struct xentrace_field {
    const char *name;
    uint32_t type; /* enum xentrace_type */
    uint32_t bits;
    uint64_t value;
    const char *text; /* of a REASON, HYPERCALL, SHUTDOWN: the value's name; else NULL */
};

/*
 * The fields of the record that xentrace_next() returned last. An unknown event has word0, word1
 * and so on. Returns how many there are; 0 before the first record.
 */
size_t xentrace_fields(struct xentrace *trace, const struct xentrace_field **ret_fields);
/* The field NAME of that record; NULL: it has none. */
const struct xentrace_field *xentrace_field(struct xentrace *trace, const char *name);

/*
 * That record as `xentracectl dump` prints it: "+0.001234567 CPU3 runnable_to_running vcpu=d1v2",
 * or with --json. Without a newline. "" before the first record.
 */
const char *xentrace_text(struct xentrace *trace);
const char *xentrace_json(struct xentrace *trace);

/* --- Time. --- */

/* Ticks of the TSC in a millisecond. *_is_assumed: 1 if neither the options nor a sidecar have it.
 */
uint64_t xentrace_tsc_khz(const struct xentrace *trace);
int xentrace_tsc_khz_is_assumed(const struct xentrace *trace);

/* The time of the first record of the whole trace; of a pipe, 0 before it has been read. */
uint64_t xentrace_first_tsc(const struct xentrace *trace);

/* The wall clock at TSC, in nanoseconds since 1970; 0: unknown. */
uint64_t xentrace_realtime_nsec(const struct xentrace *trace, uint64_t tsc);
/* The first TSC at which the wall clock is not before REALTIME_NSEC. 0, or -ENODATA: unknown. */
int xentrace_find_realtime(const struct xentrace *trace, uint64_t realtime_nsec, uint64_t *ret_tsc);
/* Lengths of time, cut off. */
uint64_t xentrace_ticks_to_nsec(const struct xentrace *trace, uint64_t ticks);
uint64_t xentrace_nsec_to_ticks(const struct xentrace *trace, uint64_t nsec);

/*
 * Continues with the first record that is not before TSC, backwards too; or takes the part of the
 * trace with the records from FROM_TSC on and before UNTIL_TSC, from its beginning. What is in
 * between is not read. Runstates are unknown at the beginning, as if the trace began there.
 * -ESPIPE: the trace is a pipe, or is compressed without a seek table. -EINVAL: UNTIL_TSC is not
 * after FROM_TSC.
 */
int xentrace_seek(struct xentrace *trace, uint64_t tsc);
int xentrace_select(struct xentrace *trace, uint64_t from_tsc, uint64_t until_tsc);

/* --- Facts. Of the sidecar, if there is one. --- */

/* Each returns NULL if it is unknown. Valid as long as the trace. */
const char *xentrace_hostname(const struct xentrace *trace);
const char *xentrace_boot_id(const struct xentrace *trace);     /* of dom0: 32 hexadecimal digits */
const char *xentrace_xen_version(const struct xentrace *trace); /* "4.17.6" */
const char *xentrace_scheduler(const struct xentrace *trace);   /* "credit2" */
const char *xentrace_cpu_vendor(const struct xentrace *trace);  /* "intel", "amd" */
const char *xentrace_reason(const struct xentrace *trace);      /* why the snapshot was taken */
/* From that TSC on no record is missing, but for losses that the trace reports; 0: unknown. */
uint64_t xentrace_complete_from_tsc(const struct xentrace *trace);

/* A domain that the sidecar lists. Domain IDs may occur more than once: Xen uses them again. */
struct xentrace_domain {
    uint32_t domid;
    const char *name;                         /* NULL: unknown */
    const char *uuid;                         /* NULL: unknown */
    uint64_t first_seen_nsec, last_seen_nsec; /* wall clock */
};

/* Domain number I, counted from 0; NULL: there are no more. */
const struct xentrace_domain *xentrace_domain(struct xentrace *trace, size_t i);
/* The name and UUID of the domain that had that ID at TSC (0: the last one); NULL: unknown. */
const char *xentrace_domain_name(const struct xentrace *trace, uint32_t domid, uint64_t tsc);
const char *xentrace_domain_uuid(const struct xentrace *trace, uint32_t domid, uint64_t tsc);
/* The name for people: with the ID, as in "web (d5)", if it may be taken for that of another
 * domain. */
const char *xentrace_domain_label(const struct xentrace *trace, uint32_t domid, uint64_t tsc);
/* The newest domain with that name or UUID. 0, or -ENOENT. */
int xentrace_find_domain(const struct xentrace *trace, const char *name, uint32_t *ret_domid);

/* --- Intervals. --- */

enum xentrace_runstate {
    XENTRACE_RUNNING = 0,
    XENTRACE_RUNNABLE,
    XENTRACE_BLOCKED,
    XENTRACE_OFFLINE,
    XENTRACE_UNKNOWN, /* of no interval */
};

enum xentrace_wait {
    XENTRACE_NO_WAIT = 0,
    XENTRACE_WAKE,    /* the vCPU was blocked before */
    XENTRACE_PREEMPT, /* it ran */
    XENTRACE_OTHER,
};

#define XENTRACE_NO_CPU UINT32_MAX

/* A vCPU was in a runstate, and both ends are known. */
struct xentrace_interval {
    uint32_t domid, vcpu;
    uint32_t runstate;  /* enum xentrace_runstate */
    uint32_t wait;      /* enum xentrace_wait: while it was runnable. Not of the idle domain */
    uint32_t cpu;       /* where it ran; else XENTRACE_NO_CPU */
    uint32_t begin_cpu; /* the CPU that logged its beginning: who woke it, for example */
    uint64_t from_tsc, to_tsc;
    int ends_in_loss;       /* 1: it is counted up to where records are missing */
    uint32_t next_runstate; /* enum xentrace_runstate: what the vCPU did then */
};

/* A VM exit. */
struct xentrace_exit {
    uint32_t domid, vcpu;
    uint32_t cpu; /* where it left; XENTRACE_NO_CPU: unknown */
    uint32_t reason;
    const char *name; /* "NPF"; "0x55" if the reason is unknown. Until the function returns */
    uint64_t from_tsc;
    int is_complete; /* 1: to_tsc and cycles are known */
    uint64_t to_tsc;
    uint64_t cycles; /* without the time in which the vCPU did not run */
};

enum xentrace_cpu_kind {
    XENTRACE_IDLE = 0,  /* in an idle (C-) state, whose number is the value */
    XENTRACE_FREQUENCY, /* at a frequency in MHz (a P-state) */
    XENTRACE_INTERRUPT, /* handled an interrupt: the number of the IRQ */
};

/* What a CPU did, other than running a vCPU. */
struct xentrace_cpu_interval {
    uint32_t cpu;
    uint32_t kind; /* enum xentrace_cpu_kind */
    uint32_t value;
    int is_complete; /* 0: the record that ended it is missing; it ended at to_tsc or before. Of an
                      * interrupt, the record has no times: from_tsc and to_tsc are its own */
    uint64_t from_tsc, to_tsc;
    int ends_in_loss; /* 1: records are missing from to_tsc on */
};

/* Records of a CPU are missing from from_tsc on and before to_tsc. */
struct xentrace_gap {
    uint32_t cpu;
    uint64_t records; /* how many, as Xen reports it */
    uint64_t from_tsc, to_tsc;
};

/*
 * Functions that are called when an interval or an exit has ended, in the order of their ends.
 * NULL: not wanted. A result other than 0 makes xentrace_run() return. They must not call functions
 * for the trace, except those for times and facts.
 */
struct xentrace_observer {
    size_t size; /* sizeof(struct xentrace_observer) */
    void *context;
    int (*interval)(void *context, const struct xentrace_interval *interval);
    int (*exit)(void *context, const struct xentrace_exit *exit);
    /* A structure may end here: older callers' do. */
    int (*cpu_interval)(void *context, const struct xentrace_cpu_interval *interval);
    /* Or here. */
    int (*gap)(void *context, const struct xentrace_gap *gap);
};

/*
 * Observes the trace: from now on each xentrace_next() and xentrace_run() calls the functions, as
 * records are read. OBSERVER is copied; NULL ends it. States are unknown at first.
 */
int xentrace_observe(struct xentrace *trace, const struct xentrace_observer *observer);

/*
 * Reads up to MAX_RECORDS records (0: all) for the observer. Returns 1 if there may be more, 0 at
 * the end, or a negative errno.
 */
int xentrace_run(struct xentrace *trace, uint64_t max_records);

/* --- Measures. --- */

/*
 * The object `measures` of `xentracectl --json report`, which docs/measures.md defines, of the
 * whole trace or the part that was selected; of a pipe, of what is left of it. The trace continues
 * at its end. Free it with free(3).
 */
int xentrace_measures(struct xentrace *trace, char **ret_json);

/* --- Damage. --- */

/*
 * After the end: where the trace ended because something else than a window began there, as an
 * offset into the file. Returns 1; 0: the file was read to its end.
 */
int xentrace_damage(const struct xentrace *trace, uint64_t *ret_offset);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
