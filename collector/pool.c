// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A buddy allocator: a free list for each order, and a chunk whose other half is free too becomes
 * one with it. Taking and giving back are a few instructions. What was given back last is taken
 * first, while it is in the cache.
 *
 * Invariant: of the FRAMES of CHUNK_BYTES each, the first of every chunk stands for it; no other
 * frame of it is in a list.
 */

#include "collector/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "collector/memory.h"
#include "common/util.h"

#define ORDERS (CHUNK_ORDER_MAX + 1)

/* A chunk is at most that part of the pool: what several hold at once is to leave others some. */
#define PARTS_MIN 16u

struct frame {
    struct chunk chunk;     /* first: a chunk is found to be a frame */
    struct chunk *previous; /* in the free list; NULL: the head */
};

struct pool {
    void *base;
    uint64_t bytes;
    uint64_t nr_frames;
    unsigned int max_order;
    struct frame *frames;
    struct chunk *free_lists[ORDERS];
    uint64_t free_bytes; /* atomic: one thread writes, any reads */
    void *notes;         /* uint64_t [nr_frames][notes_per_frame]; NULL: none */
    unsigned int notes_per_frame;
};

/* --- Free lists. --- */

static uint64_t index_of(const struct pool *pool, const struct chunk *chunk)
{
    return (uint64_t)((const struct frame *)chunk - pool->frames);
}

static void push(struct pool *pool, uint64_t index, unsigned int order)
{
    struct frame *frame = &pool->frames[index];
    struct chunk *head = pool->free_lists[order];

    frame->chunk.state = CHUNK_FREE;
    frame->chunk.order = order;
    frame->chunk.next = head;
    frame->previous = NULL;
    if (head)
        pool->frames[index_of(pool, head)].previous = &frame->chunk;
    pool->free_lists[order] = &frame->chunk;
}

static void unlink_free(struct pool *pool, uint64_t index)
{
    struct frame *frame = &pool->frames[index];
    struct chunk *next = frame->chunk.next;

    if (frame->previous)
        frame->previous->next = next;
    else
        pool->free_lists[frame->chunk.order] = next;
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

/* The order of a chunk to take for ORDER: that one, or larger, or else smaller; -1: none. */
static int find_order(const struct pool *pool, unsigned int order)
{
    for (unsigned int i = order; i <= pool->max_order; i++)
        if (pool->free_lists[i])
            return (int)i;
    for (unsigned int i = order; i-- > 0;)
        if (pool->free_lists[i])
            return (int)i;
    return -1;
}

/* --- The pool. --- */

static void pool_freep(struct pool **pool)
{
    pool_free(*pool);
}

int pool_new(uint64_t bytes, struct pool **ret_pool)
{
    _cleanup_(pool_freep) struct pool *pool = NULL;
    int r;

    if (bytes / CHUNK_BYTES < 2)
        return -EINVAL;
    pool = memory_alloc(1, sizeof(*pool));
    if (!pool)
        return -ENOMEM;
    pool->nr_frames = bytes / CHUNK_BYTES;
    pool->bytes = pool->nr_frames * CHUNK_BYTES;
    while (pool->max_order < CHUNK_ORDER_MAX &&
           pool->nr_frames >> (pool->max_order + 1) >= PARTS_MIN)
        pool->max_order++;
    r = memory_map(-1, pool->bytes, pool->bytes, &pool->base);
    if (r < 0)
        return r;
    (void)memory_lock(pool->base, pool->bytes); /* if not, it is reported: memory_is_locked() */
    pool->frames = memory_alloc(pool->nr_frames, sizeof(*pool->frames));
    if (!pool->frames)
        return -ENOMEM;
    for (uint64_t i = 0; i < pool->nr_frames; i++)
        pool->frames[i].chunk = (struct chunk){
            .data = (uint8_t *)pool->base + i * CHUNK_BYTES,
            .state = CHUNK_PART,
        };
    for (uint64_t i = pool->nr_frames; i-- > 0;)
        merge(pool, i, 0);
    pool->free_bytes = pool->bytes;
    *ret_pool = TAKE_PTR(pool);
    return 0;
}

struct pool *pool_free(struct pool *pool)
{
    if (!pool)
        return NULL;
    memory_unmap(pool->notes, pool->nr_frames * pool->notes_per_frame * sizeof(uint64_t));
    memory_unmap(pool->base, pool->bytes);
    free(pool->frames);
    free(pool);
    return NULL;
}

void *pool_base(const struct pool *pool)
{
    return pool->base;
}

uint64_t pool_bytes(const struct pool *pool)
{
    return pool->bytes;
}

uint64_t pool_free_bytes(const struct pool *pool)
{
    return __atomic_load_n(&pool->free_bytes, __ATOMIC_RELAXED);
}

static void set_free_bytes(struct pool *pool, uint64_t bytes)
{
    __atomic_store_n(&pool->free_bytes, bytes, __ATOMIC_RELAXED);
}

struct chunk *pool_take(struct pool *pool, unsigned int order)
{
    unsigned int wanted = order < pool->max_order ? order : pool->max_order;
    int found = find_order(pool, wanted);
    struct chunk *chunk;
    unsigned int i;

    if (found < 0)
        return NULL;
    chunk = pool->free_lists[found];
    unlink_free(pool, index_of(pool, chunk));
    for (i = (unsigned int)found; i > wanted; i--)
        push(pool, index_of(pool, chunk) + (UINT64_C(1) << (i - 1)), i - 1);
    *chunk = (struct chunk){
        .data = chunk->data,
        .bytes = CHUNK_BYTES << i,
        .order = i,
        .state = CHUNK_FILLING,
    };
    set_free_bytes(pool, pool->free_bytes - chunk->bytes);
    return chunk;
}

void pool_give(struct pool *pool, struct chunk *chunk)
{
    assert(chunk->state != CHUNK_FREE && chunk->state != CHUNK_PART);
    set_free_bytes(pool, pool->free_bytes + chunk->bytes);
    merge(pool, index_of(pool, chunk), chunk->order);
}

int pool_reserve_notes(struct pool *pool, unsigned int count)
{
    uint64_t bytes = pool->nr_frames * count * sizeof(uint64_t);
    int r;

    if (pool->notes)
        return count <= pool->notes_per_frame ? 0 : -EINVAL;
    r = memory_map(-1, bytes, bytes, &pool->notes);
    if (r < 0)
        return r;
    (void)memory_lock(pool->notes, bytes);
    pool->notes_per_frame = count;
    return 0;
}

uint64_t *pool_notes(const struct pool *pool, const struct chunk *chunk)
{
    return (uint64_t *)pool->notes + index_of(pool, chunk) * pool->notes_per_frame;
}
