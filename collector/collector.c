// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One loop: wait in io_uring for VIRQ_TBUF, messages, completed writes or the fallback timer; drain
 * one round over the CPUs; queue writes; wait again.
 *
 * VIRQ_TBUF fires only when a buffer becomes half full, so a timer looks after the rest: at the
 * session's poll interval while it finds records, ever more rarely while it finds none. A loss of
 * wakefulness costs nothing: half full comes long before full.
 */

#include "collector/collector.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "collector/drain.h"
#include "collector/pool.h"
#include "collector/sink.h"
#include "collector/uring.h"
#include "collector/xen.h"
#include "common/units.h"
#include "common/util.h"

#define URING_ENTRIES      64u
#define EVENTS_PER_WAIT    64u
#define IDLE_INTERVAL_USEC (2 * USEC_PER_SEC) /* the timer's longest step while nothing comes */
#define FLUSH_AGE_USEC     USEC_PER_SEC       /* no record waits longer before it is written */
#define SETTLE_STEP_USEC   (2 * USEC_PER_MSEC)
#define SETTLE_MAX_USEC    (100 * USEC_PER_MSEC)

/* Tags of requests that are not writes; a write's tag is its chunk's address. */
#define TAG_VIRQ    UINT64_C(1)
#define TAG_MAILBOX UINT64_C(2)

/* What is done with the attached sink. */
enum phase {
    PHASE_DETACHED, /* no sink */
    PHASE_FEEDING,  /* records flow */
    PHASE_DRAINING, /* rounds until one takes everything: then DRAINED */
    PHASE_DRAINED,  /* quiet, until the main thread decides */
    PHASE_SETTLING, /* only untold losses are taken: then DRAINED */
    PHASE_CLOSING,  /* rounds until one takes everything, then ... */
    PHASE_FLUSHING, /* ... waits for the last writes: then CLOSED */
};

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

    /* The collector thread's own. */
    struct sink *sink;
    enum phase phase;
    enum drain_mode drain_mode;
    bool limit_told;
    bool starved; /* the last round left records where they are: a freed chunk calls for another */
    bool quits;
    uint64_t now_usec;
    uint64_t interval_usec;
    uint64_t next_round_usec;
    uint64_t settle_end_usec;

    /* Written by the collector thread, read by the main thread: relaxed atomics. */
    struct collector_stats stats;
};

static uint64_t monotonic_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC;
}

static void count_up(uint64_t *counter)
{
    __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED); /* one writer */
}

static void tell(struct collector *c, enum message_type type, int64_t value)
{
    struct message message = {.type = type, .sink = c->sink, .value = value};

    (void)mailbox_send(c->outbox, &message); /* cannot be full: see mailbox.c */
}

/* --- Phases. --- */

static void set_phase(struct collector *c, enum phase phase)
{
    c->phase = phase;
    c->next_round_usec = c->now_usec;
    if (phase == PHASE_DRAINED)
        tell(c, MESSAGE_DRAINED, drain_count_unsettled(c->drain, &sink_config(c->sink)->cpus));
}

static void attach(struct collector *c, struct sink *sink)
{
    assert(c->phase == PHASE_DETACHED);
    c->sink = sink;
    c->drain_mode = DRAIN_RECORDS;
    c->limit_told = false;
    c->starved = false;
    c->interval_usec = sink_config(sink)->poll_usec;
    drain_end_settling(c->drain);
    if (sink_config(sink)->discard)
        (void)drain_round(c->drain, DRAIN_NOTHING, sink, c->now_usec);
    set_phase(c, PHASE_FEEDING);
    xen_host_virq_rearm(c->host);
    tell(c, MESSAGE_ATTACHED, 0);
}

static void settle(struct collector *c)
{
    drain_begin_settling(c->drain, &sink_config(c->sink)->cpus);
    c->drain_mode = DRAIN_LOSSES;
    set_phase(c, PHASE_SETTLING);
    c->settle_end_usec = c->now_usec + SETTLE_MAX_USEC;
}

/* The final drain. What comes after settling is what nobody asked for. */
static void close_sink(struct collector *c)
{
    if (c->drain_mode == DRAIN_LOSSES)
        c->drain_mode = DRAIN_NOTHING;
    set_phase(c, PHASE_CLOSING);
}

static bool is_settled(const struct collector *c)
{
    return c->now_usec >= c->settle_end_usec ||
           drain_count_unsettled(c->drain, &sink_config(c->sink)->cpus) == 0;
}

