// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Rounds over trace buffers that several sinks want something of: each gets exactly its own, and
 * none that cannot go on keeps the others from it.
 */

#include "collector/account.h"
#include "tests/unit/drain-rig.h"

#define ALL_EVENTS  0x000af000u /* scheduling and HVM */
#define SCHED_ONLY  0x0002f000u
#define HVM_ONLY    0x0008f000u
#define ALL_CPUS    7u
#define SMALL_PAGES 8u
#define LARGE_PAGES 256u /* a buffer of four chunks */

static struct ledger ledger_of(const struct bench *bench, unsigned int out, unsigned int cpu)
{
    struct ledger ledger;

    sink_read_ledger(bench->outs[out].sink, cpu, &ledger);
    return ledger;
}

static uint64_t last_loss_of(const struct bench *bench, unsigned int out)
{
    struct sink_totals totals;

    sink_read_totals(bench->outs[out].sink, &totals);
    return totals.last_loss_tsc;
}

static uint64_t dropped_by(const struct bench *bench, unsigned int out)
{
    uint64_t dropped = 0;

    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
        dropped += ledger_of(bench, out, cpu).dropped;
    return dropped;
}

/* So that it starves with more than MAX. */
static void limit_chunks(struct sink *sink, unsigned int max)
{
    sink_set_share(sink, (uint64_t)max * CHUNK_BYTES, UINT64_MAX / 2);
}

static void produce_all(struct bench *bench, unsigned int max)
{
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
        bench_produce_some(bench, cpu, (unsigned int)(test_random(&bench->random) % max));
}

static void drain_all(struct bench *bench)
{
    for (unsigned int i = 0; i < 100 && (i == 0 || !drain_is_even(bench->drain)); i++)
        (void)bench_round(bench);
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
        CHECK_UINT(bench_waiting(bench, cpu), 0);
}

/* A sink for the events of MASK that joins now. */
static struct attachment *join(struct bench *bench, uint32_t mask)
{
    struct sink_config config = bench_config(mask, ALL_CPUS);
    struct attachment *joined = bench_add(bench, &config, NULL);

    bench->tsc += 100;
    joined->joins_tsc = bench->tsc;
    joined->joins_losses_tsc = bench->tsc - 50;
    joined->joining = config.cpus;
    return joined;
}

/* --- Each its own. --- */

struct taker {
    uint32_t mask;
    unsigned int cpus;
};

struct several_case {
    const char *name;
    uint32_t pages;
    unsigned int records;
    unsigned int nr_takers;
    struct taker takers[BENCH_OUTS];
};

static const struct several_case several_cases[] = {
    {"one", SMALL_PAGES, 400, 1, {{ALL_EVENTS, 7}}},
    {"two alike", SMALL_PAGES, 400, 2, {{ALL_EVENTS, 7}, {ALL_EVENTS, 7}}},
    {"other events", SMALL_PAGES, 400, 3, {{SCHED_ONLY, 7}, {HVM_ONLY, 7}, {ALL_EVENTS, 7}}},
    {"other CPUs", SMALL_PAGES, 400, 3, {{ALL_EVENTS, 1}, {ALL_EVENTS, 2}, {ALL_EVENTS, 4}}},
    {"some in common", SMALL_PAGES, 400, 4, {{SCHED_ONLY, 3}, {HVM_ONLY, 6}, {0, 7}, {0, 0}}},
    {"a CPU that nobody wants", SMALL_PAGES, 400, 2, {{ALL_EVENTS, 1}, {HVM_ONLY, 3}}},
    {"nobody", SMALL_PAGES, 400, 0, {{0, 0}}},
    {"large windows, one", LARGE_PAGES, 60000, 1, {{ALL_EVENTS, 7}}},
    {"large windows", LARGE_PAGES, 60000, 3, {{SCHED_ONLY, 7}, {ALL_EVENTS, 5}, {HVM_ONLY, 2}}},
};

static void test_several(uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_SIZE(several_cases); i++) {
        const struct several_case *c = &several_cases[i];
        unsigned int rounds = c->pages == SMALL_PAGES ? 200 : 4;
        struct bench bench;

        test_case(c->name);
        bench_init(&bench, c->pages, seed + i);
        for (unsigned int j = 0; j < c->nr_takers; j++) {
            struct sink_config config = bench_config(c->takers[j].mask, c->takers[j].cpus);

            (void)bench_add(&bench, &config, NULL);
        }
        for (unsigned int j = 0; j < rounds; j++) {
            produce_all(&bench, c->records);
            drain_all(&bench);
            bench_write_all(&bench, false);
        }
        bench_write_all(&bench, true);
        for (unsigned int j = 0; j < c->nr_takers; j++) {
            bench_check(&bench, j);
            CHECK_UINT(dropped_by(&bench, j), 0);
        }
        bench_done(&bench);
    }
}

