// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lives of the attached sinks: each has its own phase, and all share the rounds. A sink that
 * comes or goes changes nothing for the others.
 */

#include <assert.h>
#include <errno.h>

#include "collector/account.h"
#include "collector/attachment.h"
#include "collector/collector-state.h"
#include "collector/drain.h"
#include "collector/pool.h"
#include "collector/ring.h"
#include "collector/sink.h"
#include "collector/uring.h"
#include "collector/watch.h"
#include "collector/xen.h"
#include "common/units.h"
#include "common/util.h"

/*
 * The longest interval of the timer while no records arrive: for sinks that need the records of a
 * buffer that is less than half full, and for those that do not, because a snapshot of a ring has
 * its own round.
 */
#define IDLE_INTERVAL_USEC      (2 * USEC_PER_SEC)
#define IDLE_RING_INTERVAL_USEC (8 * USEC_PER_SEC)
#define FLUSH_AGE_USEC          USEC_PER_SEC /* no record waits longer before it is written */
#define LOSS_USEC               (500 * USEC_PER_MSEC) /* between two messages about losses */
#define SETTLE_STEP_USEC        (2 * USEC_PER_MSEC)
#define SETTLE_MAX_USEC         (100 * USEC_PER_MSEC)
#define SPARE_MAX_BYTES         (UINT64_C(16) << 20) /* of the pool, for one that is yet to come */
#define ATTACH_SPARE            12u  /* places not for those that only wait for their writes */
#define JOIN_MAX_ROUNDS         256u /* for one that leaves nothing over, before a sink joins */
#define SKEW_MAX_TICKS          (UINT64_C(1) << 27) /* 50 ms, about, between the CPUs' clocks */
#define PIN_MAX_ROUNDS          8u /* for one that leaves nothing over, before a ring is pinned */
#define DROPPING_MAX_ROUNDS     4u /* that only dropped */
#define DROPPING_PAUSE_USEC     (5 * USEC_PER_MSEC) /* about what a disk takes for some chunks */
#define HOLD_FILL_PERCENT       50u
#define HOLD_CHECK_USEC         (5 * USEC_PER_MSEC)
#define DRAIN_MAX_ROUNDS        64u /* for one that takes everything, while others continue */

/* --- Attaching and detaching. --- */

/*
 * Divides the pool so that sinks with a slow disk do not use all of it: half of the pool is
 * promised in equal parts, and the rest is taken first come, first served. A fifth, or an equal
 * part if that is less, but no more than is useful, is kept for the next sink: a lone sink whose
 * disk stalls can use at least four fifths.
 *
 * The total is the pool's present size. Its future size cannot be promised, because rings share the
 * budget. The pool grows while more than half of it is in use, and less than half is left to
 * others, so a sink that has used its share does not stop the growth.
 */
static void share_pool(struct collector *c)
{
    uint64_t total = pool_bytes(c->pool);
    uint64_t promised, spare;
    unsigned int count = 0;

    c->shared_bytes = total;
    c->spare_bytes = 0;

    for (unsigned int i = 0; i < c->nr_attachments; i++)
        count += !sink_ring(c->attachments[i].sink) && !c->attachments[i].abandoned;
    if (count == 0)
        return;
    promised = max_u64(total / (2 * (count + 1)), CHUNK_BYTES);
    spare = min_u64(min_u64(promised, total / 5), SPARE_MAX_BYTES);
    spare = max_u64(spare, CHUNK_BYTES);
    c->spare_bytes = spare + (count - 1) * promised;
    for (unsigned int i = 0; i < c->nr_attachments; i++)
        sink_set_share(c->attachments[i].sink, promised, c->spare_bytes);
}

void attachments_follow_pool(struct collector *c)
{
    if (pool_bytes(c->pool) != c->shared_bytes)
        share_pool(c);
}

static struct attachment *attachments_add(struct collector *c, struct sink *sink, enum phase phase,
                                          enum drain_mode mode)
{
    struct attachment *attachment = &c->attachments[c->nr_attachments];

    assert(c->nr_attachments < ATTACHMENTS_MAX); /* the main thread counts them */
    *attachment = (struct attachment){.sink = sink, .phase = phase, .mode = mode};
    c->nr_attachments++;
    share_pool(c);
    return attachment;
}

