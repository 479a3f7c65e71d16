// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The collector with a pool that grows: one output that is stuck may have nearly all that the pool
 * may become, but what others have of it is theirs; and afterwards it is given back, though nothing
 * else happens.
 */

#include "collector/grower.h"
#include "tests/unit/collector-rig.h"

#define BASE_BYTES    (UINT64_C(16) << 20)
#define STEPS         3u
#define MAX_BYTES     (BASE_BYTES + STEPS * (POOL_STEP_BYTES - (uint64_t)CHUNK_BYTES))
#define LARGEST_BYTES (CHUNK_BYTES << 2) /* a sixteenth of the base */
#define PATIENCE_USEC (2 * USEC_PER_SEC)
#define WAIT_MSEC     20000u

struct growing {
    struct grower *grower;
    struct ring *ring;
    unsigned int healthy; /* an output that is written; 0: there is none */
    struct bench bench;
};

/* With a ring beside the outputs, so that they drop what they have no chunk for. */
static bool growing_begin(struct growing *growing, unsigned int steps)
{
    struct pool *pool;

    *growing = (struct growing){0};
    if (!CHECK_INT(grower_new((uint64_t)steps * POOL_STEP_BYTES, &growing->grower), 0) ||
        !CHECK_INT(pool_new_growing(BASE_BYTES, growing->grower, sink_notes(CPUS), &pool), 0))
        return false;
    growing->ring = new_ring(RING_MIN_BYTES);
    pool_set_patience(pool, PATIENCE_USEC);
    bench_init_with(&growing->bench, LARGE_PAGES, pool);
    attach(&growing->bench, add_sink(&growing->bench, config_of(1000), growing->ring));
    return true;
}

static void growing_end(struct growing *growing)
{
    bench_done(&growing->bench);
    ring_free(growing->ring);
    grower_free(growing->grower);
}

static struct sink_totals totals_of(const struct growing *growing, unsigned int i)
{
    struct sink_totals totals;

    sink_read_totals(growing->bench.sinks[i], &totals);
    return totals;
}

static uint64_t dropped_by(const struct growing *growing, unsigned int i)
{
    uint64_t dropped = 0;

    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        struct ledger ledger;

        sink_read_ledger(growing->bench.sinks[i], cpu, &ledger);
        dropped += ledger.dropped;
    }
    return dropped;
}

/* An output that is written keeps up, however little of a CPU the kernel's writers get. */
static void await_healthy(struct growing *growing)
{
    for (unsigned int i = 0; growing->healthy > 0 && i < WAIT_MSEC &&
                             totals_of(growing, growing->healthy).queued_bytes > 0;
         i++) {
        collector_poke(growing->bench.collector);
        (void)usleep(1000);
    }
}

/* Some more records; returns when they are taken, and the grower has done what it can. */
static void produce_some(struct growing *growing)
{
    struct bench *bench = &growing->bench;

    for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++)
        for (unsigned int i = 0; i < 16384; i++)
            put_record(bench, cpu);
    while (waiting(bench, 0) + waiting(bench, 1) > 0)
        (void)usleep(100);
    for (unsigned int i = 0; i < 1000 && pool_bytes(bench->pool) < MAX_BYTES &&
                             pool_free_bytes(bench->pool) < pool_bytes(bench->pool) / 2 &&
                             pool_refusals(bench->pool) == 0;
         i++) {
        collector_poke(bench->collector);
        (void)usleep(1000);
    }
    await_healthy(growing);
}

static void produce_until_dropped(struct growing *growing, unsigned int i)
{
    uint64_t before = dropped_by(growing, i);

    for (unsigned int n = 0; n < 1000 && dropped_by(growing, i) == before; n++)
        produce_some(growing);
    CHECK(dropped_by(growing, i) > before);
    CHECK_UINT(totals_of(growing, i).drops[DROP_SLOW_OUTPUT], 0); /* it is granted nothing */
    CHECK(totals_of(growing, i).drops[DROP_NO_SPACE] > before);
}

/* A file that waits for its grant. */
static unsigned int add_stuck(struct growing *growing)
{
    struct sink_config config = config_of(1000);
    unsigned int i;

    config.granted_bytes = 0;
    i = add_sink(&growing->bench, config, NULL);
    attach(&growing->bench, i);
    return i;
}

static void close_all(struct growing *growing)
{
    for (unsigned int i = 1; i < growing->bench.nr_sinks; i++)
        tell(&growing->bench, i, MESSAGE_GRANT, false, INT64_MAX);
    for (unsigned int i = 0; i < growing->bench.nr_sinks; i++)
        close_sink(&growing->bench, i, true);
}