static void lift_limits(struct bench *bench)
{
    for (unsigned int i = 0; i < bench->nr_outs; i++)
        limit_chunks(bench->outs[i].sink, BENCH_CHUNKS);
}

/* One joins where some older records wait, each of them with a TSC. */
static void join_in_time(struct bench *bench, uint32_t mask)
{
    lift_limits(bench);
    drain_all(bench);
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
        for (unsigned int i = 0; i < 20; i++)
            CHECK(bench_produce(bench, cpu, i % 2 ? SCHED : HVM));
    (void)join(bench, mask);
}

/*
 * Sinks with random events and CPUs, which run out of chunks at any time, and one that joins them:
 * each has what was produced for it, or reports what is missing.
 */
static void test_any(uint64_t seed)
{
    static const uint32_t masks[] = {ALL_EVENTS, ALL_EVENTS, SCHED_ONLY, HVM_ONLY, 0x00041000};

    uint64_t dropped = 0;

    test_case("any sinks");
    for (unsigned int i = 0; i < 24; i++) {
        uint32_t pages = i % 3 ? SMALL_PAGES : LARGE_PAGES;
        struct bench bench;

        bench_init(&bench, pages, seed + i);
        for (unsigned int n = 2 + i % (BENCH_OUTS - 2); n > 0; n--) {
            struct sink_config config = bench_config(
                masks[test_random(&bench.random) % ARRAY_SIZE(masks)],
                n % 2 ? ALL_CPUS : (unsigned int)(test_random(&bench.random) % (ALL_CPUS + 1)));

            (void)bench_add(&bench, &config, NULL);
        }
        for (unsigned int j = 0; j < (pages == SMALL_PAGES ? 60 : 8); j++) {
            unsigned int one = (unsigned int)(test_random(&bench.random) % bench.nr_outs);

            limit_chunks(bench.outs[one].sink, (unsigned int)(test_random(&bench.random) % 8));
            produce_all(&bench, pages == SMALL_PAGES ? 900 : 60000);
            (void)bench_round(&bench); /* one that is alone on a CPU may leave records in place */
            bench_write_all(&bench, j % 4 == 0);
            if (j == 5)
                join_in_time(&bench, masks[i % ARRAY_SIZE(masks)]);
        }
        lift_limits(&bench);
        produce_all(&bench, 10);
        drain_all(&bench);
        bench_write_all(&bench, true);
        for (unsigned int j = 0; j < bench.nr_outs; j++) {
            bench_check(&bench, j);
            dropped += dropped_by(&bench, j);
        }
        bench_done(&bench);
    }
    CHECK(dropped > 0);
}

/* Windows for several are no shorter than for one, if their chunks have room. */
static void test_whole(uint64_t seed)
{
    struct sink_config config = bench_config(ALL_EVENTS, ALL_CPUS);
    struct bench bench;
    struct sink_totals totals;

    test_case("whole windows");
    bench_init(&bench, LARGE_PAGES, seed);
    (void)bench_add(&bench, &config, NULL);
    config = bench_config(SCHED_ONLY, ALL_CPUS);
    (void)bench_add(&bench, &config, NULL);
    bench_produce_some(&bench, 1,
                       30000); /* of a full buffer the chunk has no room for the header */
    (void)bench_round(&bench);
    CHECK(drain_is_even(bench.drain));
    bench_write_all(&bench, true);
    for (unsigned int i = 0; i < 2; i++) {
        bench_check(&bench, i);
        sink_read_totals(bench.outs[i].sink, &totals);
        CHECK_UINT(totals.windows, 1);
    }
    bench_done(&bench);
}

/* What a sink leaves out of a window needs no room in its chunk: a ring's history would be shorter
 * by that. */
