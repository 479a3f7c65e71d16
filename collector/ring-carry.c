// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The windows are put into the new ring as the collector would have put them there, so whatever
 * does not fit is evicted by the ring itself, and it begins with a round. What the collector knew
 * of a window, and the old ring does not say, follows from what it does say:
 *
 * - A round begins at a chunk's first_round, and with every window of a CPU that is not above the
 *   one before. Other beginnings do not show, here as in a snapshot's plan, and make one round of
 *   two.
 * - The round before one that begins is known to have cut no window at first_round; and after it,
 *   unless the chunk says has_uneven. Before it none is known to: first_round is the first of them.
 * - Counts and TSCs are the walk's. What the collector dropped itself is among the losses that a
 *   window reports, but not in `lost` of the ledger, which is therefore copied at the end.
 */

#include "collector/ring-carry.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/memory.h"
#include "collector/pool.h"
#include "collector/ring-state.h"
#include "collector/ring.h"
#include "collector/walk.h"
#include "common/record.h"
#include "common/util.h"

struct carrier {
    struct ring *to;
    const struct ring *from;
    bool has_begun;      /* with a round with which a file may begin */
    uint32_t cpu_before; /* the last window's */
};

/*
 * The newest chunk with a round's beginning from which on there is more than TO can hold, or the
 * oldest with one. NULL: there is none.
 */
static const struct chunk *carrier_find_first(const struct carrier *carrier)
{
    uint64_t enough_bytes = ring_bytes(carrier->to) + ring_chunk_bytes(carrier->from);
    const struct chunk *first = NULL;
    uint64_t rest_bytes = 0;

    for (const struct chunk *chunk = carrier->from->head; chunk; chunk = chunk->next)
        rest_bytes += chunk->fill_bytes;
    for (const struct chunk *chunk = carrier->from->head; chunk; chunk = chunk->next) {
        bool has_round = ring_state_of(carrier->from, chunk)->first_round != RING_NO_ROUND;

        if (has_round && (!first || rest_bytes >= enough_bytes))
            first = chunk;
        rest_bytes -= chunk->fill_bytes;
    }
    return first;
}

/* Everything that was carried over so far goes. */
static void carrier_begin_anew(struct carrier *carrier)
{
    ring_close_chunk(carrier->to);
    while (carrier->to->head)
        ring_evict(carrier->to);
    carrier->to->newest_tsc = 0;
    carrier->has_begun = false;
}

/* As much of BYTES of records as fits, as one window. Returns how much that was. */
static uint32_t carrier_put_piece(struct carrier *carrier, const uint8_t *records, uint32_t bytes,
                                  struct ring_window *window)
{
    struct chunk *chunk = ring_fill(carrier->to); /* there is one: nothing is pinned */
    uint64_t class_records[EVENT_CLASSES] = {0};
    struct window_header header = {.header = WINDOW_HEADER, .cpu = window->cpu};
    struct walk_result walked;
    uint32_t room_bytes;

    if (WINDOW_HEADER_BYTES + bytes > chunk->bytes - chunk->fill_bytes) {
        ring_close_chunk(carrier->to); /* keeps an empty one */
        chunk = ring_fill(carrier->to);
    }
    room_bytes = (uint32_t)min_u64(bytes, chunk->bytes - WINDOW_HEADER_BYTES);
    walk_window(records, room_bytes, room_bytes == bytes, &walk_everything, NULL, class_records,
                &walked);
    header.bytes = walked.consumed_bytes;
    memcpy(chunk->data + chunk->fill_bytes, &header, sizeof(header));
    memcpy(chunk->data + chunk->fill_bytes + WINDOW_HEADER_BYTES, records, header.bytes);
    window->bytes = WINDOW_HEADER_BYTES + header.bytes;
    ring_commit_window(carrier->to, window, &walked);
    return header.bytes;
}

/* Pieces of a window that is larger than a chunk are as rounds that follow one that cut it. */
static void carrier_put_window(struct carrier *carrier, const uint8_t *records, uint32_t bytes,
                               struct ring_window window)
{
    uint32_t offset = carrier_put_piece(carrier, records, bytes, &window);

    window.begins_round = true;
    window.begins_even = false;
    while (offset < bytes)
        offset += carrier_put_piece(carrier, records + offset, bytes - offset, &window);
}

/* Of BYTES of records: those before the wrap_buffer records at the end. */
static uint32_t without_padding(const uint8_t *records, uint32_t bytes)
{
    uint32_t end = 0, header;

    for (uint32_t offset = 0; offset < bytes; offset += record_bytes(header)) {
        memcpy(&header, records + offset, sizeof(header));
        if (!record_is_wrap(header))
            end = offset + record_bytes(header);
    }
    return end;
}

