/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Draining: rounds over Xen's trace buffers. A round takes at most one window of each CPU, CPUs
 * ascending, as readers expect it, and gives every sink its part of it.
 *
 * drain_new(), drain_free() and drain_resume_cpu() belong to the main thread, before the collector
 * looks at it, and allocate; the rest to the collector thread, unless it says otherwise, and
 * neither allocates nor blocks.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/cpu-set.h"

struct drain;
struct sink;
struct xen_trace_buffers;

#define FEEDS_MAX 32u /* in one round */

/* What a sink takes of the rounds. */
enum drain_mode {
    DRAIN_RECORDS,      /* what its session asked for */
    DRAIN_LAST_RECORDS, /* the same, but what it cannot take for good is thrown away */
    DRAIN_LOSSES,       /* of `pending` CPUs the first loss, once, if a window begins with one */
    DRAIN_NOTHING,
};

/* A sink's part in the rounds. */
struct feed {
    struct sink *sink;
    enum drain_mode mode;
    struct cpu_set pending; /* of DRAIN_LOSSES: CPUs whose next window has not come yet */
    bool selects;           /* not all that came last passed its filter: how to walk what comes */

    /* Of the last round. */
    bool starved;  /* records were left where they are, for want of a chunk */
    bool at_limit; /* the sink is as long as it may be */
};

/* What a round found. */
struct round {
    uint64_t waiting_bytes; /* that some sink is interested in */
    bool behind; /* a buffer was half full or more, or a window was cut: go round again at once */
};

/* Takes over the buffers where their consumer left them; an impossible one is set aside. -ENOMEM.
 */
int drain_new(const struct xen_trace_buffers *buffers, struct drain **ret_drain);
struct drain *drain_free(struct drain *drain);

/*
 * Where CPU's consumer is, in *RET_CONS; false if the CPU has no buffer. And: goes on at CONS, for
 * what lies before it was read by the daemon before us. -EBADMSG: it was not.
 */
bool drain_read_cons(const struct drain *drain, unsigned int cpu, uint32_t *ret_cons);
int drain_resume_cpu(struct drain *drain, unsigned int cpu, uint32_t cons);

/*
 * What no feed wants is thrown away. What a feed wants and has no chunk for stays where it is if it
 * is the only one that wants it; otherwise that feed drops it, and the others go on. A feed that is
 * the only one at all has the rest of such a round with its next call.
 */
struct round drain_round(struct drain *drain, struct feed *feeds, unsigned int nr_feeds,
                         uint64_t now_usec);

/* Whether the last round took all of all CPUs: the next one begins at one time for all of them. */
bool drain_is_even(const struct drain *drain);

/* Those of CPUS that may hold back a loss that Xen has not told, as far as known. */
struct cpu_set drain_unsettled(const struct drain *drain, const struct cpu_set *cpus);

/* A CPU's trace buffer as of now. */
struct drain_cpu {
    bool has_buffer;
    bool set_aside; /* its prod or its records were impossible; it is touched no more */
    unsigned int fill_percent;
};

/* Any thread. A CPU that does not exist has no buffer. */
void drain_read_cpu(const struct drain *drain, unsigned int cpu, struct drain_cpu *ret_cpu);