static void test_filled(uint64_t seed)
{
    struct sink_config config = bench_config(ALL_EVENTS, ALL_CPUS);
    struct ring_stats stats;
    struct ring *ring;
    struct bench bench;
    uint64_t closed;

    test_case("a ring's chunks are filled, though it takes a part of each window");
    if (!CHECK_INT(ring_new(UINT64_C(64) << 20, BENCH_CPUS, false, NULL, &ring), 0))
        return;
    bench_init(&bench, LARGE_PAGES, seed);
    (void)bench_add(&bench, &config, NULL);
    config = bench_config(HVM_ONLY, ALL_CPUS);
    (void)bench_add(&bench, &config, ring);
    for (unsigned int i = 0; i < 60; i++) {
        bench_produce_some(&bench, i % BENCH_CPUS, 1000000);
        drain_all(&bench);
        bench_write_all(&bench, false);
    }
    ring_read_stats(ring, &stats);
    closed = ring_newest_seq(ring) - 1;
    CHECK(closed > 5);
    CHECK(stats.used_bytes >= closed * ring_chunk_bytes(ring) / 100 * 93); /* but for a piece */
    bench_write_all(&bench, true);
    bench_check(&bench, 0);
    bench_done(&bench);
    ring_free(ring);
}

/* One that has only small chunks, or little left of its output, cuts the windows of all. */
static void test_cut(uint64_t seed)
{
    for (unsigned int way = 0; way < 2; way++) {
        struct sink_config config = bench_config(ALL_EVENTS, ALL_CPUS);
        struct bench bench;
        unsigned int rounds = 0;

        test_case(way == 0 ? "cut by small chunks" : "cut by the end of an output");
        bench_init(&bench, LARGE_PAGES, seed);
        (void)bench_add(&bench, &config, NULL);
        if (way == 1)
            config.max_bytes = 2 * CHUNK_BYTES + CHUNK_BYTES / 2;
        (void)bench_add(&bench, &config, NULL);
        if (way == 0)
            limit_chunks(bench.outs[1].sink, 1);
        CHECK(drain_is_even(bench.drain));
        bench_produce_some(&bench, 1, 1000000);
        do {
            struct round round = bench_round(&bench);

            CHECK(round.behind || drain_is_even(bench.drain));
            CHECK(round.waiting_bytes > 0);
            CHECK(way == 1 || !round.dropped);
            bench_write_all(&bench, true);
            rounds++;
        } while (!drain_is_even(bench.drain) && rounds < 100);
        CHECK_UINT(rounds, way == 0 ? 5 : 2); /* 1 MiB in pieces of a little less than 256 KiB */
        bench_check(&bench, 0);
        CHECK_UINT(dropped_by(&bench, 0), 0);
        if (way == 0)
            bench_check(&bench, 1);
        else
            CHECK(sink_used_bytes(bench.outs[1].sink) > 2 * CHUNK_BYTES);
        bench_done(&bench);
    }
}

/* --- One that has no chunk. --- */

/* A lone one leaves the records where they are, and has them later. */
static void test_lone_starves(uint64_t seed)
{
    struct sink_config config = bench_config(ALL_EVENTS, ALL_CPUS);
    struct attachment *attachment;
    struct bench bench;
    struct round round;

    test_case("a lone one starves");
    bench_init(&bench, SMALL_PAGES, seed);
    attachment = bench_add(&bench, &config, NULL);
    limit_chunks(attachment->sink, 0);
    produce_all(&bench, 400);
    bench_produce_some(&bench, 0, 10);
    for (int i = 0; i < 3; i++) {
        uint32_t waiting = bench_waiting(&bench, 0);

        round = bench_round(&bench);
        CHECK(attachment->starved);
        CHECK(!round.behind && round.waiting_bytes >= waiting);
        CHECK_UINT(bench_waiting(&bench, 0), waiting);
        bench_produce_some(&bench, 0, 10);
    }
    CHECK_UINT(ledger_of(&bench, 0, 0).produced, 0);
    limit_chunks(attachment->sink, 2);
    drain_all(&bench);
    CHECK(!attachment->starved);
    bench_write_all(&bench, true);
    bench_check(&bench, 0);
    CHECK_UINT(dropped_by(&bench, 0), 0);
    bench_done(&bench);
}

