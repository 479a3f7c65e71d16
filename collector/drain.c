// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A window is copied from Xen's buffer and walked piece by piece, only once for all sinks. If a
 * sink takes all records, the window is copied directly into its chunk, and from there into the
 * chunks of the others while it is in the cache. Then the space is returned to Xen. Each step
 * checks the buffer; a buffer in an impossible state is set aside, and the others are not affected.
 */

#include "collector/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/attachment.h"
#include "collector/memory.h"
#include "collector/pool.h"
#include "collector/sink.h"
#include "collector/tbuf.h"
#include "collector/walk.h"
#include "collector/xen.h"
#include "common/record.h"
#include "common/util.h"

/*
 * A window is cut where a sink's chunk or output ends. A window for several sinks is not cut
 * shorter than this, which fits into the smallest chunk with all records that may have to precede
 * it.
 */
#define SHARED_MIN_BYTES (CHUNK_BYTES - 2 * RECORD_MAX_BYTES)

/* Bytes that are copied and then walked at a time, so that they are in the CPU's own cache. */
#define PIECE_BYTES (64u * 1024u)

struct drain {
    unsigned int nr_cpus;
    struct tbuf *tbufs; /* [nr_cpus] */
    uint8_t *scratch;   /* PIECE_BYTES: a piece that nobody keeps as it is */
    bool was_cut;       /* the last round cut a window, or began in the middle */
    unsigned int begin; /* the next round begins with that CPU: see begin_round() */
    bool is_resumed;    /* ... whoever takes part: see drain_resume_round() */
    uint64_t newest_tsc;
};

/* A sink that wants a window, and its part of it. */
struct taker {
    struct attachment *attachment;
    enum sink_room found;
    uint32_t room; /* bytes, if it has some */
    struct walk_part part;
};

/* One CPU's turn in a round. */
struct visit {
    struct drain *drain;
    struct tbuf *tbuf;
    unsigned int cpu;
    uint32_t waiting; /* bytes */
    uint64_t now_usec;
    struct round *round;
    struct taker takers[ATTACHMENTS_MAX];
    unsigned int nr_takers;
};

int drain_new(const struct xen_trace_buffers *buffers, struct drain **ret_drain)
{
    struct drain *drain = memory_alloc(1, sizeof(*drain));

    if (!drain)
        return -ENOMEM;
    drain->nr_cpus = buffers->nr_cpus;
    drain->tbufs = memory_alloc(buffers->nr_cpus, sizeof(*drain->tbufs));
    drain->scratch = memory_alloc(1, PIECE_BYTES);
    if (!drain->tbufs || !drain->scratch) {
        drain_free(drain);
        return -ENOMEM;
    }
    for (unsigned int cpu = 0; cpu < buffers->nr_cpus; cpu++)
        if (buffers->buffer[cpu]) /* an impossible one sets itself aside */
            (void)tbuf_init(&drain->tbufs[cpu], buffers->buffer[cpu], buffers->pages);
    *ret_drain = drain;
    return 0;
}

struct drain *drain_free(struct drain *drain)
{
    if (!drain)
        return NULL;
    free(drain->tbufs);
    free(drain->scratch);
    free(drain);
    return NULL;
}

bool drain_read_cons(const struct drain *drain, unsigned int cpu, uint32_t *ret_cons)
{
    if (cpu >= drain->nr_cpus || !drain->tbufs[cpu].shared || drain->tbufs[cpu].set_aside)
        return false;
    *ret_cons = drain->tbufs[cpu].cons;
    return true;
}

int drain_resume_cpu(struct drain *drain, unsigned int cpu, uint32_t cons)
{
    drain->was_cut = true; /* it may have been in the middle of a round */
    return tbuf_resume(&drain->tbufs[cpu], cons);
}

void drain_resume_round(struct drain *drain, unsigned int cpu)
{
    drain->begin = cpu + 1 < drain->nr_cpus ? cpu + 1 : 0;
    drain->is_resumed = true;
}

static void set_aside(struct tbuf *tbuf)
{
    __atomic_store_n(&tbuf->set_aside, true, __ATOMIC_RELAXED); /* read by the main thread */
}

