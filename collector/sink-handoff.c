// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sink whose output another thread writes, in a form of its own. How long the output becomes is
 * known only when a chunk comes back. Until then the longest that it can become counts against the
 * grant, so the writer never has to ask; close to the limit few chunks are given at a time.
 *
 * The sink ends before the first chunk that would not fit even if nothing else were under way.
 */

#include "collector/handoff.h"
#include "collector/pool.h"
#include "collector/sink-state.h"
#include "common/util.h"

/* A chunk may add more than its bytes: the frame of a compressed file, and its place in the
 * table. A block of data that cannot be compressed takes 3 bytes more for each 128 KiB. */
#define CHUNK_EXTRA_BYTES 64u
#define EXTRA_DIVISOR     1024u

#define FIRST_GUESS 0.25 /* of what was recorded, until the first chunk has come back */

uint64_t sink_length_at_most(const struct sink *sink, uint64_t offset)
{
    uint64_t bytes = offset - sink->complete_offset;

    if (!sink->config.handoff)
        return offset;
    return max_u64(sink->least_bytes, CHUNK_EXTRA_BYTES) + bytes + bytes / EXTRA_DIVISOR +
           (bytes / CHUNK_BYTES + HANDOFF_SLOTS) * CHUNK_EXTRA_BYTES;
}

uint64_t sink_length_guess(const struct sink *sink, uint64_t offset)
{
    double ratio = FIRST_GUESS;

    if (!sink->config.handoff)
        return offset;
    if (sink->complete_offset > 0)
        ratio = (double)sink->least_bytes / (double)sink->complete_offset;
    return sink->least_bytes + (uint64_t)((double)(offset - sink->complete_offset) * ratio);
}

/* Whether it holds more than a quarter of what it may: before half of the pool is in use, and it
 * grows, which takes long just then. */
static bool sink_is_behind(const struct sink *sink)
{
    uint64_t held = sink->totals.held_bytes, free_bytes = pool_free_bytes(sink->pool);
    uint64_t own = sink->promised_bytes > held ? sink->promised_bytes - held : 0;
    uint64_t shared = free_bytes > sink->left_bytes ? free_bytes - sink->left_bytes : 0;

    return held * 3 > max_u64(own, shared);
}

/* Returns the first chunk that does not fit; NULL: there is none. */
static struct chunk *sink_give_queued(struct sink *sink, uint64_t now_usec)
{
    for (struct chunk *chunk = sink->queue_head; chunk; chunk = chunk->next) {
        uint64_t end = chunk->output_offset + chunk->fill_bytes;

        if (sink_drops(sink, chunk))
            return NULL;
        if (chunk->state != CHUNK_QUEUED)
            continue;
        if (sink_length_at_most(sink, end) > sink->config.granted_bytes)
            return chunk;
        if (!handoff_give(sink->config.handoff, chunk->data, chunk->fill_bytes, chunk->ends_round))
            return NULL;
        chunk->state = CHUNK_WRITING;
        chunk->written_usec = now_usec;
        sink->nr_given++;
    }
    if (sink->finishes && !sink->has_failed && !sink->is_end_given)
        sink->is_end_given = handoff_give_end(sink->config.handoff);
    return NULL;
}

/* The oldest that the writer has; NULL: none. */
static struct chunk *sink_oldest_given(const struct sink *sink)
{
    struct chunk *chunk = sink->nr_given > 0 ? sink->queue_head : NULL;

    while (chunk && chunk->state != CHUNK_WRITING)
        chunk = chunk->next;
    return chunk;
}

static void sink_publish_oldest_given(struct sink *sink)
{
    const struct chunk *oldest = sink_oldest_given(sink);

    ledger_publish(&sink->totals.writing_since_usec, oldest ? oldest->written_usec : 0);
}

bool sink_hand_over(struct sink *sink, struct uring *uring, uint64_t now_usec)
{
    const struct chunk *stuck = sink_give_queued(sink, now_usec);
    bool at_limit =
        stuck && sink->nr_given == 0 && sink->config.granted_bytes >= sink->config.max_bytes;

    sink_publish_oldest_given(sink);
    handoff_set_needs(sink->config.handoff, sink_is_behind(sink), stuck);
    handoff_wake(sink->config.handoff, uring);
    if (at_limit)
        sink_end_at(sink, stuck->output_offset, DROP_LIMIT);
    return at_limit;
}

static void sink_note_length(struct sink *sink, const struct handoff_done *done)
{
    sink->least_bytes = done->least_bytes;
    ledger_publish(&sink->totals.output_bytes, done->stored_bytes);
    ledger_publish(&sink->totals.raw_bytes, done->raw_bytes);
}

static int sink_take_chunk_back(struct sink *sink, struct chunk *chunk,
                                const struct handoff_done *done, uint64_t now_usec)
{
    chunk->state = CHUNK_WRITTEN;
    sink->nr_given--;
    if (sink_drops(sink, chunk)) {
        sink->has_dropped = true; /* sink_submit() gives it back */
        return 0;
    }
    if (done->error < 0)
        return sink_fail(sink, chunk, done->error);
    sink->complete_offset = chunk->output_offset + chunk->fill_bytes;
    sink_note_length(sink, done);
    ledger_publish(&sink->totals.plain_bytes, sink->complete_offset);
    ledger_publish(&sink->totals.progress_usec, now_usec);
    sink_retire_written(sink);
    return 0;
}

/* Without its end the output can be read all the same. */
static int sink_take_end_back(struct sink *sink, const struct handoff_done *done)
{
    bool first = !sink->has_failed;

    sink->is_end_done = true;
    if (done->error >= 0) {
        sink_note_length(sink, done);
        return 0;
    }
    sink->has_failed = true;
    sink->failure = DROP_OUTPUT_FAILED;
    return first ? done->error : 0;
}

int sink_take_back(struct sink *sink, uint64_t now_usec, bool *ret_any)
{
    struct handoff_done done;
    int error = 0;

    while (sink->config.handoff && handoff_take_done(sink->config.handoff, &done)) {
        struct chunk *chunk = sink_oldest_given(sink);
        int r = chunk ? sink_take_chunk_back(sink, chunk, &done, now_usec)
                      : sink_take_end_back(sink, &done);

        *ret_any = true;
        error = r < 0 ? r : error; /* the second one returns none */
    }
    if (sink->config.handoff)
        sink_publish_oldest_given(sink);
    return error;
}

bool sink_is_handed_back(const struct sink *sink)
{
    if (!sink->config.handoff)
        return true;
    return sink->is_end_given ? sink->is_end_done : sink->has_failed;
}