/* One of several drops, and tells; the others lose nothing. */
static void test_one_starves(uint64_t seed)
{
    struct sink_config all = bench_config(ALL_EVENTS, ALL_CPUS);
    struct sink_config sched = bench_config(SCHED_ONLY, 5);
    struct bench bench;

    test_case("one of several starves");
    bench_init(&bench, SMALL_PAGES, seed);
    (void)bench_add(&bench, &all, NULL);
    (void)bench_add(&bench, &sched, NULL);
    (void)bench_add(&bench, &all, NULL);
    for (unsigned int i = 0; i < 400; i++) {
        uint64_t r = test_random(&bench.random);

        limit_chunks(bench.outs[1].sink, i / 20 % 2 ? 1 : 3);
        if (r % 64 == 0)
            bench_write(&bench, 1, false);
        produce_all(&bench, 300);
        (void)bench_round(&bench);
        bench_write(&bench, 0, false);
        bench_write(&bench, 2, false);
    }
    bench_write(&bench, 1, false);
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
        CHECK(bench_produce(&bench, cpu, SCHED));
    (void)bench_round(&bench);
    bench_write_all(&bench, true);
    for (unsigned int i = 0; i < 3; i++)
        bench_check(&bench, i);
    CHECK_UINT(dropped_by(&bench, 0), 0);
    CHECK(dropped_by(&bench, 1) > 0);
    CHECK_UINT(dropped_by(&bench, 2), 0);
    CHECK(last_loss_of(&bench, 1) > 0);
    bench_done(&bench);
}

struct gap_case {
    const char *name;
    const char *dropped; /* s: a record, b: one without a TSC, l: a loss */
    bool follows;        /* a record was delivered before */
};

static const struct gap_case gap_cases[] = {
    {"records", "sss", true},
    {"records with a loss first", "lsb", true},
    {"a loss behind records", "sbl", true},
    {"only a loss", "l", true},
    {"only losses, from the beginning", "ll", false},
    {"only without a TSC", "bb", true},
};

/* What was dropped is told with TSCs that are in order, whatever it was. */
static void test_gap(uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_SIZE(gap_cases); i++) {
        const struct gap_case *c = &gap_cases[i];
        struct sink_config config = bench_config(SCHED_ONLY, ALL_CPUS);
        struct bench bench;

        test_case(c->name);
        bench_init(&bench, SMALL_PAGES, seed);
        (void)bench_add(&bench, &config, NULL);
        (void)bench_add(&bench, &config, NULL);
        if (c->follows)
            CHECK(bench_produce(&bench, 1, SCHED));
        (void)bench_round(&bench);
        sink_flush(bench.outs[0].sink);
        limit_chunks(bench.outs[0].sink, 0);
        for (const char *letter = c->dropped; *letter; letter++)
            CHECK(*letter == 'l' ? bench_lose(&bench, 1, 5)
                                 : bench_produce(&bench, 1, *letter == 's' ? SCHED : BARE));
        (void)bench_round(&bench);
        limit_chunks(bench.outs[0].sink, 2);
        CHECK(bench_produce(&bench, 1, SCHED));
        (void)bench_round(&bench);
        bench_write_all(&bench, true);
        bench_check(&bench, 0);
        bench_check(&bench, 1);
        bench_done(&bench);
    }
}

/* --- One that is at its end. --- */

/* What it has is the beginning of what was produced for it, without a hole. */
static void test_limit(uint64_t seed)
{
    static const uint64_t limits[] = {0, 20, 1000, 30000, 100000, CHUNK_BYTES, 300000};

    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        struct sink_config config = bench_config(ALL_EVENTS, ALL_CPUS);
        struct reader readers[BENCH_CPUS] = {0};
        struct sink_totals totals;
        bool told = false;
        struct bench bench;

        test_case("a limit");
        bench_init(&bench, SMALL_PAGES, seed + i);
        (void)bench_add(&bench, &config, NULL);
        config.max_bytes = limits[i];
        (void)bench_add(&bench, &config, NULL);
        for (unsigned int j = 0; j < 300; j++) {
            produce_all(&bench, j % 7 == 0 ? 600 : 20);
            CHECK(bench_produce(&bench, 2, SCHED));
            drain_all(&bench);
            CHECK(!told || bench.attachments[1].at_limit);
            told = told || bench.attachments[1].at_limit;
            bench_write_all(&bench, false);
        }
        bench_write_all(&bench, true);
        bench_check(&bench, 0);
        CHECK(told);
        sink_read_totals(bench.outs[1].sink, &totals);
        CHECK(totals.output_bytes <= limits[i]);
        read_windows(&bench, &bench.outs[1], bench.outs[1].data, totals.output_bytes, readers);
        for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++) {
            CHECK_UINT(readers[cpu].wrong, 0);
            CHECK_UINT(ledger_of(&bench, 1, cpu).delivered, readers[cpu].delivered);
            CHECK_UINT(ledger_of(&bench, 1, cpu).dropped, 0);
        }
        bench_done(&bench);
    }
}

