// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One loop: wait in io_uring for VIRQ_TBUF, messages, completed writes or the fallback timer; drain
 * one round over the CPUs; queue writes; wait again.
 *
 * VIRQ_TBUF fires only when a buffer becomes half full, so a timer starts rounds for the remaining
 * records: at the session's poll interval while there are records, and less often while there are
 * none. A late timer loses nothing, because VIRQ_TBUF fires long before a buffer is full.
 */

#include "collector/collector-state.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "collector/drain.h"
#include "collector/memory.h"
#include "collector/pool.h"
#include "collector/sink.h"
#include "collector/uring.h"
#include "collector/xen.h"
#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"

#define STACK_BYTES     (128u * 1024u)
#define URING_ENTRIES   (2 * URING_WORKERS) /* all writes, and as many cancellations */
#define EVENTS_PER_WAIT 64u
#define POLL_RETRY_USEC (10 * USEC_PER_MSEC)
#define REFUSAL_USEC    (60 * USEC_PER_SEC) /* between two messages about the pool */

_Static_assert(ATTACHMENTS_MAX *SINK_WRITES_MAX <= URING_WORKERS,
               "if the writes of all sinks but one are stuck, those of the last one are not");

/* Tags of requests that are not writes; a write's tag is its chunk's address. */
#define TAG_VIRQ    UINT64_C(1)
#define TAG_MAILBOX UINT64_C(2)

static uint64_t monotonic_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC;
}

void collector_tell(struct collector *c, enum message_type type, struct sink *sink, int64_t value)
{
    struct message message = {.type = type, .sink = sink, .value = value};

    (void)mailbox_put(c->outbox, &message); /* cannot be full: see mailbox.c */
    c->tells = true;
}

/* Wakes the main thread if there is a message for it, with the next io_uring_enter(2). */
static void wake_main_thread(struct collector *c)
{
    if (!c->tells)
        return;
    c->tells = false;
    if (uring_wake(c->uring, mailbox_fd(c->outbox)) < 0)
        mailbox_wake(c->outbox);
}

/* --- Polls. --- */

static void collector_retry_polls(struct collector *c)
{
    c->poll_retry_usec = c->now_usec + POLL_RETRY_USEC;
}

static bool collector_arm_poll(struct collector *c, int fd, uint64_t tag)
{
    if (uring_poll(c->uring, fd, tag) >= 0)
        return true;
    collector_retry_polls(c); /* the submission queue is full */
    return false;
}

/* Arms the polls that are not armed. Without them there are the timers, for a while. */
static void collector_arm_polls(struct collector *c)
{
    if (c->now_usec < c->poll_retry_usec)
        return;
    c->poll_retry_usec = 0;
    if (!c->polls_virq)
        c->polls_virq = collector_arm_poll(c, xen_host_virq_fd(c->host), TAG_VIRQ);
    if (!c->polls_mailbox)
        c->polls_mailbox = collector_arm_poll(c, mailbox_fd(c->inbox), TAG_MAILBOX);
}

/* A poll that ended with an error is not armed again at once: it might end so every time. */
static bool collector_note_poll(struct collector *c, const struct uring_event *event)
{
    if (event->result < 0)
        collector_retry_polls(c);
    return event->more;
}

void collector_rearm_virq(struct collector *c)
{
    if (xen_host_virq_rearm(c->host))
        count_up(&c->stats.virqs);
}

/* From now until THEN_USEC; 0 is never. */
static uint64_t collector_usec_until(const struct collector *c, uint64_t then_usec)
{
    if (then_usec == 0)
        return URING_FOREVER;
    return then_usec > c->now_usec ? then_usec - c->now_usec : 0;
}

static uint64_t collector_wait_usec(const struct collector *c)
{
    uint64_t usec = attachments_wait_usec(c);

    usec = min_u64(usec, collector_usec_until(c, c->poll_retry_usec));
    return min_u64(usec, collector_usec_until(c, pool_tend_usec(c->pool)));
}

/* --- Messages and events. --- */

