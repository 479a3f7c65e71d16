/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The collector: the thread that empties Xen's trace buffers, and never waits for anything else
 * than for something to do. It is spoken to by messages only (mailbox.h).
 *
 * The life of a sink, as the main thread sees it; several run beside each other:
 *
 *   ATTACH -> ATTACHED     records flow; GRANT_WANTED, LIMIT, FAILED may come at any time. A sink
 *                          that joins others begins at one TSC for all CPUs: see struct sink_totals
 *   PIN    -> PINNED       of a ring: a snapshot of it may be read
 *   SUCCEED -> SUCCEEDED   another sink continues in its place; this one comes back with CLOSED
 *   DRAIN  -> DRAINED      nothing of what it asked for is left in Xen's buffers
 *   SETTLE -> DRAINED      if some CPUs have unreported losses: waits a little for Xen
 *   CLOSE  -> CLOSED       the last records, the last write
 *   ABORT  -> ABANDONED -> CLOSED      an output that is stuck is given up
 *
 * ABORT may be sent at any time after ATTACH. The collector takes no more records for the sink and
 * drops all that is not written, also what is being written: these records move from `delivered` to
 * `dropped`. If there were any, and no write had failed before, FAILED comes first, with
 * -ECANCELED. With ABANDONED the ledger and the totals are final, but for writing_since_usec:
 * output_bytes is the length up to which the file is whole and counted. Whatever the kernel still
 * writes beyond it counts for nothing. CLOSED follows when the kernel has given back every chunk,
 * at once if it has none: only then may the sink be freed, and its file be truncated to
 * output_bytes for good.
 *
 * After ABORT the collector takes no notice of other messages about the sink, except PIN: DRAIN,
 * SETTLE and CLOSE are not answered, nor is one that was sent before and has not been answered. A
 * second ABORT, or one that crosses with CLOSED, does nothing. A successor that was offered is not
 * taken: it was never attached. If SUCCEEDED crosses with ABORT the sink before is abandoned, and
 * its successor needs an ABORT of its own.
 *
 * Everything here is called by the main thread. After collector_new() the collector thread does not
 * allocate, log, open, or take a lock, and its only system calls are io_uring_enter(2) and the
 * event channel's and the eventfds' reads and writes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/mailbox.h"

struct collector;
struct drain;
struct pool;
struct xen_host;
struct xen_trace_buffers;

/*
 * Starts the thread and waits until its ring is set up. HOST and POOL are borrowed until
 * collector_free(). Returns 0 or a negative errno: of io_uring_setup(2) (-ENOSYS, -EPERM: io_uring
 * is switched off), of pthread_create(3).
 */
int collector_new(struct xen_host *host, struct pool *pool, struct collector **ret_collector);
/* Ends the thread; no sink may be attached. */
struct collector *collector_free(struct collector *collector);

/* Whether the pool could be registered with the kernel (RLIMIT_MEMLOCK); writes work either way. */
bool collector_pool_is_registered(const struct collector *collector);

/* Whether the thread could take a real-time priority (RLIMIT_RTPRIO, CAP_SYS_NICE). */
bool collector_is_real_time(const struct collector *collector);

/*
 * Passes on where Xen's trace buffers are mapped; once, before the first sink is attached. Returns
 * 0, -ENOMEM; a buffer with an impossible state is set aside.
 */
int collector_set_buffers(struct collector *collector, const struct xen_trace_buffers *buffers);

/* Sends a message. The mailbox is large enough that it cannot fail. */
void collector_send(struct collector *collector, enum message_type type, struct sink *sink,
                    bool flag, int64_t value);

/*
 * MESSAGE_SUCCEED: SUCCESSOR takes SINK's place between two rounds, so that no record is lost or
 * doubled: after the next one if NOW, else when SINK is full. It may be sent again
 * before it was answered, with the same SUCCESSOR. A SINK of which something waits for a grant, or
 * could not be written, is not succeeded: the gap could not be reported in its place. DRAIN
 * that crosses with SUCCEEDED does nothing: it is to be sent to SUCCESSOR then.
 */
void collector_send_successor(struct collector *collector, struct sink *sink,
                              struct sink *successor, bool now);

/*
 * Has the thread run its loop once more, without a message: collector_stats.wakeups changes soon
 * after, unless the thread is stuck or has ended. For a watchdog.
 */
void collector_poke(struct collector *collector);

/* Readable while messages wait for the main thread. */
int collector_fd(const struct collector *collector);
bool collector_receive(struct collector *collector, struct message *ret_message);

struct collector_stats {
    uint64_t wakeups; /* times the thread ran */
    uint64_t rounds;
    uint64_t virqs; /* VIRQ_TBUF, as read from the event channel while a sink was attached */
};

void collector_read_stats(const struct collector *collector, struct collector_stats *ret_stats);

/*
 * The trace buffers: for drain_read_cpu() at any time, for the rest of the main thread's calls
 * before the first ATTACH. NULL before collector_set_buffers().
 */
struct drain *collector_drain(const struct collector *collector);
