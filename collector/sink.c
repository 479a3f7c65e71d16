// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Windows fill a chunk; a full chunk is queued; queued chunks are written, several at once to a
 * file, one after the other to a pipe.
 *
 * Invariants: a chunk holds whole windows only, and in the output it begins where the one before
 * ended, so that the output can be cut in front of any chunk. A closed chunk is padded to the
 * output's alignment with wrap_buffer records inside its last window: O_DIRECT wants whole blocks,
 * readers want nothing but records, and so the output is sound up to each chunk's end at any time.
 *
 * When a write fails the output ends in front of that chunk: everything behind it, written or not,
 * is dropped and moves from `delivered` to `dropped` in the ledger, window by window.
 */

#include "collector/sink.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/pool.h"
#include "collector/uring.h"
#include "common/record.h"
#include "common/util.h"

#define MAX_WRITES 8u /* at once, to a file */

/* A chunk whose rest is smaller than this is closed rather than filled with a cut window. */
#define WORTHWHILE_BYTES (16u * 1024u)

struct sink {
    struct sink_config config;
    struct walk_filter filter;
    struct pool *pool;
    struct chunk *filling;
    struct chunk *queue_head; /* closed, in output order: some being written, then queued ones */
    struct chunk *queue_tail;
    unsigned int nr_writing;
    uint64_t closed_bytes; /* output offset behind the last closed chunk */
    uint64_t end_offset;   /* the output ends there; SINK_NO_LIMIT while it may grow */
    bool has_failed;       /* ... because of a write or an abort, not of its last grant */
    bool grant_wanted;

    /* Written by the collector thread only, read by the main thread: relaxed atomics. */
    struct ledger *ledger; /* [nr_cpus] */
    struct sink_totals totals;
};