static void handle_messages(struct collector *c)
{
    struct message message;

    while (mailbox_receive(c->inbox, &message)) {
        if (message.type == MESSAGE_QUIT)
            c->quits = true;
        else
            attachments_handle_message(c, &message);
    }
}

struct wake {
    bool virq;
    bool completion;
};

static void handle_write(struct collector *c, struct chunk *chunk, int result)
{
    struct sink *sink = chunk->sink;
    int r = sink_complete(sink, chunk, result, c->now_usec);

    if (r < 0)
        collector_tell(c, MESSAGE_FAILED, sink, r);
}

static void handle_event(struct collector *c, const struct uring_event *event, struct wake *wake)
{
    switch (event->tag) {
    case TAG_VIRQ:
        wake->virq = true;
        c->polls_virq = collector_note_poll(c, event);
        break;
    case TAG_MAILBOX:
        c->polls_mailbox = collector_note_poll(c, event);
        break;
    default:
        wake->completion = true;
        handle_write(c, (struct chunk *)(uintptr_t)event->tag, event->result);
    }
}

/* --- The pool. --- */

static void collector_tell_refusal(struct collector *c)
{
    uint64_t refusals = pool_refusals(c->pool);

    if (refusals == c->refusals || c->now_usec < c->refusal_usec)
        return;
    c->refusals = refusals;
    c->refusal_usec = c->now_usec + REFUSAL_USEC;
    collector_tell(c, MESSAGE_POOL_REFUSED, NULL, 0);
}

static void collector_tend_pool(struct collector *c)
{
    pool_tend(c->pool, c->spare_bytes, c->now_usec);
    attachments_follow_pool(c);
    collector_tell_refusal(c);
}

/* --- The loop. --- */

static int loop_once(struct collector *c)
{
    struct uring_event events[EVENTS_PER_WAIT];
    struct wake wake = {0};
    bool timer_fired;
    int n;

    wake_main_thread(c);
    n = uring_wait(c->uring, collector_wait_usec(c), events, EVENTS_PER_WAIT);
    if (n < 0)
        return n;
    c->now_usec = monotonic_usec();
    count_up(&c->stats.wakeups);

    for (int i = 0; i < n; i++)
        handle_event(c, &events[i], &wake);
    collector_arm_polls(c);
    /* Without a session nobody drains: it may fire once, and stays masked. */
    if (wake.virq && c->nr_attachments > 0)
        collector_rearm_virq(c);
    handle_messages(c);
    if (attachments_take_back(c))
        wake.completion = true;
    attachments_check_hold(c);

    timer_fired = c->now_usec >= c->next_round_usec;
    if (attachments_have_rounds(c) && (timer_fired || (wake.virq && !c->pauses) ||
                                       (wake.completion && attachments_want_chunks(c))))
        attachments_run_round(c, timer_fired);
    attachments_tend(c);
    collector_tend_pool(c);
    return 0;
}

/* --- The thread. --- */

static int set_up_ring(struct collector *c)
{
    int r;

    r = uring_new(URING_ENTRIES, &c->uring);
    if (r < 0)
        return r;
    c->pool_is_registered =
        uring_register_buffer(c->uring, pool_base(c->pool), pool_base_bytes(c->pool)) >= 0;
    collector_arm_polls(c);
    return 0;
}

/*
 * A buffer of 32 pages that fills at 25 MB/s is half full after 2.6 ms and full after 5: less than
 * an ordinary thread may wait for a processor on a busy dom0. The lowest real-time priority is
 * above all of those, and the thread sleeps unless there are records. The kernel's io_uring workers
 * are not to inherit it.
 */
static bool become_real_time(void)
{
    struct sched_param param = {.sched_priority = 1};

    return pthread_setschedparam(pthread_self(), SCHED_RR | SCHED_RESET_ON_FORK, &param) == 0;
}

static void *collector_thread(void *argument)
{
    struct collector *c = argument;
    int r;

    c->is_real_time = become_real_time();
    (void)memory_lock_stack(); /* if not, it is reported: memory_is_locked() */
    r = set_up_ring(c);
    c->setup_result = r;
    (void)sem_post(&c->ready);

    while (r >= 0 && !c->quits)
        r = loop_once(c);
    if (r < 0)
        collector_tell(c, MESSAGE_DIED, NULL, r);
    mailbox_wake(c->outbox);
    c->uring = uring_free(c->uring);
    return NULL;
}