/* Returns whether rounds are to be made at all. */
static bool phase_has_rounds(enum phase phase)
{
    switch (phase) {
    case PHASE_FEEDING:
    case PHASE_DRAINING:
    case PHASE_SETTLING:
    case PHASE_CLOSING:
        return true;
    case PHASE_DETACHED:
    case PHASE_DRAINED:
    case PHASE_FLUSHING:
        return false;
    }
    return false;
}

/* When to look again, after a round. */
static void schedule_round(struct collector *c, const struct round *round, bool timer_fired)
{
    uint64_t poll_usec = sink_config(c->sink)->poll_usec;

    if (c->phase == PHASE_SETTLING)
        c->interval_usec = SETTLE_STEP_USEC;
    else if (round->waiting_bytes > 0)
        c->interval_usec = poll_usec;
    else if (timer_fired)
        c->interval_usec = max_u64(min_u64(c->interval_usec * 2, IDLE_INTERVAL_USEC), poll_usec);
    c->next_round_usec = c->now_usec + c->interval_usec;
    if (round->behind && !round->starved)
        c->next_round_usec = c->now_usec;
}

/* Whether a round at the end took what there was. Where tracing goes on there is no end to await. */
static bool took_all(const struct collector *c, const struct round *round)
{
    return !round->starved && (!round->behind || c->drain_mode == DRAIN_RECORDS);
}

static void run_round(struct collector *c, bool timer_fired)
{
    struct round round = drain_round(c->drain, c->drain_mode, c->sink, c->now_usec);

    count_up(&c->stats.rounds);
    c->starved = round.starved;
    if (round.at_limit && !c->limit_told) {
        tell(c, MESSAGE_LIMIT, 0);
        c->limit_told = true;
    }
    schedule_round(c, &round, timer_fired);
    if (c->phase == PHASE_DRAINING && took_all(c, &round))
        set_phase(c, PHASE_DRAINED);
    else if (c->phase == PHASE_CLOSING && took_all(c, &round))
        set_phase(c, PHASE_FLUSHING);
    else if (c->phase == PHASE_SETTLING && is_settled(c))
        set_phase(c, PHASE_DRAINED);
}

/* --- Messages and events. --- */

static void handle_message(struct collector *c, const struct message *message)
{
    switch (message->type) {
    case MESSAGE_ATTACH:
        attach(c, message->sink);
        break;
    case MESSAGE_DRAIN:
        c->drain_mode = message->flag ? DRAIN_LAST_RECORDS : DRAIN_RECORDS;
        set_phase(c, PHASE_DRAINING);
        break;
    case MESSAGE_SETTLE:
        settle(c);
        break;
    case MESSAGE_CLOSE:
        close_sink(c);
        break;
    case MESSAGE_GRANT:
        sink_grant(c->sink, (uint64_t)message->value, message->flag);
        break;
    case MESSAGE_ABORT:
        if (sink_abort(c->sink, c->uring))
            tell(c, MESSAGE_FAILED, -ECANCELED);
        break;
    case MESSAGE_QUIT:
        c->quits = true;
        break;
    case MESSAGE_ATTACHED:
    case MESSAGE_DRAINED:
    case MESSAGE_GRANT_WANTED:
    case MESSAGE_LIMIT:
    case MESSAGE_FAILED:
    case MESSAGE_CLOSED:
    case MESSAGE_DIED:
        assert(false); /* those go the other way */
    }
}

static void handle_messages(struct collector *c)
{
    struct message message;

    while (mailbox_receive(c->inbox, &message)) {
        /* A grant or an abort may cross with CLOSED. */
        if (message.type == MESSAGE_ATTACH || message.type == MESSAGE_QUIT ||
            message.sink == c->sink)
            handle_message(c, &message);
    }
}

struct wake {
    bool virq;
    bool completion;
};

static int handle_event(struct collector *c, const struct uring_event *event, struct wake *wake)
{
    int r;

    switch (event->tag) {
    case TAG_VIRQ:
        wake->virq = true;
        return event->more ? 0 : uring_poll(c->uring, xen_host_virq_fd(c->host), TAG_VIRQ);
    case TAG_MAILBOX:
        return event->more ? 0 : uring_poll(c->uring, mailbox_fd(c->inbox), TAG_MAILBOX);
    default:
        wake->completion = true;
        r = sink_complete(c->sink, (struct chunk *)(uintptr_t)event->tag, event->result);
        if (r < 0)
            tell(c, MESSAGE_FAILED, r);
        return 0;
    }
}

