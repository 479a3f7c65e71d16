// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A free list over an array: taking and giving back are a few instructions. The memfd is sealed, so
 * that nobody can shrink it under the kernel's pinned pages.
 */

#include "collector/pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/util.h"

struct pool {
    int memfd;
    uint8_t *base;
    uint64_t bytes;
    struct chunk *chunks;
    struct chunk *free_list;
    uint64_t free_bytes; /* atomic: one thread writes, any reads */
};

static int map_memfd(struct pool *pool)
{
    pool->memfd = memfd_create("xentraced-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (pool->memfd < 0)
        return -errno;
    if (ftruncate(pool->memfd, (off_t)pool->bytes) < 0)
        return -errno;
    if (fcntl(pool->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    /* Populated now: a page fault on the data path would be an allocation there. */
    pool->base =
        mmap(NULL, pool->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, pool->memfd, 0);
    if (pool->base == MAP_FAILED) {
        pool->base = NULL;
        return -errno;
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
    pool->memfd = -1;
    pool->bytes = nr_chunks * CHUNK_BYTES;
    r = map_memfd(pool);
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
    if (pool->base)
        (void)munmap(pool->base, pool->bytes);
    fd_close(&pool->memfd);
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