/* A counter that another thread may read meanwhile. */
static void publish(uint64_t *counter, uint64_t value)
{
    __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

static void publish_add(uint64_t *counter, uint64_t n)
{
    publish(counter, *counter + n);
}

static uint64_t observe(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

int sink_new(const struct sink_config *config, struct pool *pool, struct sink **ret_sink)
{
    struct sink *sink = calloc(1, sizeof(*sink));

    if (!sink)
        return -ENOMEM;
    sink->ledger = calloc(config->nr_cpus, sizeof(*sink->ledger));
    if (!sink->ledger) {
        free(sink);
        return -ENOMEM;
    }
    sink->config = *config;
    sink->pool = pool;
    sink->end_offset = SINK_NO_LIMIT;
    if (sink->config.max_bytes != SINK_NO_LIMIT)
        sink->config.max_bytes = align_down(sink->config.max_bytes, config->align_bytes);
    walk_filter_init(&sink->filter, &config->events);
    *ret_sink = sink;
    return 0;
}

struct sink *sink_free(struct sink *sink)
{
    struct chunk *next;

    if (!sink)
        return NULL;
    /* Nothing, unless the collector thread died. */
    if (sink->filling)
        pool_give(sink->pool, sink->filling);
    for (struct chunk *chunk = sink->queue_head; chunk; chunk = next) {
        next = chunk->next;
        pool_give(sink->pool, chunk);
    }
    free(sink->ledger);
    free(sink);
    return NULL;
}

void sink_read_ledger(const struct sink *sink, unsigned int cpu, struct ledger *ret_ledger)
{
    const struct ledger *ledger = &sink->ledger[cpu];

    *ret_ledger = (struct ledger){
        .produced = observe(&ledger->produced),
        .delivered = observe(&ledger->delivered),
        .lost = observe(&ledger->lost),
        .dropped = observe(&ledger->dropped),
        .evicted = observe(&ledger->evicted),
        .first_tsc = observe(&ledger->first_tsc),
        .last_tsc = observe(&ledger->last_tsc),
    };
}

void sink_read_totals(const struct sink *sink, struct sink_totals *ret_totals)
{
    struct sink_totals totals = {
        .output_bytes = observe(&sink->totals.output_bytes),
        .queued_bytes = observe(&sink->totals.queued_bytes),
        .windows = observe(&sink->totals.windows),
    };

    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        totals.class_records[i] = observe(&sink->totals.class_records[i]);
    *ret_totals = totals;
}

const struct sink_config *sink_config(const struct sink *sink)
{
    return &sink->config;
}

const struct walk_filter *sink_filter(const struct sink *sink)
{
    return &sink->filter;
}

/* --- Filling. --- */

/* Records that still fit behind what is there and a window's header. */
static uint32_t chunk_room(const struct chunk *chunk)
{
    uint32_t used = chunk->fill_bytes + WINDOW_HEADER_BYTES;

    return used < CHUNK_BYTES ? CHUNK_BYTES - used : 0;
}

/* Records that the output may still take, with a window's header. */
static uint64_t output_room(const struct sink *sink)
{
    uint64_t used = sink->closed_bytes + WINDOW_HEADER_BYTES;

    if (sink->filling)
        used += sink->filling->fill_bytes;
    return used < sink->config.max_bytes ? sink->config.max_bytes - used : 0;
}

enum sink_room sink_begin_window(struct sink *sink, uint32_t wanted_bytes, uint64_t now_usec,
                                 uint8_t **ret_records, uint32_t *ret_room)
{
    uint64_t limit;
    uint32_t room;

    if (sink->end_offset != SINK_NO_LIMIT)
        return sink->has_failed ? SINK_HAS_FAILED : SINK_AT_LIMIT;
    /* A window is cut only where it would not fit into a chunk of its own either. */
    if (sink->filling && chunk_room(sink->filling) < wanted_bytes &&
        (wanted_bytes <= CHUNK_BYTES - WINDOW_HEADER_BYTES ||
         chunk_room(sink->filling) < WORTHWHILE_BYTES))
        sink_flush(sink);
    limit = output_room(sink);
    if (limit < RECORD_MAX_BYTES)
        return SINK_AT_LIMIT;
    if (!sink->filling)
        sink->filling = pool_take(sink->pool);
    if (!sink->filling)
        return SINK_NO_CHUNK;
    if (sink->filling->fill_bytes == 0)
        sink->filling->opened_usec = now_usec;

    room = (uint32_t)min_u64(chunk_room(sink->filling), limit);
    *ret_room = (uint32_t)min_u64(room, wanted_bytes);
    *ret_records = sink->filling->data + sink->filling->fill_bytes + WINDOW_HEADER_BYTES;
    return SINK_ROOM;
}

static void enter_into_ledger(struct sink *sink, unsigned int cpu, const struct walk_result *walked,
                              const uint64_t *class_records)
{
    struct ledger *ledger = &sink->ledger[cpu];

    publish_add(&ledger->produced, walked->records + walked->lost);
    publish_add(&ledger->delivered, walked->records);
    publish_add(&ledger->lost, walked->lost);
    if (walked->first_tsc && !ledger->first_tsc)
        publish(&ledger->first_tsc, walked->first_tsc);
    if (walked->last_tsc)
        publish(&ledger->last_tsc, walked->last_tsc);
    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        if (class_records[i])
            publish_add(&sink->totals.class_records[i], class_records[i]);
    publish_add(&sink->totals.windows, 1);
}

void sink_end_window(struct sink *sink, unsigned int cpu, const struct walk_result *walked,
                     const uint64_t class_records[static EVENT_CLASSES])
{
    struct chunk *chunk = sink->filling;
    struct window_header header = {
        .header = WINDOW_HEADER,
        .cpu = cpu,
        .bytes = walked->kept_bytes,
    };

    if (walked->records == 0 && walked->lost == 0)
        return; /* at most wrap_buffer records: nothing to tell */
    memcpy(chunk->data + chunk->fill_bytes, &header, sizeof(header));
    chunk->last_window = chunk->fill_bytes;
    chunk->fill_bytes += WINDOW_HEADER_BYTES + walked->kept_bytes;
    enter_into_ledger(sink, cpu, walked, class_records);
}

static void pad_chunk(struct chunk *chunk, uint32_t align_bytes)
{
    uint32_t padding = (uint32_t)align_up(chunk->fill_bytes, align_bytes) - chunk->fill_bytes;
    struct window_header header;

    memcpy(&header, chunk->data + chunk->last_window, sizeof(header));
    header.bytes += padding;
    memcpy(chunk->data + chunk->last_window, &header, sizeof(header));
    walk_write_padding(chunk->data + chunk->fill_bytes, padding);
    chunk->fill_bytes += padding;
}

void sink_flush(struct sink *sink)
{
    struct chunk *chunk = sink->filling;

    if (!chunk)
        return;
    sink->filling = NULL;
    if (chunk->fill_bytes == 0) {
        pool_give(sink->pool, chunk);
        return;
    }
    pad_chunk(chunk, sink->config.align_bytes);
    chunk->state = CHUNK_QUEUED;
    chunk->output_offset = sink->closed_bytes;
    chunk->next = NULL;
    if (sink->queue_tail)
        sink->queue_tail->next = chunk;
    else
        sink->queue_head = chunk;
    sink->queue_tail = chunk;
    sink->closed_bytes += chunk->fill_bytes;
    publish_add(&sink->totals.queued_bytes, chunk->fill_bytes);
}

uint64_t sink_oldest_usec(const struct sink *sink)
{
    return sink->filling && sink->filling->fill_bytes > 0 ? sink->filling->opened_usec : 0;
}

/* --- Writing. --- */

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
    uint32_t offset = 0;

    while (offset < chunk->fill_bytes) {
        struct window_header window;
        struct ledger *ledger;
        uint64_t records = 0;

        memcpy(&window, chunk->data + offset, sizeof(window));
        offset += WINDOW_HEADER_BYTES;
        for (uint32_t end = offset + window.bytes; offset < end;) {
            uint32_t header;

            memcpy(&header, chunk->data + offset, sizeof(header));
            records += !record_is_wrap(header) && !record_is_lost(header);
            offset += record_bytes(header);
        }
        ledger = &sink->ledger[window.cpu];
        publish(&ledger->delivered, ledger->delivered - records);
        publish_add(&ledger->dropped, records);
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
    publish(&sink->totals.queued_bytes, sink->totals.queued_bytes - chunk->fill_bytes);
    pool_give(sink->pool, chunk);
}

/* Gives back what is written without a gap; a later failure cannot take it from the output. */
static void retire_written(struct sink *sink)
{
    uint64_t end;

    while (sink->queue_head && sink->queue_head->state == CHUNK_WRITTEN)
        unlink_chunk(sink, sink->queue_head);
    end = sink->queue_head ? sink->queue_head->output_offset : sink->closed_bytes;
    publish(&sink->totals.output_bytes, min_u64(end, sink->end_offset));
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
    uint32_t written_bytes;

    chunk->state = CHUNK_QUEUED; /* to be written again, unless it turns out to be done */
    if (result == -EINTR || result == -EAGAIN)
        return 0;
    if (result < 0)
        return result;
    if (result == 0)
        return -ENOSPC; /* write(2) of more than nothing gives 0 only where nothing fits */
    written_bytes = chunk->written_bytes + (uint32_t)result;
    if (written_bytes == chunk->fill_bytes) {
        chunk->state = CHUNK_WRITTEN;
    } else if (!sink->config.is_stream) {
        /* Short: go on from the last whole block. Where not even one fits, none ever will. */
        written_bytes = (uint32_t)align_down(written_bytes, sink->config.align_bytes);
        if (written_bytes == chunk->written_bytes)
            return -ENOSPC;
    }
    chunk->written_bytes = written_bytes;
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

/* --- The grant. --- */

void sink_grant(struct sink *sink, uint64_t granted_bytes, bool final)
{
    sink->config.granted_bytes = granted_bytes;
    sink->grant_wanted = false;
    if (!final)
        return;
    sink->config.max_bytes =
        min_u64(sink->config.max_bytes, align_down(granted_bytes, sink->config.align_bytes));
    if (sink->closed_bytes + (sink->filling ? sink->filling->fill_bytes : 0) <=
        sink->config.max_bytes)
        return;
    sink_flush(sink);
    for (const struct chunk *chunk = sink->queue_head; chunk; chunk = chunk->next) {
        if (chunk->output_offset + chunk->fill_bytes > sink->config.max_bytes) {
            end_at(sink, chunk->output_offset);
            return;
        }
    }
}

bool sink_wants_grant(struct sink *sink)
{
    uint64_t used = sink->closed_bytes + CHUNK_BYTES;

    if (sink->grant_wanted || sink->config.granted_bytes >= sink->config.max_bytes)
        return false;
    sink->grant_wanted = used + sink->config.grant_ahead_bytes > sink->config.granted_bytes;
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
