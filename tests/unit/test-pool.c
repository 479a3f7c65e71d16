/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "collector/pool.h"

#include <errno.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define CHUNKS 8u

struct size_case {
    const char *name;
    uint64_t bytes;
    int result;
    uint64_t chunks;
};

static const struct size_case size_cases[] = {
    {"nothing", 0, -EINVAL, 0},
    {"one chunk", CHUNK_BYTES, -EINVAL, 0},
    {"a byte less than two", 2 * CHUNK_BYTES - 1, -EINVAL, 0},
    {"two", 2 * CHUNK_BYTES, 0, 2},
    {"rounded down", 4 * CHUNK_BYTES - 1, 0, 3},
};

static void test_sizes(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(size_cases); i++) {
        const struct size_case *c = &size_cases[i];
        struct pool *pool = NULL;

        test_case(c->name);
        CHECK_INT(pool_new(c->bytes, &pool), c->result);
        if (c->result < 0) {
            CHECK(!pool);
            continue;
        }
        CHECK_UINT(pool_bytes(pool), c->chunks * CHUNK_BYTES);
        CHECK_UINT(pool_free_bytes(pool), c->chunks * CHUNK_BYTES);
        CHECK(!pool_free(pool));
    }
    CHECK(!pool_free(NULL));
}

/* Whether DATA is one of the chunks of POOL and not one that was SEEN before. */
static bool is_new_chunk(const struct pool *pool, const uint8_t *data, bool *seen)
{
    uint64_t offset = (uint64_t)(data - (const uint8_t *)pool_base(pool));

    if (offset >= pool_bytes(pool) || offset % CHUNK_BYTES != 0 || seen[offset / CHUNK_BYTES])
        return false;
    return seen[offset / CHUNK_BYTES] = true;
}

static void test_all_taken(void)
{
    struct chunk *chunks[CHUNKS];
    bool seen[CHUNKS] = {false};
    struct pool *pool = NULL;

    test_case("all taken");
    CHECK_INT(pool_new(CHUNKS * CHUNK_BYTES, &pool), 0);
    CHECK_UINT((uintptr_t)pool_base(pool) % PAGE_BYTES, 0);
    for (unsigned int i = 0; i < CHUNKS; i++) {
        chunks[i] = pool_take(pool, 0);
        if (!CHECK(chunks[i]))
            exit(EXIT_FAILURE);
        CHECK(is_new_chunk(pool, chunks[i]->data, seen));
        CHECK_UINT(pool_free_bytes(pool), (CHUNKS - 1 - i) * CHUNK_BYTES);
        memset(chunks[i]->data, (int)i, CHUNK_BYTES);
    }
    CHECK(!pool_take(pool, 0));
    CHECK_UINT(pool_free_bytes(pool), 0);
    for (unsigned int i = 0; i < CHUNKS; i++) {
        CHECK_UINT(chunks[i]->data[0], i);
        CHECK_UINT(chunks[i]->data[CHUNK_BYTES - 1], i);
        pool_give(pool, chunks[i]);
    }
    CHECK_UINT(pool_free_bytes(pool), pool_bytes(pool));
    pool_free(pool);
}

/* A chunk comes back as new, whatever it was before. */
static void test_reset(void)
{
    struct pool *pool = NULL;
    struct chunk *chunk, *again;

    test_case("reset");
    CHECK_INT(pool_new(2 * CHUNK_BYTES, &pool), 0);
    chunk = pool_take(pool, 0);
    chunk->state = CHUNK_WRITTEN;
    chunk->fill_bytes = 100;
    chunk->last_window = 50;
    chunk->written_bytes = 100;
    chunk->output_offset = 12345;
    chunk->next = chunk;
    pool_give(pool, chunk);
    CHECK_INT(chunk->state, CHUNK_FREE);
    again = pool_take(pool, 0);
    CHECK(again == chunk); /* the one still hot in the cache */
    CHECK_INT(again->state, CHUNK_FILLING);
    CHECK_UINT(again->fill_bytes, 0);
    CHECK_UINT(again->written_bytes, 0);
    CHECK_UINT(again->output_offset, 0);
    CHECK(!again->next);
    pool_give(pool, again);
    pool_free(pool);
}

static void test_random_order(void)
{
    uint64_t random = test_seed();
    struct chunk *taken[CHUNKS] = {NULL};
    struct pool *pool = NULL;
    unsigned int nr_taken = 0;

    test_case("random order");
    CHECK_INT(pool_new(CHUNKS * CHUNK_BYTES, &pool), 0);
    for (int i = 0; i < 10000; i++) {
        unsigned int slot = (unsigned int)(test_random(&random) % CHUNKS);

        if (taken[slot]) {
            CHECK_UINT(taken[slot]->data[0], slot);
            pool_give(pool, taken[slot]);
            taken[slot] = NULL;
            nr_taken--;
        } else {
            taken[slot] = pool_take(pool, 0);
            if (!CHECK(taken[slot]))
                exit(EXIT_FAILURE);
            taken[slot]->data[0] = (uint8_t)slot;
            nr_taken++;
        }
        CHECK_UINT(pool_free_bytes(pool), (CHUNKS - nr_taken) * CHUNK_BYTES);
    }
    pool_free(pool);
}

int main(void)
{
    test_sizes();
    test_all_taken();
    test_reset();
    test_random_order();
    return test_end();
}
