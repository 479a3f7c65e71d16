// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace/blocks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/util.h"

/* Those that are in use may be this many; of others, as many are kept as there may be below. */
#define BLOCKS_MAX  64u
#define BLOCKS_KEPT 16u

struct block {
    uint64_t offset; /* in the file */
    uint32_t bytes;
    uint32_t users;
    uint64_t used_at; /* when it was last taken from, counted in blocks_take() */
};

struct blocks {
    int fd;
    uint8_t *memory; /* [BLOCKS_MAX + 1][BLOCK_BYTES]: the last one is for looking ahead */
    struct block block[BLOCKS_MAX];
    struct block ahead;
    unsigned int nr; /* that have been used */
    unsigned int last;
    uint64_t now;
};

int blocks_new(int fd, struct blocks **ret_blocks)
{
    struct blocks *blocks = calloc(1, sizeof(*blocks));

    if (!blocks)
        return -ENOMEM;
    blocks->fd = fd;
    blocks->memory = aligned_alloc(4096, (size_t)(BLOCKS_MAX + 1) * BLOCK_BYTES);
    if (!blocks->memory) {
        free(blocks);
        return -ENOMEM;
    }
    *ret_blocks = blocks;
    return 0;
}

struct blocks *blocks_free(struct blocks *blocks)
{
    if (!blocks)
        return NULL;
    free(blocks->memory);
    free(blocks);
    return NULL;
}

static uint8_t *memory_of(const struct blocks *blocks, unsigned int number)
{
    return blocks->memory + (size_t)number * BLOCK_BYTES;
}

static bool block_has(const struct block *block, uint64_t offset, uint32_t bytes)
{
    return offset >= block->offset && bytes <= block->bytes &&
           offset - block->offset <= block->bytes - bytes;
}

/* Reads up to BYTES at OFFSET. RET_BYTES: how many there were. 0, or what read(2) says. */
static int read_at(const struct blocks *blocks, void *p, uint32_t bytes, uint64_t offset,
                   uint32_t *ret_bytes)
{
    *ret_bytes = 0;
    while (*ret_bytes < bytes) {
        ssize_t n = pread(blocks->fd, (char *)p + *ret_bytes, bytes - *ret_bytes,
                          (off_t)(offset + *ret_bytes));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        *ret_bytes += (uint32_t)n;
    }
    return 0;
}

/* Fills it from OFFSET on, where BYTES are wanted: those before a bad sector can be had. */
static int block_read(const struct blocks *blocks, struct block *block, uint8_t *memory,
                      uint64_t offset, uint32_t bytes)
{
    int r;

    block->offset = offset;
    r = read_at(blocks, memory, BLOCK_BYTES, offset, &block->bytes);
    if (block->bytes >= bytes)
        return 0;
    return r < 0 ? r : -EIO;
}

/* The block to be read into: of those that nobody uses the oldest. BLOCKS_MAX: there is none. */
static unsigned int find_room(struct blocks *blocks)
{
    unsigned int oldest = BLOCKS_MAX;

    if (blocks->nr < BLOCKS_KEPT)
        return blocks->nr++;
    for (unsigned int i = 0; i < blocks->nr; i++)
        if (blocks->block[i].users == 0 &&
            (oldest == BLOCKS_MAX || blocks->block[i].used_at < blocks->block[oldest].used_at))
            oldest = i;
    if (oldest == BLOCKS_MAX && blocks->nr < BLOCKS_MAX)
        return blocks->nr++;
    return oldest;
}

/* The block that has it, the last one first. BLOCKS_MAX: none. */
static unsigned int find_block(const struct blocks *blocks, uint64_t offset, uint32_t bytes)
{
    if (blocks->nr > 0 && block_has(&blocks->block[blocks->last], offset, bytes))
        return blocks->last;
    for (unsigned int i = 0; i < blocks->nr; i++)
        if (block_has(&blocks->block[i], offset, bytes))
            return i;
    return BLOCKS_MAX;
}

int blocks_take(struct blocks *blocks, uint64_t offset, uint32_t bytes, const uint8_t **ret)
{
    unsigned int i = find_block(blocks, offset, bytes);
    struct block *block;
    int r;

    assert(bytes > 0 && bytes <= BLOCK_BYTES);
    if (i == BLOCKS_MAX) {
        i = find_room(blocks);
        if (i == BLOCKS_MAX)
            return 0;
        r = block_read(blocks, &blocks->block[i], memory_of(blocks, i), offset, bytes);
        if (r < 0)
            return r;
    }
    block = &blocks->block[i];
    block->users++;
    block->used_at = ++blocks->now;
    blocks->last = i;
    *ret = memory_of(blocks, i) + (offset - block->offset);
    return 1;
}

void blocks_release(struct blocks *blocks, const uint8_t *taken)
{
    uint64_t number = (uint64_t)((uintptr_t)taken - (uintptr_t)blocks->memory) / BLOCK_BYTES;

    if ((uintptr_t)taken >= (uintptr_t)blocks->memory && number < BLOCKS_MAX)
        blocks->block[number].users--;
}

int blocks_look(struct blocks *blocks, uint64_t offset, uint32_t bytes, const uint8_t **ret,
                uint32_t *ret_bytes)
{
    const struct block *block = &blocks->ahead;
    uint32_t i = BLOCKS_MAX; /* the number of `ahead` */
    int r;

    if (!block_has(block, offset, bytes)) {
        i = find_block(blocks, offset, bytes);
        block = i < BLOCKS_MAX ? &blocks->block[i] : block;
    }
    if (i == BLOCKS_MAX && !block_has(block, offset, bytes)) {
        r = block_read(blocks, &blocks->ahead, memory_of(blocks, BLOCKS_MAX), offset, bytes);
        if (r < 0)
            return r;
    }
    *ret = memory_of(blocks, i) + (offset - block->offset);
    *ret_bytes = block->bytes - (uint32_t)(offset - block->offset);
    return 0;
}

int blocks_copy(struct blocks *blocks, uint64_t offset, uint32_t bytes, void *p)
{
    const struct block *ahead = &blocks->ahead;
    uint32_t done;
    int r;

    if (block_has(ahead, offset, bytes)) {
        memcpy(p, memory_of(blocks, BLOCKS_MAX) + (offset - ahead->offset), bytes);
        return 0;
    }
    r = read_at(blocks, p, bytes, offset, &done);
    return r < 0 || done == bytes ? r : -EIO;
}