static struct window_source source_of(const struct visit *visit, uint32_t bytes)
{
    return (struct window_source){
        .cpu = visit->cpu,
        .cons_from = visit->tbuf->cons,
        .cons_to = tbuf_cons_behind(visit->tbuf, bytes),
    };
}

/* --- Room. --- */

static bool is_joining(const struct taker *taker)
{
    return taker->attachment->mode == DRAIN_JOINING;
}

/* A sink without room does not make others wait. A lone one leaves the records in the buffer. */
static void note_no_room(const struct visit *visit, const struct taker *taker)
{
    struct attachment *attachment = taker->attachment;
    bool alone = visit->nr_takers == 1;

    if (taker->found == SINK_AT_LIMIT)
        attachment->at_limit = true;
    if (!alone || taker->found == SINK_DROPS) {
        visit->round->dropped = true;
        /* A smaller window might fit, but what came before would be missing without a report. */
        if (taker->found == SINK_AT_LIMIT)
            sink_end(attachment->sink);
    } else if (taker->found == SINK_NO_CHUNK) {
        attachment->starved = true;
    } else if (taker->found != SINK_HOLDS && attachment->mode == DRAIN_LAST_RECORDS) {
        tbuf_consume(visit->tbuf, visit->waiting);
    }
}

/*
 * Gets room for a taker's part of the window. If the taker is expected to filter out records, room
 * for all of them is not requested, because that could close a chunk into which the rest fits.
 */
static void taker_find_room(const struct visit *visit, struct taker *taker, uint32_t least_bytes)
{
    uint32_t wanted_bytes = visit->waiting;

    if (taker->part.passing != WALK_ALL)
        wanted_bytes = (uint32_t)min_u64(wanted_bytes, PIECE_BYTES);
    taker->found = sink_begin_window(taker->attachment->sink, visit->cpu,
                                     (uint32_t)min_u64(least_bytes, wanted_bytes), wanted_bytes,
                                     visit->now_usec, &taker->part.kept, &taker->room);
}

/* Finds room for the window with each taker. Returns how much of it may be taken; 0: nothing. */
static uint32_t visit_find_room(struct visit *visit)
{
    bool alone = visit->nr_takers == 1;
    uint32_t least = alone ? RECORD_MAX_BYTES : (uint32_t)min_u64(visit->waiting, SHARED_MIN_BYTES);
    uint32_t bytes = visit->waiting;

    for (unsigned int i = 0; i < visit->nr_takers; i++) {
        struct taker *taker = &visit->takers[i];

        if (is_joining(taker)) {
            visit->round->had_room = true; /* it joins the sooner */
            continue;
        }
        taker_find_room(visit, taker, least);
        if (taker->found == SINK_ROOM) {
            visit->round->had_room = true;
            if (taker->part.passing == WALK_ALL)
                bytes = (uint32_t)min_u64(bytes, taker->room);
            continue;
        }
        note_no_room(visit, taker);
        if (alone && taker->found != SINK_DROPS)
            return 0;
    }
    return bytes;
}

/* The room left in the sink that has the least, among those that keep records. */
static uint32_t visit_room_left(const struct visit *visit)
{
    uint32_t left = UINT32_MAX;

    for (unsigned int i = 0; i < visit->nr_takers; i++) {
        const struct taker *taker = &visit->takers[i];

        if (taker->part.kept && taker->room - taker->part.result.kept_bytes < left)
            left = taker->room - taker->part.result.kept_bytes;
    }
    return left;
}

/* --- Copying and walking. --- */

/* A sink that joined others: records from before are not its own. */
static bool is_behind(const struct visit *visit, const struct taker *taker)
{
    return cpu_set_has(&taker->attachment->joining, visit->cpu);
}

static void walk_newer(const struct visit *visit, struct taker *taker, uint8_t *piece,
                       uint32_t bytes, bool whole)
{
    struct attachment *attachment = taker->attachment;
    struct walk_part *parts[] = {&taker->part};
    uint32_t older;
    bool found;

    older =
        walk_pass_older(piece, bytes, attachment->joins_tsc, attachment->joins_losses_tsc, &found);
    if (found)
        cpu_set_remove(&attachment->joining, visit->cpu);
    walk_piece(piece + older, bytes - older, whole, parts, 1);
    taker->part.result.consumed_bytes += older;
}

/* Where a piece is copied to: best into the chunk of a sink that all of it is expected to be for.
 */
