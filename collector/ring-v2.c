// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The layout of version 2, described here once more in types of its own: those in ring-state.h may
 * change. Header, lines and states are converted into a copy of today's types; counts and chunks
 * stay where they are, mapped privately, for the last commit may have to be done again, and the
 * chunk that was being filled must be padded.
 *
 *   [header, lines, states: today's types, ours] [the memfd from its start, private]
 */

#include "collector/ring-v2.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "collector/memory.h"
#include "collector/pool.h"
#include "collector/ring-state.h"
#include "collector/ring.h"
#include "common/util.h"

#define V2_VERSION         2u
#define V2_CPUS_MAX        4096u
#define V2_PARTS           2u
#define V2_CLASSES         12u
#define V2_NOTE_BYTES      256u
#define V2_CHUNK_BYTES     (UINT32_C(256) << 10)
#define V2_CHUNK_ORDER_MAX 4u
#define V2_MIN_BYTES       (UINT64_C(2) << 20)
#define V2_PAGE_BYTES      4096u

struct ring_count_v2 {
    uint32_t records;
    uint32_t lost;
};

struct ring_chunk_v2 {
    uint64_t seq;
    uint64_t first_tsc;
    uint64_t last_tsc;
    uint64_t round_tsc;
    uint64_t passed_tsc;
    uint32_t fill_bytes;
    uint32_t last_window;
    uint32_t first_round;
    uint32_t has_uneven;
};

struct ring_line_v2 {
    uint64_t produced;
    uint64_t delivered;
    uint64_t lost;
    uint64_t dropped;
    uint64_t evicted;
    uint64_t first_tsc;
    uint64_t last_tsc;
    uint32_t cons;
    uint32_t reserved;
};

struct ring_commit_v2 {
    uint32_t armed;
    uint32_t cpu;
    uint32_t cons;
    uint32_t chunk;
    uint32_t part;
    struct ring_count_v2 count;
    struct ring_chunk_v2 chunk_state;
    uint64_t produced;
    uint64_t lost;
    uint64_t dropped;
    uint64_t first_tsc;
    uint64_t last_tsc;
};

struct ring_header_v2 {
    uint64_t magic;
    uint32_t version;
    uint32_t nr_cpus;
    uint32_t nr_chunks;
    uint32_t chunk_bytes;
    uint64_t total_bytes;
    uint64_t data_offset;
    uint32_t buffer_pages;
    uint32_t moving_cpu;
    uint32_t moving_from;
    uint32_t reserved;
    uint64_t cpus[V2_CPUS_MAX / 64];
    uint8_t events[V2_CLASSES];
    uint64_t complete_from_tsc;
    struct ring_commit_v2 commit;
    uint64_t windows;
    uint64_t class_records[V2_CLASSES];
    uint8_t note[V2_NOTE_BYTES];
};

/* The layout is fixed, because it is in use on installed hosts. */
_Static_assert(sizeof(struct ring_count_v2) == 8, "version 2");
_Static_assert(sizeof(struct ring_chunk_v2) == 56, "version 2");
_Static_assert(sizeof(struct ring_line_v2) == 64, "version 2");
_Static_assert(sizeof(struct ring_commit_v2) == 128, "version 2");
_Static_assert(sizeof(struct ring_header_v2) == 1080, "version 2");
_Static_assert(offsetof(struct ring_line_v2, cons) == 56, "version 2");
_Static_assert(offsetof(struct ring_chunk_v2, fill_bytes) == 40, "version 2");
_Static_assert(offsetof(struct ring_commit_v2, count) == 20, "version 2");
_Static_assert(offsetof(struct ring_commit_v2, chunk_state) == 32, "version 2");
_Static_assert(offsetof(struct ring_commit_v2, produced) == 88, "version 2");
_Static_assert(offsetof(struct ring_header_v2, version) == 8, "version 2");
_Static_assert(offsetof(struct ring_header_v2, total_bytes) == 24, "version 2");
_Static_assert(offsetof(struct ring_header_v2, moving_cpu) == 44, "version 2");
_Static_assert(offsetof(struct ring_header_v2, cpus) == 56, "version 2");
_Static_assert(offsetof(struct ring_header_v2, events) == 568, "version 2");
_Static_assert(offsetof(struct ring_header_v2, complete_from_tsc) == 584, "version 2");
_Static_assert(offsetof(struct ring_header_v2, commit) == 592, "version 2");
_Static_assert(offsetof(struct ring_header_v2, windows) == 720, "version 2");
_Static_assert(offsetof(struct ring_header_v2, class_records) == 728, "version 2");
_Static_assert(offsetof(struct ring_header_v2, note) == 824, "version 2");
/* What is used as it is. */
_Static_assert(sizeof(struct ring_count) == sizeof(struct ring_count_v2), "used in place");
_Static_assert(sizeof(struct cpu_set) >= V2_CPUS_MAX / 8, "copied");
_Static_assert(EVENT_CLASSES == V2_CLASSES, "copied");
_Static_assert(RING_NOTE_BYTES == V2_NOTE_BYTES, "copied");

struct layout_v2 {
    uint64_t lines_offset;
    uint64_t chunks_offset;
    uint64_t counts_offset;
    uint64_t data_offset;
    uint64_t total_bytes;
};

static struct layout_v2 layout_of(const struct ring_header_v2 *header)
{
    uint64_t nr_chunks = header->nr_chunks, nr_cpus = header->nr_cpus;
    struct layout_v2 layout;

    layout.lines_offset = align_up(sizeof(struct ring_header_v2), 64);
    layout.chunks_offset =
        align_up(layout.lines_offset + nr_cpus * sizeof(struct ring_line_v2), 64);
    layout.counts_offset =
        align_up(layout.chunks_offset + nr_chunks * sizeof(struct ring_chunk_v2), 64);
    layout.data_offset = align_up(layout.counts_offset +
                                      nr_chunks * V2_PARTS * nr_cpus * sizeof(struct ring_count_v2),
                                  V2_PAGE_BYTES);
    layout.total_bytes = layout.data_offset + nr_chunks * header->chunk_bytes;
    return layout;
}

static int refuse(int error, const char *problem, const char **ret_problem)
{
    *ret_problem = problem;
    return error;
}

static bool chunk_bytes_are_possible(uint32_t bytes)
{
    for (unsigned int order = 0; order <= V2_CHUNK_ORDER_MAX; order++)
        if (bytes == V2_CHUNK_BYTES << order)
            return true;
    return false;
}

/* The header is read once, into *RET_HEADER. */
static int check_header(int memfd, unsigned int nr_cpus, struct ring_header_v2 *ret_header,
                        const char **ret_problem)
{
    int seals = fcntl(memfd, F_GET_SEALS);
    struct layout_v2 layout;
    struct stat st;

    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return refuse(-EBADMSG, "it is not a sealed memory file", ret_problem);
    if (fstat(memfd, &st) < 0 ||
        pread(memfd, ret_header, sizeof(*ret_header), 0) != (ssize_t)sizeof(*ret_header) ||
        ret_header->magic != RING_MAGIC)
        return refuse(-EBADMSG, "it is not a ring", ret_problem);
    if (ret_header->version != V2_VERSION || !chunk_bytes_are_possible(ret_header->chunk_bytes))
        return refuse(-EPROTO, "it is from another version of xentraced", ret_problem);
    layout = layout_of(ret_header);
    if (ret_header->nr_cpus == 0 || ret_header->nr_cpus > V2_CPUS_MAX ||
        ret_header->nr_chunks == RING_NO_CHUNK ||
        (uint64_t)ret_header->nr_chunks * ret_header->chunk_bytes < V2_MIN_BYTES ||
        ret_header->total_bytes != layout.total_bytes ||
        ret_header->data_offset != layout.data_offset || (uint64_t)st.st_size != layout.total_bytes)
        return refuse(-EBADMSG, "its size differs from its header", ret_problem);
    if (ret_header->nr_cpus != nr_cpus)
        return refuse(-EBADMSG, "it is from a host with another number of CPUs", ret_problem);
    return 0;
}

/* --- Conversion. --- */

static struct ring_chunk convert_state(const struct ring_chunk_v2 *state)
{
    return (struct ring_chunk){
        .seq = state->seq,
        .first_tsc = state->first_tsc,
        .last_tsc = state->last_tsc,
        .round_tsc = state->round_tsc,
        .passed_tsc = state->passed_tsc,
        .fill_bytes = state->fill_bytes,
        .last_window = state->last_window,
        .first_round = state->first_round,
        .has_uneven = state->has_uneven,
    };
}

static struct ring_line convert_line(const struct ring_line_v2 *line)
{
    return (struct ring_line){
        .ledger =
            {
                .produced = line->produced,
                .delivered = line->delivered,
                .lost = line->lost,
                .dropped = line->dropped,
                .evicted = line->evicted,
                .first_tsc = line->first_tsc,
                .last_tsc = line->last_tsc,
            },
        .cons = line->cons,
    };
}

static struct ring_commit convert_commit(const struct ring_commit_v2 *commit)
{
    return (struct ring_commit){
        .armed = commit->armed,
        .cpu = commit->cpu,
        .cons = commit->cons,
        .chunk = commit->chunk,
        .part = commit->part,
        .count = {.records = commit->count.records, .lost = commit->count.lost},
        .chunk_state = convert_state(&commit->chunk_state),
        .produced = commit->produced,
        .lost = commit->lost,
        .dropped = commit->dropped,
        .first_tsc = commit->first_tsc,
        .last_tsc = commit->last_tsc,
    };
}

static void convert_header(const struct ring_header_v2 *from, struct ring_header *to)
{
    to->magic = RING_MAGIC;
    to->version = RING_VERSION;
    to->nr_cpus = from->nr_cpus;
    to->nr_chunks = from->nr_chunks;
    to->chunk_bytes = from->chunk_bytes;
    to->buffer_pages = from->buffer_pages;
    to->moving_cpu = from->moving_cpu;
    to->moving_from = from->moving_from;
    memcpy(&to->cpus, from->cpus, sizeof(from->cpus));
    memcpy(&to->events, from->events, sizeof(from->events));
    to->complete_from_tsc = from->complete_from_tsc;
    to->commit = convert_commit(&from->commit);
    to->windows = from->windows;
    memcpy(to->class_records, from->class_records, sizeof(from->class_records));
    memcpy(to->note, from->note, sizeof(from->note));
}

/* --- The view. --- */

/* Our part of the mapping. */
static struct ring_layout layout_of_view(const struct ring_header_v2 *header,
                                         const struct layout_v2 *v2)
{
    struct ring_layout layout = {0};

    layout.lines_offset = align_up(sizeof(struct ring_header), 64);
    layout.chunks_offset =
        align_up(layout.lines_offset + header->nr_cpus * sizeof(struct ring_line), 64);
    layout.data_offset =
        align_up(layout.chunks_offset + (uint64_t)header->nr_chunks * sizeof(struct ring_chunk),
                 PAGE_BYTES) +
        v2->data_offset;
    layout.total_bytes = layout.data_offset + (uint64_t)header->nr_chunks * header->chunk_bytes;
    return layout;
}

/* Ours is anonymous, and zero. The memfd's pages are copied only if they are written to. */
static int map_view(struct ring *ring, int memfd, const struct layout_v2 *v2)
{
    uint64_t memfd_offset = ring->layout.data_offset - v2->data_offset;
    uint8_t *base = mmap(NULL, ring->layout.total_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (base == MAP_FAILED)
        return -errno;
    ring->base = base;
    if (mmap(base + memfd_offset, v2->total_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, memfd, 0) == MAP_FAILED)
        return -errno;
    return 0;
}

static void point_into_view(struct ring *ring, const struct ring_header_v2 *header)
{
    const struct ring_layout *layout = &ring->layout;

    ring->header = (struct ring_header *)ring->base;
    ring->lines = (struct ring_line *)(ring->base + layout->lines_offset);
    ring->states = (struct ring_chunk *)(ring->base + layout->chunks_offset);
    ring->nr_cpus = header->nr_cpus;
    ring->nr_chunks = header->nr_chunks;
    ring->nr_total = header->nr_chunks;
    ring->chunk_bytes = header->chunk_bytes;
    ring->max_listed = header->nr_chunks;
    for (uint32_t i = 0; i < header->nr_chunks; i++) {
        ring->chunks[i].data = ring->base + layout->data_offset + (uint64_t)i * header->chunk_bytes;
        ring->chunks[i].bytes = header->chunk_bytes;
    }
}

static void convert(struct ring *ring, const struct ring_header_v2 *header,
                    const struct layout_v2 *v2)
{
    uint8_t *memfd = ring->base + ring->layout.data_offset - v2->data_offset;
    const struct ring_line_v2 *lines = (const struct ring_line_v2 *)(memfd + v2->lines_offset);
    const struct ring_chunk_v2 *states = (const struct ring_chunk_v2 *)(memfd + v2->chunks_offset);
    struct ring_count *counts = (struct ring_count *)(memfd + v2->counts_offset);

    convert_header(header, ring->header);
    for (uint32_t cpu = 0; cpu < header->nr_cpus; cpu++)
        ring->lines[cpu] = convert_line(&lines[cpu]);
    for (uint32_t i = 0; i < header->nr_chunks; i++) {
        ring->states[i] = convert_state(&states[i]);
        ring->counts[i] = counts + (size_t)i * V2_PARTS * header->nr_cpus;
    }
}

static int make_view(struct ring *ring, int memfd, const struct ring_header_v2 *header)
{
    const struct layout_v2 v2 = layout_of(header);
    int r;

    ring->chunks = calloc(header->nr_chunks, sizeof(*ring->chunks));
    ring->pins = calloc(RING_PINS_MAX, sizeof(*ring->pins));
    ring->counts = calloc(header->nr_chunks, sizeof(struct ring_count *));
    if (!ring->chunks || !ring->pins || !ring->counts)
        return -ENOMEM;
    for (unsigned int i = 0; i < RING_PINS_MAX; i++)
        ring->pins[i].first = RING_UNPINNED;
    ring->layout = layout_of_view(header, &v2);
    r = map_view(ring, memfd, &v2);
    if (r < 0)
        return r;
    point_into_view(ring, header);
    convert(ring, header, &v2);
    return 0;
}

static void ring_freep(struct ring **ring)
{
    ring_free(*ring);
}

int ring_read_v2(int memfd, unsigned int nr_cpus, struct ring **ret_ring, const char **ret_problem)
{
    _cleanup_(ring_freep) struct ring *ring = NULL;
    struct ring_header_v2 header;
    int r;

    r = check_header(memfd, nr_cpus, &header, ret_problem);
    if (r < 0)
        return r;
    ring = calloc(1, sizeof(*ring));
    if (!ring)
        return refuse(-ENOMEM, "out of memory", ret_problem);
    ring->memfd = -1;
    r = make_view(ring, memfd, &header);
    if (r < 0)
        return refuse(r, "it cannot be mapped", ret_problem);
    r = ring_adopt_state(ring, ret_problem);
    if (r < 0)
        return r;
    *ret_ring = TAKE_PTR(ring);
    return 0;
}