/* What is left to do for the sink after a round: flush, write, ask for more, let go. */
static void tend_sink(struct collector *c)
{
    uint64_t oldest_usec = sink_oldest_usec(c->sink);

    /* Towards the end also a chunk in which nothing was kept: it has to go back. */
    if (c->phase != PHASE_FEEDING || (oldest_usec && (sink_config(c->sink)->is_stream ||
                                                      c->now_usec >= oldest_usec + FLUSH_AGE_USEC)))
        sink_flush(c->sink);
    sink_submit(c->sink, c->uring);
    if (sink_wants_grant(c->sink))
        tell(c, MESSAGE_GRANT_WANTED, 0);
    if (c->phase == PHASE_FLUSHING && sink_is_quiet(c->sink)) {
        tell(c, MESSAGE_CLOSED, 0);
        c->sink = NULL;
        set_phase(c, PHASE_DETACHED);
    }
}

static uint64_t wait_usec(const struct collector *c)
{
    uint64_t until_usec = UINT64_MAX;
    uint64_t oldest_usec;

    if (!c->sink)
        return URING_FOREVER;
    if (phase_has_rounds(c->phase))
        until_usec = c->next_round_usec;
    oldest_usec = sink_oldest_usec(c->sink);
    if (oldest_usec)
        until_usec = min_u64(until_usec, oldest_usec + FLUSH_AGE_USEC);
    if (until_usec == UINT64_MAX)
        return URING_FOREVER;
    return until_usec > c->now_usec ? until_usec - c->now_usec : 0;
}

static int loop_once(struct collector *c)
{
    struct uring_event events[EVENTS_PER_WAIT];
    struct wake wake = {0};
    bool timer_fired;
    int n, r;

    n = uring_wait(c->uring, wait_usec(c), events, EVENTS_PER_WAIT);
    if (n < 0)
        return n;
    c->now_usec = monotonic_usec();
    count_up(&c->stats.wakeups);

    for (int i = 0; i < n; i++) {
        r = handle_event(c, &events[i], &wake);
        if (r < 0)
            return r;
    }
    /* Without a session nobody drains: it may fire once, and stays masked. */
    if (wake.virq && c->sink)
        xen_host_virq_rearm(c->host);
    handle_messages(c);
    if (!c->sink)
        return 0;

    timer_fired = c->now_usec >= c->next_round_usec;
    if (phase_has_rounds(c->phase) && (wake.virq || timer_fired || (wake.completion && c->starved)))
        run_round(c, timer_fired);
    tend_sink(c);
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
        uring_register_buffer(c->uring, pool_base(c->pool), pool_bytes(c->pool)) >= 0;
    r = uring_poll(c->uring, xen_host_virq_fd(c->host), TAG_VIRQ);
    if (r >= 0)
        r = uring_poll(c->uring, mailbox_fd(c->inbox), TAG_MAILBOX);
    return r;
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
    r = set_up_ring(c);
    c->setup_result = r;
    (void)sem_post(&c->ready);

    while (r >= 0 && !c->quits)
        r = loop_once(c);
    if (r < 0)
        tell(c, MESSAGE_DIED, r);
    c->uring = uring_free(c->uring);
    return NULL;
}

static int start_thread(struct collector *c)
{
    sigset_t all, before;
    int r;

    /* Signals are the main thread's. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = -pthread_create(&c->thread, NULL, collector_thread, c);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r < 0)
        return r;
    c->thread_runs = true;
    (void)pthread_setname_np(c->thread, "collector");
    while (sem_wait(&c->ready) < 0)
        ; /* EINTR */
    return c->setup_result;
}

int collector_new(struct xen_host *host, struct pool *pool, struct collector **ret_collector)
{
    struct collector *c;
    int r;

    c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->host = host;
    c->pool = pool;
    (void)sem_init(&c->ready, 0, 0);
    r = mailbox_new(&c->inbox);
    if (r >= 0)
        r = mailbox_new(&c->outbox);
    if (r >= 0)
        r = start_thread(c);
    if (r < 0) {
        collector_free(c);
        return r;
    }
    *ret_collector = c;
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

void collector_send(struct collector *c, enum message_type type, struct sink *sink, bool flag,
                    int64_t value)
{
    struct message message = {.type = type, .flag = flag, .sink = sink, .value = value};
    int r = mailbox_send(c->inbox, &message);

    assert(r >= 0);
    (void)r; /* for NDEBUG */
}

int collector_fd(const struct collector *c)
{
    return mailbox_fd(c->outbox);
}

bool collector_receive(struct collector *c, struct message *ret_message)
{
    return mailbox_receive(c->outbox, ret_message);
}

void collector_read_stats(const struct collector *c, struct collector_stats *ret_stats)
{
    ret_stats->wakeups = __atomic_load_n(&c->stats.wakeups, __ATOMIC_RELAXED);
    ret_stats->rounds = __atomic_load_n(&c->stats.rounds, __ATOMIC_RELAXED);
}

const struct drain *collector_drain(const struct collector *c)
{
    return c->drain;
}