static uint8_t *place_for_piece(const struct visit *visit)
{
    for (unsigned int i = 0; i < visit->nr_takers; i++) {
        const struct taker *taker = &visit->takers[i];

        if (taker->part.kept && taker->part.passing == WALK_ALL && !is_behind(visit, taker))
            return taker->part.kept + taker->part.result.kept_bytes;
    }
    return visit->drain->scratch;
}

static void walk_for_all(struct visit *visit, uint8_t *piece, uint32_t bytes, bool whole)
{
    struct walk_part *parts[ATTACHMENTS_MAX];
    unsigned int nr_parts = 0;

    for (unsigned int i = 0; i < visit->nr_takers; i++) {
        struct taker *taker = &visit->takers[i];

        if (is_behind(visit, taker))
            walk_newer(visit, taker, piece, bytes, whole);
        else
            parts[nr_parts++] = &taker->part;
    }
    if (nr_parts > 0)
        walk_piece(piece, bytes, whole, parts, nr_parts);
}

/*
 * Gives all takers their part of the first BYTES of the window, or of as many of its pieces as fit
 * into the chunks of all takers. Returns the number of bytes.
 */
static uint32_t visit_copy_and_walk(struct visit *visit, uint32_t bytes)
{
    const struct walk_result *walked = &visit->takers[0].part.result; /* the framing is for all */
    uint32_t copied = 0;

    while (copied < bytes && !walked->broken) {
        uint32_t begin = walked->consumed_bytes; /* a record that the last piece cut comes again */
        uint32_t length = (uint32_t)min_u64(bytes - begin, PIECE_BYTES);
        uint32_t left = visit_room_left(visit); /* all of the piece may pass */
        uint8_t *piece;

        if (begin > 0 && left < length)
            break;
        length = (uint32_t)min_u64(length, left); /* near an output's end: a record, at least */
        piece = place_for_piece(visit);
        tbuf_copy(visit->tbuf, begin, length, piece);
        copied = begin + length;
        walk_for_all(visit, piece, length, copied == visit->waiting);
    }
    return copied;
}

/* --- A window. --- */

/* Returns whether the taker's sink counts its part of the window, kept or dropped. */
static bool taker_counts(const struct taker *taker)
{
    return !is_joining(taker) && (taker->found == SINK_ROOM || taker->found == SINK_NO_CHUNK ||
                                  taker->found == SINK_HOLDS || taker->found == SINK_DROPS);
}

static void visit_end_part(const struct visit *visit, struct taker *taker)
{
    struct attachment *attachment = taker->attachment;
    const struct walk_result *walked = &taker->part.result;
    struct window_source source = source_of(visit, walked->consumed_bytes);
    uint64_t newest_tsc = max_u64(walked->last_tsc, walked->lost_last_tsc);

    attachment->passing = taker->part.passing;
    visit->round->newest_tsc = max_u64(visit->round->newest_tsc, newest_tsc);
    visit->drain->newest_tsc = max_u64(visit->drain->newest_tsc, newest_tsc);
    if (!taker_counts(taker))
        return;
    if (taker->found == SINK_ROOM)
        sink_end_window(attachment->sink, &source, walked, taker->part.class_records);
    else
        sink_drop_window(attachment->sink, &source, walked);
}

static void note_taken(const struct visit *visit, uint32_t bytes)
{
    bool cut = bytes < visit->waiting;

    visit->drain->was_cut = visit->drain->was_cut || cut;
    if (visit->waiting >= visit->tbuf->data_bytes / 2 || cut)
        visit->round->behind = true;
}

/* Gives the takers their parts of the window, and then the space back to Xen. */
static void visit_take_window(struct visit *visit)
{
    const struct walk_result *walked = &visit->takers[0].part.result;
    uint32_t bytes = visit_find_room(visit);

    if (bytes == 0)
        return;
    note_taken(visit, visit_copy_and_walk(visit, bytes));
    for (unsigned int i = 0; i < visit->nr_takers; i++) {
        const struct taker *taker = &visit->takers[i];
        const struct walk_result *part = &taker->part.result;
        struct window_source source = source_of(visit, part->consumed_bytes);

        if (taker_counts(taker))
            sink_enter_account(taker->attachment->sink, &source, part);
    }
    for (unsigned int i = 0; i < visit->nr_takers; i++)
        visit_end_part(visit, &visit->takers[i]);
    tbuf_consume(visit->tbuf, walked->consumed_bytes);
    if (walked->broken)
        set_aside(visit->tbuf);
}

