/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The collector: the thread that reads Xen's trace buffers. It waits for events only, never for a
 * disk or another thread, and is controlled by messages only (mailbox.h).
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
 * -ECANCELED. With ABANDONED, the ledger and the totals are final, except writing_since_usec:
 * output_bytes is the length up to which the file is complete and counted. Data that the kernel
 * still writes after that is not counted. CLOSED follows when the kernel has returned every chunk,
 * immediately if it has none. Only then may the sink be freed, and its file be truncated to
 * output_bytes.
 *
 * After ABORT, the collector ignores other messages about the sink, except PIN: DRAIN, SETTLE and
 * CLOSE are not answered, even if they were sent before. A second ABORT, or one that crosses with
 * CLOSED, has no effect. A successor that was offered is not attached. If SUCCEEDED crosses with
 * ABORT, the old sink is abandoned, and its successor needs its own ABORT.
 *
 * All functions are called by the main thread. After collector_new(), the collector thread does not
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
 * Sets the mapping of Xen's trace buffers; called once, before the first sink is attached. Returns
 * 0, -ENOMEM; a buffer with an impossible state is set aside.
 */
int collector_set_buffers(struct collector *collector, const struct xen_trace_buffers *buffers);

/* Sends a message. The mailbox is large enough that it cannot fail. */
void collector_send(struct collector *collector, enum message_type type, struct sink *sink,
                    bool flag, int64_t value);

/*
 * MESSAGE_SUCCEED: SUCCESSOR takes SINK's place between two rounds, so that no record is lost or
 * doubled: after the next one if NOW, else when SINK is full. It may be sent again before the
 * answer, with the same SUCCESSOR. A SINK that has data without a grant, or whose write failed, is
 * not replaced, because the gap could not be reported at its position. If DRAIN crosses with
 * SUCCEEDED, it has no effect, and must be sent to SUCCESSOR.
 */
void collector_send_successor(struct collector *collector, struct sink *sink,
                              struct sink *successor, bool now);

/*
 * Wakes the thread without a message. collector_stats.wakeups then changes soon, unless the thread
 * hangs or has ended. For a watchdog.
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
 * The trace buffers: drain_read_cpu() may be called at any time, the other functions for the main
 * thread only before the first ATTACH. NULL before collector_set_buffers().
 */
struct drain *collector_drain(const struct collector *collector);
