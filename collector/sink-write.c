// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A file sink's closed chunks on their way to the output: several are written at once to a file,
 * one after the other to a pipe.
 *
 * When a write fails the output ends in front of that chunk: everything behind it, written or not,
 * is dropped and moves from `delivered` to `dropped` in the ledger, window by window.
 */

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "collector/pool.h"
#include "collector/sink-state.h"
#include "collector/uring.h"
#include "collector/walk.h"
#include "common/record.h"
#include "common/util.h"

#define MAX_WRITES 8u /* at once, to a file */

static int write_chunk(struct sink *sink, struct chunk *chunk, struct uring *uring)
{
    uint64_t offset = URING_NO_OFFSET;

    if (!sink->config.is_stream)
        offset = chunk->output_offset + chunk->written_bytes;
    return uring_write(uring, sink->config.fd, chunk->data + chunk->written_bytes,
                       chunk->fill_bytes - chunk->written_bytes, offset,
                       (uint64_t)(uintptr_t)chunk);
}

void sink_submit(struct sink *sink, struct uring *uring)
{
    unsigned int max = sink->config.is_stream ? 1 : MAX_WRITES;

    for (struct chunk *chunk = sink->queue_head; chunk && sink->nr_writing < max;
         chunk = chunk->next) {
        if (chunk->state != CHUNK_QUEUED)
            continue;
        if (chunk->output_offset + chunk->fill_bytes > sink->config.granted_bytes)
            break;
        if (write_chunk(sink, chunk, uring) < 0)
            break; /* the submission queue is full: the next wait empties it */
        chunk->state = CHUNK_WRITING;
        sink->nr_writing++;
    }
}

/* Moves a chunk's records, which were walked before, from delivered to dropped. */
static void drop_records(struct sink *sink, const struct chunk *chunk)
{
    uint64_t classes[EVENT_CLASSES] = {0};
    uint32_t offset = 0;

    while (offset < chunk->fill_bytes) {
        struct window_header window;
        struct walk_result walked;
        struct ledger *ledger;

        memcpy(&window, chunk->data + offset, sizeof(window));
        offset += WINDOW_HEADER_BYTES;
        walk_window(chunk->data + offset, window.bytes, true, &walk_everything, NULL, classes,
                    &walked);
        offset += window.bytes;
        ledger = &sink->ledger[window.cpu];
        ledger_publish(&ledger->delivered, ledger->delivered - walked.records);
        ledger_add(&ledger->dropped, walked.records);
    }
}

static void unlink_chunk(struct sink *sink, struct chunk *chunk)
{
    struct chunk **link = &sink->queue_head;
    struct chunk *before = NULL;

    while (*link != chunk) {
        before = *link;
        link = &before->next;
    }
    *link = chunk->next;
    if (sink->queue_tail == chunk)
        sink->queue_tail = before;
    ledger_publish(&sink->totals.queued_bytes, sink->totals.queued_bytes - chunk->fill_bytes);
    sink_give_chunk(sink, chunk);
}

/* Gives back what is written without a gap; a later failure cannot take it from the output. */
static void retire_written(struct sink *sink)
{
    uint64_t end;

    while (sink->queue_head && sink->queue_head->state == CHUNK_WRITTEN)
        unlink_chunk(sink, sink->queue_head);
    end = sink->queue_head ? sink->queue_head->output_offset : sink->closed_bytes;
    ledger_publish(&sink->totals.output_bytes, min_u64(end, sink->end_offset));
}

/*
 * The output ends in front of OFFSET: what lies behind is dropped, but for chunks that the kernel
 * still reads; they follow when their writes end.
 */
static void end_at(struct sink *sink, uint64_t offset)
{
    struct chunk *next;

    sink->end_offset = min_u64(sink->end_offset, offset);
    sink_flush(sink);
    for (struct chunk *chunk = sink->queue_head; chunk; chunk = next) {
        next = chunk->next;
        if (chunk->output_offset < sink->end_offset || chunk->state == CHUNK_WRITING)
            continue;
        drop_records(sink, chunk);
        unlink_chunk(sink, chunk);
    }
    retire_written(sink);
}

/* Notes how far a write came. Returns a negative errno if it cannot go on. */
static int note_result(struct sink *sink, struct chunk *chunk, int result)
{
    uint32_t align_bytes = sink->config.is_stream ? 1 : sink->config.align_bytes;
    int64_t written =
        uring_write_progress(result, chunk->fill_bytes, chunk->written_bytes, align_bytes);

    chunk->state = CHUNK_QUEUED; /* to be written again, unless it turns out to be done */
    if (written < 0)
        return (int)written;
    chunk->written_bytes = (uint32_t)written;
    if (chunk->written_bytes == chunk->fill_bytes)
        chunk->state = CHUNK_WRITTEN;
    return 0;
}

int sink_complete(struct sink *sink, struct chunk *chunk, int result)
{
    bool first = !sink->has_failed;
    int r;

    assert(chunk->state == CHUNK_WRITING);
    sink->nr_writing--;
    r = note_result(sink, chunk, result);
    if (r < 0) {
        sink->has_failed = true;
        end_at(sink, chunk->output_offset);
        return first ? r : 0;
    }
    if (chunk->output_offset >= sink->end_offset)
        end_at(sink, sink->end_offset); /* the output has ended before it meanwhile */
    else
        retire_written(sink);
    return 0;
}

void sink_end(struct sink *sink)
{
    sink_flush(sink);
    sink->end_offset = min_u64(sink->end_offset, sink->closed_bytes);
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
    if (sink_used_bytes(sink) <= sink->config.max_bytes)
        return false;
    sink_flush(sink);
    for (const struct chunk *chunk = sink->queue_head; chunk; chunk = chunk->next) {
        if (chunk->output_offset + chunk->fill_bytes > sink->config.max_bytes) {
            end_at(sink, chunk->output_offset);
            return true;
        }
    }
    return false;
}

bool sink_can_end_here(const struct sink *sink)
{
    return sink->end_offset == SINK_NO_LIMIT &&
           align_up(sink_used_bytes(sink), sink->config.align_bytes) <= sink->config.granted_bytes;
}

/* Up to where it will come soon. */
static uint64_t foreseen_bytes(const struct sink *sink)
{
    uint64_t used = sink->closed_bytes + (sink->filling ? sink->filling->bytes : CHUNK_BYTES);
    uint64_t ahead = used + sink->config.grant_ahead_bytes;

    if (!sink->config.rotate_bytes)
        return ahead;
    return min_u64(ahead, max_u64(used, sink->config.rotate_bytes) + CHUNK_BYTES);
}

bool sink_wants_grant(struct sink *sink)
{
    if (sink->grant_wanted || sink->config.granted_bytes >= sink->config.max_bytes)
        return false;
    sink->grant_wanted = foreseen_bytes(sink) > sink->config.granted_bytes;
    return sink->grant_wanted;
}

bool sink_abort(struct sink *sink, struct uring *uring)
{
    uint64_t offset = sink->closed_bytes;
    bool first;

    if (sink_is_quiet(sink))
        return false;
    if (sink->queue_head)
        offset = sink->queue_head->output_offset;
    for (const struct chunk *chunk = sink->queue_head; chunk; chunk = chunk->next)
        if (chunk->state == CHUNK_WRITING)
            (void)uring_cancel(uring, (uint64_t)(uintptr_t)chunk); /* else it ends by itself */
    first = !sink->has_failed;
    sink->has_failed = true;
    end_at(sink, offset);
    return first;
}

bool sink_is_quiet(const struct sink *sink)
{
    return !sink->filling && !sink->queue_head;
}
