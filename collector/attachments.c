// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the collector does with the sinks that are attached: each has its own phase, and all have
 * the same rounds. A sink that comes or goes changes nothing for the others.
 */

#include <assert.h>
#include <errno.h>

#include "collector/collector-state.h"
#include "collector/drain.h"
#include "collector/pool.h"
#include "collector/ring.h"
#include "collector/sink.h"
#include "collector/uring.h"
#include "collector/xen.h"
#include "common/units.h"
#include "common/util.h"

/* The timer's longest step while nothing comes: where somebody may be waiting for what is less than
 * half a buffer, and where nobody is: a snapshot of a ring has its own round. */
#define IDLE_INTERVAL_USEC      (2 * USEC_PER_SEC)
#define IDLE_RING_INTERVAL_USEC (8 * USEC_PER_SEC)
#define FLUSH_AGE_USEC          USEC_PER_SEC /* no record waits longer before it is written */
#define SETTLE_STEP_USEC        (2 * USEC_PER_MSEC)
#define SETTLE_MAX_USEC         (100 * USEC_PER_MSEC)
#define SPARE_MAX_BYTES         (UINT64_C(16) << 20) /* of the pool, for one that is yet to come */
#define ATTACH_SPARE            12u /* places that are not for those that only wait for their writes */
#define ATTACH_MAX_ROUNDS       8u /* for one that leaves nothing over, before a sink is attached */
#define PIN_MAX_ROUNDS          8u /* for one that leaves nothing over, before a ring is pinned */
#define DRAIN_MAX_ROUNDS        64u /* for one that takes everything, while others go on */

/* --- Attaching and detaching. --- */

/*
 * So that those whose disk is slow leave the others something: half the pool is promised, in equal
 * parts; of the rest everybody takes what is there. A fifth, or an equal part, and not more than is
 * of use, is for one that is yet to come: a lone one whose disk stalls has four fifths or more.
 */
static void share_pool(struct collector *c)
{
    uint64_t total = pool_bytes(c->pool);
    uint64_t promised, spare;
    unsigned int count = 0;

    for (unsigned int i = 0; i < c->nr_feeds; i++)
        count += !sink_ring(c->feeds[i].sink);
    if (count == 0)
        return;
    promised = max_u64(total / (2 * (count + 1)), CHUNK_BYTES);
    spare = min_u64(min_u64(promised, total / 5), SPARE_MAX_BYTES);
    spare = max_u64(spare, CHUNK_BYTES);
    for (unsigned int i = 0; i < c->nr_feeds; i++)
        sink_set_share(c->feeds[i].sink, promised, spare + (count - 1) * promised);
}

static void add_feed(struct collector *c, struct sink *sink, enum phase phase, enum drain_mode mode)
{
    assert(c->nr_feeds < FEEDS_MAX); /* the main thread counts them */
    c->feeds[c->nr_feeds] = (struct feed){.sink = sink, .mode = mode};
    c->attachments[c->nr_feeds] = (struct attachment){.phase = phase};
    c->nr_feeds++;
    share_pool(c);
}

static void remove_feed(struct collector *c, unsigned int i)
{
    c->nr_feeds--;
    c->feeds[i] = c->feeds[c->nr_feeds];
    c->attachments[i] = c->attachments[c->nr_feeds];
    share_pool(c);
}

static void pin(struct collector *c, unsigned int i)
{
    struct sink *sink = c->feeds[i].sink;
    struct attachment *attachment = &c->attachments[i];

    sink_flush(sink);
    for (unsigned int n = 0; n < RING_PINS_MAX; n++) {
        if (!(attachment->pins_wanted >> n & 1))
            continue;
        ring_pin(sink_ring(sink), (int)n);
        collector_tell(c, MESSAGE_PINNED, sink, n);
    }
    attachment->pins_wanted = 0;
    attachment->pin_rounds = 0;
}

/* --- Phases. --- */