/* The window at OFFSET of CHUNK, which was verified. Returns the offset after it. */
static uint32_t carrier_copy_window(struct carrier *carrier, const struct chunk *chunk,
                                    uint32_t offset)
{
    const struct ring_chunk *state = ring_state_of(carrier->from, chunk);
    const uint8_t *records = chunk->data + offset + WINDOW_HEADER_BYTES;
    struct ring_window window = {0};
    struct window_header header;
    uint32_t bytes;

    memcpy(&header, chunk->data + offset, sizeof(header));
    window.cpu = header.cpu;
    window.begins_round = offset == state->first_round || header.cpu <= carrier->cpu_before;
    window.begins_even =
        offset == state->first_round || (offset > state->first_round && !state->has_uneven);
    if (!carrier->has_begun && offset == state->first_round) {
        carrier->has_begun = true;
        carrier->to->passed_tsc = state->round_tsc;
    }
    bytes = header.bytes;
    if (offset == chunk->last_window)
        bytes = without_padding(records, bytes);
    if (carrier->has_begun && bytes > 0)
        carrier_put_window(carrier, records, bytes, window);
    carrier->cpu_before = header.cpu;
    return offset + WINDOW_HEADER_BYTES + header.bytes;
}

/* Returns whether a chunk was damaged. */
static bool carrier_copy_chunks(struct carrier *carrier)
{
    bool was_damaged = false;

    for (const struct chunk *chunk = carrier_find_first(carrier); chunk; chunk = chunk->next) {
        uint32_t offset = 0;

        if (!ring_verify_chunk(carrier->from, chunk)) {
            carrier_begin_anew(carrier);
            was_damaged = true;
            continue;
        }
        while (offset < chunk->fill_bytes)
            offset = carrier_copy_window(carrier, chunk, offset);
    }
    ring_close_chunk(carrier->to);
    return was_damaged;
}

static int carrier_settle_ledger(struct carrier *carrier, struct ring_carried *carried)
{
    uint64_t records = 0, had_records = 0;

    for (unsigned int cpu = 0; cpu < carrier->to->nr_cpus; cpu++) {
        const struct ledger *from = &carrier->from->lines[cpu].ledger;
        struct ledger *to = &carrier->to->lines[cpu].ledger;
        uint64_t delivered = to->delivered;

        if (delivered > from->delivered)
            return -EBADMSG;
        *to = *from;
        to->delivered = delivered;
        to->evicted = from->evicted + (from->delivered - delivered);
        carrier->to->lines[cpu].cons = carrier->from->lines[cpu].cons;
        records += delivered;
        had_records += from->delivered;
    }
    carried->records = records;
    carried->is_all = records == had_records;
    return 0;
}

static void carrier_copy_header(struct carrier *carrier)
{
    const struct ring_header *from = carrier->from->header;
    struct ring_header *to = carrier->to->header;

    to->buffer_pages = from->buffer_pages;
    to->moving_cpu = from->moving_cpu;
    to->moving_from = from->moving_from;
    to->cpus = from->cpus;
    to->events = from->events;
    to->complete_from_tsc = from->complete_from_tsc;
    to->windows = from->windows;
    to->shortened_bytes = from->shortened_bytes;
    memcpy(to->class_records, from->class_records, sizeof(to->class_records));
    memcpy(to->note, from->note, sizeof(to->note));
    /* Also of what was left out: nothing that is recorded from now on is complete before it. */
    carrier->to->passed_tsc = max_u64(carrier->to->passed_tsc, carrier->from->passed_tsc);
}

int ring_carry(struct ring *to, const struct ring *from, struct ring_carried *ret_carried)
{
    struct carrier carrier = {.to = to, .from = from, .cpu_before = UINT32_MAX};
    struct ring_carried carried = {0};
    int r;

    if (to->nr_cpus != from->nr_cpus)
        return -EINVAL;
    carried.was_damaged = carrier_copy_chunks(&carrier);
    r = carrier_settle_ledger(&carrier, &carried);
    if (r < 0)
        return r;
    carrier_copy_header(&carrier);
    *ret_carried = carried;
    return 0;
}

void ring_unlock(struct ring *ring)
{
    (void)munlock(ring->base, ring->layout.total_bytes); /* what stays locked counts, no more */
    ring->is_locked = false;
}

void ring_lock(struct ring *ring)
{
    const struct ring_layout *layout = &ring->layout;

    ring->is_locked = memory_lock(ring->base, layout->steps_offset) >= 0;
    for (unsigned int i = 0; i < ring->nr_steps; i++)
        if (ring->steps[i].is_borrowed &&
            memory_lock(ring->base + layout->steps_offset + i * layout->step_bytes,
                        layout->step_bytes) < 0)
            ring->is_locked = false;
}

int ring_retire(int memfd)
{
    static const uint64_t no_magic = 0;
    struct stat status;

    if (pwrite(memfd, &no_magic, sizeof(no_magic), 0) < 0 || fstat(memfd, &status) < 0)
        return -errno;
    /* The service manager may keep it for a while. */
    if (fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, status.st_size) < 0)
        return -errno;
    return 0;
}
