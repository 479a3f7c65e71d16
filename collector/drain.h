/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Draining: rounds over Xen's trace buffers into a sink. A round takes at most one window of each
 * CPU, CPUs ascending, as readers expect it.
 *
 * drain_new() and drain_free() belong to the main thread and allocate; the rest to the collector
 * thread, unless it says otherwise, and neither allocates nor blocks.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/cpu-set.h"

struct drain;
struct sink;
struct xen_trace_buffers;

/* What a round takes. */
enum drain_mode {
    DRAIN_RECORDS,      /* what the sink's session asked for; what the sink cannot take stays */
    DRAIN_LAST_RECORDS, /* the same, but what the sink cannot take any more is thrown away */
    DRAIN_LOSSES, /* only the losses that Xen had not told when drain_begin_settling() was called */
    DRAIN_NOTHING, /* all is thrown away */
};

/* What a round found. */
struct round {
    uint64_t waiting_bytes; /* that the session is interested in */
    bool behind;   /* a buffer was half full or more, or a window was cut: go round again at once */
    bool starved;  /* records were left where they are, for want of a chunk */
    bool at_limit; /* the sink is as long as it may be */
};

/* Takes over the buffers where their consumer left them; an impossible one is set aside. -ENOMEM.
 */
int drain_new(const struct xen_trace_buffers *buffers, struct drain **ret_drain);
struct drain *drain_free(struct drain *drain);

struct round drain_round(struct drain *drain, enum drain_mode mode, struct sink *sink,
                         uint64_t now_usec);

/* From now on only the first record of each CPU in CPUS that holds back a loss is of interest. */
void drain_begin_settling(struct drain *drain, const struct cpu_set *cpus);

/* A new sink: what was held back before is not its own. */
void drain_end_settling(struct drain *drain);

/* How many of CPUS hold back a loss, as far as known. */
unsigned int drain_count_unsettled(const struct drain *drain, const struct cpu_set *cpus);

/* Whether CPU may hold back a loss. Also for the main thread, while no rounds are made. */
bool drain_cpu_is_unsettled(const struct drain *drain, unsigned int cpu);

/* A CPU's trace buffer as of now. */
struct drain_cpu {
    bool has_buffer;
    bool set_aside; /* its prod or its records were impossible; it is touched no more */
    unsigned int fill_percent;
};

/* Any thread. A CPU that does not exist has no buffer. */
void drain_read_cpu(const struct drain *drain, unsigned int cpu, struct drain_cpu *ret_cpu);
