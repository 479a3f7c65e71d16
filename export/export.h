/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Hands a trace to other people's viewers and engines: a table of formats, and the loop that reads
 * the trace for one of them. It knows libxentrace's public interface only, and reads a trace once,
 * in the order of time, so that it can come from a pipe; memory does not grow with it.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/buffer.h"
#include "trace/xentrace.h"

#define EXPORT_DOMAIN_IDLE 32767u
#define EXPORT_NOBODY      UINT32_MAX /* no domain, vCPU or CPU, or it is unknown */

enum export_table {
    EXPORT_RECORDS,
    EXPORT_INTERVALS,
};

/* What an interval is. */
enum export_kind {
    EXPORT_RUNNING, /* runstates, as enum xentrace_runstate */
    EXPORT_RUNNABLE,
    EXPORT_BLOCKED,
    EXPORT_OFFLINE,
    EXPORT_EXIT,      /* a VM exit; value is the reason, name its name */
    EXPORT_C_STATE,   /* a CPU in an idle state, whose number is the value */
    EXPORT_MHZ,       /* a CPU at that frequency */
    EXPORT_INTERRUPT, /* a CPU handled an interrupt: the IRQ */
    EXPORT_GAP,       /* records of a CPU are missing: how many */
    EXPORT_KINDS,
};

/* "running", "exit", "c_state", "lost". Static. */
const char *export_kind_name(enum export_kind kind);
/* "running" of enum xentrace_runstate; "": unknown. Static. */
const char *export_runstate_name(uint32_t runstate);
/* "wake", "preempt", "other" of enum xentrace_wait; "": no wait. Static. */
const char *export_wait_name(uint32_t wait);

/* An interval of any kind, valid during the call. docs/export.md describes its members. */
struct export_interval {
    enum export_kind kind;
    uint32_t domid, vcpu; /* EXPORT_NOBODY: it is a CPU's */
    uint32_t cpu;         /* EXPORT_NOBODY: it is a vCPU's, which did not run */
    uint32_t begin_cpu;   /* that logged its beginning; EXPORT_NOBODY */
    uint32_t wait;        /* enum xentrace_wait */
    uint32_t next;        /* enum xentrace_runstate: what the vCPU did then */
    uint64_t value;
    const char *name; /* of an exit's reason; else "" */
    uint64_t from_tsc, to_tsc;
    uint64_t cycles;  /* its time; of an exit, without that in which its vCPU did not run */
    bool is_complete; /* false: it ended at to_tsc or before; of an exit: nobody knows when */
    bool ends_in_loss;
};

struct export_format;

/* An export in progress. */
struct export
{
    const struct export_format *format;
    struct xentrace *trace;
    enum export_table table;
    void *state; /* the format's; format->state_bytes, zeroes at first */
    uint64_t records, intervals;
    struct export_buffer buffer;
};

/*
 * A format. Functions return 0 or a negative errno, which ends the export; errors of the buffer
 * need not be looked at. NULL: there is nothing to do.
 */
struct export_format {
    const char *name;
    const char *summary; /* a line of `--to help` */
    bool is_binary;      /* not for terminals */
    bool is_directory;   /* it writes files of its own into the descriptor, a directory */
    bool has_tables;     /* each table is a stream of its own; else a stream has both */
    size_t state_bytes;
    int (*begin)(struct export *export);
    int (*record)(struct export *export, const struct xentrace_record *record);
    int (*interval)(struct export *export, const struct export_interval *interval);
    int (*finish)(struct export *export);
    void (*done)(struct export *export); /* frees what the state has */
    const char *schema;                  /* for `--schema`; NULL: none is needed */
};

/* All of them. Static. */
const struct export_format *const *export_formats(size_t *ret_count);
/* NULL: there is none of that name. */
const struct export_format *export_format_find(const char *name);

struct export_options {
    const struct export_format *format;
    enum export_table table; /* if the format has tables */
    struct xentrace *trace;  /* borrowed */
    int fd;                  /* borrowed */
};

struct export_result {
    uint64_t records, intervals, bytes;
};

/*
 * Reads TRACE to its end. 0; or a negative errno, of which *RET_IS_READ says whether it is the
 * trace's, not the output's.
 */
int export_run(const struct export_options *options, struct export_result *ret_result,
               bool *ret_is_read);

/* --- For formats. --- */

/* The label of a domain at TSC: "web", "idle", "d5" if it has no name. Valid until the next call.
 */
#define EXPORT_NAME_MAX 96u
const char *export_domain_name(const struct export *export, uint32_t domid, uint64_t tsc,
                               char buffer[static EXPORT_NAME_MAX]);
/* Nanoseconds since the trace's first record. */
uint64_t export_nsec(const struct export *export, uint64_t tsc);