static void test_lone(void)
{
    struct growing growing;
    struct pool *pool;
    unsigned int stuck;

    test_case("a lone one that is stuck has four fifths of what the pool may become, or more");
    if (!growing_begin(&growing, STEPS))
        return;
    pool = growing.bench.pool;
    stuck = add_stuck(&growing);
    produce_until_dropped(&growing, stuck);
    CHECK_UINT(pool_bytes(pool), MAX_BYTES);
    CHECK(totals_of(&growing, stuck).held_bytes >= MAX_BYTES / 5 * 4 - LARGEST_BYTES);
    CHECK(pool_free_bytes(pool) >= MAX_BYTES / 5 - LARGEST_BYTES);
    CHECK_UINT(pool_refusals(pool), 0);

    close_all(&growing);
    CHECK_UINT(pool_free_bytes(pool), pool_bytes(pool));
    for (unsigned int i = 0;
         i < WAIT_MSEC && (pool_bytes(pool) > BASE_BYTES || grower_used_bytes(growing.grower) > 0);
         i++)
        (void)usleep(1000);
    CHECK_UINT(pool_bytes(pool), BASE_BYTES); /* nobody has woken the collector for it */
    CHECK_UINT(grower_used_bytes(growing.grower), 0);
    growing_end(&growing);
}

static void test_shares(void)
{
    struct growing growing;
    unsigned int stuck, late;

    test_case("those that come when the pool is as large as it may be have their share");
    if (!growing_begin(&growing, STEPS))
        return;
    stuck = add_stuck(&growing);
    produce_until_dropped(&growing, stuck);
    growing.healthy = add_sink(&growing.bench, config_of(1000), NULL);
    attach(&growing.bench, growing.healthy);
    late = add_stuck(&growing);
    produce_until_dropped(&growing, late);
    for (unsigned int i = 0; i < 20; i++)
        produce_some(&growing);
    CHECK(totals_of(&growing, late).held_bytes >= MAX_BYTES / 8 - LARGEST_BYTES);
    CHECK_UINT(dropped_by(&growing, growing.healthy), 0);
    close_all(&growing);
    CHECK(span_of_file(&growing.bench, growing.healthy).next[0] == growing.bench.number[0]);
    growing_end(&growing);
}

/* Two that are stuck do not stop the growth by the share that each leaves to the other. */
static void test_two(void)
{
    struct growing growing;
    uint64_t held_bytes;
    unsigned int first, second;

    test_case("two that are stuck share what the pool may become");
    if (!growing_begin(&growing, STEPS))
        return;
    first = add_stuck(&growing);
    second = add_stuck(&growing);
    produce_until_dropped(&growing, first);
    produce_until_dropped(&growing, second);
    held_bytes = totals_of(&growing, first).held_bytes + totals_of(&growing, second).held_bytes;
    CHECK_UINT(pool_bytes(growing.bench.pool), MAX_BYTES);
    CHECK(held_bytes >= MAX_BYTES / 5 * 3);
    CHECK(totals_of(&growing, first).held_bytes >= MAX_BYTES / 6 - LARGEST_BYTES);
    CHECK(totals_of(&growing, second).held_bytes >= MAX_BYTES / 6 - LARGEST_BYTES);
    close_all(&growing);
    growing_end(&growing);
}

static void test_refused(void)
{
    struct growing growing;
    struct message message;
    unsigned int stuck, told = 0;
    struct pool *other;

    test_case("what is refused is reported once, and shared out as it is");
    if (!growing_begin(&growing, 1) ||
        !CHECK_INT(pool_new_growing(BASE_BYTES, growing.grower, sink_notes(CPUS), &other), 0))
        return;
    while (pool_take(other, 0)) /* has the budget first */
        ;
    for (unsigned int i = 0; i < WAIT_MSEC && pool_bytes(other) == BASE_BYTES; i++) {
        pool_tend(other, 0, 1);
        (void)usleep(1000);
    }
    stuck = add_stuck(&growing);
    produce_until_dropped(&growing, stuck);
    for (unsigned int i = 0; i < 20; i++)
        produce_some(&growing);
    while (collector_receive(growing.bench.collector, &message))
        told += message.type == MESSAGE_POOL_REFUSED;
    CHECK_UINT(told, 1);
    CHECK_UINT(pool_refusals(growing.bench.pool), 1);
    CHECK(totals_of(&growing, stuck).held_bytes >= BASE_BYTES / 5 * 4 - LARGEST_BYTES);
    CHECK(pool_free_bytes(growing.bench.pool) >= BASE_BYTES / 5 - LARGEST_BYTES);
    close_all(&growing);
    pool_free(other);
    growing_end(&growing);
}

int main(void)
{
    if (!bench_is_possible())
        return 77;
    test_lone();
    test_shares();
    test_two();
    test_refused();
    return test_end();
}
