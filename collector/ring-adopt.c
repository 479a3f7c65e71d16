// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Takes over a ring from another process, which may have been another version, may have been killed
 * between two stores, or may have corrupted the ring. Nothing in it is trusted before its
 * invariants were checked; if any check fails, the whole ring is discarded.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "collector/extent.h"
#include "collector/grower.h"
#include "collector/memory.h"
#include "collector/ring-state.h"
#include "collector/ring.h"
#include "collector/walk.h"
#include "common/record.h"
#include "common/util.h"

static int refuse(int error, const char *problem, const char **ret_problem)
{
    *ret_problem = problem;
    return error;
}

/* Header and sizes; the header is read once, into *RET_HEADER. */
static int check_header(int memfd, unsigned int nr_cpus, struct ring_header *ret_header,
                        const char **ret_problem)
{
    int seals = fcntl(memfd, F_GET_SEALS);
    struct ring_layout layout;
    uint64_t bytes;
    struct stat st;

    /* Unsealed, another process could truncate it under us. */
    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return refuse(-EBADMSG, "it is not a sealed memory file", ret_problem);
    if (fstat(memfd, &st) < 0 ||
        pread(memfd, ret_header, sizeof(*ret_header), 0) != (ssize_t)sizeof(*ret_header) ||
        ret_header->magic != RING_MAGIC)
        return refuse(-EBADMSG, "it is not a ring", ret_problem);
    bytes = (uint64_t)ret_header->nr_chunks * ret_header->chunk_bytes;
    if (ret_header->version != RING_VERSION ||
        ret_header->chunk_bytes != ring_chunk_bytes_of(bytes))
        return refuse(-EPROTO, "it is from another version of xentraced", ret_problem);
    layout = ring_layout_of(ret_header->nr_chunks, ret_header->chunk_bytes, ret_header->nr_cpus,
                            ret_header->nr_steps);
    if (ret_header->nr_cpus == 0 || ret_header->nr_cpus > CPU_SET_MAX || bytes < RING_MIN_BYTES ||
        ret_header->nr_steps > RING_STEPS_MAX || ret_header->total_bytes != layout.total_bytes ||
        ret_header->data_offset != layout.data_offset || (uint64_t)st.st_size != layout.total_bytes)
        return refuse(-EBADMSG, "its size differs from its header", ret_problem);
    if (ret_header->nr_cpus != nr_cpus)
        return refuse(-EBADMSG, "it is from a host with another number of CPUs", ret_problem);
    return 0;
}

static bool commit_is_possible(const struct ring *ring, const struct ring_commit *commit)
{
    return commit->cpu < ring->nr_cpus && commit->part < RING_PARTS &&
           (commit->chunk == RING_NO_CHUNK || commit->chunk < ring->nr_total);
}

/* The commit that was written down and may not have been done. */
static int finish_commit(struct ring *ring, const char **ret_problem)
{
    struct ring_commit commit = ring->header->commit;

    if (!commit.armed)
        return 0;
    if (!commit_is_possible(ring, &commit))
        return refuse(-EBADMSG, "its last commit is impossible", ret_problem);
    ring_apply_commit(ring, &commit);
    ring->header->commit.armed = 0;
    return 0;
}

/* The end of the chunk's last window, as its header says. 0: that is impossible. */
static uint32_t end_of_last_window(const struct chunk *chunk, const struct ring_chunk *state)
{
    struct window_header window;

    if (state->last_window > chunk->bytes - WINDOW_HEADER_BYTES)
        return 0;
    memcpy(&window, chunk->data + state->last_window, sizeof(window));
    if (window.header != WINDOW_HEADER ||
        window.bytes > chunk->bytes - WINDOW_HEADER_BYTES - state->last_window)
        return 0;
    return state->last_window + WINDOW_HEADER_BYTES + window.bytes;
}

/* Checks a chunk that is in the ring, and completes its padding if that was under way. */
static bool adopt_chunk(struct ring *ring, struct chunk *chunk)
{
    struct ring_chunk *state = ring_state_of(ring, chunk);
    uint32_t end = end_of_last_window(chunk, state);

    if (state->seq >= RING_UNPINNED / 2 || state->fill_bytes > chunk->bytes || end % 4 != 0 ||
        end == 0 || (state->first_round != RING_NO_ROUND && state->first_round >= end))
        return false;
    if (end != state->fill_bytes && end != align_up(state->fill_bytes, PAGE_BYTES))
        return false;
    state->fill_bytes = end;
    chunk->seq = state->seq;
    chunk->fill_bytes = end;
    chunk->last_window = state->last_window;
    chunk->state = CHUNK_QUEUED;
    ring_pad_chunk(ring, chunk); /* the one that was being filled */
    return true;
}