/* --- Losses that were not reported when a sink's session ended. --- */

/*
 * Whether the first record that waits, a wrap_buffer record left out, reports a loss. Xen puts it
 * before the first record for which both fit: if there was a loss to report, it is the first.
 */
static bool read_first_loss(const struct tbuf *tbuf, uint32_t waiting, struct lost_record *ret_lost)
{
    uint8_t head[RECORD_MAX_BYTES + LOST_RECORD_BYTES];
    uint32_t bytes = waiting < sizeof(head) ? waiting : (uint32_t)sizeof(head);
    uint32_t offset = 0;
    uint32_t header;

    tbuf_copy(tbuf, 0, bytes, head);
    memcpy(&header, head, sizeof(header));
    if (record_is_wrap(header)) {
        offset = record_bytes(header);
        if (offset + RECORD_MIN_BYTES > bytes)
            return false;
        memcpy(&header, head + offset, sizeof(header));
    }
    if (!record_is_lost(header) || offset + LOST_RECORD_BYTES > bytes)
        return false;
    memcpy(ret_lost, head + offset, sizeof(*ret_lost));
    return true;
}

/* Of all that waits, which this sink's session did not ask for, keeps the loss it begins with. */
static void visit_for_loss(const struct visit *visit, struct attachment *attachment)
{
    static const uint64_t no_class_records[EVENT_CLASSES];
    struct walk_result walked = {.kept_bytes = LOST_RECORD_BYTES};
    struct window_source source = source_of(visit, visit->waiting);
    struct lost_record lost;
    uint8_t *records;
    uint32_t room;

    cpu_set_remove(&attachment->pending, visit->cpu);
    if (!read_first_loss(visit->tbuf, visit->waiting, &lost))
        return;
    walked.lost = lost.count;
    walked.lost_first_tsc = (uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0];
    walked.lost_last_tsc = record_tsc(&lost);
    if (walked.lost_first_tsc < attachment->joins_losses_tsc)
        return; /* from before it joined */
    switch (sink_begin_window(attachment->sink, visit->cpu, sizeof(lost), sizeof(lost),
                              visit->now_usec, &records, &room)) {
    case SINK_ROOM:
        memcpy(records, &lost, sizeof(lost));
        sink_enter_account(attachment->sink, &source, &walked);
        sink_end_window(attachment->sink, &source, &walked, no_class_records);
        break;
    case SINK_NO_CHUNK:
    case SINK_HOLDS:
    case SINK_DROPS:
        sink_enter_account(attachment->sink, &source, &walked);
        sink_drop_window(attachment->sink, &source, &walked);
        break;
    case SINK_AT_LIMIT:
    case SINK_HAS_FAILED:
        break;
    }
}

/* --- The round. --- */

static bool wants_records(const struct attachment *attachment, unsigned int cpu)
{
    return (attachment->mode == DRAIN_RECORDS || attachment->mode == DRAIN_LAST_RECORDS ||
            attachment->mode == DRAIN_JOINING) &&
           cpu_set_has(&sink_config(attachment->sink)->cpus, cpu);
}

static void visit_add_taker(struct visit *visit, struct attachment *attachment)
{
    visit->takers[visit->nr_takers++] = (struct taker){
        .attachment = attachment,
        .found = SINK_ROOM,
        .part = {.filter = sink_filter(attachment->sink), .passing = attachment->passing},
    };
}

static void visit_cpu(struct visit *visit, struct attachment *attachments,
                      unsigned int nr_attachments)
{
    visit->nr_takers = 0;
    for (unsigned int i = 0; i < nr_attachments; i++) {
        if (wants_records(&attachments[i], visit->cpu))
            visit_add_taker(visit, &attachments[i]);
        else if (attachments[i].mode == DRAIN_LOSSES &&
                 cpu_set_has(&attachments[i].pending, visit->cpu))
            visit_for_loss(visit, &attachments[i]);
    }
    if (visit->nr_takers == 0) {
        tbuf_consume(visit->tbuf, visit->waiting);
        return;
    }
    visit->round->waiting_bytes += visit->waiting;
    visit_take_window(visit);
}

