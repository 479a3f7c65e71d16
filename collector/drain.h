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

struct attachment;
struct drain;
struct xen_trace_buffers;

/* What a round found. */
struct round {
    uint64_t waiting_bytes; /* that some sink is interested in */
    uint64_t newest_tsc;    /* of its records, as drain_newest_tsc(); 0: none had a TSC */
    bool behind;   /* a buffer was half full or more, or a window was cut: another round at once */
    bool had_room; /* some sink took something, or could have */
    bool dropped;  /* some sink had no room for its part of a window that others wanted too */
};

/* Continues where the buffers' consumer stopped; an impossible buffer is set aside. -ENOMEM. */
int drain_new(const struct xen_trace_buffers *buffers, struct drain **ret_drain);
struct drain *drain_free(struct drain *drain);

/*
 * Where CPU's consumer is, in *RET_CONS; false if the CPU has no buffer. And: continues at CONS,
 * for what lies before it was read by the previous daemon. -EBADMSG: it was not.
 */
bool drain_read_cons(const struct drain *drain, unsigned int cpu, uint32_t *ret_cons);
int drain_resume_cpu(struct drain *drain, unsigned int cpu, uint32_t cons);

/*
 * Records that no sink takes are thrown away. Records for which a sink has no chunk stay in the
 * buffer if it is the only one that takes them; otherwise that sink drops them, and the others go
 * on. A sink that is the only one at all has the rest of such a round with the next call.
 */
struct round drain_round(struct drain *drain, struct attachment *attachments,
                         unsigned int nr_attachments, uint64_t now_usec);

/* Whether the last round took all of all CPUs: the next one begins at one time for all of them. */
bool drain_is_even(const struct drain *drain);

/* TSC of the newest record that a sink was, or would have been, given. */
uint64_t drain_newest_tsc(const struct drain *drain);

/* Throws away all records in the buffers: no sink takes any. Collector thread. */
void drain_discard(struct drain *drain);

/* Those of CPUS that may hold back a loss that Xen has not reported, as far as known. */
struct cpu_set drain_unsettled(const struct drain *drain, const struct cpu_set *cpus);

/* A CPU's trace buffer as of now. */
struct drain_cpu {
    bool has_buffer;
    bool set_aside; /* its prod or its records were impossible; it is touched no more */
    unsigned int fill_percent;
    uint64_t drained_bytes; /* so far: a CPU for which it does not grow makes no records */
};

/* Any thread. A CPU that does not exist has no buffer; nor has any before they are mapped (NULL).
 */
void drain_read_cpu(const struct drain *drain, unsigned int cpu, struct drain_cpu *ret_cpu);
