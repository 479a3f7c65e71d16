// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A ring against what must hold of it (ring-rig.h), while it is filled and expires. Snapshots of
 * it: test-ring-pins.c; what becomes of it when its daemon is killed: test-ring-adopt.c.
 */

#include <errno.h>

#include "common/cpu-set.h"
#include "tests/unit/ring-rig.h"

#define SMALL_RING (UINT64_C(4) << 20)

/* --- Filling. --- */

struct size_case {
    const char *name;
    uint64_t bytes;
    int result;
    uint64_t ring_bytes;
};

static const struct size_case size_cases[] = {
    {"nothing", 0, -EINVAL, 0},
    {"a byte less than the least", RING_MIN_BYTES - 1, -EINVAL, 0},
    {"the least", RING_MIN_BYTES, 0, RING_MIN_BYTES},
    {"rounded down", RING_MIN_BYTES + CHUNK_BYTES - 1, 0, RING_MIN_BYTES},
    {"too many chunks", UINT64_MAX, -EINVAL, 0},
};

static void test_sizes(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(size_cases); i++) {
        const struct size_case *c = &size_cases[i];
        struct ring *ring = NULL;

        test_case(c->name);
        CHECK_INT(ring_new(c->bytes, 3, true, NULL, &ring), c->result);
        if (!ring)
            continue;
        CHECK_UINT(ring_bytes(ring), c->ring_bytes);
        CHECK_UINT(ring_newest_seq(ring), 0);
        CHECK(!ring_free(ring));
    }
    CHECK(!ring_free(NULL));
}

struct fill_case {
    const char *name;
    unsigned int nr_cpus;
    uint32_t records; /* of each CPU and round */
    unsigned int rounds;
    bool stays_full; /* it holds all the chunks that it may */
};

static const struct fill_case fill_cases[] = {
    {"one CPU, one record", 1, 1, 3000, false},
    {"one CPU", 1, 3000, 100, true},
    {"windows as large as a chunk", 1, RIG_MAX_RECORDS, 64, true},
    {"a few CPUs", 4, 300, 1000, true},
    {"rounds larger than a chunk", 16, 2000, 60, true},
    {"rounds as large as the ring", 256, 600, 20, false},
    {"rounds larger than the ring", 256, 2000, 6, false},
    {"256 CPUs, one record", 256, 1, 3000, true},
};

static void test_fill(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(fill_cases); i++) {
        const struct fill_case *c = &fill_cases[i];
        struct ring_rig rig;

        test_case(c->name);
        ring_rig_init(&rig, NULL, SMALL_RING, c->nr_cpus);
        rig_check(&rig);
        for (unsigned int j = 0; j < c->rounds; j++) {
            CHECK(rig_feed_round(&rig, c->records, true));
            if (j % (c->rounds / 50 + 1) == 0)
                rig_check(&rig);
        }
        ring_close_chunk(rig.ring);
        rig_check(&rig);
        if (c->stays_full)
            CHECK(rig.ring->nr_listed >= rig.ring->max_listed - 1);
        CHECK_UINT(rig_count_chunks(&rig), rig.ring->nr_chunks);
        ring_rig_done(&rig);
    }
}

/* What a chunk's windows before and behind its first round count to. */
static void check_counts(const struct ring_rig *rig, const struct chunk *chunk)
{
    struct rig_content all, from;
    unsigned int wrong = 0;

    rig_content_init(&all, rig);
    rig_content_init(&from, rig);
    CHECK(rig_read_chunk(rig, chunk, false, &all));
    CHECK(rig_read_chunk(rig, chunk, true, &from));
    for (unsigned int cpu = 0; cpu < rig->nr_cpus; cpu++) {
        uint64_t records, lost;

        ring_read_counts(rig->ring, chunk, cpu, false, &records, &lost);
        wrong += records != all.in_counted[cpu] || lost != 0;
        ring_read_counts(rig->ring, chunk, cpu, true, &records, &lost);
        wrong += records != from.in_counted[cpu] || lost != 0;
    }
    CHECK_UINT(wrong, 0);
    CHECK(ring_verify_chunk(rig->ring, chunk));
    rig_content_done(&all);
    rig_content_done(&from);
}

