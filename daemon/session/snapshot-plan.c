// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A place where a file may begin is one where a round begins: the first that is known to in each
 * chunk, and, unless windows were cut in it, every window of a CPU that is not above the one
 * before. First whole chunks are passed over, by their states alone; then windows, in the one or
 * two chunks in which the beginning lies.
 */

#include "daemon/session/snapshot-plan.h"

#include <errno.h>

#include "collector/pool.h"
#include "collector/ring.h"
#include "collector/walk.h"
#include "common/record.h"
#include "common/util.h"

/* A window in the ring. */
struct place {
    const struct chunk *chunk;
    uint32_t offset;
    uint64_t passed_tsc; /* no record, and no loss, before it is newer */
};

struct planner {
    const struct ring *ring;
    int pin;
    unsigned int nr_cpus;
};

static const struct chunk *next_chunk(const struct planner *planner, const struct chunk *chunk)
{
    return ring_pin_next(planner->ring, planner->pin, chunk);
}

static struct ring_chunk_info info_of(const struct planner *planner, const struct chunk *chunk)
{
    struct ring_chunk_info info;

    ring_read_chunk(planner->ring, chunk, &info);
    return info;
}

/* The first place in CHUNK or after it where a file may begin; no chunk: nowhere. */
static struct place first_round(const struct planner *planner, const struct chunk *chunk)
{
    for (; chunk; chunk = next_chunk(planner, chunk)) {
        struct ring_chunk_info info = info_of(planner, chunk);

        if (info.first_round < info.bytes)
            return (struct place){chunk, info.first_round, info.round_tsc};
    }
    return (struct place){0};
}

/* Behind the last chunk that is damaged. */
static struct place pass_damaged(const struct planner *planner, uint64_t verify_seq,
                                 bool *ret_damaged)
{
    const struct chunk *chunk = ring_pin_first(planner->ring, planner->pin);
    struct place start = first_round(planner, chunk);

    *ret_damaged = false;
    for (; chunk && info_of(planner, chunk).seq <= verify_seq; chunk = next_chunk(planner, chunk)) {
        if (ring_verify_chunk(planner->ring, chunk))
            continue;
        *ret_damaged = true;
        start = first_round(planner, next_chunk(planner, chunk));
    }
    return start;
}

/* The last chunk from which on back to START everything is older than SINCE; START if none is. */
static struct place pass_old_chunks(const struct planner *planner, struct place start,
                                    uint64_t since_tsc)
{
    for (const struct chunk *chunk = start.chunk; chunk; chunk = next_chunk(planner, chunk)) {
        struct ring_chunk_info info = info_of(planner, chunk);

        if (info.last_tsc >= since_tsc)
            break;
        if (info.first_round < info.bytes)
            start = (struct place){chunk, info.first_round, info.round_tsc};
    }
    return start;
}

/* All of it: what was let into the ring before a restart may not be what is asked for now. */
static struct walk_result walk_at(const struct planner *planner, const struct chunk *chunk,
                                  uint32_t offset, struct window_header *ret_window)
{
    uint64_t class_records[EVENT_CLASSES] = {0};
    struct walk_result walked;

    ring_read_window(planner->ring, chunk, offset, ret_window);
    walk_window(chunk->data + offset + WINDOW_HEADER_BYTES, ret_window->bytes, true,
                &walk_everything, NULL, class_records, &walked);
    return walked;
}

/* The last place from START on before which everything is older than SINCE. */
static struct place pass_old_windows(const struct planner *planner, struct place start,
                                     uint64_t since_tsc)
{
    const struct chunk *chunk = start.chunk;
    uint32_t offset = start.offset;
    uint32_t cpu_before = UINT32_MAX;
    uint64_t passed_tsc = start.passed_tsc;
    struct window_header window;

    for (; chunk; chunk = next_chunk(planner, chunk), offset = 0) {
        struct ring_chunk_info info = info_of(planner, chunk);

        for (; offset < info.bytes; offset += WINDOW_HEADER_BYTES + window.bytes) {
            struct walk_result walked = walk_at(planner, chunk, offset, &window);
            bool may_begin =
                offset == info.first_round ||
                (info.cut_inside && offset > info.first_round && window.cpu <= cpu_before);

            if (may_begin)
                start = (struct place){chunk, offset, passed_tsc};
            if (walked.last_tsc >= since_tsc)
                return start;
            passed_tsc = max_u64(passed_tsc, max_u64(walked.last_tsc, walked.lost_last_tsc));
            cpu_before = window.cpu;
        }
    }
    return (struct place){0}; /* all of it is older */
}

