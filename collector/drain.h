/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Draining: rounds over Xen's trace buffers. A round reads at most one window of each CPU, in
 * ascending order of CPUs, as readers expect, and gives each sink its records.
 *
 * drain_new(), drain_free() and drain_resume_cpu() are for the main thread, before the collector
 * uses the drain, and may allocate. Unless stated otherwise, the others are for the collector
 * thread, and neither allocate nor block.
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
 * The first returns the position of CPU's consumer in *RET_CONS, or false if the CPU has no buffer.
 * The second continues at CONS, up to which the previous daemon has read; -EBADMSG: CONS is
 * impossible.
 */
bool drain_read_cons(const struct drain *drain, unsigned int cpu, uint32_t *ret_cons);
int drain_resume_cpu(struct drain *drain, unsigned int cpu, uint32_t cons);
/*
 * The previous daemon has read CPU last, and may have died in the middle of its round: the first
 * round continues with the next CPU. If the first CPUs had their next turn before the last ones had
 * theirs, the recording would be out of order by as long as there was no daemon. Main thread, before
 * the collector runs.
 */
void drain_resume_round(struct drain *drain, unsigned int cpu);

/*
 * Records that no sink takes are discarded. If a sink has no chunk, the records stay in the buffer
 * if no other sink takes them; otherwise this sink drops them, and the others continue. A sink that
 * is alone takes the rest of such a round with the next call.
 */
struct round drain_round(struct drain *drain, struct attachment *attachments,
                         unsigned int nr_attachments, uint64_t now_usec);

/*
 * Whether the last round emptied all buffers, so that the next one begins at the same time on all
 * CPUs.
 */
bool drain_is_even(const struct drain *drain);

/* TSC of the newest record that a sink was, or would have been, given. */
uint64_t drain_newest_tsc(const struct drain *drain);

/* Throws away all records in the buffers: no sink takes any. Collector thread. */
void drain_discard(struct drain *drain);

/* Those of CPUS on which Xen may have lost records that it has not yet reported. */
struct cpu_set drain_unsettled(const struct drain *drain, const struct cpu_set *cpus);

/* A CPU's trace buffer as of now. */
struct drain_cpu {
    bool has_buffer;
    bool set_aside; /* its prod or its records were impossible; no longer used */
    unsigned int fill_percent;
    uint64_t drained_bytes; /* so far: a CPU for which it does not grow makes no records */
};

/* Any thread. Without a mapping (NULL), and for a CPU that does not exist, there is no buffer. */
void drain_read_cpu(const struct drain *drain, unsigned int cpu, struct drain_cpu *ret_cpu);