/* A lone one that leaves records out, and whose output ends within a window. */
static void test_limit_of_some(uint64_t seed)
{
    static const uint64_t limits[] = {20000, 100000, CHUNK_BYTES, 700000};

    test_case("a limit, for a part of each window");
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        struct sink_config config = bench_config(SCHED_ONLY, ALL_CPUS);
        struct sink_totals totals;
        bool told = false;
        struct bench bench;

        config.max_bytes = limits[i];
        bench_init(&bench, LARGE_PAGES, seed + i);
        (void)bench_add(&bench, &config, NULL);
        bench_produce_some(&bench, 1, 100); /* some of what comes is left out */
        drain_all(&bench);
        for (unsigned int j = 0; j < 100 && !told; j++) {
            bench_produce_some(&bench, 1, 30000);
            (void)bench_round(&bench);
            told = bench.attachments[0].at_limit;
            CHECK(sink_used_bytes(bench.outs[0].sink) <= limits[i]);
            bench_write_all(&bench, false);
        }
        CHECK(told);
        bench_write_all(&bench, true);
        sink_read_totals(bench.outs[0].sink, &totals);
        CHECK(totals.output_bytes <= limits[i]);
        CHECK(totals.output_bytes + 8192 > limits[i]); /* and most of what it may be */
        bench_done(&bench);
    }
}

static void test_failure(uint64_t seed)
{
    struct sink_config config = bench_config(ALL_EVENTS, ALL_CPUS);
    struct fake_write write;
    struct bench bench;

    test_case("a failure");
    bench_init(&bench, SMALL_PAGES, seed);
    (void)bench_add(&bench, &config, NULL);
    (void)bench_add(&bench, &config, NULL);
    produce_all(&bench, 400);
    drain_all(&bench);
    sink_flush(bench.outs[0].sink);
    sink_submit(bench.outs[0].sink, &bench.outs[0].uring, 1);
    write = fake_uring_take(&bench.outs[0].uring, 0);
    CHECK_INT(sink_complete(bench.outs[0].sink, (struct chunk *)(uintptr_t)write.tag, -EIO, 1),
              -EIO);
    for (unsigned int i = 0; i < 50; i++) {
        produce_all(&bench, 400);
        drain_all(&bench);
        CHECK(!bench.attachments[0].starved);
        bench_write(&bench, 1, false);
    }
    bench_write(&bench, 1, true);
    bench_check(&bench, 1);
    CHECK_UINT(ledger_of(&bench, 0, 0).delivered, 0);
    bench_done(&bench);
}

/* Towards the end a lone one that can keep nothing does not leave anything either. */
static void test_last_records(uint64_t seed)
{
    struct sink_config config = bench_config(ALL_EVENTS, ALL_CPUS);
    struct bench bench;

    test_case("last records beyond the limit");
    bench_init(&bench, SMALL_PAGES, seed);
    config.max_bytes = 0;
    (void)bench_add(&bench, &config, NULL);
    bench_produce_some(&bench, 0, 100);
    (void)bench_round(&bench);
    CHECK(bench.attachments[0].at_limit);
    CHECK(bench_waiting(&bench, 0) > 0);
    bench.attachments[0].mode = DRAIN_LAST_RECORDS;
    (void)bench_round(&bench);
    CHECK_UINT(bench_waiting(&bench, 0), 0);
    bench_done(&bench);
}

/* --- Losses that were not told yet. --- */

static bool put_wrap(struct bench *bench, unsigned int cpu)
{
    static const uint32_t wrap[4] = {TRC_TRACE_WRAP_BUFFER | 3u << TRACE_EXTRA_SHIFT};

    return bench_insert(bench, cpu, wrap, sizeof(wrap));
}

