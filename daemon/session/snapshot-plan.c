// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A place where a file may begin is one where a round begins: the first that is known to in each
 * chunk, and, unless windows were cut in it, every window of a CPU that is not above the one
 * before. First whole chunks are passed over, by their states alone; then windows, in the one or
 * two chunks in which the beginning lies.
 *
 * The end is looked for first, among chunks that are not damaged. A record may be older than one of
 * a round before, of another CPU: so it is the first such place after the last window that holds
 * anything as old as asked for.
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
    struct place end; /* from there on nothing is in the file; no chunk: the pin's end */
};

static const struct chunk *next_chunk(const struct planner *planner, const struct chunk *chunk)
{
    if (chunk == planner->end.chunk)
        return NULL;
    chunk = ring_pin_next(planner->ring, planner->pin, chunk);
    return chunk == planner->end.chunk && planner->end.offset == 0 ? NULL : chunk;
}

static struct ring_chunk_info info_of(const struct planner *planner, const struct chunk *chunk)
{
    struct ring_chunk_info info;

    ring_read_chunk(planner->ring, chunk, &info);
    if (chunk == planner->end.chunk)
        info.bytes = planner->end.offset;
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

/* The last chunk from CHUNK on that holds a record not younger than UNTIL; NULL: none does. */
static const struct chunk *find_last_chunk(const struct planner *planner, const struct chunk *chunk,
                                           uint64_t until_tsc)
{
    const struct chunk *last = NULL;

    for (; chunk; chunk = next_chunk(planner, chunk)) {
        struct ring_chunk_info info = info_of(planner, chunk);

        if (info.first_tsc && info.first_tsc <= until_tsc)
            last = chunk;
    }
    return last;
}

/* The first place in CHUNK after everything in it that is not younger than UNTIL; or no chunk. */
static struct place find_end_in(const struct planner *planner, const struct chunk *chunk,
                                uint64_t until_tsc)
{
    struct ring_chunk_info info = info_of(planner, chunk);
    uint32_t cpu_before = UINT32_MAX;
    struct window_header window;
    struct place end = {0};

    for (uint32_t offset = 0; offset < info.bytes; offset += WINDOW_HEADER_BYTES + window.bytes) {
        struct walk_result walked = walk_at(planner, chunk, offset, &window);
        bool may_begin = offset == info.first_round ||
                         (info.cut_inside && offset > info.first_round && window.cpu <= cpu_before);

        if (walked.first_tsc && walked.first_tsc <= until_tsc)
            end = (struct place){0};
        else if (may_begin && !end.chunk)
            end = (struct place){.chunk = chunk, .offset = offset};
        cpu_before = window.cpu;
    }
    return end;
}

/* Where a file ends that begins at START or later; no chunk: where the pin does. */
static struct place find_end(const struct planner *planner, struct place start, uint64_t until_tsc)
{
    const struct chunk *chunk = find_last_chunk(planner, start.chunk, until_tsc);
    struct place end = start; /* all of it is younger */

    for (; chunk; chunk = next_chunk(planner, chunk)) {
        end = find_end_in(planner, chunk, until_tsc);
        if (end.chunk)
            break;
    }
    return end;
}

/* Whether nothing is between START and the end. */
static bool is_at_end(const struct planner *planner, struct place start)
{
    const struct chunk *end = planner->end.chunk;
    uint64_t start_seq, end_seq;

    if (!end)
        return false;
    start_seq = info_of(planner, start.chunk).seq;
    end_seq = info_of(planner, end).seq;
    return start_seq > end_seq || (start_seq == end_seq && start.offset >= planner->end.offset);
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

/* The records of CHUNK from OFFSET on. */
static void count_windows(const struct planner *planner, const struct chunk *chunk, uint32_t offset,
                          struct snapshot_plan *plan)
{
    uint32_t end = info_of(planner, chunk).bytes;
    struct window_header window;

    for (; offset < end; offset += WINDOW_HEADER_BYTES + window.bytes) {
        struct walk_result walked = walk_at(planner, chunk, offset, &window);

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

        if (chunk == planner->end.chunk) {
            count_windows(planner, chunk, 0, plan);
            return;
        }
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

    if (start.chunk && bounds->until_tsc)
        planner.end = find_end(&planner, start, bounds->until_tsc);
    if (start.chunk && bounds->since_tsc) {
        start = pass_old_chunks(&planner, start, bounds->since_tsc);
        start = pass_old_windows(&planner, start, bounds->since_tsc);
    }
    if (!start.chunk || is_at_end(&planner, start))
        return -ENODATA;
    if (bounds->max_bytes)
        start = pass_bytes(&planner, start, bounds->max_bytes);
    if (!start.chunk)
        return -EFBIG;
    plan.first = start.chunk;
    plan.first_offset = start.offset;
    plan.complete_from_tsc = max_u64(ring_complete_from_tsc(ring), start.passed_tsc + 1);
    plan.end = planner.end.chunk;
    plan.end_offset = planner.end.offset;
    plan.bytes = bytes_from(&planner, start);
    count_windows(&planner, plan.first, plan.first_offset, &plan);
    count_rest(&planner, &plan);
    *ret_plan = plan;
    return 0;
}
