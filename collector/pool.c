// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A buddy allocator: a free list for each order, and a chunk whose other half is free too becomes
 * one with it. Taking and returning a chunk needs few instructions. The chunk that was returned
 * last is taken first, because it may still be in the cache.
 *
 * The pool has regions, each with lists of its own: the base, and the steps of an extent, which
 * come and go. A chunk is taken from the first region that has one, so that the base, from which
 * writes are cheapest, is used first, and the last steps are free first. The last frames of a step
 * hold the notes of its chunks: they come and go with it.
 *
 * Invariant: of the FRAMES of CHUNK_BYTES each, the first of every chunk stands for it; no other
 * frame of it is in a list. The frames between the base and the first step, those of steps that are
 * absent, and those that hold notes are CHUNK_PART: no chunk grows into them.
 */

#include "collector/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "collector/extent.h"
#include "collector/grower.h"
#include "collector/memory.h"
#include "common/units.h"
#include "common/util.h"

#define ORDERS (CHUNK_ORDER_MAX + 1)

/* A chunk is at most that part of the pool: what several hold at once is to leave others some. */
#define PARTS_MIN 16u

struct frame {
    struct chunk chunk;     /* first: a chunk is found to be a frame */
    struct chunk *previous; /* in the free list; NULL: the head */
};

#define STEP_FRAMES (POOL_STEP_BYTES / CHUNK_BYTES)

/*
 * The free memory when a quarter of the pool is in use: at 500 MB/s, the records of an eighth of a
 * second. The kernel needs 20 to 80 ms for a step in a virtual machine whose host must provide the
 * pages.
 */
#define AHEAD_BYTES (UINT64_C(64) << 20)

#define PATIENCE_USEC (60 * USEC_PER_SEC) /* how long what is not needed is kept */

/* The base, or a step. */
struct region {
    struct chunk *free_lists[ORDERS];
    uint64_t free_bytes;
    bool is_there;
};

struct pool {
    void *base;
    uint64_t mapped_bytes;
    uint64_t base_bytes;
    uint64_t base_frames;
    uint64_t first_frame; /* of the first step */
    uint64_t nr_frames;
    unsigned int max_order;
    struct frame *frames;
    uint64_t bytes;      /* atomic: one thread writes, any reads */
    uint64_t free_bytes; /* likewise */
    void *notes;         /* of the base: uint64_t [base_frames][notes_per_frame]; NULL: none */
    unsigned int notes_per_frame;
    bool notes_are_touched;

    struct grower *grower;
    struct extent *extent;    /* NULL: the pool does not grow */
    unsigned int nr_steps;    /* that there may be */
    unsigned int in_use;      /* that there are */
    unsigned int wanted;      /* that the grower was asked for */
    unsigned int note_frames; /* of a step */
    uint64_t patience_usec;
    uint64_t shrink_usec; /* give a step back then; 0: all are needed */
    bool is_short;        /* a step that is needed was refused */
    uint64_t refusals;    /* atomic: one thread writes, any reads */

    unsigned int nr_regions; /* the base, and up to the last step that is there */
    struct region regions[]; /* [1 + nr_steps] */
};

/* --- Free lists. --- */

static uint64_t index_of(const struct pool *pool, const struct chunk *chunk)
{
    return (uint64_t)((const struct frame *)chunk - pool->frames);
}

static struct region *region_of(struct pool *pool, uint64_t index)
{
    if (index < pool->base_frames)
        return &pool->regions[0];
    return &pool->regions[1 + (index - pool->first_frame) / STEP_FRAMES];
}

static void push(struct pool *pool, uint64_t index, unsigned int order)
{
    struct frame *frame = &pool->frames[index];
    struct region *region = region_of(pool, index);
    struct chunk *head = region->free_lists[order];

    frame->chunk.state = CHUNK_FREE;
    frame->chunk.order = order;
    frame->chunk.next = head;
    frame->previous = NULL;
    if (head)
        pool->frames[index_of(pool, head)].previous = &frame->chunk;
    region->free_lists[order] = &frame->chunk;
}

