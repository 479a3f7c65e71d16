// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a chunk can be: free; being filled; in the list; in limbo, evicted but pinned; or, of those
 * that could be borrowed (ring-borrow.c), nowhere. Only the
 * list and the one being filled are the ring, and only those have a sequence number in its state.
 *
 * The head of the list begins with a round, or would if what comes before its first round were
 * skipped: that part counts as evicted from the moment the chunk becomes the head.
 *
 * Pins: the collector thread stores the view of the tail and `last`, then `first` (release); the
 * main thread only moves `first` up (release), which the collector thread loads (acquire) before it
 * uses a chunk again: the kernel has read it by then.
 */

#include "collector/ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "collector/extent.h"
#include "collector/grower.h"
#include "collector/memory.h"
#include "collector/pool.h"
#include "collector/ring-state.h"
#include "collector/walk.h"
#include "common/record.h"
#include "common/units.h"
#include "common/util.h"

#define MIN_SPARE_CHUNKS 2u

/*
 * Chunks are large, so that windows are rarely cut, but the oldest chunk must not be a large part
 * of the ring. With chunks of 1 MiB, a window of slightly more than half a buffer of 1 MiB would
 * leave almost half of the chunk empty.
 */
#define PARTS_MIN       64u
#define PARTS_MIN_ROOMY 32u
#define ROOMY_BYTES     (UINT64_C(2) << 20)

uint32_t ring_chunk_bytes_of(uint64_t bytes)
{
    uint64_t chunk_bytes = CHUNK_BYTES;

    for (unsigned int order = 1; order <= CHUNK_ORDER_MAX; order++) {
        uint64_t next = (uint64_t)CHUNK_BYTES << order;

        if (bytes / next < (next < ROOMY_BYTES ? PARTS_MIN : PARTS_MIN_ROOMY))
            break;
        chunk_bytes = next;
    }
    return (uint32_t)chunk_bytes;
}

/*
 * A step is what is worth a call of the kernel, and some chunks at least: the grower takes some
 * milliseconds for it, in which they are not to be used up.
 */
#define STEP_BYTES      (UINT64_C(16) << 20)
#define STEP_CHUNKS_MIN UINT64_C(4)

struct ring_layout ring_layout_of(uint64_t nr_chunks, uint32_t chunk_bytes, uint64_t nr_cpus,
                                  uint64_t nr_steps)
{
    const uint64_t counts_bytes = RING_PARTS * nr_cpus * sizeof(struct ring_count);
    struct ring_layout layout;
    uint64_t nr_total;

    layout.step_chunks = max_u64(STEP_BYTES / chunk_bytes, STEP_CHUNKS_MIN);
    layout.step_data_offset = align_up(layout.step_chunks * counts_bytes, PAGE_BYTES);
    layout.step_bytes = layout.step_data_offset + layout.step_chunks * chunk_bytes;

    nr_total = nr_chunks + nr_steps * layout.step_chunks;
    layout.lines_offset = align_up(sizeof(struct ring_header), 64);
    layout.chunks_offset = align_up(layout.lines_offset + nr_cpus * sizeof(struct ring_line), 64);
    layout.counts_offset =
        align_up(layout.chunks_offset + nr_total * sizeof(struct ring_chunk), 64);
    layout.data_offset = align_up(layout.counts_offset + nr_chunks * counts_bytes, PAGE_BYTES);
    layout.steps_offset = layout.data_offset + nr_chunks * chunk_bytes;
    layout.total_bytes = layout.steps_offset + nr_steps * layout.step_bytes;
    return layout;
}

