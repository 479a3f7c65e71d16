// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sink's closed chunks on their way to the output: several are written at once to a file, one
 * after the other to a pipe.
 *
 * When a write fails the output ends before its chunk: all records from there on, written or not,
 * move from `delivered` to `dropped` in the ledger. This must take constant time, because the
 * records of other sinks do not wait: each chunk stores the figures from when it was taken, and
 * those of the first dropped chunk are restored. The dropped chunks stay at the end of the queue,
 * from which sink_submit() gives back a few at a time, and the kernel's ones when it has completed
 * them.
 */

#include <assert.h>
#include <errno.h>

#include "collector/handoff.h"
#include "collector/pool.h"
#include "collector/sink-state.h"
#include "collector/uring.h"
#include "common/units.h"
#include "common/util.h"

#define RETRY_USEC (10 * USEC_PER_MSEC) /* before a write that the kernel did not take */
#define GIVE_MAX   64u /* dropped chunks that are given back in one turn of the loop */

/* --- The queue. --- */

bool sink_drops(const struct sink *sink, const struct chunk *chunk)
{
    return chunk->output_offset >= sink->end_offset;
}

/* Takes the chunk at LINK, which follows BEFORE, out of the queue, and gives it back. */
static void sink_unlink_chunk(struct sink *sink, struct chunk **link, struct chunk *before)
{
    struct chunk *chunk = *link;

    *link = chunk->next;
    if (sink->queue_tail == chunk)
        sink->queue_tail = before;
    sink_give_chunk(sink, chunk);
}

/* Gives back what is written without a gap; a later failure cannot take it from the output. */
void sink_retire_written(struct sink *sink)
{
    struct chunk *head;

    while ((head = sink->queue_head) && head->state == CHUNK_WRITTEN && !sink_drops(sink, head)) {
        ledger_publish(&sink->totals.queued_bytes, sink->totals.queued_bytes - head->fill_bytes);
        if (!sink->config.handoff)
            ledger_publish(&sink->totals.output_bytes, head->output_offset + head->fill_bytes);
        sink_unlink_chunk(sink, &sink->queue_head, NULL);
    }
}

/* Except those that the kernel still reads: they follow when it has completed them. */
static void sink_give_dropped(struct sink *sink)
{
    struct chunk **link = &sink->queue_head;
    struct chunk *before = NULL;
    unsigned int given = 0;

    while (sink->has_dropped && *link) {
        if (!sink_drops(sink, *link) || (*link)->state == CHUNK_WRITING) {
            before = *link;
            link = &before->next;
            continue;
        }
        if (given++ == GIVE_MAX)
            return;
        sink_unlink_chunk(sink, link, before);
    }
    sink->has_dropped = false;
}

/* Moves the records of FIRST and of all chunks after it from delivered to dropped. */
static void sink_drop_from(struct sink *sink, const struct chunk *first, enum drop_cause cause)
{
    const uint64_t *marks = pool_notes(sink->pool, first);

    for (unsigned int cpu = 0; cpu < sink->config.nr_cpus; cpu++) {
        struct ledger *ledger = &sink->ledger[cpu];
        uint64_t dropped = ledger->delivered - marks[MARK_DELIVERED + cpu];

        if (dropped == 0)
            continue;
        ledger_publish(&ledger->delivered, marks[MARK_DELIVERED + cpu]);
        ledger_add(&sink->totals.drops[cause], dropped);
        ledger_add(&ledger->dropped, dropped);
        sink_note_loss(sink);
    }
    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        ledger_publish(&sink->totals.class_records[i], marks[MARK_CLASSES + i]);
    ledger_publish(&sink->totals.windows, marks[MARK_WINDOWS]);
    ledger_publish(&sink->totals.queued_bytes,
                   first->output_offset - sink->queue_head->output_offset);
    sink->has_dropped = true;
}

void sink_end_at(struct sink *sink, uint64_t offset, enum drop_cause cause)
{
    const struct chunk *first = NULL;

    sink_flush(sink);
    if (offset >= sink->end_offset)
        return;
    for (first = sink->queue_head; first && first->output_offset < offset;)
        first = first->next;
    if (first && !sink_drops(sink, first))
        sink_drop_from(sink, first, cause);
    sink->end_offset = offset;
    sink_give_dropped(sink);
}