static void unlink_free(struct pool *pool, uint64_t index)
{
    struct frame *frame = &pool->frames[index];
    struct chunk *next = frame->chunk.next;

    if (frame->previous)
        frame->previous->next = next;
    else
        region_of(pool, index)->free_lists[frame->chunk.order] = next;
    if (next)
        pool->frames[index_of(pool, next)].previous = frame->previous;
    frame->chunk.state = CHUNK_PART; /* of another, or about to be taken */
}

/* Makes one chunk of it and its other half, as long as that is free. */
static void merge(struct pool *pool, uint64_t index, unsigned int order)
{
    while (order < pool->max_order) {
        uint64_t other = index ^ UINT64_C(1) << order;

        if (other >= pool->nr_frames || pool->frames[other].chunk.state != CHUNK_FREE ||
            pool->frames[other].chunk.order != order)
            break;
        unlink_free(pool, other);
        pool->frames[index].chunk.state = CHUNK_PART;
        index = min_u64(index, other);
        order++;
    }
    push(pool, index, order);
}

/* A free chunk of ORDER or more, the smallest of the first region that has one; NULL: none. */
static struct chunk *find_large(const struct pool *pool, unsigned int order)
{
    for (unsigned int i = 0; i < pool->nr_regions; i++)
        for (unsigned int j = order; j <= pool->max_order; j++)
            if (pool->regions[i].free_lists[j])
                return pool->regions[i].free_lists[j];
    return NULL;
}

/* The largest one of less than ORDER. */
static struct chunk *find_small(const struct pool *pool, unsigned int order)
{
    for (unsigned int j = order; j-- > 0;)
        for (unsigned int i = 0; i < pool->nr_regions; i++)
            if (pool->regions[i].free_lists[j])
                return pool->regions[i].free_lists[j];
    return NULL;
}

static void pool_add_free(struct pool *pool, struct region *region, int64_t bytes)
{
    region->free_bytes += (uint64_t)bytes;
    __atomic_store_n(&pool->free_bytes, pool->free_bytes + (uint64_t)bytes, __ATOMIC_RELAXED);
}

/* --- Regions. --- */

static uint64_t step_bytes(const struct pool *pool)
{
    return (uint64_t)(STEP_FRAMES - pool->note_frames) * CHUNK_BYTES;
}

/* FRAMES from FIRST on are free memory from now on. */
static void pool_add_region(struct pool *pool, unsigned int number, uint64_t first, uint64_t frames)
{
    struct region *region = &pool->regions[number];

    region->is_there = true;
    for (uint64_t i = first + frames; i-- > first;)
        merge(pool, i, 0);
    pool_add_free(pool, region, (int64_t)(frames * CHUNK_BYTES));
    __atomic_store_n(&pool->bytes, pool->bytes + frames * CHUNK_BYTES, __ATOMIC_RELAXED);
    if (pool->nr_regions < number + 1)
        pool->nr_regions = number + 1;
}

static void pool_add_step(struct pool *pool, unsigned int step)
{
    pool_add_region(pool, 1 + step, pool->first_frame + (uint64_t)step * STEP_FRAMES,
                    STEP_FRAMES - pool->note_frames);
    pool->in_use++;
}

/* All of it is free. */
static void pool_remove_step(struct pool *pool, unsigned int step)
{
    struct region *region = &pool->regions[1 + step];
    uint64_t first = pool->first_frame + (uint64_t)step * STEP_FRAMES;

    for (uint64_t i = first; i < first + STEP_FRAMES; i++)
        pool->frames[i].chunk.state = CHUNK_PART;
    pool_add_free(pool, region, -(int64_t)step_bytes(pool));
    *region = (struct region){0};
    __atomic_store_n(&pool->bytes, pool->bytes - step_bytes(pool), __ATOMIC_RELAXED);
    while (!pool->regions[pool->nr_regions - 1].is_there)
        pool->nr_regions--;
    pool->in_use--;
}