/* Where the counts and the data of chunk I are. */
static void ring_place_chunk(struct ring *ring, unsigned int i)
{
    const struct ring_layout *layout = &ring->layout;
    uint8_t *counts = ring->base + layout->counts_offset;
    uint8_t *data = ring->base + layout->data_offset;
    uint64_t n = i;

    if (i >= ring->nr_chunks) {
        counts = ring->base + layout->steps_offset +
                 (i - ring->nr_chunks) / layout->step_chunks * layout->step_bytes;
        data = counts + layout->step_data_offset;
        n = (i - ring->nr_chunks) % layout->step_chunks;
    }
    ring->counts[i] = (struct ring_count *)counts + n * RING_PARTS * ring->nr_cpus;
    ring->chunks[i].data = data + n * ring->chunk_bytes;
    ring->chunks[i].bytes = ring->chunk_bytes;
}

static int ring_make_pins(struct ring *ring)
{
    size_t nr_counts = (size_t)RING_PARTS * ring->nr_cpus;
    void *base;
    int r;

    ring->pins = memory_alloc(RING_PINS_MAX, sizeof(*ring->pins));
    if (!ring->pins)
        return -ENOMEM;
    /* Touched: the collector thread writes it. */
    ring->pin_counts_bytes = RING_PINS_MAX * nr_counts * sizeof(struct ring_count);
    r = memory_map(-1, ring->pin_counts_bytes, ring->pin_counts_bytes, &base);
    if (r < 0)
        return r;
    ring->pin_counts = base;
    (void)memory_lock(base, ring->pin_counts_bytes); /* is_locked is about the records */
    for (unsigned int i = 0; i < RING_PINS_MAX; i++) {
        ring->pins[i].first = RING_UNPINNED;
        ring->pins[i].tail_counts = ring->pin_counts + i * nr_counts;
    }
    return 0;
}

static int ring_make_extent(struct ring *ring, struct grower *grower)
{
    int r;

    if (ring->nr_steps == 0)
        return 0;
    ring->steps = memory_alloc(ring->nr_steps, sizeof(*ring->steps));
    if (!ring->steps)
        return -ENOMEM;
    r = extent_new(ring->base + ring->layout.steps_offset, ring->layout.step_bytes, ring->nr_steps,
                   ring->memfd >= 0, &ring->extent);
    if (r < 0)
        return r;
    ring->grower = grower;
    return 0;
}

int ring_set_up(struct ring *ring, uint64_t nr_chunks, unsigned int nr_cpus, uint64_t nr_steps,
                struct grower *grower)
{
    struct ring_layout layout = ring_layout_of(nr_chunks, ring->chunk_bytes, nr_cpus, nr_steps);
    uint64_t nr_total = nr_chunks + nr_steps * layout.step_chunks;
    void *base;
    int r;

    ring->layout = layout;
    ring->nr_cpus = nr_cpus;
    ring->nr_chunks = (unsigned int)nr_chunks;
    ring->nr_total = (unsigned int)nr_total;
    ring->nr_steps = (unsigned int)nr_steps;
    ring->max_listed =
        ring->nr_chunks - (unsigned int)max_u64(ring->nr_chunks / 8, MIN_SPARE_CHUNKS) - 1;
    ring->chunks = memory_alloc(nr_total, sizeof(*ring->chunks));
    ring->counts = memory_alloc(nr_total, sizeof(struct ring_count *));
    if (!ring->chunks || !ring->counts)
        return -ENOMEM;
    r = ring_make_pins(ring);
    if (r < 0)
        return r;
    r = memory_map(ring->memfd, layout.total_bytes, layout.steps_offset, &base);
    if (r < 0)
        return r;
    ring->base = base;
    ring->header = base;
    ring->lines = (struct ring_line *)(ring->base + layout.lines_offset);
    ring->states = (struct ring_chunk *)(ring->base + layout.chunks_offset);
    ring->is_locked = memory_lock(base, layout.steps_offset) >= 0; /* if not, it is reported */
    for (unsigned int i = 0; i < ring->nr_total; i++)
        ring_place_chunk(ring, i);
    return ring_make_extent(ring, grower);
}

