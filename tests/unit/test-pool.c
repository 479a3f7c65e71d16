// SPDX-License-Identifier: GPL-2.0-or-later

#include "collector/pool.h"

#include <errno.h>
#include <unistd.h>

#include "collector/grower.h"
#include "common/units.h"
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

/* --- Growing. --- */

#define STEP_CHUNKS (POOL_STEP_BYTES / CHUNK_BYTES)
#define BASE_CHUNKS 64u
#define STEPS       3u
#define STEP_ROOM   ((STEP_CHUNKS - 1) * (uint64_t)CHUNK_BYTES) /* but for the notes */
#define MAX_CHUNKS  (BASE_CHUNKS + STEPS * STEP_CHUNKS)
#define BASE_BYTES  (BASE_CHUNKS * (uint64_t)CHUNK_BYTES)
#define WAIT_MSEC   10000u /* for lack of progress */

struct growing {
    struct grower *grower;
    struct pool *pool;
    uint64_t now_usec;
    struct chunk *taken[MAX_CHUNKS];
    unsigned int nr_taken;
};

static bool growing_begin(struct growing *growing, unsigned int steps)
{
    *growing = (struct growing){.now_usec = 1};
    return CHECK_INT(grower_new((uint64_t)steps * POOL_STEP_BYTES, &growing->grower), 0) &&
           CHECK_INT(pool_new_growing(BASE_BYTES, growing->grower, NOTES, &growing->pool), 0) &&
           CHECK_INT(pool_reserve_notes(growing->pool, NOTES), 0);
}

static void growing_end(struct growing *growing)
{
    CHECK(!pool_free(growing->pool));
    CHECK_UINT(grower_used_bytes(growing->grower), 0);
    grower_free(growing->grower);
}

static void tend(struct growing *growing)
{
    pool_tend(growing->pool, 0, growing->now_usec);
}

/* Until the pool has BYTES: the grower makes them, or takes them back. */
static bool await_bytes(struct growing *growing, uint64_t bytes)
{
    for (unsigned int i = 0; i < WAIT_MSEC && pool_bytes(growing->pool) != bytes; i++) {
        tend(growing);
        (void)usleep(1000);
    }
    return CHECK_UINT(pool_bytes(growing->pool), bytes);
}

static bool is_of_base(const struct growing *growing, const struct chunk *chunk)
{
    return chunk->data < (uint8_t *)pool_base(growing->pool) + pool_base_bytes(growing->pool);
}

static struct chunk *take_one(struct growing *growing)
{
    struct chunk *chunk = pool_take(growing->pool, 0);

    if (chunk) {
        growing->taken[growing->nr_taken] = chunk;
        fill(chunk, (uint8_t)growing->nr_taken);
        for (unsigned int j = 0; j < NOTES; j++)
            pool_notes(growing->pool, chunk)[j] = growing->nr_taken;
        growing->nr_taken++;
    }
    return chunk;
}

/* As a queue does whose disk has come back: the oldest first. */
static void give_first(struct growing *growing, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++)
        pool_give(growing->pool, growing->taken[i]);
    growing->nr_taken -= count;
    memmove(growing->taken, growing->taken + count, growing->nr_taken * sizeof(struct chunk *));
}

static void take_all(struct growing *growing)
{
    while (take_one(growing))
        ;
}

/* Takes all that the pool may become. */
static void use_up(struct growing *growing)
{
    uint64_t bytes = BASE_BYTES + STEPS * STEP_ROOM;

    for (unsigned int i = 0; i < WAIT_MSEC && pool_bytes(growing->pool) != bytes; i++) {
        take_all(growing);
        tend(growing);
        (void)usleep(1000);
    }
    CHECK_UINT(pool_bytes(growing->pool), bytes);
    take_all(growing);
}