static void set_phase(struct collector *c, unsigned int i, enum phase phase)
{
    c->attachments[i].phase = phase;
    c->attachments[i].rounds = 0;
    c->next_round_usec = c->now_usec;
}

static void begin_draining(struct collector *c, unsigned int i, bool last)
{
    c->attachments[i].drain_mode = last ? DRAIN_LAST_RECORDS : DRAIN_RECORDS;
    c->feeds[i].mode = c->attachments[i].drain_mode;
    set_phase(c, i, PHASE_DRAINING);
}

/* What it asked for is over; of what others still ask for, the next loss may be its own. */
static void set_drained(struct collector *c, unsigned int i)
{
    struct feed *feed = &c->feeds[i];

    if (c->attachments[i].phase == PHASE_DRAINING)
        feed->pending = drain_unsettled(c->drain, &sink_config(feed->sink)->cpus);
    feed->mode = DRAIN_LOSSES;
    sink_set_unsettled(feed->sink, &feed->pending);
    set_phase(c, i, PHASE_DRAINED);
    collector_tell(c, MESSAGE_DRAINED, feed->sink, cpu_set_count(&feed->pending));
}

static void begin_settling(struct collector *c, unsigned int i)
{
    set_phase(c, i, PHASE_SETTLING);
    c->attachments[i].settled = true;
    c->attachments[i].settle_end_usec = c->now_usec + SETTLE_MAX_USEC;
}

static void begin_flushing(struct collector *c, unsigned int i)
{
    if (c->attachments[i].pins_wanted)
        pin(c, i); /* no round comes any more */
    c->feeds[i].mode = DRAIN_NOTHING;
    sink_tell_gaps(c->feeds[i].sink, c->now_usec);
    sink_flush(c->feeds[i].sink);
    set_phase(c, i, PHASE_FLUSHING);
}

/* LAST: tracing is disabled, and what still comes was asked for, unless it came of settling. */
static void begin_closing(struct collector *c, unsigned int i, bool last)
{
    if (!last) {
        begin_flushing(c, i);
        return;
    }
    c->feeds[i].mode = c->attachments[i].settled ? DRAIN_NOTHING : c->attachments[i].drain_mode;
    set_phase(c, i, PHASE_CLOSING);
}

/* Returns whether rounds are to be made for it. */
static bool phase_has_rounds(enum phase phase)
{
    switch (phase) {
    case PHASE_FEEDING:
    case PHASE_DRAINING:
    case PHASE_SETTLING:
    case PHASE_CLOSING:
        return true;
    case PHASE_DRAINED:
    case PHASE_FLUSHING:
        return false;
    }
    return false;
}

bool attachments_have_rounds(const struct collector *c)
{
    for (unsigned int i = 0; i < c->nr_feeds; i++)
        if (phase_has_rounds(c->attachments[i].phase))
            return true;
    return false;
}

/* --- Pins and successors: at the end of a round. --- */

static void want_pin(struct collector *c, unsigned int i, int64_t n)
{
    c->attachments[i].pins_wanted |= UINT32_C(1) << n;
    if (c->attachments[i].phase == PHASE_FEEDING)
        c->next_round_usec = c->now_usec;
    else
        pin(c, i);
}

static void want_successor(struct collector *c, unsigned int i, struct sink *successor, bool now)
{
    c->attachments[i].successor = successor;
    c->attachments[i].succeeds_now = now;
    if (now)
        c->next_round_usec = c->now_usec;
}

static void succeed(struct collector *c, unsigned int i)
{
    struct sink *before = c->feeds[i].sink;

    c->feeds[i].sink = c->attachments[i].successor;
    c->attachments[i].successor = NULL;
    c->attachments[i].limit_told = false;
    sink_inherit_gaps(c->feeds[i].sink, before);
    add_feed(c, before, PHASE_FLUSHING, DRAIN_NOTHING);
    sink_flush(before);
    collector_tell(c, MESSAGE_SUCCEEDED, before, 0);
}

