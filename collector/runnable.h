/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How long vCPUs wait for a processor: from becoming runnable to running, as the runstate changes
 * among the records show.
 *
 * Source: TRC_SCHED_RUNSTATE_CHANGE in <xen/trace.h>, RUNSTATE_* in <xen/vcpu.h>, and
 * trace_runstate_change() in Xen's common/sched/core.c: bits 8-9 of the event are the state before,
 * bits 4-5 the state after, and its word is vcpu | domid << 16.
 *
 * The records of one vCPU are in several CPUs' buffers (who wakes it writes the one, who runs it
 * the other), and come CPU after CPU: so they are judged by their TSC, and a wait is reported only
 * when a whole round has passed after it was found, in which a record from in between would have
 * come. Where records were lost in between, nothing is reported.
 *
 * Made by the main thread, then the collector thread's; nothing else allocates.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runnable;

/* vCPUs that are remembered; when there are more, the least recently seen ones are forgotten. */
#define RUNNABLE_VCPUS 2048u
/* Of each, changes back to at least this many latencies, less one: a record that comes later than
 * those from other CPUs by more than that may be ignored. */
#define RUNNABLE_SPELLS    32u
#define RUNNABLE_WAITS_MAX 64u /* found and not reported yet; further ones are not reported */

/* A vCPU was runnable from one time to the other, and then ran on CPU. */
struct runnable_wait {
    uint16_t domid;
    uint16_t vcpu;
    unsigned int cpu;
    uint64_t from_tsc;
    uint64_t to_tsc;
};

/* Waits shorter than LATENCY_TSC, which is not 0, are not reported. -ENOMEM, -EINVAL. */
int runnable_new(uint64_t latency_tsc, struct runnable **ret_runnable);
struct runnable *runnable_free(struct runnable *runnable);

/* Whether an event is a runstate change. */
bool runnable_is_change(uint32_t event);

/*
 * The record at P, a runstate change in CPU's buffer. Those of the idle domain, without a TSC or
 * without its word are ignored.
 */
void runnable_note(struct runnable *runnable, unsigned int cpu, const uint8_t *p);

/* Some CPU lost records in that time: waits of which a part is in it are not reported. */
void runnable_note_loss(struct runnable *runnable, uint64_t first_tsc, uint64_t last_tsc);

/*
 * A round over the CPUs has ended. COMPLETE: everything that was in their buffers when it came to
 * them has been noted. Returns how many waits are certain now, each reported once.
 */
size_t runnable_end_round(struct runnable *runnable, bool complete,
                          struct runnable_wait ret_waits[static RUNNABLE_WAITS_MAX]);

/* Forgets all: what was noted and what comes next do not belong together. */
void runnable_reset(struct runnable *runnable);
