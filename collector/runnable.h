/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Measures how long vCPUs wait for a CPU, from becoming runnable to running, by the runstate
 * changes among the records.
 *
 * Source: TRC_SCHED_RUNSTATE_CHANGE in <xen/trace.h>, RUNSTATE_* in <xen/vcpu.h>, and
 * trace_runstate_change() in Xen's common/sched/core.c: bits 8-9 of the event are the state before,
 * bits 4-5 the state after, and its word is vcpu | domid << 16.
 *
 * The records of one vCPU are in the buffers of several CPUs (the CPU that wakes it and the CPU
 * that runs it), and arrive CPU by CPU. They are therefore ordered by their TSC, and a wait is
 * reported only after one more whole round, in which any record from in between would have arrived.
 * If records were lost in between, the wait is not reported.
 *
 * Created by the main thread, then used by the collector thread, which does not allocate.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runnable;

/* vCPUs that are remembered; when there are more, the least recently seen ones are forgotten. */
#define RUNNABLE_VCPUS 2048u
/*
 * For each vCPU, changes of at least this many latencies, less one, are remembered: a record that
 * arrives later than that after those of other CPUs may be ignored.
 */
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

/* Forgets everything: later records do not continue the earlier ones. */
void runnable_reset(struct runnable *runnable);
