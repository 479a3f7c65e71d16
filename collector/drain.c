// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A window that one sink wants is copied from Xen's buffer straight into its chunk, walked there
 * piece by piece, and only then given back to Xen. One that several want is copied once, and walked
 * from there into the chunk of each. Each step checks what the buffer holds; one in an
 * impossible state is set aside, and the others are not affected.
 */

#include "collector/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/attachment.h"
#include "collector/pool.h"
#include "collector/sink.h"
#include "collector/tbuf.h"
#include "collector/walk.h"
#include "collector/xen.h"
#include "common/record.h"
#include "common/util.h"

/* What one visit takes of a window for several: as much as fits into a chunk with all that may have
 * to be put before it. */
#define SCRATCH_BYTES (CHUNK_BYTES - 2 * RECORD_MAX_BYTES)

/* What is copied, and then walked, at a time: it is in the processor's own cache then. */
#define PIECE_BYTES (64u * 1024u)

struct drain {
    unsigned int nr_cpus;
    struct tbuf *tbufs; /* [nr_cpus] */
    uint8_t *scratch;   /* SCRATCH_BYTES */
    bool was_cut;       /* the last round cut a window, or began in the middle */
    unsigned int begin; /* the next round begins with that CPU: see begin_round() */
    uint64_t newest_tsc;
};

/* One CPU's turn in a round. */
struct visit {
    struct drain *drain;
    struct tbuf *tbuf;
    unsigned int cpu;
    uint32_t waiting; /* bytes */
    uint64_t now_usec;
    struct round *round;
};