/* For watches: whether Xen has told what it lost, as far as known. */
static bool all_is_told(const struct collector *c, const struct sink *sink)
{
    struct cpu_set unsettled;

    if (!sink_config(sink)->watch)
        return true;
    unsettled = drain_unsettled(c->drain, &sink_config(sink)->cpus);
    return cpu_set_count(&unsettled) == 0;
}

/* What is to be done where a file may end or begin. */
static void end_round(struct collector *c, unsigned int i)
{
    struct attachment *attachment = &c->attachments[i];
    bool even = drain_is_even(c->drain) && !c->feeds[i].starved;

    if (sink_end_round(c->feeds[i].sink, even && all_is_told(c, c->feeds[i].sink)))
        collector_tell(c, MESSAGE_WATCHED, c->feeds[i].sink, 0);
    if (attachment->pins_wanted && (even || ++attachment->pin_rounds >= PIN_MAX_ROUNDS))
        pin(c, i);
    if (attachment->successor && even && !c->feeds[i].at_limit &&
        c->nr_feeds + ATTACH_SPARE < FEEDS_MAX && attachment->phase == PHASE_FEEDING &&
        (attachment->succeeds_now || sink_is_full(c->feeds[i].sink)) &&
        sink_can_end_here(c->feeds[i].sink))
        succeed(c, i);
}

/* --- Rounds. --- */

static uint64_t poll_usec(const struct collector *c)
{
    uint64_t usec = UINT64_MAX;

    for (unsigned int i = 0; i < c->nr_feeds; i++)
        if (phase_has_rounds(c->attachments[i].phase))
            usec = min_u64(usec, sink_config(c->feeds[i].sink)->poll_usec);
    return usec;
}

static bool any_is_settling(const struct collector *c)
{
    for (unsigned int i = 0; i < c->nr_feeds; i++)
        if (c->attachments[i].phase == PHASE_SETTLING)
            return true;
    return false;
}

bool attachments_are_starved(const struct collector *c)
{
    for (unsigned int i = 0; i < c->nr_feeds; i++)
        if (c->feeds[i].starved)
            return true;
    return false;
}

static uint64_t idle_interval_usec(const struct collector *c)
{
    for (unsigned int i = 0; i < c->nr_feeds; i++) {
        const struct sink *sink = c->feeds[i].sink;

        if (phase_has_rounds(c->attachments[i].phase) &&
            (!sink_ring(sink) || sink_config(sink)->watch || sink_config(sink)->max_age_tsc))
            return IDLE_INTERVAL_USEC;
    }
    return IDLE_RING_INTERVAL_USEC;
}

/* When to look again, after a round. */
static void schedule_round(struct collector *c, const struct round *round, bool timer_fired)
{
    uint64_t poll = poll_usec(c);

    if (round->waiting_bytes > 0)
        c->interval_usec = poll;
    else if (timer_fired)
        c->interval_usec = max_u64(min_u64(c->interval_usec * 2, idle_interval_usec(c)), poll);
    if (any_is_settling(c))
        c->interval_usec = SETTLE_STEP_USEC;
    c->next_round_usec = c->now_usec + c->interval_usec;
    if (round->behind)
        c->next_round_usec = c->now_usec;
}

/* Whether its rounds come to an end by themselves; where tracing goes on they do not. */
static bool has_end(const struct feed *feed)
{
    return feed->mode != DRAIN_RECORDS;
}

/* Whether a round at the end took what there was, or enough were made. */
static bool took_all(const struct collector *c, unsigned int i, const struct round *round)
{
    if (c->attachments[i].rounds >= DRAIN_MAX_ROUNDS)
        return true;
    if (c->feeds[i].starved)
        return false;
    return has_end(&c->feeds[i]) ? !round->behind : drain_is_even(c->drain);
}