/* The last one takes its place. */
static void attachments_remove(struct collector *c, struct attachment *attachment)
{
    *attachment = c->attachments[--c->nr_attachments];
    share_pool(c);
}

/* NULL: the sink is not attached. */
static struct attachment *attachments_find(struct collector *c, const struct sink *sink)
{
    for (unsigned int i = 0; i < c->nr_attachments; i++)
        if (c->attachments[i].sink == sink)
            return &c->attachments[i];
    return NULL;
}

static void attachment_pin(struct collector *c, struct attachment *attachment)
{
    struct sink *sink = attachment->sink;

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

static void attachment_set_phase(struct collector *c, struct attachment *attachment,
                                 enum phase phase)
{
    attachment->phase = phase;
    attachment->rounds = 0;
    c->next_round_usec = c->now_usec;
}

static void attachment_begin_draining(struct collector *c, struct attachment *attachment, bool last)
{
    attachment->drain_mode = last ? DRAIN_LAST_RECORDS : DRAIN_RECORDS;
    attachment->mode = attachment->drain_mode;
    attachment_set_phase(c, attachment, PHASE_DRAINING);
}

/* It takes no more records, but the next loss in those of the others may be its own. */
static void attachment_set_drained(struct collector *c, struct attachment *attachment)
{
    struct sink *sink = attachment->sink;

    if (attachment->phase == PHASE_DRAINING)
        attachment->pending = drain_unsettled(c->drain, &sink_config(sink)->cpus);
    attachment->mode = DRAIN_LOSSES;
    sink_set_unsettled(sink, &attachment->pending);
    attachment_set_phase(c, attachment, PHASE_DRAINED);
    collector_tell(c, MESSAGE_DRAINED, sink, cpu_set_count(&attachment->pending));
}

static void attachment_begin_settling(struct collector *c, struct attachment *attachment)
{
    attachment_set_phase(c, attachment, PHASE_SETTLING);
    attachment->settled = true;
    attachment->settle_end_usec = c->now_usec + SETTLE_MAX_USEC;
}

static void attachment_begin_flushing(struct collector *c, struct attachment *attachment)
{
    if (attachment->pins_wanted)
        attachment_pin(c, attachment); /* no round comes any more */
    attachment->mode = DRAIN_NOTHING;
    sink_tell_gaps(attachment->sink, c->now_usec);
    sink_finish(attachment->sink);
    attachment_set_phase(c, attachment, PHASE_FLUSHING);
}

/* LAST: tracing is disabled, and what still comes was asked for, unless it came of settling. */
static void attachment_begin_closing(struct collector *c, struct attachment *attachment, bool last)
{
    if (!last) {
        attachment_begin_flushing(c, attachment);
        return;
    }
    attachment->mode = attachment->settled ? DRAIN_NOTHING : attachment->drain_mode;
    attachment_set_phase(c, attachment, PHASE_CLOSING);
}

/* Returns whether rounds are to be made for it. */
static bool phase_has_rounds(enum phase phase)
{
    switch (phase) {
    case PHASE_JOINING:
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
    for (unsigned int i = 0; i < c->nr_attachments && !c->holds; i++)
        if (phase_has_rounds(c->attachments[i].phase))
            return true;
    return false;
}

/* --- Beginning. --- */

/*
 * An account that was kept: what its daemon had entered, but not given back to Xen, comes again. No
 * round was made since.
 */
static void settle_account(const struct collector *c, const struct sink *sink)
{
    struct account *account = sink_config(sink)->account;
    uint32_t cons;

    if (!account || account_is_settled(account))
        return;
    for (unsigned int cpu = 0; cpu < sink_config(sink)->nr_cpus; cpu++)
        if (drain_read_cons(c->drain, cpu, &cons))
            account_settle_cpu(account, cpu, cons);
    account_settle(account);
}

/* Ends what it waits for rounds for: none comes any more. */
static void attachment_skip_rounds(struct collector *c, struct attachment *attachment)
{
    if (attachment->phase == PHASE_DRAINING || attachment->phase == PHASE_SETTLING)
        attachment_set_drained(c, attachment);
    else if (attachment->phase == PHASE_CLOSING)
        attachment_begin_flushing(c, attachment);
}

static void attachments_hold(struct collector *c, bool holds, bool softly)
{
    c->holds = holds;
    c->holds_softly = softly;
    c->next_round_usec = c->now_usec;
    for (unsigned int i = 0; i < c->nr_attachments; i++) {
        settle_account(c, c->attachments[i].sink);
        if (holds && !softly)
            attachment_skip_rounds(c, &c->attachments[i]);
    }
}

void attachments_check_hold(struct collector *c)
{
    const struct sink_config *config;

    for (unsigned int i = 0; i < c->nr_attachments && c->holds_softly; i++) {
        config = sink_config(c->attachments[i].sink);
        for (unsigned int cpu = 0; cpu < config->nr_cpus && c->holds_softly; cpu++) {
            struct drain_cpu state;

            drain_read_cpu(c->drain, cpu, &state);
            if (state.fill_percent >= HOLD_FILL_PERCENT)
                attachments_hold(c, false, false);
        }
    }
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

/* Records are the sink's from here on. */
static void attachment_begin_feeding(struct collector *c, struct attachment *attachment)
{
    struct sink *sink = attachment->sink;

    if (sink_ring(sink))
        note_cons(c, sink);
    if (!c->holds)
        settle_account(c, sink);
    attachment->mode = DRAIN_RECORDS;
    attachment_set_phase(c, attachment, PHASE_FEEDING);
    c->interval_usec = sink_config(sink)->poll_usec;
    collector_rearm_virq(c);
    collector_tell(c, MESSAGE_ATTACHED, sink, 0);
}

/*
 * Now, or a little later if newer records than that were drained already: because a CPU's clock is
 * ahead of ours, or Xen's clock is further ahead than we know. One that is further ahead than that
 * has no TSC at all, and does not count.
 */
static uint64_t joining_tsc(const struct collector *c)
{
    uint64_t now_tsc = tsc_now(), newest_tsc = drain_newest_tsc(c->drain);
    uint64_t ahead_max = SKEW_MAX_TICKS + tsc_offset_uncertainty();

    if (newest_tsc >= now_tsc && newest_tsc - now_tsc < ahead_max)
        return newest_tsc + 1;
    return now_tsc;
}

/*
 * The sink begins now, at one TSC for all CPUs. It has no loss that began before LOSSES_TSC: those
 * had ended when it joined.
 */
static void attachment_join(struct collector *c, struct attachment *attachment, uint64_t losses_tsc)
{
    attachment->joins_tsc = joining_tsc(c);
    attachment->joins_losses_tsc = losses_tsc;
    attachment->joining = sink_config(attachment->sink)->cpus;
    sink_begin(attachment->sink, attachment->joins_tsc);
    attachment_begin_feeding(c, attachment);
}

/*
 * Records in Xen's buffers belong to the attached sinks: a sink that joins them, or discards these
 * records, begins after them. Without other sinks, they belong to the first one.
 */
static void attachments_attach(struct collector *c, struct sink *sink)
{
    bool joins = attachments_have_rounds(c) || sink_config(sink)->discard;
    struct attachment *attachment = attachments_add(c, sink, joins ? PHASE_JOINING : PHASE_FEEDING,
                                                    joins ? DRAIN_JOINING : DRAIN_RECORDS);

    c->next_round_usec = c->now_usec;
    if (joins)
        return;
    sink_begin_first(sink, tsc_now());
    attachment_begin_feeding(c, attachment);
}

/* --- Pins and successors: at the end of a round. --- */

static void attachment_want_pin(struct collector *c, struct attachment *attachment, int64_t n)
{
    attachment->pins_wanted |= UINT32_C(1) << n;
    if (attachment->phase == PHASE_FEEDING && !c->holds)
        c->next_round_usec = c->now_usec;
    else
        attachment_pin(c, attachment);
}

static bool attachment_can_be_succeeded(const struct collector *c,
                                        const struct attachment *attachment, bool even)
{
    return attachment->successor && even && !attachment->at_limit &&
           c->nr_attachments + ATTACH_SPARE < ATTACHMENTS_MAX &&
           attachment->phase == PHASE_FEEDING &&
           (attachment->succeeds_now || sink_is_full(attachment->sink)) &&
           sink_can_end_here(attachment->sink);
}

/* The place in the rounds stays; the sink before waits for its writes in a new one. */
static void attachment_succeed(struct collector *c, struct attachment *attachment)
{
    struct sink *before = attachment->sink;

    attachment->sink = attachment->successor;
    attachment->successor = NULL;
    attachment->limit_told = false;
    sink_take_over(attachment->sink, before);
    (void)attachments_add(c, before, PHASE_FLUSHING, DRAIN_NOTHING);
    sink_finish(before);
    if (sink_config(before)->holds) /* what it has left in the buffers has waited for this */
        c->next_round_usec = c->now_usec;
    collector_tell(c, MESSAGE_SUCCEEDED, before, 0);
}

static void attachment_want_successor(struct collector *c, struct attachment *attachment,
                                      struct sink *successor, bool now)
{
    attachment->successor = successor;
    attachment->succeeds_now = now;
    if (now)
        c->next_round_usec = c->now_usec;
    /* No round is needed: it has taken nothing. */
    if (c->holds && sink_config(attachment->sink)->holds && attachment->phase == PHASE_FEEDING)
        attachment_succeed(c, attachment);
}

/* For watches: whether Xen has reported what it lost, as far as known. */
static bool all_is_told(const struct collector *c, const struct sink *sink)
{
    struct cpu_set unsettled;

    if (!watch_is_active(sink_config(sink)->watch))
        return true;
    unsettled = drain_unsettled(c->drain, &sink_config(sink)->cpus);
    return cpu_set_count(&unsettled) == 0;
}

/* Actions at a point where a file may end or begin. */
static void attachment_end_round(struct collector *c, struct attachment *attachment)
{
    bool even = drain_is_even(c->drain) && !attachment->starved;

    if (sink_end_round(attachment->sink, even && all_is_told(c, attachment->sink)))
        collector_tell(c, MESSAGE_WATCHED, attachment->sink, 0);
    if (attachment->pins_wanted && (even || ++attachment->pin_rounds >= PIN_MAX_ROUNDS))
        attachment_pin(c, attachment);
    if (attachment_can_be_succeeded(c, attachment, even))
        attachment_succeed(c, attachment);
}

/* --- Rounds. --- */

static uint64_t poll_usec(const struct collector *c)
{
    uint64_t usec = UINT64_MAX;

    for (unsigned int i = 0; i < c->nr_attachments; i++)
        if (phase_has_rounds(c->attachments[i].phase))
            usec = min_u64(usec, sink_config(c->attachments[i].sink)->poll_usec);
    return usec;
}

static bool any_is_settling(const struct collector *c)
{
    for (unsigned int i = 0; i < c->nr_attachments; i++)
        if (c->attachments[i].phase == PHASE_SETTLING)
            return true;
    return false;
}

bool attachments_want_chunks(const struct collector *c)
{
    if (c->pauses)
        return true;
    for (unsigned int i = 0; i < c->nr_attachments; i++)
        if (c->attachments[i].starved)
            return true;
    return false;
}

static uint64_t idle_interval_usec(const struct collector *c)
{
    for (unsigned int i = 0; i < c->nr_attachments; i++) {
        const struct sink *sink = c->attachments[i].sink;

        if (phase_has_rounds(c->attachments[i].phase) &&
            (!sink_ring(sink) || watch_is_active(sink_config(sink)->watch) ||
             sink_config(sink)->max_age_tsc))
            return IDLE_INTERVAL_USEC;
    }
    return IDLE_RING_INTERVAL_USEC;
}

/*
 * Buffers that fill as fast as they are read cause one round after the other. If no sink has room,
 * only completed writes help, and on a host with one CPU, the kernel's workers need that CPU. The
 * thread therefore waits. Xen counts the records that it drops.
 */
static void note_dropping(struct collector *c, const struct round *round)
{
    if (round->had_room)
        c->dropping_rounds = 0;
    else if (round->dropped)
        c->dropping_rounds++;
    c->pauses = round->behind && c->dropping_rounds >= DROPPING_MAX_ROUNDS;
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
    note_dropping(c, round);
    if (c->pauses)
        c->next_round_usec = c->now_usec + DROPPING_PAUSE_USEC;
    else if (round->behind)
        c->next_round_usec = c->now_usec;
}

/* Whether its rounds come to an end by themselves; as long as it is traced they do not. */
static bool attachment_has_end(const struct attachment *attachment)
{
    return attachment->mode != DRAIN_RECORDS;
}

/* Whether a round at the end took what there was, or enough were made. */
static bool attachment_took_all(const struct collector *c, const struct attachment *attachment,
                                const struct round *round)
{
    if (attachment->rounds >= DRAIN_MAX_ROUNDS)
        return true;
    if (attachment->starved)
        return false;
    return attachment_has_end(attachment) ? !round->behind : drain_is_even(c->drain);
}

static bool attachment_is_settled(const struct collector *c, const struct attachment *attachment)
{
    return c->now_usec >= attachment->settle_end_usec || cpu_set_count(&attachment->pending) == 0;
}

/* Once. */
static void attachment_tell_limit(struct collector *c, struct attachment *attachment)
{
    if (!attachment->limit_told)
        collector_tell(c, MESSAGE_LIMIT, attachment->sink, 0);
    attachment->limit_told = true;
}

static void attachment_follow_round(struct collector *c, struct attachment *attachment,
                                    const struct round *round)
{
    /* However long the disk takes: what is in the buffers stays there, and is the sink's. */
    if (!attachment->starved || !attachment_has_end(attachment))
        attachment->rounds++;
    if (attachment->at_limit)
        attachment_tell_limit(c, attachment);
    if (attachment->phase == PHASE_JOINING && drain_is_even(c->drain))
        attachment_join(c, attachment, c->round_tsc); /* the round has emptied the buffers */
    else if (attachment->phase == PHASE_JOINING && attachment->rounds >= JOIN_MAX_ROUNDS)
        attachment_join(c, attachment, 0);
    else if (attachment->phase == PHASE_DRAINING && attachment_took_all(c, attachment, round))
        attachment_set_drained(c, attachment);
    else if (attachment->phase == PHASE_CLOSING && attachment_took_all(c, attachment, round))
        attachment_begin_flushing(c, attachment);
    else if (attachment->phase == PHASE_SETTLING && attachment_is_settled(c, attachment))
        attachment_set_drained(c, attachment);
    attachment_end_round(c, attachment);
}

/* Of a ring: lets go of records that are too old. */
static void attachment_expire(const struct attachment *attachment)
{
    uint64_t age_tsc = sink_config(attachment->sink)->max_age_tsc;
    uint64_t now_tsc = age_tsc ? tsc_now() : 0;

    if (age_tsc && now_tsc > age_tsc)
        ring_expire(sink_ring(attachment->sink), now_tsc - age_tsc);
}

/* Which sinks, and how much, is in their ledgers. */
static void attachments_tell_losses(struct collector *c)
{
    bool has_missed = false;

    if (c->now_usec < c->loss_usec || __atomic_load_n(&c->loss_is_told, __ATOMIC_RELAXED))
        return;
    for (unsigned int i = 0; i < c->nr_attachments; i++)
        has_missed = sink_take_missed(c->attachments[i].sink) || has_missed;
    if (!has_missed)
        return;
    c->loss_usec = c->now_usec + LOSS_USEC;
    __atomic_store_n(&c->loss_is_told, true, __ATOMIC_RELAXED);
    collector_tell(c, MESSAGE_LOST, NULL, 0);
}

void attachments_run_round(struct collector *c, bool timer_fired)
{
    unsigned int count = c->nr_attachments; /* a successor adds the sink before it at the end */
    struct tsc_round times = {.begin_tsc = xen_read_tsc()};
    struct round round = drain_round(c->drain, c->attachments, count, c->now_usec);

    times.end_tsc = xen_read_tsc();
    times.newest_tsc = round.newest_tsc;
    times.is_even = drain_is_even(c->drain) && !attachments_want_chunks(c);
    tsc_learn(&c->tsc, &times);
    c->round_tsc = times.begin_tsc + tsc_offset();
    count_up(&c->stats.rounds);
    schedule_round(c, &round, timer_fired);
    attachments_tell_losses(c);
    for (unsigned int i = 0; i < count; i++) {
        attachment_follow_round(c, &c->attachments[i], &round);
        if (sink_ring(c->attachments[i].sink))
            attachment_expire(&c->attachments[i]);
    }
}

/* --- Messages, and what is left to do after them. --- */

static bool attachments_take_any(const struct collector *c)
{
    for (unsigned int i = 0; i < c->nr_attachments; i++)
        if (c->attachments[i].mode != DRAIN_NOTHING)
            return true;
    return false;
}

/*
 * This makes its figures final; its chunks are returned when the kernel releases them. Without
 * other sinks, the records that it has left in Xen's buffers must not become the first ones of the
 * next sink.
 */
static void attachment_abandon(struct collector *c, struct attachment *attachment, bool requested)
{
    struct sink *sink = attachment->sink;

    if (attachment->phase <= PHASE_DRAINING)
        attachment->pending = drain_unsettled(c->drain, &sink_config(sink)->cpus);
    sink_set_unsettled(sink, &attachment->pending);
    attachment->abandoned = true;
    attachment->successor = NULL;
    if (sink_abandon(sink, c->uring, requested))
        collector_tell(c, MESSAGE_FAILED, sink, -ECANCELED);
    attachment_begin_flushing(c, attachment);
    if (!attachments_take_any(c))
        drain_discard(c->drain);
    share_pool(c);
    collector_tell(c, MESSAGE_ABANDONED, sink, 0);
}

static void attachment_handle_message(struct collector *c, struct attachment *attachment,
                                      const struct message *message)
{
    if (attachment->abandoned && message->type != MESSAGE_PIN)
        return; /* sent before the main thread knew */
    if (attachment->phase == PHASE_JOINING && message->type != MESSAGE_GRANT)
        attachment_join(c, attachment, tsc_now()); /* it ends before it has begun */
    switch (message->type) {
    case MESSAGE_DRAIN:
        /* Else it has crossed with SUCCEEDED: the main thread will send it to the successor. */
        if (attachment->phase != PHASE_FLUSHING)
            attachment_begin_draining(c, attachment, message->flag);
        /* A soft hold ends soon, and what has waited in the buffers meanwhile is the sink's. */
        if (c->holds && !c->holds_softly)
            attachment_skip_rounds(c, attachment);
        break;
    case MESSAGE_SETTLE:
        attachment_begin_settling(c, attachment);
        if (c->holds)
            attachment_skip_rounds(c, attachment);
        break;
    case MESSAGE_CLOSE:
        attachment_begin_closing(c, attachment, message->flag && !c->holds);
        break;
    case MESSAGE_PIN:
        attachment_want_pin(c, attachment, message->value);
        break;
    case MESSAGE_SUCCEED:
        attachment_want_successor(c, attachment, message->other, message->flag);
        break;
    case MESSAGE_GRANT:
        if (sink_grant(message->sink, (uint64_t)message->value, message->flag))
            attachment_tell_limit(c, attachment);
        break;
    case MESSAGE_ABORT:
        attachment_abandon(c, attachment, message->flag);
        break;
    case MESSAGE_ATTACH:
    case MESSAGE_HOLD:
    case MESSAGE_QUIT:
    case MESSAGE_ATTACHED:
    case MESSAGE_DRAINED:
    case MESSAGE_PINNED:
    case MESSAGE_WATCHED:
    case MESSAGE_SUCCEEDED:
    case MESSAGE_GRANT_WANTED:
    case MESSAGE_LIMIT:
    case MESSAGE_FAILED:
    case MESSAGE_ABANDONED:
    case MESSAGE_CLOSED:
    case MESSAGE_LOST:
    case MESSAGE_POOL_REFUSED:
    case MESSAGE_DIED:
        assert(false); /* those are not about an attached sink, or go the other way */
    }
}

void attachments_handle_message(struct collector *c, const struct message *message)
{
    struct attachment *attachment;

    if (message->type == MESSAGE_ATTACH) {
        attachments_attach(c, message->sink);
        return;
    }
    if (message->type == MESSAGE_HOLD) {
        attachments_hold(c, message->flag, message->value != 0);
        return;
    }
    attachment = attachments_find(c, message->sink);
    if (attachment) /* else a grant or an abort has crossed with CLOSED */
        attachment_handle_message(c, attachment, message);
}

bool attachments_take_back(struct collector *c)
{
    bool has_any = false;

    for (unsigned int i = 0; i < c->nr_attachments; i++) {
        struct sink *sink = c->attachments[i].sink;
        int r = sink_take_back(sink, c->now_usec, &has_any);

        if (r < 0)
            collector_tell(c, MESSAGE_FAILED, sink, r);
    }
    return has_any;
}

/* After a round: flushes, writes, asks for more. */
static void attachment_tend(struct collector *c, struct attachment *attachment)
{
    struct sink *sink = attachment->sink;
    uint64_t oldest_usec = sink_oldest_usec(sink);

    /* Towards the end also a chunk in which nothing was kept: it has to go back. */
    if (attachment->phase != PHASE_FEEDING ||
        (oldest_usec &&
         (sink_config(sink)->is_stream || c->now_usec >= oldest_usec + FLUSH_AGE_USEC)))
        sink_flush(sink);
    if (sink_submit(sink, c->uring, c->now_usec))
        attachment_tell_limit(c, attachment);
    if (sink_wants_grant(sink))
        collector_tell(c, MESSAGE_GRANT_WANTED, sink, 0);
}

/* When a ring may give back what it has borrowed; 0: never. A hold leaves it as it is. */
static uint64_t attachment_settle_usec(const struct collector *c,
                                       const struct attachment *attachment)
{
    const struct ring *ring = sink_ring(attachment->sink);

    return ring && attachment->phase == PHASE_FEEDING && !c->holds ? ring_settle_usec(ring) : 0;
}

/* Lets it do so, unless a round is due. */
static void attachment_settle(const struct collector *c, const struct attachment *attachment)
{
    struct sink *sink = attachment->sink;

    if (attachment_settle_usec(c, attachment) == 0 || c->next_round_usec <= c->now_usec)
        return;
    if (ring_settle(sink_ring(sink), c->now_usec))
        sink_flush(sink);
}

/* Lets go of those that are done. Returns whether a successor had waited for one of them. */
static bool attachments_detach_quiet(struct collector *c)
{
    bool has_released = false;

    for (unsigned int i = c->nr_attachments; i-- > 0;) {
        struct attachment *attachment = &c->attachments[i];
        struct sink *sink = attachment->sink;

        if (attachment->phase != PHASE_FLUSHING || !sink_is_quiet(sink))
            continue;
        attachments_remove(c, attachment);
        for (unsigned int n = 0; n < c->nr_attachments; n++)
            has_released |= sink_follow(c->attachments[n].sink, sink);
        collector_tell(c, MESSAGE_CLOSED, sink, 0);
    }
    return has_released;
}

void attachments_tend(struct collector *c)
{
    do {
        for (unsigned int i = 0; i < c->nr_attachments; i++) {
            attachment_tend(c, &c->attachments[i]);
            attachment_settle(c, &c->attachments[i]);
        }
    } while (attachments_detach_quiet(c));
}

uint64_t attachments_wait_usec(const struct collector *c)
{
    uint64_t until_usec = attachments_have_rounds(c) ? c->next_round_usec : UINT64_MAX;

    if (c->holds_softly)
        until_usec = c->now_usec + HOLD_CHECK_USEC;
    for (unsigned int i = 0; i < c->nr_attachments; i++) {
        uint64_t oldest_usec = sink_oldest_usec(c->attachments[i].sink);
        uint64_t retry_usec = sink_retry_usec(c->attachments[i].sink);
        uint64_t settle_usec = attachment_settle_usec(c, &c->attachments[i]);

        if (oldest_usec)
            until_usec = min_u64(until_usec, oldest_usec + FLUSH_AGE_USEC);
        if (retry_usec)
            until_usec = min_u64(until_usec, retry_usec);
        if (settle_usec)
            until_usec = min_u64(until_usec, settle_usec);
    }
    if (until_usec == UINT64_MAX)
        return URING_FOREVER;
    return until_usec > c->now_usec ? until_usec - c->now_usec : 0;
}