static uint64_t bytes_from(const struct planner *planner, struct place start)
{
    uint64_t bytes = align_up(info_of(planner, start.chunk).bytes - start.offset, PAGE_BYTES);

    for (const struct chunk *chunk = start.chunk; (chunk = next_chunk(planner, chunk));)
        bytes += align_up(info_of(planner, chunk).bytes, PAGE_BYTES);
    return bytes;
}

/* The first place from START, which is in the last chunk that has one, on. No chunk: none. */
static struct place pass_bytes_by_windows(const struct planner *planner, struct place start,
                                          uint64_t max_bytes)
{
    struct ring_chunk_info info = info_of(planner, start.chunk);
    uint32_t cpu_before = UINT32_MAX;
    struct window_header window;

    for (; start.offset < info.bytes; start.offset += WINDOW_HEADER_BYTES + window.bytes) {
        struct walk_result walked = walk_at(planner, start.chunk, start.offset, &window);
        bool may_begin =
            info.cut_inside && start.offset > info.first_round && window.cpu <= cpu_before;

        if (may_begin && bytes_from(planner, start) <= max_bytes)
            return start;
        start.passed_tsc =
            max_u64(start.passed_tsc, max_u64(walked.last_tsc, walked.lost_last_tsc));
        cpu_before = window.cpu;
    }
    return (struct place){0};
}

/* The first place from START on after which there are no more than MAX bytes. */
static struct place pass_bytes(const struct planner *planner, struct place start,
                               uint64_t max_bytes)
{
    struct place last = start;

    for (; start.chunk; start = first_round(planner, next_chunk(planner, start.chunk))) {
        if (bytes_from(planner, start) <= max_bytes)
            return start;
        last = start;
    }
    return last.chunk ? pass_bytes_by_windows(planner, last, max_bytes) : last;
}

/* The records of the part of the first chunk that is in it. */
static void count_first(const struct planner *planner, struct snapshot_plan *plan)
{
    uint32_t end = info_of(planner, plan->first).bytes;
    struct window_header window;

    for (uint32_t offset = plan->first_offset; offset < end;
         offset += WINDOW_HEADER_BYTES + window.bytes) {
        struct walk_result walked = walk_at(planner, plan->first, offset, &window);

        plan->records += walked.records;
        plan->lost += walked.lost;
        if (walked.first_tsc && (!plan->first_tsc || walked.first_tsc < plan->first_tsc))
            plan->first_tsc = walked.first_tsc;
        plan->last_tsc = max_u64(plan->last_tsc, walked.last_tsc);
    }
}

static void count_rest(const struct planner *planner, struct snapshot_plan *plan)
{
    for (const struct chunk *chunk = plan->first; (chunk = next_chunk(planner, chunk));) {
        struct ring_chunk_info info = info_of(planner, chunk);

        for (unsigned int cpu = 0; cpu < planner->nr_cpus; cpu++) {
            uint64_t records, lost;

            ring_read_counts(planner->ring, chunk, cpu, false, &records, &lost);
            plan->records += records;
            plan->lost += lost;
        }
        /* Not only the first chunk's: its round may continue in the next, on another CPU. */
        if (info.first_tsc && (!plan->first_tsc || info.first_tsc < plan->first_tsc))
            plan->first_tsc = info.first_tsc;
        plan->last_tsc = max_u64(plan->last_tsc, info.last_tsc);
    }
}

int snapshot_make_plan(const struct ring *ring, int pin, const struct snapshot_bounds *bounds,
                       unsigned int nr_cpus, struct snapshot_plan *ret_plan)
{
    struct planner planner = {.ring = ring, .pin = pin, .nr_cpus = nr_cpus};
    struct snapshot_plan plan = {0};
    struct place start = pass_damaged(&planner, bounds->verify_seq, &plan.damaged);

    if (start.chunk && bounds->since_tsc) {
        start = pass_old_chunks(&planner, start, bounds->since_tsc);
        start = pass_old_windows(&planner, start, bounds->since_tsc);
    }
    if (!start.chunk)
        return -ENODATA;
    if (bounds->max_bytes)
        start = pass_bytes(&planner, start, bounds->max_bytes);
    if (!start.chunk)
        return -EFBIG;
    plan.first = start.chunk;
    plan.first_offset = start.offset;
    plan.complete_from_tsc = max_u64(ring_complete_from_tsc(ring), start.passed_tsc + 1);
    plan.bytes = bytes_from(&planner, start);
    count_first(&planner, &plan);
    count_rest(&planner, &plan);
    *ret_plan = plan;
    return 0;
}