/* Of one that was being moved there may be two: then the ring's own comes first. */
static int compare_seq(const void *a, const void *b)
{
    const struct chunk *const *left = a, *const *right = b;

    if ((*left)->seq != (*right)->seq)
        return (*left)->seq < (*right)->seq ? -1 : 1;
    return *left < *right ? -1 : *left > *right;
}

static bool is_moved(const struct ring *ring, const struct chunk *to, const struct chunk *from)
{
    return ring_is_home(ring, to) && !ring_is_home(ring, from) &&
           memcmp(ring_state_of(ring, to), ring_state_of(ring, from), sizeof(struct ring_chunk)) ==
               0;
}

/* Leaves one of each. Returns how many there are then. */
static unsigned int finish_moves(struct ring *ring, struct chunk **order, unsigned int count)
{
    unsigned int left = 0;

    for (unsigned int i = 0; i < count; i++) {
        if (left > 0 && order[left - 1]->seq == order[i]->seq &&
            is_moved(ring, order[left - 1], order[i])) {
            ring_state_of(ring, order[i])->seq = 0;
            ring_give(ring, order[i]);
        } else {
            order[left++] = order[i];
        }
    }
    return left;
}

/* Sorts the chunks into ORDER, oldest first, and the ring's own others into the free list. */
static int sort_chunks(struct ring *ring, struct chunk **order, unsigned int *ret_count,
                       const char **ret_problem)
{
    unsigned int count = 0;

    for (unsigned int i = ring->nr_total; i-- > 0;) {
        struct chunk *chunk = &ring->chunks[i];

        if (ring->states[i].seq && adopt_chunk(ring, chunk))
            order[count++] = chunk;
        else if (ring->states[i].seq)
            return refuse(-EBADMSG, "a chunk's state is impossible", ret_problem);
        else if (ring_is_home(ring, chunk))
            ring_give(ring, chunk);
    }
    qsort(order, count, sizeof(order[0]), compare_seq);
    count = finish_moves(ring, order, count);
    for (unsigned int i = 1; i < count; i++)
        if (order[i]->seq != order[0]->seq + i)
            return refuse(-EBADMSG, "its chunks are not contiguous", ret_problem);
    *ret_count = count;
    return 0;
}

static bool take_from(uint64_t *rest, uint64_t count)
{
    if (count > *rest)
        return false;
    *rest -= count;
    return true;
}

/* The records in the ring. All other records that were produced were evicted. */
static int settle_ledger(struct ring *ring, const char **ret_problem)
{
    for (unsigned int cpu = 0; cpu < ring->nr_cpus; cpu++) {
        struct ledger *ledger = &ring->lines[cpu].ledger;
        uint64_t present = 0, rest = ledger->produced;

        for (unsigned int i = 0; i < ring->nr_total; i++)
            for (unsigned int part = 0; ring->states[i].seq && part < RING_PARTS; part++)
                present += ring_counts_of(ring, &ring->chunks[i], part)[cpu].records;
        if (!take_from(&rest, ledger->lost) || !take_from(&rest, ledger->dropped) ||
            !take_from(&rest, present))
            return refuse(-EBADMSG, "its ledger does not add up", ret_problem);
        ledger->delivered = present;
        ledger->evicted = rest;
    }
    return 0;
}

static void link_chunks(struct ring *ring, struct chunk **order, unsigned int count)
{
    ring->next_seq = 1;
    ring->used_bytes = 0;
    for (unsigned int i = 0; i < count; i++) {
        const struct ring_chunk *state = ring_state_of(ring, order[i]);

        ring->next_seq = order[i]->seq + 1;
        ring->used_bytes += order[i]->fill_bytes;
        ring->newest_tsc = max_u64(ring->newest_tsc, state->last_tsc);
        ring->passed_tsc = max_u64(ring->passed_tsc, state->passed_tsc);
        ring_append(ring, order[i]);
    }
    ring->oldest_tsc = ring->head ? ring_state_of(ring, ring->head)->first_tsc : 0;
}

static bool step_has_content(const struct ring *ring, unsigned int step)
{
    const struct ring_chunk *states =
        &ring->states[ring->nr_chunks + step * ring->layout.step_chunks];

    for (uint64_t i = 0; i < ring->layout.step_chunks; i++)
        if (states[i].seq)
            return true;
    return false;
}