/* The only one that takes anything; NULL: there are several, or none. */
static struct attachment *find_only(struct attachment *attachments, unsigned int nr_attachments)
{
    struct attachment *only = NULL;

    for (unsigned int i = 0; i < nr_attachments; i++) {
        if (attachments[i].mode == DRAIN_NOTHING)
            continue;
        if (only)
            return NULL;
        only = &attachments[i];
    }
    return only;
}

/*
 * Returns the CPU to begin with. A round in which a lone sink was starved stopped there, and is
 * continued: if the first CPUs had their next turn before the last ones had theirs, the file would
 * be out of order by as long as the sink was starved.
 */
static unsigned int begin_round(struct drain *drain, struct attachment *attachments,
                                unsigned int nr_attachments, const struct attachment *only)
{
    unsigned int begin = only || drain->is_resumed ? drain->begin : 0;

    for (unsigned int i = 0; i < nr_attachments; i++) {
        sink_begin_round(attachments[i].sink, !drain->was_cut && !attachments[i].starved);
        attachments[i].starved = false;
        attachments[i].at_limit = false;
    }
    drain->was_cut = begin > 0; /* the first CPUs have more by now */
    drain->begin = 0;
    drain->is_resumed = false;
    return begin;
}

struct round drain_round(struct drain *drain, struct attachment *attachments,
                         unsigned int nr_attachments, uint64_t now_usec)
{
    struct round round = {0};
    const struct attachment *only = find_only(attachments, nr_attachments);
    unsigned int begin = begin_round(drain, attachments, nr_attachments, only);
    struct visit visit;

    visit.drain = drain;
    visit.now_usec = now_usec;
    visit.round = &round;
    for (unsigned int cpu = begin; cpu < drain->nr_cpus; cpu++) {
        visit.cpu = cpu;
        visit.tbuf = &drain->tbufs[cpu];
        if (!visit.tbuf->shared || visit.tbuf->set_aside)
            continue;
        if (tbuf_peek(visit.tbuf, &visit.waiting) < 0)
            set_aside(visit.tbuf);
        else if (visit.waiting > 0)
            visit_cpu(&visit, attachments, nr_attachments);
        if (only && only->starved) {
            drain->begin = cpu;
            break;
        }
    }
    return round;
}

bool drain_is_even(const struct drain *drain)
{
    return !drain->was_cut;
}

uint64_t drain_newest_tsc(const struct drain *drain)
{
    return drain->newest_tsc;
}

void drain_discard(struct drain *drain)
{
    for (unsigned int cpu = 0; cpu < drain->nr_cpus; cpu++) {
        struct tbuf *tbuf = &drain->tbufs[cpu];
        uint32_t waiting;

        if (!tbuf->shared || tbuf->set_aside)
            continue;
        if (tbuf_peek(tbuf, &waiting) < 0)
            set_aside(tbuf);
        else if (waiting > 0)
            tbuf_consume(tbuf, waiting);
    }
}

struct cpu_set drain_unsettled(const struct drain *drain, const struct cpu_set *cpus)
{
    struct cpu_set set = {0};

    for (unsigned int cpu = 0; cpu < drain->nr_cpus; cpu++) {
        const struct tbuf *tbuf = &drain->tbufs[cpu];

        if (cpu_set_has(cpus, cpu) && tbuf->shared && !tbuf->set_aside && tbuf_is_unsettled(tbuf))
            cpu_set_add(&set, cpu);
    }
    return set;
}

void drain_read_cpu(const struct drain *drain, unsigned int cpu, struct drain_cpu *ret_cpu)
{
    const struct tbuf *tbuf;

    *ret_cpu = (struct drain_cpu){0};
    if (!drain || cpu >= drain->nr_cpus || !drain->tbufs[cpu].shared)
        return;
    tbuf = &drain->tbufs[cpu];
    *ret_cpu = (struct drain_cpu){
        .has_buffer = true,
        .set_aside = __atomic_load_n(&tbuf->set_aside, __ATOMIC_RELAXED),
        .fill_percent = tbuf_fill_percent(tbuf),
        .drained_bytes = __atomic_load_n(&tbuf->drained_bytes, __ATOMIC_RELAXED),
    };
}