void sink_fail_at(struct sink *sink, uint64_t offset, enum drop_cause cause)
{
    sink->has_failed = true;
    sink->failure = cause;
    sink_end_at(sink, offset, cause);
}

/* --- Writes. --- */

static int sink_write_chunk(const struct sink *sink, struct chunk *chunk, struct uring *uring)
{
    uint64_t offset = URING_NO_OFFSET;

    if (!sink->config.is_stream)
        offset = chunk->output_offset + chunk->written_bytes;
    return uring_write(uring, sink->config.fd, chunk->data + chunk->written_bytes,
                       chunk->fill_bytes - chunk->written_bytes, offset,
                       (uint64_t)(uintptr_t)chunk);
}

static void sink_publish_oldest_write(struct sink *sink)
{
    uint64_t oldest_usec = sink->nr_writing > 0 ? UINT64_MAX : 0;

    for (unsigned int i = 0; i < sink->nr_writing; i++)
        oldest_usec = min_u64(oldest_usec, sink->writing[i]->written_usec);
    ledger_publish(&sink->totals.writing_since_usec, oldest_usec);
}

static void sink_begin_write(struct sink *sink, struct chunk *chunk, uint64_t now_usec)
{
    chunk->state = CHUNK_WRITING;
    chunk->written_usec = now_usec;
    sink->writing[sink->nr_writing++] = chunk;
    sink_publish_oldest_write(sink);
}

static void sink_end_write(struct sink *sink, const struct chunk *chunk)
{
    unsigned int i = 0;

    assert(chunk->state == CHUNK_WRITING);
    while (sink->writing[i] != chunk)
        i++;
    sink->writing[i] = sink->writing[--sink->nr_writing];
    sink_publish_oldest_write(sink);
}

static void sink_retry_later(struct sink *sink, uint64_t now_usec, bool is_paused)
{
    sink->retry_usec = now_usec + RETRY_USEC;
    sink->is_paused = is_paused;
}

static void sink_write_queued(struct sink *sink, struct uring *uring, uint64_t now_usec)
{
    unsigned int max = sink->config.is_stream ? 1 : SINK_WRITES_MAX;

    if (sink->is_paused && now_usec < sink->retry_usec)
        return;
    sink->retry_usec = 0;
    sink->is_paused = false;
    for (struct chunk *chunk = sink->queue_head; chunk && sink->nr_writing < max;
         chunk = chunk->next) {
        if (sink_drops(sink, chunk))
            break;
        if (chunk->state != CHUNK_QUEUED)
            continue;
        if (chunk->output_offset + chunk->fill_bytes > sink->config.granted_bytes)
            break;
        if (sink_write_chunk(sink, chunk, uring) < 0) {
            /* The submission queue is full. The next wait empties it, if the kernel can. */
            sink_retry_later(sink, now_usec, false);
            break;
        }
        sink_begin_write(sink, chunk, now_usec);
    }
}

static void sink_cancel_writes(struct sink *sink, struct uring *uring)
{
    if (!sink->cancels)
        return;
    if (sink->config.handoff)
        handoff_cancel(sink->config.handoff);
    for (unsigned int i = 0; i < sink->nr_writing; i++)
        if (uring_cancel(uring, (uint64_t)(uintptr_t)sink->writing[i]) < 0)
            return; /* the submission queue is full: all of them again, in the next turn */
    sink->cancels = false;
}

bool sink_submit(struct sink *sink, struct uring *uring, uint64_t now_usec)
{
    sink_give_dropped(sink);
    sink_cancel_writes(sink, uring);
    if (sink->before)
        return false;
    if (sink->config.handoff)
        return sink_hand_over(sink, uring, now_usec);
    sink_write_queued(sink, uring, now_usec);
    return false;
}

uint64_t sink_retry_usec(const struct sink *sink)
{
    return sink->has_dropped || sink->cancels ? 1 : sink->retry_usec;
}