static bool is_settled(const struct collector *c, unsigned int i)
{
    return c->now_usec >= c->attachments[i].settle_end_usec ||
           cpu_set_count(&c->feeds[i].pending) == 0;
}

/* Once. */
static void tell_limit(struct collector *c, unsigned int i)
{
    if (!c->attachments[i].limit_told)
        collector_tell(c, MESSAGE_LIMIT, c->feeds[i].sink, 0);
    c->attachments[i].limit_told = true;
}

static void follow_round(struct collector *c, unsigned int i, const struct round *round)
{
    struct attachment *attachment = &c->attachments[i];

    /* However long the disk takes: what is in the buffers stays there, and is the sink's. */
    if (!c->feeds[i].starved || !has_end(&c->feeds[i]))
        attachment->rounds++;
    if (c->feeds[i].at_limit)
        tell_limit(c, i);
    if (attachment->phase == PHASE_DRAINING && took_all(c, i, round))
        set_drained(c, i);
    else if (attachment->phase == PHASE_CLOSING && took_all(c, i, round))
        begin_flushing(c, i);
    else if (attachment->phase == PHASE_SETTLING && is_settled(c, i))
        set_drained(c, i);
    end_round(c, i);
}

static void expire(const struct sink *sink)
{
    uint64_t age_tsc = sink_config(sink)->max_age_tsc;
    uint64_t now_tsc = age_tsc ? xen_read_tsc() : 0;

    if (age_tsc && now_tsc > age_tsc)
        ring_expire(sink_ring(sink), now_tsc - age_tsc);
}

void attachments_run_round(struct collector *c, bool timer_fired)
{
    struct round round = drain_round(c->drain, c->feeds, c->nr_feeds, c->now_usec);
    unsigned int nr_feeds = c->nr_feeds; /* successors put the ones before them behind */

    count_up(&c->stats.rounds);
    schedule_round(c, &round, timer_fired);
    for (unsigned int i = 0; i < nr_feeds; i++) {
        follow_round(c, i, &round);
        if (sink_ring(c->feeds[i].sink))
            expire(c->feeds[i].sink);
    }
}

/* For those who are there, so that SINK begins with an even round. */
static void run_rounds_before(struct collector *c)
{
    unsigned int rounds = 0;

    do
        attachments_run_round(c, false);
    while (!drain_is_even(c->drain) && ++rounds < ATTACH_MAX_ROUNDS);
}

/* Where the consumer of a CPU is that has no records for a long time: the next daemon asks. */
static void note_cons(const struct collector *c, const struct sink *sink)
{
    for (unsigned int cpu = 0; cpu < sink_config(sink)->nr_cpus; cpu++) {
        struct ring_window window = {.cpu = cpu};

        if (!drain_read_cons(c->drain, cpu, &window.cons_from))
            continue;
        window.cons_to = window.cons_from;
        ring_commit_nothing(sink_ring(sink), &window);
    }
}

static void attach(struct collector *c, struct sink *sink)
{
    /* What is in Xen's buffers belongs to those who are there; without any, to the first. */
    if (attachments_have_rounds(c))
        run_rounds_before(c);
    else if (sink_config(sink)->discard) /* but for losses that are still awaited */
        (void)drain_round(c->drain, c->feeds, c->nr_feeds, c->now_usec);
    if (sink_ring(sink))
        note_cons(c, sink);
    add_feed(c, sink, PHASE_FEEDING, DRAIN_RECORDS);
    c->interval_usec = sink_config(sink)->poll_usec;
    c->next_round_usec = c->now_usec;
    xen_host_virq_rearm(c->host);
    collector_tell(c, MESSAGE_ATTACHED, sink, 0);
}