/* Steps that hold something stay borrowed; the others go back, wherever they were. */
static int adopt_steps(struct ring *ring, const char **ret_problem)
{
    for (unsigned int i = 0; i < ring->nr_steps; i++) {
        uint8_t *base = ring->base + ring->layout.steps_offset + i * ring->layout.step_bytes;

        if (!step_has_content(ring, i)) {
            memory_return(base, ring->layout.step_bytes, true);
            continue;
        }
        if (memory_populate(base, ring->layout.step_bytes) < 0)
            return refuse(-ENOMEM, "out of memory", ret_problem);
        if (memory_lock(base, ring->layout.step_bytes) < 0)
            ring->is_locked = false;
        extent_adopt(ring->extent, i);
        ring_add_step(ring, i);
    }
    return 0;
}

static void free_order(struct chunk ***order)
{
    free(*order);
}

int ring_adopt_state(struct ring *ring, const char **ret_problem)
{
    _cleanup_(free_order) struct chunk **order = NULL;
    unsigned int count = 0;
    int r;

    r = finish_commit(ring, ret_problem);
    if (r < 0)
        return r;
    r = adopt_steps(ring, ret_problem);
    if (r < 0)
        return r;
    order = calloc(ring->nr_total, sizeof(struct chunk *));
    if (!order)
        return refuse(-ENOMEM, "out of memory", ret_problem);
    r = sort_chunks(ring, order, &count, ret_problem);
    if (r < 0)
        return r;
    r = settle_ledger(ring, ret_problem);
    if (r < 0)
        return r;
    link_chunks(ring, order, count);
    return 0;
}

static int map_ring(struct ring *ring, int memfd, const struct ring_header *header,
                    struct grower *grower)
{
    ring->memfd = fcntl(memfd, F_DUPFD_CLOEXEC, 3);
    if (ring->memfd < 0)
        return -errno;
    ring->chunk_bytes = header->chunk_bytes;
    return ring_set_up(ring, header->nr_chunks, header->nr_cpus, header->nr_steps, grower);
}

static void ring_freep(struct ring **ring)
{
    ring_free(*ring);
}

int ring_adopt(int memfd, unsigned int nr_cpus, struct grower *grower, struct ring **ret_ring,
               const char **ret_problem)
{
    _cleanup_(ring_freep) struct ring *ring = NULL;
    struct ring_header header;
    int r;

    r = check_header(memfd, nr_cpus, &header, ret_problem);
    if (r < 0)
        return r;
    ring = memory_alloc(1, sizeof(*ring));
    if (!ring)
        return refuse(-ENOMEM, "out of memory", ret_problem);
    ring->memfd = -1;
    r = map_ring(ring, memfd, &header, grower);
    if (r < 0)
        return refuse(r, "it cannot be mapped", ret_problem);
    r = ring_adopt_state(ring, ret_problem);
    if (r < 0)
        return r;
    if (ring->extent && grower)
        grower_add(grower, ring->extent);
    *ret_ring = TAKE_PTR(ring);
    return 0;
}

/* --- The records. --- */

/*
 * In total: what the counts say per CPU is Xen's CPU's, and each of them was checked to add up. Of
 * losses there may be more: a count of them stops at what it can hold.
 */
static bool counts_agree(const struct ring *ring, const struct chunk *chunk, uint64_t nr_records,
                         uint64_t nr_lost)
{
    uint64_t sum_records = 0, sum_lost = 0;

    for (unsigned int cpu = 0; cpu < ring->nr_cpus; cpu++) {
        uint64_t records, lost;

        ring_read_counts(ring, chunk, cpu, false, &records, &lost);
        sum_records += records;
        sum_lost += lost;
    }
    return nr_records == sum_records && nr_lost >= sum_lost;
}

bool ring_verify_chunk(const struct ring *ring, const struct chunk *chunk)
{
    struct ring_chunk_info info;
    bool found_round;
    uint64_t classes[EVENT_CLASSES] = {0}, records = 0, lost = 0;
    uint32_t offset = 0, last_window = 0;

    ring_read_chunk(ring, chunk, &info);
    found_round = info.first_round == RING_NO_ROUND;
    while (offset < chunk->fill_bytes) {
        struct window_header window;
        struct walk_result walked;

        if (chunk->fill_bytes - offset < WINDOW_HEADER_BYTES)
            return false;
        found_round = found_round || offset == info.first_round;
        last_window = offset;
        ring_read_window(ring, chunk, offset, &window);
        offset += WINDOW_HEADER_BYTES;
        if (window.header != WINDOW_HEADER || window.cpu >= ring->nr_cpus ||
            window.bytes > chunk->fill_bytes - offset)
            return false;
        walk_window(chunk->data + offset, window.bytes, true, &walk_everything, NULL, classes,
                    &walked);
        if (walked.broken)
            return false;
        records += walked.records;
        lost += walked.lost;
        offset += window.bytes;
    }
    return found_round && last_window == chunk->last_window &&
           counts_agree(ring, chunk, records, lost);
}