/*
 * Where windows were cut the next round is no place to begin at, and a chunk in which one begins
 * says so.
 */
static void test_uneven(void)
{
    struct ring_chunk_info info;
    struct ring_rig rig;

    test_case("uneven rounds");
    ring_rig_init(&rig, NULL, SMALL_RING, 2);
    (void)rig_feed_round(&rig, 100, false);
    ring_read_chunk(rig.ring, rig.ring->filling, &info);
    CHECK_UINT(info.first_round, UINT32_MAX);
    (void)rig_feed_round(&rig, 100, true);
    ring_read_chunk(rig.ring, rig.ring->filling, &info);
    CHECK_UINT(info.first_round, 2 * (WINDOW_HEADER_BYTES + 100 * RIG_RECORD_BYTES));
    CHECK(info.cut_inside);
    (void)rig_feed_round(&rig, 100, true);
    ring_read_chunk(rig.ring, rig.ring->filling, &info);
    CHECK(info.cut_inside);
    (void)rig_feed_round(&rig, 100, false);
    ring_read_chunk(rig.ring, rig.ring->filling, &info);
    CHECK_UINT(info.first_round, 2 * (WINDOW_HEADER_BYTES + 100 * RIG_RECORD_BYTES));
    CHECK(!info.cut_inside);
    check_counts(&rig, rig.ring->filling);
    ring_close_chunk(rig.ring);
    check_counts(&rig, rig.ring->head);
    rig_check(&rig);

    /* A chunk without a place to begin at goes with the one before it. */
    test_case("a chunk without a beginning");
    for (unsigned int i = 0; i < 2; i++) {
        (void)rig_feed_round(&rig, 100, false);
        ring_close_chunk(rig.ring);
    }
    (void)rig_feed_round(&rig, 100, true);
    ring_close_chunk(rig.ring);
    CHECK_UINT(rig.ring->nr_listed, 4);
    ring_evict(rig.ring);
    CHECK_UINT(rig.ring->nr_listed, 1);
    rig_check(&rig);
    ring_rig_done(&rig);
}

/* --- Age. --- */

struct expire_case {
    const char *name;
    int64_t beyond; /* of the last TSC ... */
    int chunk;      /* ... of this one of 8 chunks; -1: of all time */
    unsigned int left;
};

static const struct expire_case expire_cases[] = {
    {"from the beginning", 0, -1, 8},    {"the first chunk's last record", 0, 0, 8},
    {"behind the first chunk", 1, 0, 7}, {"in the middle", 0, 4, 4},
    {"behind the last one", 1, 7, 0},
};

static void test_expire(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(expire_cases); i++) {
        const struct expire_case *c = &expire_cases[i];
        uint64_t last_tsc[8], tsc = 0;
        struct ring_stats stats;
        struct ring_rig rig;

        test_case(c->name);
        ring_rig_init(&rig, NULL, SMALL_RING, 3);
        for (unsigned int j = 0; j < ARRAY_SIZE(last_tsc); j++) {
            (void)rig_feed_round(&rig, 500, true);
            ring_close_chunk(rig.ring);
            last_tsc[j] = rig.tsc - 1;
        }
        if (c->chunk >= 0)
            tsc = last_tsc[c->chunk] + (uint64_t)c->beyond;
        ring_expire(rig.ring, tsc);
        CHECK_UINT(rig.ring->nr_listed, c->left);
        rig_check(&rig);
        ring_read_stats(rig.ring, &stats);
        CHECK_UINT(stats.newest_tsc, last_tsc[7]);
        CHECK_UINT(stats.oldest_tsc, c->left ? 1000 + (8 - c->left) * 1500 : 0);
        ring_rig_done(&rig);
    }
}

int main(void)
{
    test_sizes();
    test_fill();
    test_uneven();
    test_expire();
    return test_end();
}