static int collector_start_thread(struct collector *c)
{
    int r = thread_start(&c->thread, "collector", STACK_BYTES, collector_thread, c);

    if (r < 0)
        return r;
    c->thread_runs = true;
    while (sem_wait(&c->ready) < 0)
        ; /* EINTR */
    return c->setup_result;
}

static void collector_freep(struct collector **collector)
{
    collector_free(*collector);
}

int collector_new(struct xen_host *host, struct pool *pool, struct collector **ret_collector)
{
    _cleanup_(collector_freep) struct collector *c = memory_alloc(1, sizeof(*c));
    int r;

    if (!c)
        return -ENOMEM;
    c->host = host;
    c->pool = pool;
    tsc_forget();
    (void)sem_init(&c->ready, 0, 0);
    r = mailbox_new(&c->inbox);
    if (r < 0)
        return r;
    r = mailbox_new(&c->outbox);
    if (r < 0)
        return r;
    (void)memory_lock_code();
    r = collector_start_thread(c);
    if (r < 0)
        return r;
    *ret_collector = TAKE_PTR(c);
    return 0;
}

struct collector *collector_free(struct collector *c)
{
    if (!c)
        return NULL;
    if (c->thread_runs) {
        collector_send(c, MESSAGE_QUIT, NULL, false, 0);
        (void)pthread_join(c->thread, NULL);
    }
    mailbox_free(c->inbox);
    mailbox_free(c->outbox);
    (void)sem_destroy(&c->ready);
    drain_free(c->drain);
    free(c);
    return NULL;
}

bool collector_pool_is_registered(const struct collector *c)
{
    return c->pool_is_registered;
}

bool collector_is_real_time(const struct collector *c)
{
    return c->is_real_time;
}

int collector_set_buffers(struct collector *c, const struct xen_trace_buffers *buffers)
{
    assert(!c->drain);
    return drain_new(buffers, &c->drain);
}

static void send_message(struct collector *c, const struct message *message)
{
    int r = mailbox_put(c->inbox, message);

    assert(r >= 0);
    (void)r; /* for NDEBUG */
    mailbox_wake(c->inbox);
}

void collector_send(struct collector *c, enum message_type type, struct sink *sink, bool flag,
                    int64_t value)
{
    struct message message = {.type = type, .flag = flag, .sink = sink, .value = value};

    send_message(c, &message);
}

void collector_send_successor(struct collector *c, struct sink *sink, struct sink *successor,
                              bool now)
{
    struct message message = {
        .type = MESSAGE_SUCCEED, .flag = now, .sink = sink, .other = successor};

    send_message(c, &message);
}

void collector_poke(struct collector *c)
{
    mailbox_wake(c->inbox);
}

int collector_fd(const struct collector *c)
{
    return mailbox_fd(c->outbox);
}

static bool receive(struct collector *c, struct message *ret_message)
{
    if (mailbox_receive(c->outbox, ret_message))
        return true;
    mailbox_quieten(c->outbox);
    return mailbox_receive(c->outbox, ret_message);
}

bool collector_receive(struct collector *c, struct message *ret_message)
{
    if (!receive(c, ret_message))
        return false;
    if (ret_message->type == MESSAGE_LOST)
        __atomic_store_n(&c->loss_is_told, false, __ATOMIC_RELAXED);
    return true;
}

void collector_read_stats(const struct collector *c, struct collector_stats *ret_stats)
{
    ret_stats->wakeups = __atomic_load_n(&c->stats.wakeups, __ATOMIC_RELAXED);
    ret_stats->rounds = __atomic_load_n(&c->stats.rounds, __ATOMIC_RELAXED);
    ret_stats->virqs = __atomic_load_n(&c->stats.virqs, __ATOMIC_RELAXED);
}

struct drain *collector_drain(const struct collector *c)
{
    return c->drain;
}
