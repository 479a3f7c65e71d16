// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A free list over an array: taking and giving back are a few instructions. What was given back last
 * is taken first, while it is in the cache. Huge pages, where the kernel has them, spare the copy
 * out of Xen's buffers a third of its time (docs/BENCHMARKS.md).
 */

#include "collector/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/util.h"

#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

struct pool {
    uint8_t *mapping; /* BASE, and up to a huge page in front of it */
    uint8_t *base;
    uint64_t bytes;
    struct chunk *chunks;
    struct chunk *free_list;
    uint64_t free_bytes; /* atomic: one thread writes, any reads */
};

static uint64_t mapping_bytes(const struct pool *pool)
{
    return pool->bytes + HUGE_PAGE_BYTES;
}

static int map_memory(struct pool *pool)
{
    pool->mapping = mmap(NULL, mapping_bytes(pool), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pool->mapping == MAP_FAILED) {
        pool->mapping = NULL;
        return -errno;
    }
    pool->base = (uint8_t *)align_up((uintptr_t)pool->mapping, HUGE_PAGE_BYTES);
    (void)madvise(pool->base, pool->bytes, MADV_HUGEPAGE); /* small ones do, too */
    /* Populated now: a page fault on the data path would be an allocation there. */
    if (madvise(pool->base, pool->bytes, MADV_POPULATE_WRITE) < 0) {
        if (errno != EINVAL) /* before Linux 5.14 */
            return -errno;
        memset(pool->base, 0xff, pool->bytes);
    }
    return 0;
}

int pool_new(uint64_t bytes, struct pool **ret_pool)
{
    struct pool *pool;
    uint64_t nr_chunks = bytes / CHUNK_BYTES;
    int r;

    if (nr_chunks < 2)
        return -EINVAL;
    pool = calloc(1, sizeof(*pool));
    if (!pool)
        return -ENOMEM;
    pool->bytes = nr_chunks * CHUNK_BYTES;
    r = map_memory(pool);
    if (r >= 0) {
        pool->chunks = calloc(nr_chunks, sizeof(*pool->chunks));
        r = pool->chunks ? 0 : -ENOMEM;
    }
    if (r < 0) {
        pool_free(pool);
        return r;
    }
    for (uint64_t i = nr_chunks; i-- > 0;) {
        pool->chunks[i].data = pool->base + i * CHUNK_BYTES;
        pool->chunks[i].state = CHUNK_FILLING;
        pool_give(pool, &pool->chunks[i]);
    }
    *ret_pool = pool;
    return 0;
}

struct pool *pool_free(struct pool *pool)
{
    if (!pool)
        return NULL;
    if (pool->mapping)
        (void)munmap(pool->mapping, mapping_bytes(pool));
    free(pool->chunks);
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

struct chunk *pool_take(struct pool *pool)
{
    struct chunk *chunk = pool->free_list;

    if (!chunk)
        return NULL;
    assert(chunk->state == CHUNK_FREE);
    pool->free_list = chunk->next;
    set_free_bytes(pool, pool->free_bytes - CHUNK_BYTES);
    *chunk = (struct chunk){.data = chunk->data, .state = CHUNK_FILLING};
    return chunk;
}

void pool_give(struct pool *pool, struct chunk *chunk)
{
    assert(chunk->state != CHUNK_FREE);
    chunk->state = CHUNK_FREE;
    chunk->next = pool->free_list;
    pool->free_list = chunk;
    set_free_bytes(pool, pool->free_bytes + CHUNK_BYTES);
}
