/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Internals of the collector, private to collector.c (the thread and its loop) and attachments.c
 * (the attached sinks). Collector thread.
 */

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

#include "collector/attachment.h"
#include "collector/collector.h"
#include "collector/tsc.h"

struct collector {
    pthread_t thread;
    bool thread_runs;
    sem_t ready;
    int setup_result;

    struct xen_host *host;
    struct pool *pool;
    struct uring *uring;
    bool pool_is_registered;
    bool is_real_time;
    struct mailbox *inbox;  /* from the main thread */
    struct mailbox *outbox; /* to it */
    struct drain *drain;    /* NULL before the first session; only looked at after ATTACH */

    /*
     * A message about losses is in the mailbox. No second one is sent, because the mailbox would
     * fill up while the main thread is blocked. Relaxed: the mailbox has the barriers.
     */
    bool loss_is_told;

    /* The collector thread's own. */
    struct attachment attachments[ATTACHMENTS_MAX];
    unsigned int nr_attachments;
    bool quits;
    bool holds;        /* no rounds: MESSAGE_HOLD */
    bool holds_softly; /* ... until a buffer is half full */
    bool tells;        /* the outbox has a message, and the main thread was not woken for it yet */
    uint64_t now_usec;
    uint64_t interval_usec;
    uint64_t next_round_usec;
    bool polls_virq; /* its poll is armed */
    bool polls_mailbox;
    uint64_t poll_retry_usec; /* arm those that are not, then; 0: they are */
    struct tsc_learner tsc;
    uint64_t round_tsc;           /* when the last round began, by Xen's clock */
    uint64_t shared_bytes;        /* of the pool, when it was shared out */
    uint64_t spare_bytes;         /* of it that one sink leaves to the others */
    uint64_t refusals;            /* of a larger pool, that the main thread knows of */
    uint64_t refusal_usec;        /* it learns of the next one then */
    uint64_t loss_usec;           /* the main thread learns of losses then, or later */
    unsigned int dropping_rounds; /* since a sink had room: rounds that only dropped */
    bool pauses; /* for that reason: only a completed write or the timer brings the next round */

    /* Written by the collector thread, read by the main thread: relaxed atomics. */
    struct collector_stats stats;
};

static inline void count_up(uint64_t *counter)
{
    __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED); /* one writer */
}

/* Sends a message to the main thread. collector.c. */
void collector_tell(struct collector *collector, enum message_type type, struct sink *sink,
                    int64_t value);

/* Takes VIRQ_TBUF if it has fired, counts it, and lets it fire again. collector.c. */
void collector_rearm_virq(struct collector *collector);

/* Whether any attached sink asks for rounds. */
bool attachments_have_rounds(const struct collector *collector);

/* Whether any was left without a chunk in the last round: a freed one calls for another. */
bool attachments_want_chunks(const struct collector *collector);

/* Divides the pool among the sinks, if its size has changed. */
void attachments_follow_pool(struct collector *collector);

/* Runs a round, and updates the state of each sink. */
void attachments_run_round(struct collector *collector, bool timer_fired);

/* Ends a soft hold in time: to be called as often as attachments_wait_usec() says. */
void attachments_check_hold(struct collector *collector);

/* Handles a message about a sink; a message about a sink that is not attached is ignored. */
void attachments_handle_message(struct collector *collector, const struct message *message);

/* Takes chunks back from threads that have written them. Returns whether there were any. */
bool attachments_take_back(struct collector *collector);

/* After a round or a write: flushes and writes chunks, asks for grants, detaches finished sinks. */
void attachments_tend(struct collector *collector);

/* Time until one of them has something to do; URING_FOREVER: none has. */
uint64_t attachments_wait_usec(const struct collector *collector);