static bool find_feed(const struct collector *c, const struct sink *sink, unsigned int *ret_index)
{
    for (unsigned int i = 0; i < c->nr_feeds; i++) {
        if (c->feeds[i].sink == sink) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

/* About feeds[i]. */
static void handle_message(struct collector *c, const struct message *message, unsigned int i)
{
    switch (message->type) {
    case MESSAGE_DRAIN:
        /* Else it has crossed with SUCCEEDED: the successor will be told to. */
        if (c->attachments[i].phase != PHASE_FLUSHING)
            begin_draining(c, i, message->flag);
        break;
    case MESSAGE_SETTLE:
        begin_settling(c, i);
        break;
    case MESSAGE_CLOSE:
        begin_closing(c, i, message->flag);
        break;
    case MESSAGE_PIN:
        want_pin(c, i, message->value);
        break;
    case MESSAGE_SUCCEED:
        want_successor(c, i, message->other, message->flag);
        break;
    case MESSAGE_GRANT:
        if (sink_grant(message->sink, (uint64_t)message->value, message->flag))
            tell_limit(c, i);
        break;
    case MESSAGE_ABORT:
        if (sink_abort(message->sink, c->uring))
            collector_tell(c, MESSAGE_FAILED, message->sink, -ECANCELED);
        break;
    case MESSAGE_ATTACH:
    case MESSAGE_QUIT:
    case MESSAGE_ATTACHED:
    case MESSAGE_DRAINED:
    case MESSAGE_PINNED:
    case MESSAGE_WATCHED:
    case MESSAGE_SUCCEEDED:
    case MESSAGE_GRANT_WANTED:
    case MESSAGE_LIMIT:
    case MESSAGE_FAILED:
    case MESSAGE_CLOSED:
    case MESSAGE_DIED:
        assert(false); /* those are not about one, or go the other way */
    }
}

void attachments_handle_message(struct collector *c, const struct message *message)
{
    unsigned int i;

    if (message->type == MESSAGE_ATTACH)
        attach(c, message->sink);
    else if (find_feed(c, message->sink, &i))
        handle_message(c, message, i);
    /* Else a grant or an abort has crossed with CLOSED. */
}

/* What is left to do for a sink after a round: flush, write, ask for more. */
static void tend_sink(struct collector *c, unsigned int i)
{
    struct sink *sink = c->feeds[i].sink;
    uint64_t oldest_usec = sink_oldest_usec(sink);

    /* Towards the end also a chunk in which nothing was kept: it has to go back. */
    if (c->attachments[i].phase != PHASE_FEEDING ||
        (oldest_usec &&
         (sink_config(sink)->is_stream || c->now_usec >= oldest_usec + FLUSH_AGE_USEC)))
        sink_flush(sink);
    sink_submit(sink, c->uring);
    if (sink_wants_grant(sink))
        collector_tell(c, MESSAGE_GRANT_WANTED, sink, 0);
}

/* Lets go of those that are done. */
static void detach_quiet(struct collector *c)
{
    for (unsigned int i = c->nr_feeds; i-- > 0;) {
        struct sink *sink = c->feeds[i].sink;

        if (c->attachments[i].phase != PHASE_FLUSHING || !sink_is_quiet(sink))
            continue;
        remove_feed(c, i);
        collector_tell(c, MESSAGE_CLOSED, sink, 0);
    }
}

void attachments_tend(struct collector *c)
{
    for (unsigned int i = 0; i < c->nr_feeds; i++)
        tend_sink(c, i);
    detach_quiet(c);
}

uint64_t attachments_wait_usec(const struct collector *c)
{
    uint64_t until_usec = attachments_have_rounds(c) ? c->next_round_usec : UINT64_MAX;

    for (unsigned int i = 0; i < c->nr_feeds; i++) {
        uint64_t oldest_usec = sink_oldest_usec(c->feeds[i].sink);

        if (oldest_usec)
            until_usec = min_u64(until_usec, oldest_usec + FLUSH_AGE_USEC);
    }
    if (until_usec == UINT64_MAX)
        return URING_FOREVER;
    return until_usec > c->now_usec ? until_usec - c->now_usec : 0;
}