/* CPU 0: a loss is told first; CPU 1: behind a wrap record; CPU 2: only behind a record. */
static void test_losses(uint64_t seed)
{
    struct sink_config config = bench_config(SCHED_ONLY, ALL_CPUS);
    struct attachment *losses;
    struct bench bench;

    test_case("losses");
    bench_init(&bench, SMALL_PAGES, seed);
    (void)bench_add(&bench, &config, NULL);
    losses = bench_add(&bench, &config, NULL);
    losses->mode = DRAIN_LOSSES;
    losses->pending = config.cpus;
    CHECK(bench_lose(&bench, 0, 11) && bench_produce(&bench, 0, SCHED));
    CHECK(put_wrap(&bench, 1) && bench_lose(&bench, 1, 12) && bench_produce(&bench, 1, SCHED));
    CHECK(bench_produce(&bench, 2, SCHED) && bench_lose(&bench, 2, 13));
    (void)bench_round(&bench);
    CHECK_UINT(cpu_set_count(&losses->pending), 0);
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
        CHECK(bench_lose(&bench, cpu, 100));
    (void)bench_round(&bench);
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++) {
        CHECK_UINT(ledger_of(&bench, 1, cpu).lost, cpu == 2 ? 0 : 11 + cpu);
        CHECK_UINT(ledger_of(&bench, 1, cpu).produced, cpu == 2 ? 0 : 11 + cpu);
    }
    CHECK(last_loss_of(&bench, 1) > 0);
    bench_write_all(&bench, true);
    bench_check(&bench, 0);
    bench_done(&bench);

    test_case("losses, of some CPUs, and nobody else is there");
    bench_init(&bench, SMALL_PAGES, seed);
    losses = bench_add(&bench, &config, NULL);
    losses->mode = DRAIN_LOSSES;
    cpu_set_add(&losses->pending, 1);
    CHECK(bench_lose(&bench, 0, 11) && bench_lose(&bench, 1, 12));
    (void)bench_round(&bench);
    CHECK_UINT(ledger_of(&bench, 0, 0).lost, 0);
    CHECK_UINT(ledger_of(&bench, 0, 1).lost, 12);
    CHECK_UINT(bench_waiting(&bench, 0), 0);
    bench_done(&bench);
}

/* --- Rings. --- */

/* Of the only sink's. */
static uint32_t first_round(const struct bench *bench)
{
    struct ring *ring = sink_ring(bench->outs[0].sink);
    struct ring_chunk_info info;
    const struct chunk *chunk;
    int pin = ring_take_pin(ring);

    sink_flush(bench->outs[0].sink);
    ring_pin(ring, pin);
    chunk = ring_pin_first(ring, pin);
    ring_advance_pin(ring, pin, NULL);
    if (!chunk)
        return UINT32_MAX;
    ring_read_chunk(ring, chunk, &info);
    return info.first_round;
}

/* Where windows were cut, or a daemon has died, the next round is no place to begin at. */
static void test_ring_begins(uint64_t seed)
{
    struct sink_config config = bench_config(ALL_EVENTS, ALL_CPUS);
    struct ring *ring;
    struct bench bench;
    uint32_t cons;

    test_case("a ring begins");
    if (ring_new(RING_MIN_BYTES, BENCH_CPUS, true, NULL, &ring) < 0)
        exit(EXIT_FAILURE);
    bench_init(&bench, SMALL_PAGES, seed);
    (void)bench_add(&bench, &config, ring);
    produce_all(&bench, 400);
    drain_all(&bench);
    CHECK_UINT(first_round(&bench), 0);
    bench_done(&bench);
    ring_free(ring);

    test_case("a ring goes on in the middle of a round");
    if (ring_new(RING_MIN_BYTES, BENCH_CPUS, true, NULL, &ring) < 0)
        exit(EXIT_FAILURE);
    bench_init(&bench, SMALL_PAGES, seed);
    produce_all(&bench, 400);
    bench_produce_some(&bench, 1, 10);
    CHECK(drain_read_cons(bench.drain, 1, &cons));
    CHECK_INT(drain_resume_cpu(bench.drain, 1, cons), 0);
    (void)bench_add(&bench, &config, ring);
    drain_all(&bench);
    CHECK_UINT(first_round(&bench), UINT32_MAX);
    produce_all(&bench, 400);
    bench_produce_some(&bench, 1, 10);
    drain_all(&bench);
    CHECK_UINT(first_round(&bench), 0);
    bench_done(&bench);
    ring_free(ring);
}

/*
 * The last daemon has died in the middle of a round: the first CPUs, which have had their turn,
 * must not have their next one before the others have had theirs.
 */
static void test_ring_resumes(uint64_t seed)
{
    struct sink_config config = bench_config(ALL_EVENTS, ALL_CPUS);
    unsigned int last_cpu;
    struct ring *ring;
    struct bench bench;

    test_case("a ring resumes in the middle of a round");
    for (unsigned int last = 0; last < BENCH_CPUS; last++) {
        if (ring_new(RING_MIN_BYTES, BENCH_CPUS, true, NULL, &ring) < 0)
            exit(EXIT_FAILURE);
        bench_init(&bench, SMALL_PAGES, seed);
        CHECK(!ring_last_cpu(ring, &last_cpu));
        drain_resume_round(bench.drain, last);
        (void)bench_add(&bench, &config, ring);
        produce_all(&bench, 400);
        (void)bench_round(&bench);
        for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
            CHECK_INT(bench_waiting(&bench, cpu) > 0, cpu <= last && last + 1 < BENCH_CPUS);
        CHECK(ring_last_cpu(ring, &last_cpu));
        CHECK_UINT(last_cpu, BENCH_CPUS - 1);
        drain_all(&bench);
        for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
            CHECK_UINT(bench_waiting(&bench, cpu), 0);
        bench_done(&bench);
        ring_free(ring);
    }
}