/* --- The pool. --- */

static void pool_freep(struct pool **pool)
{
    pool_free(*pool);
}

/* How many frames of a step hold the notes of the others. */
static unsigned int note_frames(unsigned int nr_notes)
{
    uint64_t bytes = (uint64_t)STEP_FRAMES * nr_notes * sizeof(uint64_t);

    return (unsigned int)(align_up(bytes, CHUNK_BYTES) / CHUNK_BYTES);
}

static unsigned int max_steps(const struct grower *grower, unsigned int nr_notes)
{
    if (!grower || note_frames(nr_notes) >= STEP_FRAMES)
        return 0;
    return (unsigned int)min_u64(grower_budget_bytes(grower) / POOL_STEP_BYTES, UINT16_MAX);
}

static int pool_map(struct pool *pool)
{
    int r;

    r = memory_map(-1, pool->mapped_bytes, pool->base_bytes, &pool->base);
    if (r < 0)
        return r;
    (void)memory_lock(pool->base,
                      pool->base_bytes); /* if not, it is reported: memory_is_locked() */
    pool->frames = memory_alloc(pool->nr_frames, sizeof(*pool->frames));
    if (!pool->frames)
        return -ENOMEM;
    for (uint64_t i = 0; i < pool->nr_frames; i++)
        pool->frames[i].chunk = (struct chunk){
            .data = (uint8_t *)pool->base + i * CHUNK_BYTES,
            .state = CHUNK_PART,
        };
    return 0;
}

static int pool_add_extent(struct pool *pool, struct grower *grower)
{
    uint8_t *steps = (uint8_t *)pool->base + pool->first_frame * CHUNK_BYTES;
    int r;

    r = extent_new(steps, POOL_STEP_BYTES, pool->nr_steps, false, &pool->extent);
    if (r < 0)
        return r;
    pool->grower = grower;
    grower_add(grower, pool->extent);
    return 0;
}

/* Addresses for the notes of the base. */
static int pool_map_notes(struct pool *pool, unsigned int count)
{
    int r;

    r = memory_map(-1, pool->base_frames * count * sizeof(uint64_t), 0, &pool->notes);
    if (r < 0)
        return r;
    pool->notes_per_frame = count;
    return 0;
}

int pool_new(uint64_t bytes, struct pool **ret_pool)
{
    return pool_new_growing(bytes, NULL, 0, ret_pool);
}

int pool_new_growing(uint64_t bytes, struct grower *grower, unsigned int nr_notes,
                     struct pool **ret_pool)
{
    unsigned int nr_steps = max_steps(grower, nr_notes);
    _cleanup_(pool_freep) struct pool *pool = NULL;
    int r;

    if (bytes / CHUNK_BYTES < 2)
        return -EINVAL;
    pool = memory_alloc(1, sizeof(*pool) + (1 + nr_steps) * sizeof(pool->regions[0]));
    if (!pool)
        return -ENOMEM;
    pool->base_frames = bytes / CHUNK_BYTES;
    pool->base_bytes = pool->base_frames * CHUNK_BYTES;
    pool->first_frame = align_up(pool->base_frames, STEP_FRAMES);
    pool->nr_steps = nr_steps;
    pool->note_frames = note_frames(nr_notes);
    pool->nr_frames =
        nr_steps > 0 ? pool->first_frame + (uint64_t)nr_steps * STEP_FRAMES : pool->base_frames;
    pool->mapped_bytes = pool->nr_frames * CHUNK_BYTES;
    pool->patience_usec = PATIENCE_USEC;
    while (pool->max_order < CHUNK_ORDER_MAX &&
           pool->base_frames >> (pool->max_order + 1) >= PARTS_MIN)
        pool->max_order++;
    r = pool_map(pool);
    if (r == -ENOMEM && nr_steps > 0) /* vm.overcommit_memory=2: addresses count, too */
        return pool_new_growing(bytes, NULL, nr_notes, ret_pool);
    if (r < 0)
        return r;
    r = nr_notes > 0 ? pool_map_notes(pool, nr_notes) : 0;
    if (r < 0)
        return r;
    r = nr_steps > 0 ? pool_add_extent(pool, grower) : 0;
    if (r < 0)
        return r;
    pool_add_region(pool, 0, 0, pool->base_frames);
    *ret_pool = TAKE_PTR(pool);
    return 0;
}