/* Notes how far a write came. Returns a negative errno if there is no point in writing the rest. */
static int sink_note_result(struct sink *sink, struct chunk *chunk, int result, uint64_t now_usec)
{
    uint32_t align_bytes = sink->config.is_stream ? 1 : sink->config.align_bytes;
    int64_t written =
        uring_write_progress(result, chunk->fill_bytes, chunk->written_bytes, align_bytes);

    chunk->state = CHUNK_QUEUED; /* to be written again, unless it turns out to be done */
    if (written < 0)
        return (int)written;
    if (uring_is_transient(result))
        sink_retry_later(sink, now_usec, true);
    if (written > chunk->written_bytes)
        ledger_publish(&sink->totals.progress_usec, now_usec);
    chunk->written_bytes = (uint32_t)written;
    if (chunk->written_bytes == chunk->fill_bytes)
        chunk->state = CHUNK_WRITTEN;
    return 0;
}

int sink_fail(struct sink *sink, const struct chunk *chunk, int r)
{
    bool first = !sink->has_failed;

    sink_fail_at(sink, chunk->output_offset, DROP_OUTPUT_FAILED);
    return first ? r : 0;
}

int sink_complete(struct sink *sink, struct chunk *chunk, int result, uint64_t now_usec)
{
    int r;

    sink_end_write(sink, chunk);
    if (sink_drops(sink, chunk)) {
        chunk->state = CHUNK_WRITTEN; /* or not: nobody counts on it */
        sink->has_dropped = true;
        sink_give_dropped(sink);
        return 0;
    }
    r = sink_note_result(sink, chunk, result, now_usec);
    if (r < 0)
        return sink_fail(sink, chunk, r);
    sink_retire_written(sink);
    return 0;
}

void sink_end(struct sink *sink)
{
    sink_flush(sink);
    sink_end_at(sink, sink->closed_bytes, DROP_LIMIT);
}

/* --- The grant. --- */

bool sink_grant(struct sink *sink, uint64_t granted_bytes, bool final)
{
    sink->config.granted_bytes = granted_bytes;
    sink->grant_wanted = false;
    if (!final)
        return false;
    sink->config.max_bytes =
        min_u64(sink->config.max_bytes, align_down(granted_bytes, sink->config.align_bytes));
    if (sink->config.handoff || sink_used_bytes(sink) <= sink->config.max_bytes)
        return false; /* or sink_submit() finds out */
    sink_flush(sink);
    for (const struct chunk *chunk = sink->queue_head; chunk && !sink_drops(sink, chunk);
         chunk = chunk->next) {
        if (chunk->output_offset + chunk->fill_bytes > sink->config.max_bytes) {
            sink_end_at(sink, chunk->output_offset, DROP_LIMIT);
            return true;
        }
    }
    return false;
}

bool sink_can_end_here(const struct sink *sink)
{
    return sink->end_offset == SINK_NO_LIMIT &&
           sink_length_at_most(sink, align_up(sink_used_bytes(sink), sink->config.align_bytes)) <=
               sink->config.granted_bytes;
}

/* How long the output will soon be. */
static uint64_t sink_foreseen_bytes(const struct sink *sink)
{
    uint64_t used = sink_length_at_most(
        sink, sink->closed_bytes + (sink->filling ? sink->filling->bytes : CHUNK_BYTES));
    uint64_t ahead = used + sink->config.grant_ahead_bytes;

    if (!sink->config.rotate_bytes)
        return ahead;
    return min_u64(ahead, max_u64(used, sink->config.rotate_bytes) + CHUNK_BYTES);
}

bool sink_wants_grant(struct sink *sink)
{
    if (sink->grant_wanted || sink->has_failed ||
        sink->config.granted_bytes >= sink->config.max_bytes)
        return false;
    sink->grant_wanted = sink_foreseen_bytes(sink) > sink->config.granted_bytes;
    return sink->grant_wanted;
}

bool sink_abandon(struct sink *sink, struct uring *uring, bool requested)
{
    bool first;

    sink_flush(sink);
    if (sink->ring)
        return false;
    first = !sink->has_failed && sink->queue_head;
    sink_fail_at(sink, sink->queue_head ? sink->queue_head->output_offset : sink->closed_bytes,
                 requested ? DROP_ABORTED : DROP_OUTPUT_FAILED);
    sink->cancels = true;
    sink_cancel_writes(sink, uring);
    return first;
}

bool sink_is_quiet(const struct sink *sink)
{
    return !sink->filling && !sink->queue_head && sink_is_handed_back(sink);
}