/* Whatever happens to a window, the ring knows where its consumer is. */
static void test_ring_cons(uint64_t seed)
{
    struct sink_config sched = bench_config(SCHED_ONLY, ALL_CPUS);
    struct sink_config hvm = bench_config(HVM_ONLY, 3);
    struct ring *ring;
    struct bench bench;

    test_case("a ring's cons");
    if (ring_new(RING_MIN_BYTES, BENCH_CPUS, true, NULL, &ring) < 0)
        exit(EXIT_FAILURE);
    bench_init(&bench, SMALL_PAGES, seed);
    (void)bench_add(&bench, &sched, ring);
    (void)bench_add(&bench, &hvm, NULL);
    for (unsigned int i = 0; i < 100; i++) {
        for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
            CHECK(bench_produce(&bench, cpu, test_random(&bench.random) % 2 ? SCHED : HVM));
        (void)bench_round(&bench);
        for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++) {
            uint32_t xen_cons = ((struct t_buf *)bench.buffer[cpu])->cons, cons;

            CHECK(ring_resume_cpu(ring, cpu, xen_cons, &cons));
            CHECK_UINT(cons, xen_cons);
        }
    }
    bench_done(&bench);
    ring_free(ring);
}

/* What the drain enters into accounts, while that is looked at. */
static struct {
    struct ring *ring;
    unsigned int nr_windows;
} entered;

void account_enter(struct account *account, unsigned int cpu, uint32_t cons_from, uint32_t cons_to,
                   uint64_t produced, uint64_t lost)
{
    uint32_t cons;

    (void)account, (void)produced, (void)lost;
    CHECK(ring_resume_cpu(entered.ring, cpu, cons_from, &cons));
    CHECK_UINT(cons, cons_from);
    entered.nr_windows += cons_to != cons_from;
}

/*
 * A daemon that is killed between the two is continued after the ring's last window: what an
 * account lacks then is in no figure.
 */
static void test_account_before_ring(uint64_t seed)
{
    struct sink_config config = bench_config(ALL_EVENTS, ALL_CPUS);
    struct bench bench;

    test_case("accounts are entered before a ring has the window");
    entered.nr_windows = 0;
    if (ring_new(RING_MIN_BYTES, BENCH_CPUS, true, NULL, &entered.ring) < 0)
        exit(EXIT_FAILURE);
    bench_init(&bench, SMALL_PAGES, seed);
    (void)bench_add(&bench, &config, entered.ring);
    config.account = (struct account *)&entered; /* which nothing looks into */
    (void)bench_add(&bench, &config, NULL);
    for (unsigned int i = 0; i < 100; i++) {
        for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
            CHECK(bench_produce(&bench, cpu, SCHED));
        (void)bench_round(&bench);
    }
    CHECK_UINT(entered.nr_windows, 100 * BENCH_CPUS);
    bench_done(&bench);
    ring_free(entered.ring);
}

/* --- Buffers that make no sense. --- */

struct broken_case {
    const char *name;
    uint32_t words[2];
    unsigned int nr_takers;
};

static const struct broken_case broken_cases[] = {
    {"a record beyond the end, one sink", {0xf0021001}, 1}, /* 8 bytes, its header says 40 */
    {"a record beyond the end, several sinks", {0xf0021001}, 2},
    {"zeroes, one sink", {0, 0}, 1},
    {"zeroes, several sinks", {0, 0}, 2},
    {"a record without a class", {0x10001003, 1}, 1},
};