static void test_growth(void)
{
    struct growing growing;

    test_case("it grows while it is used up, as far as the budget goes, and each chunk is one");
    if (!growing_begin(&growing, STEPS))
        return;
    tend(&growing);
    CHECK_UINT(grower_used_bytes(growing.grower), 0); /* not before it is needed */
    for (unsigned int i = 0; i < BASE_CHUNKS / 4; i++)
        take_one(&growing);
    tend(&growing);
    CHECK_UINT(grower_used_bytes(growing.grower), 0); /* three quarters are free */
    take_one(&growing);
    await_bytes(&growing, BASE_BYTES + STEP_ROOM); /* before the base is used up */
    CHECK_UINT(pool_free_bytes(growing.pool),
               BASE_BYTES + STEP_ROOM - (BASE_CHUNKS / 4 + 1) * (uint64_t)CHUNK_BYTES);
    take_all(&growing);
    await_bytes(&growing, BASE_BYTES + 3 * STEP_ROOM);
    take_all(&growing);
    CHECK_UINT(growing.nr_taken, BASE_CHUNKS + 3 * (STEP_CHUNKS - 1));
    CHECK_UINT(pool_free_bytes(growing.pool), 0);
    for (unsigned int i = 0; i < growing.nr_taken; i++) {
        CHECK(is_filled(growing.taken[i], (uint8_t)i));
        CHECK_UINT(pool_notes(growing.pool, growing.taken[i])[0], i);
        CHECK_UINT(pool_notes(growing.pool, growing.taken[i])[NOTES - 1], i);
    }
    tend(&growing);
    CHECK_UINT(pool_refusals(growing.pool), 0); /* it has all that it may have */
    give_first(&growing, growing.nr_taken);
    CHECK_UINT(pool_free_bytes(growing.pool), pool_bytes(growing.pool));
    growing_end(&growing);
}

static void test_base_is_preferred(void)
{
    struct growing growing;

    test_case("what the base has is taken first, so that what has grown becomes free");
    if (!growing_begin(&growing, STEPS))
        return;
    use_up(&growing);
    give_first(&growing, BASE_CHUNKS + 30); /* of the first step, too */
    for (unsigned int i = 0; i < BASE_CHUNKS; i++)
        CHECK(is_of_base(&growing, take_one(&growing)));
    CHECK(!is_of_base(&growing, take_one(&growing)));
    give_first(&growing, growing.nr_taken);
    growing_end(&growing);
}

static void test_orders_of_steps(void)
{
    const unsigned int count = 2 * ((STEP_CHUNKS - 1) / 4); /* of each step, and 3 chunks over */
    struct growing growing;
    struct chunk *chunk;

    test_case("large chunks of a step, and none that is half of another");
    if (!growing_begin(&growing, 2))
        return;
    take_all(&growing);
    await_bytes(&growing, BASE_BYTES + 2 * STEP_ROOM);
    for (unsigned int i = 0; i < count; i++) {
        chunk = pool_take(growing.pool, 2);
        CHECK_UINT(chunk->order, 2);
        fill(chunk, (uint8_t)(i + 100));
        growing.taken[growing.nr_taken++] = chunk;
    }
    CHECK_UINT(pool_take(growing.pool, 2)->order, 1);
    for (unsigned int i = 0; i < count; i++)
        CHECK(is_filled(growing.taken[BASE_CHUNKS + i], (uint8_t)(i + 100)));
    growing_end(&growing);
}

static void test_shrinking(void)
{
    struct growing growing;
    uint64_t bytes;

    test_case("a minute after it was needed it is given back, step by step");
    if (!growing_begin(&growing, STEPS))
        return;
    use_up(&growing);
    CHECK_UINT(pool_tend_usec(growing.pool), 0);
    give_first(&growing, growing.nr_taken);
    tend(&growing);
    CHECK_UINT(pool_tend_usec(growing.pool), growing.now_usec + 60 * USEC_PER_SEC);
    growing.now_usec += 59 * USEC_PER_SEC;
    tend(&growing);
    bytes = BASE_BYTES + STEPS * STEP_ROOM;
    CHECK_UINT(pool_bytes(growing.pool), bytes);
    for (unsigned int i = 0; i < STEPS; i++) {
        growing.now_usec = pool_tend_usec(growing.pool);
        tend(&growing);
        CHECK_UINT(pool_bytes(growing.pool), bytes -= STEP_ROOM);
        CHECK_UINT(pool_free_bytes(growing.pool), bytes);
        tend(&growing);
        CHECK_UINT(pool_bytes(growing.pool), bytes); /* not all at once */
    }
    CHECK(growing.now_usec <= 120 * USEC_PER_SEC);
    tend(&growing);
    CHECK_UINT(pool_tend_usec(growing.pool), 0); /* nothing is left to be woken for */
    for (unsigned int i = 0; i < WAIT_MSEC && grower_used_bytes(growing.grower) > 0; i++)
        (void)usleep(1000);
    CHECK_UINT(grower_used_bytes(growing.grower), 0);

    take_all(&growing); /* and it grows again */
    CHECK_UINT(growing.nr_taken, BASE_CHUNKS);
    await_bytes(&growing, BASE_BYTES + STEPS * STEP_ROOM);
    take_all(&growing);
    give_first(&growing, growing.nr_taken);
    growing_end(&growing);
}