int drain_new(const struct xen_trace_buffers *buffers, struct drain **ret_drain)
{
    struct drain *drain = calloc(1, sizeof(*drain));

    if (!drain)
        return -ENOMEM;
    drain->nr_cpus = buffers->nr_cpus;
    drain->tbufs = calloc(buffers->nr_cpus, sizeof(*drain->tbufs));
    drain->scratch = malloc(SCRATCH_BYTES);
    if (!drain->tbufs || !drain->scratch) {
        drain_free(drain);
        return -ENOMEM;
    }
    /* Touched now, not on the data path; with zeroes the compiler would make it a calloc(). */
    memset(drain->scratch, 0xff, SCRATCH_BYTES);
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

static void note_walked(const struct visit *visit, const struct walk_result *walked)
{
    uint64_t newest_tsc = max_u64(walked->last_tsc, walked->lost_last_tsc);

    visit->round->newest_tsc = max_u64(visit->round->newest_tsc, newest_tsc);
    visit->drain->newest_tsc = max_u64(visit->drain->newest_tsc, newest_tsc);
    if (walked->broken)
        set_aside(visit->tbuf);
}

static void note_taken(const struct visit *visit, uint32_t bytes)
{
    bool cut = bytes < visit->waiting;

    visit->drain->was_cut = visit->drain->was_cut || cut;
    if (visit->waiting >= visit->tbuf->data_bytes / 2 || cut)
        visit->round->behind = true;
}

/* --- A sink that joined others: records from before are not its own. --- */

/* Returns the bytes of BYTES of records at WINDOW, the next of the CPU, that it does not get. */
static uint32_t pass_older(const struct visit *visit, struct attachment *attachment,
                           const uint8_t *window, uint32_t bytes)
{
    uint32_t older;
    bool found;

    if (!cpu_set_has(&attachment->joining, visit->cpu))
        return 0;
    older =
        walk_pass_older(window, bytes, attachment->joins_tsc, attachment->joins_losses_tsc, &found);
    if (found)
        cpu_set_remove(&attachment->joining, visit->cpu);
    return older;
}

/* --- A window that one sink wants. --- */

/*
 * Copies those of a window's BYTES that the sink asked for to RECORDS, and walks them, a piece
 * after the other: in their place, or out of the scratch if some of them are left out.
 */
static struct walk_result copy_and_walk(const struct visit *visit, struct attachment *attachment,
                                        uint8_t *records, uint32_t bytes, uint64_t *class_records)
{
    bool joins = cpu_set_has(&attachment->joining, visit->cpu);
    struct walk_result sum = {0};
    uint32_t copied;

    do {
        uint32_t begin = sum.consumed_bytes; /* a record that the last piece cut comes again */
        uint32_t piece = (uint32_t)min_u64(bytes - begin, PIECE_BYTES);
        uint8_t *kept = records + sum.kept_bytes;
        uint8_t *window = attachment->selects || joins ? visit->drain->scratch : kept;
        struct walk_result walked;
        uint32_t older;

        tbuf_copy(visit->tbuf, begin, piece, window);
        copied = begin + piece;
        older = pass_older(visit, attachment, window, piece);
        walk_window(window + older, piece - older, copied == visit->waiting,
                    sink_filter(attachment->sink), kept, class_records, &walked);
        attachment->selects = walked.kept_bytes < walked.consumed_bytes;
        walked.consumed_bytes += older;
        walk_add(&sum, &walked);
    } while (copied < bytes && !sum.broken);
    return sum;
}

/* Takes the window into the sink's chunk, and gives the space back to Xen. */
static void take_window(const struct visit *visit, struct attachment *attachment, uint8_t *records,
                        uint32_t room)
{
    uint64_t class_records[EVENT_CLASSES] = {0};
    struct walk_result walked;
    struct window_source source;

    walked = copy_and_walk(visit, attachment, records, room, class_records);
    source = source_of(visit, walked.consumed_bytes);
    sink_end_window(attachment->sink, &source, &walked, class_records);
    tbuf_consume(visit->tbuf, walked.consumed_bytes);
    note_walked(visit, &walked);
}

static void visit_for_one(const struct visit *visit, struct attachment *attachment)
{
    uint8_t *records;
    uint32_t room;

    switch (sink_begin_window(attachment->sink, visit->cpu, visit->waiting, visit->now_usec,
                              &records, &room)) {
    case SINK_ROOM:
        visit->round->had_room = true;
        note_taken(visit, room);
        take_window(visit, attachment, records, room);
        break;
    case SINK_NO_CHUNK:
        attachment->starved = true;
        break;
    case SINK_AT_LIMIT:
        attachment->at_limit = true;
        /* fall through */
    case SINK_HAS_FAILED:
        if (attachment->mode == DRAIN_LAST_RECORDS)
            tbuf_consume(visit->tbuf, visit->waiting);
        break;
    }
}

/* --- A window that several want. --- */

/* A smaller window might fit, but what came before it would be missing without a report. */
static void end_attachment(struct attachment *attachment)
{
    attachment->at_limit = true;
    sink_end(attachment->sink);
}

/* Nothing of it is for a sink that is joining; but where it begins must not be before that. */
static struct walk_result visit_pass_copy(const struct visit *visit,
                                          const struct attachment *attachment, uint32_t bytes)
{
    uint64_t class_records[EVENT_CLASSES] = {0};
    struct walk_result walked;

    walk_window(visit->drain->scratch, bytes, bytes == visit->waiting,
                sink_filter(attachment->sink), NULL, class_records, &walked);
    visit->round->had_room = true; /* it joins the sooner */
    return walked;
}

/* Gives one of them its part of the BYTES in the scratch. Returns how the walk over them went. */
static struct walk_result visit_give_copy(const struct visit *visit, struct attachment *attachment,
                                          uint32_t bytes)
{
    const uint8_t *scratch = visit->drain->scratch;
    uint32_t older = pass_older(visit, attachment, scratch, bytes);
    uint32_t wanted = bytes - older;
    uint64_t class_records[EVENT_CLASSES] = {0};
    struct walk_result walked;
    struct window_source source;
    uint8_t *records;
    uint32_t room;
    enum sink_room found =
        sink_begin_window(attachment->sink, visit->cpu, wanted, visit->now_usec, &records, &room);

    if (found == SINK_ROOM && room < wanted)
        found = SINK_AT_LIMIT; /* of its output; the chunk has room for that much */
    walk_window(scratch + older, wanted, bytes == visit->waiting, sink_filter(attachment->sink),
                found == SINK_ROOM ? records : NULL, class_records, &walked);
    walked.consumed_bytes += older;
    source = source_of(visit, walked.consumed_bytes);
    visit->round->had_room = visit->round->had_room || found == SINK_ROOM;
    visit->round->dropped = visit->round->dropped || found != SINK_ROOM;
    if (found == SINK_ROOM)
        sink_end_window(attachment->sink, &source, &walked, class_records);
    else if (found == SINK_NO_CHUNK)
        sink_drop_window(attachment->sink, &source, &walked);
    else if (found == SINK_AT_LIMIT)
        end_attachment(attachment);
    return walked;
}

static void visit_for_several(const struct visit *visit, struct attachment *const *takers,
                              unsigned int count)
{
    uint32_t bytes = (uint32_t)min_u64(visit->waiting, SCRATCH_BYTES);
    struct walk_result walked = {0};

    note_taken(visit, bytes);
    tbuf_copy(visit->tbuf, 0, bytes, visit->drain->scratch);
    for (unsigned int i = 0; i < count; i++) {
        walked = takers[i]->mode == DRAIN_JOINING ? visit_pass_copy(visit, takers[i], bytes)
                                                  : visit_give_copy(visit, takers[i], bytes);
        note_walked(visit, &walked);
    }
    tbuf_consume(visit->tbuf, walked.consumed_bytes); /* the same for all: it is the framing's */
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
    switch (sink_begin_window(attachment->sink, visit->cpu, sizeof(lost), visit->now_usec, &records,
                              &room)) {
    case SINK_ROOM:
        if (room < sizeof(lost))
            break;
        memcpy(records, &lost, sizeof(lost));
        sink_end_window(attachment->sink, &source, &walked, no_class_records);
        break;
    case SINK_NO_CHUNK:
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

static void visit_cpu(const struct visit *visit, struct attachment *attachments,
                      unsigned int nr_attachments)
{
    struct attachment *takers[ATTACHMENTS_MAX];
    unsigned int count = 0;

    for (unsigned int i = 0; i < nr_attachments; i++) {
        if (wants_records(&attachments[i], visit->cpu))
            takers[count++] = &attachments[i];
        else if (attachments[i].mode == DRAIN_LOSSES &&
                 cpu_set_has(&attachments[i].pending, visit->cpu))
            visit_for_loss(visit, &attachments[i]);
    }
    if (count == 0) {
        tbuf_consume(visit->tbuf, visit->waiting);
        return;
    }
    visit->round->waiting_bytes += visit->waiting;
    if (count == 1 && takers[0]->mode != DRAIN_JOINING)
        visit_for_one(visit, takers[0]);
    else
        visit_for_several(visit, takers, count);
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
    unsigned int begin = only ? drain->begin : 0;

    for (unsigned int i = 0; i < nr_attachments; i++) {
        sink_begin_round(attachments[i].sink, !drain->was_cut && !attachments[i].starved);
        attachments[i].starved = false;
        attachments[i].at_limit = false;
    }
    drain->was_cut = begin > 0; /* the first CPUs have more by now */
    drain->begin = 0;
    return begin;
}

struct round drain_round(struct drain *drain, struct attachment *attachments,
                         unsigned int nr_attachments, uint64_t now_usec)
{
    struct round round = {0};
    struct visit visit = {.drain = drain, .now_usec = now_usec, .round = &round};
    const struct attachment *only = find_only(attachments, nr_attachments);
    unsigned int begin = begin_round(drain, attachments, nr_attachments, only);

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