static void test_broken(uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_SIZE(broken_cases); i++) {
        const struct broken_case *c = &broken_cases[i];
        struct sink_config config = bench_config(ALL_EVENTS, ALL_CPUS);
        struct bench bench;

        test_case(c->name);
        bench_init(&bench, SMALL_PAGES, seed);
        for (unsigned int j = 0; j < c->nr_takers; j++)
            (void)bench_add(&bench, &config, NULL);
        produce_all(&bench, 100);
        CHECK(bench_insert(&bench, 1, c->words, sizeof(c->words)));
        (void)bench_round(&bench);
        produce_all(&bench, 100);
        bench.nr_made[1] = 0; /* none of that is taken any more */
        (void)bench_round(&bench);
        for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++) {
            struct drain_cpu state;

            drain_read_cpu(bench.drain, cpu, &state);
            CHECK(state.has_buffer && state.set_aside == (cpu == 1));
            CHECK(cpu == 1 || bench_waiting(&bench, cpu) == 0);
        }
        bench_done(&bench);
    }
}

/* --- Sinks that joined others. --- */

/* Not even where no record has a TSC is any missing; alone, or as one of several. */
static void test_joined(uint64_t seed)
{
    for (unsigned int takers = 1; takers <= 2; takers++) {
        struct sink_config config = bench_config(SCHED_ONLY, ALL_CPUS);
        struct attachment *joined;
        struct bench bench;

        test_case(takers == 1 ? "joined, now alone" : "joined");
        bench_init(&bench, SMALL_PAGES, seed);
        if (takers == 2)
            (void)bench_add(&bench, &config, NULL);
        for (unsigned int i = 0; i < 10; i++)
            CHECK(bench_produce(&bench, 0, SCHED) && bench_lose(&bench, 1, 10));
        joined = join(&bench, SCHED_ONLY); /* what is there is not for it */
        for (unsigned int i = 0; i < 10; i++)
            for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
                CHECK(bench_produce(&bench, cpu, cpu == 2 ? BARE : SCHED));
        drain_all(&bench);
        CHECK_UINT(cpu_set_count(&joined->joining), 0);
        bench_write_all(&bench, true);
        for (unsigned int i = 0; i < takers; i++)
            bench_check(&bench, i);
        bench_done(&bench);
    }
}

/* --- What the main thread sees of a CPU. --- */

/* Grows by what was taken, by whomever, and on no other CPU. */
static void test_drained_bytes(uint64_t seed)
{
    struct sink_config config = bench_config(SCHED_ONLY, 1);
    uint64_t produced[BENCH_CPUS] = {0};
    struct drain_cpu state;
    struct bench bench;

    test_case("bytes drained");
    bench_init(&bench, SMALL_PAGES, seed);
    (void)bench_add(&bench, &config, NULL);
    for (unsigned int i = 0; i < 20; i++) {
        for (unsigned int cpu = 0; cpu < 2; cpu++) {
            bench_produce_some(&bench, cpu, 50);
            produced[cpu] += bench_waiting(&bench, cpu);
        }
        drain_all(&bench);
    }
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++) {
        drain_read_cpu(bench.drain, cpu, &state);
        CHECK(state.has_buffer);
        CHECK_UINT(state.drained_bytes, produced[cpu]);
    }
    drain_read_cpu(bench.drain, BENCH_CPUS, &state);
    CHECK(!state.has_buffer && state.drained_bytes == 0);
    bench_done(&bench);
}

/* `status` may be asked for before the first session has mapped the buffers. */
static void test_not_mapped(void)
{
    struct drain_cpu state = {.has_buffer = true};

    test_case("no buffers are mapped yet");
    drain_read_cpu(NULL, 0, &state);
    CHECK(!state.has_buffer && !state.set_aside && state.fill_percent == 0);
}

static void test_discard(uint64_t seed)
{
    struct bench bench;

    test_case("all that is in the buffers is thrown away");
    bench_init(&bench, SMALL_PAGES, seed);
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
        bench_produce_some(&bench, cpu, 50);
    CHECK(bench_waiting(&bench, 0) > 0);
    drain_discard(bench.drain);
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
        CHECK_UINT(bench_waiting(&bench, cpu), 0);
    bench_done(&bench);
}

int main(void)
{
    uint64_t seed = test_seed();

    test_not_mapped();
    test_discard(seed);
    test_several(seed);
    test_any(seed);
    test_filled(seed);
    test_whole(seed);
    test_cut(seed);
    test_lone_starves(seed);
    test_one_starves(seed);
    test_gap(seed);
    test_limit_of_some(seed);
    test_limit(seed);
    test_failure(seed);
    test_last_records(seed);
    test_losses(seed);
    test_ring_begins(seed);
    test_ring_resumes(seed);
    test_ring_cons(seed);
    test_account_before_ring(seed);
    test_broken(seed);
    test_joined(seed);
    test_drained_bytes(seed);
    return test_end();
}
