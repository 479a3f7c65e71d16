// SPDX-License-Identifier: GPL-2.0-or-later

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

/* --- Larger chunks. --- */

#define LARGE_FRAMES 70u /* room for chunks of 4, and some that are left over */

struct order_case {
    const char *name;
    unsigned int frames;
    unsigned int asked;
    unsigned int got;
};

/* A chunk is at most a sixteenth of the pool. */
static const struct order_case order_cases[] = {
    {"the smallest", 64, 0, 0},
    {"as large as may be", 64, 2, 2},
    {"larger than may be", 64, 3, 2},
    {"a small pool has small ones", 31, CHUNK_ORDER_MAX, 0},
    {"a larger one larger", 32, CHUNK_ORDER_MAX, 1},
    {"and the largest", 16u << CHUNK_ORDER_MAX, CHUNK_ORDER_MAX, CHUNK_ORDER_MAX},
    {"none is larger than that", 32u << CHUNK_ORDER_MAX, CHUNK_ORDER_MAX + 1, CHUNK_ORDER_MAX},
};

static void test_orders(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(order_cases); i++) {
        const struct order_case *c = &order_cases[i];
        struct pool *pool = NULL;
        struct chunk *chunk;

        test_case(c->name);
        CHECK_INT(pool_new((uint64_t)c->frames * CHUNK_BYTES, &pool), 0);
        chunk = pool_take(pool, c->asked);
        CHECK_UINT(chunk->order, c->got);
        CHECK_UINT(chunk->bytes, CHUNK_BYTES << c->got);
        CHECK_UINT(pool_free_bytes(pool), pool_bytes(pool) - chunk->bytes);
        pool_give(pool, chunk);
        CHECK_UINT(pool_free_bytes(pool), pool_bytes(pool));
        pool_free(pool);
    }
}

static void fill(const struct chunk *chunk, uint8_t value)
{
    for (uint32_t i = 0; i < chunk->bytes; i += PAGE_BYTES)
        chunk->data[i] = value;
}

static bool is_filled(const struct chunk *chunk, uint8_t value)
{
    for (uint32_t i = 0; i < chunk->bytes; i += PAGE_BYTES)
        if (chunk->data[i] != value)
            return false;
    return true;
}

/* Whatever is taken and given back, no two chunks share memory, and nothing stays in pieces. */
static void test_random_orders(void)
{
    uint64_t random = test_seed();
    struct chunk *taken[LARGE_FRAMES] = {NULL};
    struct pool *pool = NULL;
    uint64_t free_bytes;

    test_case("random orders");
    CHECK_INT(pool_new(LARGE_FRAMES * CHUNK_BYTES, &pool), 0);
    free_bytes = pool_bytes(pool);
    for (int i = 0; i < 10000; i++) {
        unsigned int slot = (unsigned int)(test_random(&random) % LARGE_FRAMES);
        struct chunk *chunk = taken[slot];

        if (chunk) {
            CHECK(is_filled(chunk, (uint8_t)slot));
            free_bytes += chunk->bytes;
            pool_give(pool, chunk);
            taken[slot] = NULL;
        } else {
            taken[slot] = chunk = pool_take(pool, (unsigned int)(test_random(&random) % 3));
            CHECK(!chunk == (free_bytes == 0));
            if (!chunk)
                continue;
            free_bytes -= chunk->bytes;
            fill(chunk, (uint8_t)slot);
        }
        CHECK_UINT(pool_free_bytes(pool), free_bytes);
    }
    for (unsigned int i = 0; i < LARGE_FRAMES; i++)
        if (taken[i])
            pool_give(pool, taken[i]);
    for (unsigned int i = 0; i < LARGE_FRAMES / 4; i++) {
        taken[i] = pool_take(pool, 2);
        CHECK_UINT(taken[i]->order, 2);
    }
    CHECK_UINT(pool_take(pool, 2)->order, 1); /* what is left over is one of 2 frames */
    pool_free(pool);
}

#define NOTES 20u

/* Each chunk has its own, whatever size it was before. */
static void test_notes(void)
{
    struct chunk *chunks[CHUNKS], *large;
    struct pool *pool = NULL;

    test_case("notes");
    CHECK_INT(pool_new(CHUNKS * CHUNK_BYTES, &pool), 0);
    CHECK_INT(pool_reserve_notes(pool, NOTES), 0);
    CHECK_INT(pool_reserve_notes(pool, NOTES - 1), 0);
    CHECK_INT(pool_reserve_notes(pool, NOTES + 1), -EINVAL);
    for (unsigned int i = 0; i < CHUNKS; i++) {
        chunks[i] = pool_take(pool, 0);
        for (unsigned int j = 0; j < NOTES; j++)
            pool_notes(pool, chunks[i])[j] = i;
    }
    for (unsigned int i = 0; i < CHUNKS; i++) {
        for (unsigned int j = 0; j < NOTES; j++)
            CHECK_UINT(pool_notes(pool, chunks[i])[j], i);
        pool_give(pool, chunks[i]);
    }
    large = pool_take(pool, CHUNK_ORDER_MAX);
    pool_notes(pool, large)[NOTES - 1] = 1;
    pool_give(pool, large);
    pool_free(pool);
}

int main(void)
{
    test_notes();
    test_orders();
    test_random_orders();
    test_sizes();
    test_all_taken();
    test_reset();
    test_random_order();
    return test_end();
}
