/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A trace for a picture that is zoomed: windows of time, of each of which are known either the
 * intervals themselves, or their sums in columns. A window of the whole trace in columns, smaller
 * ones within it and windows of intervals at the places that matter are a pyramid (docs/page.md).
 *
 * One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/merge.h"
#include "trace/state.h"

#define PYRAMID_NONE UINT32_MAX

/* A counted interval, or one that is open at the end of the trace. */
struct pyramid_interval {
    uint64_t from, to; /* may reach beyond the window */
    uint32_t row;      /* of the vCPU */
    uint32_t stream;   /* of the CPU on which it ran */
    uint32_t changer;  /* of the CPU that logged its beginning */
    uint8_t runstate;  /* enum state_runstate */
    uint8_t wait;      /* enum state_wait, while it was runnable */
    bool ends_in_loss, is_open;
};

/* From FROM until TO it is known who ran on a CPU, the idle vCPU among them. */
struct pyramid_seen {
    uint32_t cpu; /* its row */
    uint64_t from, to;
};

/* A column of a CPU. */
struct pyramid_cpu {
    uint32_t most_key; /* the vCPU that ran most, idle ones left out; PYRAMID_NONE: none */
    uint64_t most;
    uint64_t busy, idle;
    uint64_t longest_wait; /* of those that ended with running here */
};

/* A column of a vCPU. */
struct pyramid_vcpu {
    uint64_t cycles[STATE_RUNSTATES];
    uint64_t longest_wait; /* its whole length */
};

struct pyramid_window {
    uint64_t from, until;
    unsigned int columns; /* that were asked for; 0: the intervals */
    size_t max_intervals; /* when there are so many, the window ends, and `until` is set */

    uint64_t width;                     /* of a column; the last one may be narrower */
    struct pyramid_cpu **cpus;          /* [CPU rows][columns]; a CPU on which nothing ran: NULL */
    struct pyramid_vcpu **vcpus;        /* [rows][columns] */
    struct pyramid_interval *intervals; /* by their ends */
    size_t nr_intervals;
    struct pyramid_seen *seen; /* by CPU in order; of CPUs, as they came */
    size_t nr_seen;
    void *work; /* private */
};

struct pyramid_options {
    uint64_t from, last;  /* the span of the trace */
    const uint32_t *keys; /* ascending: the vCPUs that have rows */
    size_t nr_keys;
    uint64_t gap;             /* nobody runs for as long at a switch: up to that, a CPU is seen */
    unsigned int nr_streams;  /* those beyond are left out */
    const uint32_t *cpu_rows; /* [nr_streams]: of each stream's CPU; nr_cpus or more: left out */
    size_t nr_cpus;           /* that have rows */
};

/*
 * Reads MERGE, all that is left, into WINDOWS, which the caller has set up; the first of them is
 * the widest. 0; -ENOMEM, or what reading ended with. pyramid_done() in any case.
 */
int pyramid_read(struct merge *merge, const struct pyramid_options *options,
                 struct pyramid_window *windows, size_t nr_windows);
void pyramid_done(const struct pyramid_options *options, struct pyramid_window *windows,
                  size_t nr_windows);