struct pool *pool_free(struct pool *pool)
{
    if (!pool)
        return NULL;
    if (pool->extent)
        grower_remove(pool->grower, pool->extent);
    extent_free(pool->extent);
    memory_unmap(pool->notes, pool->base_frames * pool->notes_per_frame * sizeof(uint64_t));
    memory_unmap(pool->base, pool->mapped_bytes);
    free(pool->frames);
    free(pool);
    return NULL;
}

void pool_set_patience(struct pool *pool, uint64_t usec)
{
    pool->patience_usec = usec;
}

void *pool_base(const struct pool *pool)
{
    return pool->base;
}

uint64_t pool_base_bytes(const struct pool *pool)
{
    return pool->base_bytes;
}

uint64_t pool_bytes(const struct pool *pool)
{
    return __atomic_load_n(&pool->bytes, __ATOMIC_RELAXED);
}

uint64_t pool_free_bytes(const struct pool *pool)
{
    return __atomic_load_n(&pool->free_bytes, __ATOMIC_RELAXED);
}

uint64_t pool_refusals(const struct pool *pool)
{
    return __atomic_load_n(&pool->refusals, __ATOMIC_RELAXED);
}

struct chunk *pool_take(struct pool *pool, unsigned int order)
{
    unsigned int wanted = order < pool->max_order ? order : pool->max_order;
    struct chunk *chunk = find_large(pool, wanted);
    unsigned int i;

    if (!chunk)
        chunk = find_small(pool, wanted);
    if (!chunk)
        return NULL;
    i = chunk->order;
    unlink_free(pool, index_of(pool, chunk));
    for (; i > wanted; i--)
        push(pool, index_of(pool, chunk) + (UINT64_C(1) << (i - 1)), i - 1);
    *chunk = (struct chunk){
        .data = chunk->data,
        .bytes = CHUNK_BYTES << i,
        .order = i,
        .state = CHUNK_FILLING,
    };
    pool_add_free(pool, region_of(pool, index_of(pool, chunk)), -(int64_t)chunk->bytes);
    return chunk;
}

void pool_give(struct pool *pool, struct chunk *chunk)
{
    uint64_t index = index_of(pool, chunk);

    assert(chunk->state != CHUNK_FREE && chunk->state != CHUNK_PART);
    pool_add_free(pool, region_of(pool, index), chunk->bytes);
    merge(pool, index, chunk->order);
}

int pool_reserve_notes(struct pool *pool, unsigned int count)
{
    uint64_t bytes;
    int r;

    if (!pool->notes && !pool->extent) {
        r = pool_map_notes(pool, count);
        if (r < 0)
            return r;
    }
    if (count > pool->notes_per_frame)
        return -EINVAL;
    if (pool->notes_are_touched)
        return 0;
    bytes = pool->base_frames * pool->notes_per_frame * sizeof(uint64_t);
    r = memory_populate(pool->notes, bytes);
    if (r < 0)
        return r;
    (void)memory_lock(pool->notes, bytes);
    pool->notes_are_touched = true;
    return 0;
}