static void test_used_steps_stay(void)
{
    struct growing growing;
    struct chunk *last;

    test_case("a step of which a chunk is in use stays, and goes when that comes back");
    if (!growing_begin(&growing, STEPS))
        return;
    pool_set_patience(growing.pool, 1000);
    use_up(&growing);
    last = growing.taken[growing.nr_taken - 1];
    give_first(&growing, growing.nr_taken - 1);
    for (unsigned int i = 0; i < 100; i++) {
        tend(&growing);
        growing.now_usec += 1000;
    }
    CHECK_UINT(pool_bytes(growing.pool), BASE_BYTES + STEP_ROOM);
    CHECK(is_filled(last, (uint8_t)(BASE_CHUNKS + STEPS * (STEP_CHUNKS - 1) - 1)));
    CHECK(pool_tend_usec(growing.pool) > 0);
    give_first(&growing, 1);
    for (unsigned int i = 0; i < 100; i++) {
        tend(&growing);
        growing.now_usec += 1000;
    }
    CHECK_UINT(pool_bytes(growing.pool), BASE_BYTES);
    growing_end(&growing);
}

static void test_refused(void)
{
    struct growing growing;
    struct pool *other;

    test_case("one budget: refused once, counted once, and had when the other gives it back");
    if (!growing_begin(&growing, 1) ||
        !CHECK_INT(pool_new_growing(BASE_BYTES, growing.grower, NOTES, &other), 0))
        return;
    take_all(&growing);
    await_bytes(&growing, BASE_BYTES + STEP_ROOM);
    for (unsigned int i = 0; i < BASE_CHUNKS; i++)
        CHECK(pool_take(other, 0));
    for (unsigned int i = 0; i < WAIT_MSEC && pool_refusals(other) == 0; i++) {
        pool_tend(other, 0, 1 + i * UINT64_C(1000000));
        (void)usleep(1000);
    }
    for (unsigned int i = 0; i < 100; i++)
        pool_tend(other, 0, i * UINT64_C(1000000));
    CHECK_UINT(pool_refusals(other), 1);
    CHECK_UINT(pool_bytes(other), BASE_BYTES);

    pool_set_patience(growing.pool, 1000);
    give_first(&growing, growing.nr_taken);
    for (unsigned int i = 0; i < WAIT_MSEC && pool_bytes(other) == BASE_BYTES; i++) {
        growing.now_usec += 1000;
        tend(&growing);
        pool_tend(other, 0, i);
        (void)usleep(1000);
    }
    CHECK_UINT(pool_bytes(other), BASE_BYTES + STEP_ROOM);
    pool_free(other);
    growing_end(&growing);
}

/* What nobody may take does not keep the others from more. */
static void test_spare(void)
{
    struct growing growing;

    test_case("ahead: with what is to be left to others");
    if (!growing_begin(&growing, STEPS))
        return;
    for (unsigned int i = 0; i < BASE_CHUNKS / 4 + 4; i++)
        take_one(&growing);
    pool_tend(growing.pool, UINT64_C(1) << 40, 1);
    CHECK(grower_used_bytes(growing.grower) <= POOL_STEP_BYTES); /* that is enough */
    give_first(&growing, growing.nr_taken);
    growing_end(&growing);
}

/* Many CPUs' notes are most of a step. */
static void test_notes_of_many(void)
{
    struct growing growing = {0};
    unsigned int notes = 16384;
    uint64_t *first, *last;

    test_case("notes of 16384 words take their part of a step");
    if (!CHECK_INT(grower_new(POOL_STEP_BYTES, &growing.grower), 0) ||
        !CHECK_INT(pool_new_growing(BASE_BYTES, growing.grower, notes, &growing.pool), 0))
        return;
    CHECK_INT(pool_reserve_notes(growing.pool, notes + 1), -EINVAL);
    take_all(&growing);
    await_bytes(&growing, BASE_BYTES + POOL_STEP_BYTES / 2);
    first = pool_notes(growing.pool, pool_take(growing.pool, 0));
    for (unsigned int i = 0; i < STEP_CHUNKS / 2 - 2; i++)
        pool_take(growing.pool, 0);
    last = pool_notes(growing.pool, pool_take(growing.pool, 0));
    CHECK_UINT(pool_free_bytes(growing.pool), 0);
    CHECK_UINT((uint64_t)(last > first ? last - first : first - last),
               (uint64_t)notes * (STEP_CHUNKS / 2 - 1));
    first[0] = last[notes - 1] = 1; /* both are memory */
    growing_end(&growing);
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
    test_growth();
    test_base_is_preferred();
    test_orders_of_steps();
    test_shrinking();
    test_used_steps_stay();
    test_refused();
    test_spare();
    test_notes_of_many();
    return test_end();
}