static int make_memfd(struct ring *ring, uint64_t bytes)
{
    ring->memfd = memfd_create("xentraced-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (ring->memfd < 0 || ftruncate(ring->memfd, (off_t)bytes) < 0 ||
        fcntl(ring->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    return 0;
}

void ring_give(struct ring *ring, struct chunk *chunk)
{
    struct chunk **list = &ring->free_list;

    if (!ring_is_home(ring, chunk)) {
        list = &ring->borrowed_list;
        ring->steps[ring_step_of(ring, chunk)].nr_free++;
    }
    chunk->state = CHUNK_FREE;
    chunk->next = *list;
    *list = chunk;
    ring->nr_free++;
}

/* Makes it an empty one. */
static void ring_begin(struct ring *ring)
{
    *ring->header = (struct ring_header){
        .version = RING_VERSION,
        .nr_cpus = ring->nr_cpus,
        .nr_chunks = ring->nr_chunks,
        .chunk_bytes = ring->chunk_bytes,
        .nr_steps = ring->nr_steps,
        .total_bytes = ring->layout.total_bytes,
        .data_offset = ring->layout.data_offset,
        .moving_cpu = RING_NO_CPU,
    };
    ring_keep_order();
    ring->header->magic = RING_MAGIC;
    for (unsigned int i = ring->nr_chunks; i-- > 0;)
        ring_give(ring, &ring->chunks[i]);
    ring->next_seq = 1;
}

static void ring_freep(struct ring **ring)
{
    ring_free(*ring);
}

int ring_new(uint64_t bytes, unsigned int nr_cpus, bool outlives, struct grower *grower,
             struct ring **ret_ring)
{
    uint32_t chunk_bytes = ring_chunk_bytes_of(bytes);
    uint64_t nr_chunks = bytes / chunk_bytes, nr_steps = 0;
    _cleanup_(ring_freep) struct ring *ring = NULL;
    struct ring_layout layout;
    int r;

    if (bytes < RING_MIN_BYTES || nr_chunks >= RING_NO_CHUNK / 2)
        return -EINVAL;
    ring = memory_alloc(1, sizeof(*ring));
    if (!ring)
        return -ENOMEM;
    ring->memfd = -1;
    ring->chunk_bytes = chunk_bytes;
    if (grower)
        nr_steps = ring_steps_of(grower, chunk_bytes, nr_cpus);
    layout = ring_layout_of(nr_chunks, chunk_bytes, nr_cpus, nr_steps);
    if (outlives) {
        r = make_memfd(ring, layout.total_bytes);
        if (r < 0)
            return r;
    }
    r = ring_set_up(ring, nr_chunks, nr_cpus, nr_steps, grower);
    if (r < 0)
        return r;
    ring_begin(ring);
    if (ring->extent)
        grower_add(grower, ring->extent);
    *ret_ring = TAKE_PTR(ring);
    return 0;
}

struct ring *ring_free(struct ring *ring)
{
    if (!ring)
        return NULL;
    if (ring->extent && extent_is_served(ring->extent))
        grower_remove(ring->grower, ring->extent);
    extent_free(ring->extent);
    memory_unmap(ring->base, ring->layout.total_bytes);
    fd_close(&ring->memfd);
    free(ring->chunks);
    free(ring->counts);
    free(ring->steps);
    memory_unmap(ring->pin_counts, ring->pin_counts_bytes);
    free(ring->pins);
    free(ring);
    return NULL;
}

/* --- Where a chunk goes. --- */

bool ring_is_pinned(const struct ring *ring, const struct chunk *chunk)
{
    for (unsigned int i = 0; i < RING_PINS_MAX; i++) {
        const struct ring_pin *pin = &ring->pins[i];
        uint64_t first = __atomic_load_n(&pin->first, __ATOMIC_ACQUIRE);

        if (first <= chunk->seq && chunk->seq <= pin->last)
            return true;
    }
    return false;
}

static void count_evicted(struct ring *ring, const struct chunk *chunk, enum ring_part part)
{
    const struct ring_count *counts = ring_counts_of(ring, chunk, part);

    for (unsigned int cpu = 0; cpu < ring->nr_cpus; cpu++) {
        struct ledger *ledger = &ring->lines[cpu].ledger;

        if (counts[cpu].records == 0)
            continue;
        ledger_publish(&ledger->delivered, ledger->delivered - counts[cpu].records);
        ledger_add(&ledger->evicted, counts[cpu].records);
    }
}

void ring_drop_from(struct ring *ring, const struct chunk *chunk, bool from_round,
                    enum drop_cause cause)
{
    for (; chunk; chunk = chunk->next, from_round = false) {
        for (unsigned int cpu = 0; cpu < ring->nr_cpus; cpu++) {
            struct ledger *ledger = &ring->lines[cpu].ledger;
            uint64_t records = ring_counts_of(ring, chunk, RING_FROM_ROUND)[cpu].records;

            /* In the head, what is before its first round is counted as evicted already. */
            if (chunk != ring->head && !from_round)
                records += ring_counts_of(ring, chunk, RING_BEFORE_ROUND)[cpu].records;
            ledger_publish(&ledger->delivered, ledger->delivered - records);
            ring->drops[cause] += records;
            ledger_add(&ledger->dropped, records);
        }
    }
}

static void publish_oldest(struct ring *ring)
{
    const struct chunk *oldest = ring->head ? ring->head : ring->filling;

    ledger_publish(&ring->oldest_tsc, oldest ? ring_state_of(ring, oldest)->first_tsc : 0);
}

/* The head leaves the list; what it holds from its first round on is evicted. */
static void drop_head(struct ring *ring)
{
    struct chunk *chunk = ring->head;

    ring_state_of(ring, chunk)->seq = 0;
    ring_keep_order(); /* before anything in it is written over */
    count_evicted(ring, chunk, RING_FROM_ROUND);
    ledger_publish(&ring->used_bytes, ring->used_bytes - chunk->fill_bytes);
    ring->head = chunk->next;
    ring->nr_listed--;
    if (!ring->head)
        ring->tail = NULL;
    if (!ring_is_pinned(ring, chunk)) {
        ring_give(ring, chunk);
        return;
    }
    chunk->limbo_next = NULL;
    if (ring->limbo_tail)
        ring->limbo_tail->limbo_next = chunk;
    else
        ring->limbo_head = chunk;
    ring->limbo_tail = chunk;
}

void ring_evict(struct ring *ring)
{
    bool begins_with_round = false;

    drop_head(ring);
    while (ring->head && !begins_with_round) {
        begins_with_round = ring_state_of(ring, ring->head)->first_round != RING_NO_ROUND;
        count_evicted(ring, ring->head, RING_BEFORE_ROUND);
        if (!begins_with_round)
            drop_head(ring);
    }
    publish_oldest(ring);
}

void ring_append(struct ring *ring, struct chunk *chunk)
{
    bool is_head = !ring->head;

    chunk->next = NULL;
    if (ring->tail)
        ring->tail->next = chunk;
    else
        ring->head = chunk;
    ring->tail = chunk;
    ring->nr_listed++;
    if (!is_head)
        return;
    count_evicted(ring, chunk, RING_BEFORE_ROUND);
    if (ring_state_of(ring, chunk)->first_round == RING_NO_ROUND)
        drop_head(ring);
}

/* One snapshot that is stuck does not keep what others have released after it. */
void ring_free_limbo(struct ring *ring)
{
    struct chunk **link = &ring->limbo_head;

    ring->limbo_tail = NULL;
    while (*link) {
        struct chunk *chunk = *link;

        if (ring_is_pinned(ring, chunk)) {
            ring->limbo_tail = chunk;
            link = &chunk->limbo_next;
        } else {
            *link = chunk->limbo_next;
            ring_give(ring, chunk);
        }
    }
}

static bool has_unpinned(const struct ring *ring)
{
    for (const struct chunk *chunk = ring->head; chunk; chunk = chunk->next)
        if (!ring_is_pinned(ring, chunk))
            return true;
    return false;
}

static struct chunk *take_from(struct ring *ring, struct chunk **list)
{
    struct chunk *chunk = *list;

    if (!chunk)
        return NULL;
    *list = chunk->next;
    ring->nr_free--;
    if (!ring_is_home(ring, chunk))
        ring->steps[ring_step_of(ring, chunk)].nr_free--;
    return chunk;
}

/*
 * No spare and no borrowed chunk is left: evicts chunks until one becomes free. It replaces itself,
 * so the ring becomes shorter by the chunks before it.
 */
static void ring_shorten(struct ring *ring)
{
    uint64_t before_bytes = ring->used_bytes, last_bytes = before_bytes;

    while (ring->nr_free == 0 && ring->head) {
        last_bytes = ring->used_bytes;
        ring_evict(ring);
    }
    ledger_add(&ring->header->shortened_bytes, before_bytes - last_bytes);
}

/* Returns whether a chunk is free. As long as something is left that no snapshot needs, that goes.
 */
static bool ring_make_room(struct ring *ring)
{
    if (ring->nr_free == 0 && !ring_borrow(ring) && has_unpinned(ring))
        ring_shorten(ring);
    return ring->nr_free > 0;
}

static struct chunk *take_free(struct ring *ring)
{
    struct chunk *chunk;

    if (!ring_make_room(ring))
        return NULL;
    chunk = take_from(ring, &ring->free_list);
    return chunk ? chunk : take_from(ring, &ring->borrowed_list);
}

struct chunk *ring_fill(struct ring *ring)
{
    struct chunk *chunk;

    if (ring->filling)
        return ring->filling;
    while (ring->nr_listed > ring->max_listed)
        ring_evict(ring);
    ring_free_limbo(ring);
    ring_ask(ring);
    chunk = take_free(ring);
    if (!chunk)
        return NULL;
    *chunk = (struct chunk){
        .data = chunk->data,
        .bytes = chunk->bytes,
        .state = CHUNK_FILLING,
        .seq = ring->next_seq++,
    };
    memset(ring_counts_of(ring, chunk, RING_BEFORE_ROUND), 0,
           RING_PARTS * ring->nr_cpus * sizeof(struct ring_count));
    /* In the ring from its first commit on. */
    *ring_state_of(ring, chunk) =
        (struct ring_chunk){.first_round = RING_NO_ROUND, .passed_tsc = ring->passed_tsc};
    ring->filling = chunk;
    return chunk;
}

void ring_pad_chunk(struct ring *ring, struct chunk *chunk)
{
    uint32_t padding = (uint32_t)align_up(chunk->fill_bytes, PAGE_BYTES) - chunk->fill_bytes;
    struct window_header header;

    memcpy(&header, chunk->data + chunk->last_window, sizeof(header));
    walk_write_padding(chunk->data + chunk->fill_bytes, padding);
    ring_keep_order(); /* a window that reaches beyond the chunk's fill is found padded:
                          ring-adopt.c */
    header.bytes += padding;
    memcpy(chunk->data + chunk->last_window, &header, sizeof(header));
    ring_keep_order();
    chunk->fill_bytes += padding;
    ring_state_of(ring, chunk)->fill_bytes = chunk->fill_bytes;
    ledger_add(&ring->used_bytes, padding);
}

void ring_close_chunk(struct ring *ring)
{
    struct chunk *chunk = ring->filling;

    if (!chunk)
        return;
    if (chunk->fill_bytes == 0) {
        if (ring_is_home(ring, chunk))
            return;
        ring->filling = NULL;
        ring->next_seq--; /* nobody has seen it */
        ring_give(ring, chunk);
        return;
    }
    ring_pad_chunk(ring, chunk);
    ring->filling = NULL;
    chunk->state = CHUNK_QUEUED;
    ring_append(ring, chunk);
    publish_oldest(ring);
}

void ring_set_complete_from(struct ring *ring, uint64_t tsc)
{
    ledger_publish(&ring->header->complete_from_tsc, tsc);
}

void ring_expire(struct ring *ring, uint64_t tsc)
{
    while (ring->head && ring_state_of(ring, ring->head)->last_tsc < tsc)
        ring_evict(ring);
}

/* --- Commits. --- */

void ring_apply_commit(struct ring *ring, const struct ring_commit *commit)
{
    struct ring_line *line = &ring->lines[commit->cpu];

    ledger_publish(&line->ledger.produced, commit->produced);
    ledger_publish(&line->ledger.lost, commit->lost);
    ledger_publish(&line->ledger.dropped, commit->dropped);
    ledger_publish(&line->ledger.first_tsc, commit->first_tsc);
    ledger_publish(&line->ledger.last_tsc, commit->last_tsc);
    line->cons = commit->cons;
    if (commit->chunk == RING_NO_CHUNK)
        return;
    ring_counts_of(ring, &ring->chunks[commit->chunk], commit->part)[commit->cpu] = commit->count;
    ring->states[commit->chunk] = commit->chunk_state;
}

static void note_move(struct ring *ring, const struct ring_window *window)
{
    ring->header->moving_cpu = RING_NO_CPU;
    ring_keep_order();
    ring->header->moving_from = window->cons_from;
    ring_keep_order();
    ring->header->moving_cpu = window->cpu;
    ring_keep_order();
}

static void commit_now(struct ring *ring, const struct ring_window *window)
{
    struct ring_commit *commit = &ring->header->commit;

    note_move(ring, window);
    commit->armed = 1;
    ring_keep_order();
    ring_apply_commit(ring, commit);
    ring_keep_order();
    commit->armed = 0;
    ring_keep_order();
}

/* The commit of what WALKED found, but for the chunk. It is not armed. */
static struct ring_commit *prepare_commit(struct ring *ring, const struct ring_window *window,
                                          const struct walk_result *walked)
{
    const struct ledger *ledger = &ring->lines[window->cpu].ledger;
    struct ring_commit *commit = &ring->header->commit;

    commit->cpu = window->cpu;
    commit->cons = window->cons_to;
    commit->chunk = RING_NO_CHUNK;
    commit->produced = ledger->produced + walked->records + walked->lost;
    commit->lost = ledger->lost + walked->lost;
    commit->dropped = ledger->dropped;
    commit->first_tsc = ledger->first_tsc ? ledger->first_tsc : walked->first_tsc;
    commit->last_tsc = walked->last_tsc ? walked->last_tsc : ledger->last_tsc;
    return commit;
}

static enum ring_part note_round(struct ring_chunk *state, const struct ring_window *window,
                                 uint32_t offset)
{
    if (window->begins_round && window->begins_even && state->first_round == RING_NO_ROUND) {
        state->first_round = offset;
        state->round_tsc = state->passed_tsc;
    } else if (window->begins_round && !window->begins_even && state->first_round != RING_NO_ROUND)
        state->has_uneven = 1;
    return state->first_round == RING_NO_ROUND ? RING_BEFORE_ROUND : RING_FROM_ROUND;
}

static void note_tscs(struct ring *ring, struct ring_chunk *state, const struct walk_result *walked)
{
    if (walked->first_tsc && (!state->first_tsc || walked->first_tsc < state->first_tsc))
        state->first_tsc = walked->first_tsc;
    state->last_tsc = max_u64(state->last_tsc, walked->last_tsc);
    ring->passed_tsc = max_u64(ring->passed_tsc, max_u64(walked->last_tsc, walked->lost_last_tsc));
    state->passed_tsc = ring->passed_tsc;
    ledger_publish(&ring->newest_tsc, max_u64(ring->newest_tsc, walked->last_tsc));
}

void ring_commit_window(struct ring *ring, const struct ring_window *window,
                        const struct walk_result *walked)
{
    struct ring_commit *commit = prepare_commit(ring, window, walked);
    struct chunk *chunk = ring->filling;
    struct ring_chunk *state = &commit->chunk_state;
    struct ledger *ledger = &ring->lines[window->cpu].ledger;
    struct ring_count *count;

    commit->chunk = (uint32_t)(chunk - ring->chunks);
    *state = *ring_state_of(ring, chunk);
    state->seq = chunk->seq;
    commit->part = note_round(state, window, chunk->fill_bytes);
    note_tscs(ring, state, walked);
    count = ring_counts_of(ring, chunk, commit->part) + window->cpu;
    commit->count = (struct ring_count){
        .records = count->records + (uint32_t)walked->records,
        .lost = (uint32_t)min_u64(count->lost + walked->lost + window->told, UINT32_MAX),
    };
    state->last_window = chunk->fill_bytes;
    state->fill_bytes = chunk->fill_bytes + window->bytes;
    commit_now(ring, window);

    chunk->last_window = state->last_window;
    chunk->fill_bytes = state->fill_bytes;
    ledger_add(&ledger->delivered, walked->records);
    ledger_add(&ring->used_bytes, window->bytes);
    if (!ring->oldest_tsc)
        publish_oldest(ring);
}

void ring_commit_drop(struct ring *ring, const struct ring_window *window,
                      const struct walk_result *walked)
{
    struct ring_commit *commit = prepare_commit(ring, window, walked);

    commit->dropped += walked->records;
    commit_now(ring, window);
}

void ring_commit_nothing(struct ring *ring, const struct ring_window *window)
{
    note_move(ring, window);
    ring->lines[window->cpu].cons = window->cons_to;
    ring_keep_order();
}

/* --- Pins. --- */

static uint64_t now_nsec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * USEC_PER_SEC * NSEC_PER_USEC + (uint64_t)ts.tv_nsec;
}

/* The view of the chunk that is being filled, as it is now. */
static void ring_pin_tail(const struct ring *ring, struct ring_pin *pin)
{
    const struct chunk *chunk = ring->filling;

    pin->tail = (struct chunk){0};
    if (!chunk || chunk->fill_bytes == 0)
        return;
    pin->tail = *chunk;
    pin->tail.next = NULL;
    pin->tail_state = *ring_state_of(ring, chunk);
    memcpy(&pin->tail_window, chunk->data + chunk->last_window, sizeof(pin->tail_window));
    memcpy(pin->tail_counts, ring_counts_of(ring, chunk, RING_BEFORE_ROUND),
           RING_PARTS * ring->nr_cpus * sizeof(struct ring_count));
}

/* Where it begins; as of a ring that closes the chunk, one without a round's begin is nothing. */
static const struct chunk *ring_pin_head(const struct ring *ring, const struct ring_pin *pin)
{
    if (ring->head)
        return ring->head;
    if (pin->tail.fill_bytes == 0 || pin->tail_state.first_round == RING_NO_ROUND)
        return NULL;
    return &pin->tail;
}

/* A disk may be stuck for as long as it likes: a ring that is filled keeps a chunk for new records.
 */
static void pin_now(struct ring *ring, struct ring_pin *pin, bool is_filled)
{
    uint64_t begun_nsec = now_nsec();
    bool has_room = true;

    if (is_filled) {
        ring_free_limbo(ring);
        has_room = ring_make_room(ring);
    }
    ring_pin_tail(ring, pin);
    pin->chunk = has_room ? ring_pin_head(ring, pin) : NULL;
    /* With more that is free, what others pin has expired, and is not missed. */
    pin->is_refused = !pin->chunk && ring->limbo_head && ring->nr_free <= 1;
    if (pin->chunk) {
        pin->last = pin->tail.fill_bytes ? pin->tail.seq : ring->tail->seq;
        __atomic_store_n(&pin->first, pin->chunk->seq, __ATOMIC_RELEASE);
    }
    pin->nsec = now_nsec() - begun_nsec;
}

void ring_pin(struct ring *ring, int number)
{
    pin_now(ring, &ring->pins[number], true);
}

void ring_pin_closed(struct ring *ring, int number)
{
    pin_now(ring, &ring->pins[number], false);
}