uint64_t *pool_notes(const struct pool *pool, const struct chunk *chunk)
{
    uint64_t index = index_of(pool, chunk), in_step, step;
    uint8_t *notes;

    if (index < pool->base_frames)
        return (uint64_t *)pool->notes + index * pool->notes_per_frame;
    step = align_down(index, STEP_FRAMES);
    in_step = index - step;
    notes = (uint8_t *)pool->base + (step + STEP_FRAMES - pool->note_frames) * CHUNK_BYTES;
    return (uint64_t *)(uintptr_t)notes + in_step * pool->notes_per_frame;
}

/* --- Growing and shrinking. --- */

/* How many steps are needed so that enough is free. */
static unsigned int pool_needed_steps(const struct pool *pool, uint64_t spare_bytes)
{
    uint64_t used = pool->bytes - pool->free_bytes;
    uint64_t needed = used + min_u64(3 * used, spare_bytes + AHEAD_BYTES);
    uint64_t over = needed > pool->base_bytes ? needed - pool->base_bytes : 0;

    return (unsigned int)min_u64((over + step_bytes(pool) - 1) / step_bytes(pool), pool->nr_steps);
}

static void pool_take_steps(struct pool *pool)
{
    while (pool->in_use < pool->wanted) {
        int step = extent_take(pool->extent);

        if (step < 0)
            return;
        pool_add_step(pool, (unsigned int)step);
    }
}

static void pool_want(struct pool *pool, unsigned int nr_steps)
{
    pool->wanted = nr_steps;
    extent_want(pool->extent, nr_steps);
}

/* Counts refusals, once until it has what it needs; the grower tries again by itself. */
static void pool_note_refusal(struct pool *pool, unsigned int needed)
{
    bool is_refused = needed > pool->in_use && extent_is_refused(pool->extent);

    if (is_refused && !pool->is_short)
        __atomic_store_n(&pool->refusals, pool->refusals + 1, __ATOMIC_RELAXED);
    pool->is_short = needed > pool->in_use && (pool->is_short || is_refused);
}

/* The last step of which nothing is in use; -1: there is none. */
static int pool_find_free_step(const struct pool *pool)
{
    for (unsigned int i = pool->nr_regions; i-- > 1;)
        if (pool->regions[i].is_there && pool->regions[i].free_bytes == step_bytes(pool))
            return (int)i - 1;
    return -1;
}

/* Lets go of one of the steps that are over, or of an offer that was not taken. */
static void pool_give_step(struct pool *pool, uint64_t now_usec)
{
    int step = pool->wanted > pool->in_use ? -1 : pool_find_free_step(pool);

    if (pool->wanted <= pool->in_use && step < 0) { /* chunks are all over the place: later */
        pool->shrink_usec = now_usec + pool->patience_usec / 16;
        return;
    }
    pool->shrink_usec = now_usec + pool->patience_usec / (2 * (uint64_t)pool->nr_steps);
    if (step < 0) {
        pool_want(pool, pool->in_use);
        return;
    }
    pool_remove_step(pool, (unsigned int)step);
    pool_want(pool, pool->in_use); /* before it goes, or the grower would make it anew */
    extent_give(pool->extent, (unsigned int)step);
}

static void pool_shrink(struct pool *pool, unsigned int needed, uint64_t now_usec)
{
    if (pool->wanted <= needed)
        pool->shrink_usec = 0;
    else if (pool->shrink_usec == 0)
        pool->shrink_usec = now_usec + pool->patience_usec;
    else if (now_usec >= pool->shrink_usec)
        pool_give_step(pool, now_usec);
}

void pool_tend(struct pool *pool, uint64_t spare_bytes, uint64_t now_usec)
{
    unsigned int needed;

    if (!pool->extent)
        return;
    needed = pool_needed_steps(pool, spare_bytes);
    if (needed > pool->wanted)
        pool_want(pool, needed);
    pool_take_steps(pool);
    pool_note_refusal(pool, needed);
    pool_shrink(pool, needed, now_usec);
}

uint64_t pool_tend_usec(const struct pool *pool)
{
    return pool->shrink_usec;
}
