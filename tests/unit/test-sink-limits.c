// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Where a sink's output has to end: its limit, its grant, an abort; and all of it at once, at
 * random.
 */

#include "tests/unit/fake-disk.h"

struct limit_case {
    const char *name;
    uint32_t align_bytes;
    uint64_t max_bytes;
    uint64_t min_bytes; /* and no less */
};

/* Up to the last record that fits: short of the limit by a window's header and a record at most. */
static const struct limit_case limit_cases[] = {
    {"nothing", 4, 0, 0},
    {"less than a window", 4, 20, 0},
    {"one window", 4, 1000, 1000 - 96},
    {"not a multiple of 4", 4, 10003, 10003 - 96},
    {"a chunk", 4, CHUNK_BYTES, CHUNK_BYTES - 96},
    {"a word more than a chunk", 4, CHUNK_BYTES + 4, CHUNK_BYTES - 96},
    {"some chunks", 4, 1000000, 1000000 - 96},
    {"less than a block", PAGE_BYTES, 4095, 0},
    {"a block", PAGE_BYTES, 4096, 4096},
    {"whole blocks", PAGE_BYTES, 1000000, 244 * PAGE_BYTES},
    {"a chunk in whole blocks", PAGE_BYTES, CHUNK_BYTES, CHUNK_BYTES},
};

static void test_limit(uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_SIZE(limit_cases); i++) {
        const struct limit_case *c = &limit_cases[i];
        struct sink_config config = rig_config(c->align_bytes);
        enum sink_room said = SINK_ROOM;
        struct disk *disk;

        test_case(c->name);
        config.max_bytes = c->max_bytes;
        disk = disk_new(&config, seed);
        for (unsigned int j = 0; said == SINK_ROOM && j < 1000; j++) {
            said = rig_feed(&disk->rig, j % RIG_CPUS, 30000);
            disk_settle(disk);
        }
        CHECK_INT(said, SINK_AT_LIMIT);
        sink_flush(disk->rig.sink);
        disk_settle(disk);
        CHECK(disk->end_bytes <= c->max_bytes);
        CHECK(disk_totals(disk).output_bytes >= c->min_bytes);
        disk_check_end(disk);
        for (unsigned int cpu = 0; cpu < RIG_CPUS; cpu++) {
            struct ledger ledger;

            sink_read_ledger(disk->rig.sink, cpu, &ledger);
            CHECK_UINT(ledger.dropped, 0); /* what did not fit was never taken */
        }
        disk_free(disk);
    }
}

/* --- Grants. --- */

/* Chunks are written only as far as all of them is granted; more is asked for once per grant. */
static void test_grant(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct disk *disk;
    uint64_t first;

    test_case("grant");
    config.granted_bytes = 10;
    config.grant_ahead_bytes = 4096;
    disk = disk_new(&config, seed);
    CHECK(sink_wants_grant(disk->rig.sink));
    CHECK(!sink_wants_grant(disk->rig.sink));
    disk_put_chunk(disk, 20000);
    first = disk_totals(disk).queued_bytes;
    disk_put_chunk(disk, 20000);

    sink_grant(disk->rig.sink, first - 1, false);
    disk_submit(disk);
    CHECK_UINT(disk->uring.nr_writes, 0);
    CHECK(sink_wants_grant(disk->rig.sink));

    sink_grant(disk->rig.sink, first, false);
    disk_settle(disk);
    CHECK_UINT(disk->end_bytes, first);
    CHECK_UINT(disk_totals(disk).output_bytes, first);
    CHECK(sink_wants_grant(disk->rig.sink));
    CHECK(!sink_wants_grant(disk->rig.sink));

    sink_grant(disk->rig.sink, UINT64_C(1) << 30, false);
    CHECK(!sink_wants_grant(disk->rig.sink));
    disk_settle(disk);
    disk_check_end(disk);
    disk_free(disk);
}

struct final_case {
    const char *name;
    uint32_t align_bytes;
    unsigned int chunks;  /* closed before the last grant */
    bool filling;         /* and one that is not closed */
    int64_t beyond;       /* the last grant ends so many bytes ... */
    unsigned int granted; /* ... behind this chunk's begin */
    unsigned int sound;   /* chunks in the output */
};

static const struct final_case final_cases[] = {
    {"all is granted", 4, 3, false, 0, 3, 3},
    {"more is granted", 4, 3, false, 1000000, 3, 3},
    {"between two chunks", 4, 4, true, 0, 2, 2},
    {"inside a chunk", 4, 4, true, 100, 2, 2},
    {"a byte short of a chunk", 4, 4, true, -1, 2, 1},
    {"nothing is granted", 4, 4, true, 0, 0, 0},
    {"the filling chunk only", 4, 2, true, 0, 2, 2},
    {"in blocks, inside a chunk", PAGE_BYTES, 4, true, 5000, 2, 2},
    {"in blocks, a byte short of a chunk", PAGE_BYTES, 4, true, -1, 2, 1},
};

/* Ends what was granted; records beyond are dropped, exactly, and the limit is reached. */
static void check_final(struct disk *disk, const struct final_case *c, uint64_t granted,
                        uint64_t end)
{
    sink_grant(disk->rig.sink, granted, true);
    CHECK_UINT(disk_totals(disk).drops[DROP_LIMIT], disk_ledger(disk).dropped);
    CHECK(!sink_wants_grant(disk->rig.sink));
    disk_settle(disk);
    for (int i = 0; i < 100 && rig_feed(&disk->rig, 0, 30000) == SINK_ROOM; i++)
        disk_settle(disk); /* what still fits, if nothing was dropped */
    CHECK_INT(rig_feed(&disk->rig, 0, 100), SINK_AT_LIMIT);
    sink_flush(disk->rig.sink);
    disk_settle(disk);
    CHECK(disk->end_bytes <= granted);
    if (c->chunks > c->sound || c->filling)
        CHECK_UINT(disk_totals(disk).output_bytes, end);
    disk_check_end(disk);
}

static void test_final_grant(uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_SIZE(final_cases); i++) {
        const struct final_case *c = &final_cases[i];
        struct sink_config config = rig_config(c->align_bytes);
        uint64_t begin[RIG_CHUNKS] = {0};
        struct disk *disk;

        test_case(c->name);
        config.granted_bytes = 0;
        disk = disk_new(&config, seed);
        for (unsigned int j = 0; j < c->chunks; j++) {
            disk_put_chunk(disk, 20000);
            begin[j + 1] = disk_totals(disk).queued_bytes;
        }
        if (c->filling)
            CHECK_INT(rig_feed(&disk->rig, 0, 8000), SINK_ROOM);
        check_final(disk, c, begin[c->granted] + (uint64_t)c->beyond, begin[c->sound]);
        disk_free(disk);
    }
}

/* The output ended at its grant, and then a write before that fails: this is to be told. */
static void test_failure_after_final_grant(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct disk *disk;

    test_case("a failure after the last grant");
    config.granted_bytes = 30000;
    disk = disk_new(&config, seed);
    disk_put_chunk(disk, 20000);
    disk_put_chunk(disk, 20000);
    disk_submit(disk);
    CHECK_UINT(disk->uring.nr_writes, 1);
    sink_grant(disk->rig.sink, 30000, true);
    CHECK_INT(disk_end_write(disk, 0, -EIO), -EIO);
    CHECK_INT(rig_feed(&disk->rig, 0, 100), SINK_HAS_FAILED);
    CHECK_UINT(disk_totals(disk).output_bytes, 0);
    disk_check_end(disk);
    disk_free(disk);
}

/* --- Abort. --- */

struct abort_case {
    const char *name;
    bool is_stream;
    int32_t before; /* a write that ends before the abort; 0: none */
    int32_t after;  /* how the writes end that were under way */
};

static const struct abort_case abort_cases[] = {
    {"stream, cancelled", true, 0, -ECANCELED},
    {"stream, interrupted", true, 0, -EINTR},
    {"stream, short", true, 0, 10},
    {"stream, short before and after", true, 6, 10},
    {"stream, it ended all the same", true, INT32_MAX, INT32_MAX},
    {"file, cancelled", false, 0, -ECANCELED},
    {"file, they ended all the same", false, INT32_MAX, INT32_MAX},
    {"file, they failed", false, 0, -EIO},
};

/* Its figures are final at once, however the writes under way end. */
static void check_abandon(struct disk *disk, int32_t after)
{
    uint64_t output_bytes = disk_totals(disk).output_bytes;
    struct sink_totals totals;
    struct ledger ledger;

    CHECK(sink_abandon(disk->rig.sink, &disk->uring, true));
    CHECK(!sink_abandon(disk->rig.sink, &disk->uring, true)); /* it was given up before */
    CHECK(!sink_is_quiet(disk->rig.sink));
    totals = disk_totals(disk);
    ledger = disk_ledger(disk);
    CHECK_UINT(totals.output_bytes, output_bytes);
    CHECK_UINT(totals.queued_bytes, 0);
    CHECK_UINT(totals.writing_since_usec, disk->now_usec);
    CHECK_UINT(ledger.produced, ledger.delivered + ledger.dropped + ledger.lost);
    CHECK(ledger.dropped > 0);
    CHECK_UINT(totals.drops[DROP_ABORTED], ledger.dropped);
    while (disk->uring.nr_writes > 0) {
        CHECK(disk->uring.writes[0].cancelled);
        CHECK_INT(disk_end_write(disk, 0, after), 0); /* asked for, so not told */
        disk->now_usec += RETRY_USEC;
        disk_submit(disk);
    }
    CHECK_UINT(disk_totals(disk).output_bytes, totals.output_bytes);
    CHECK_UINT(disk_totals(disk).windows, totals.windows);
    CHECK_UINT(disk_totals(disk).class_records[1], totals.class_records[1]);
    CHECK_UINT(disk_totals(disk).queued_bytes, 0);
    CHECK_UINT(disk_ledger(disk).delivered, ledger.delivered);
    CHECK_UINT(disk_ledger(disk).dropped, ledger.dropped);
}

static void test_abort(uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_SIZE(abort_cases); i++) {
        const struct abort_case *c = &abort_cases[i];
        struct sink_config config = rig_config(4);
        struct disk *disk;

        test_case(c->name);
        config.is_stream = c->is_stream;
        disk = disk_new(&config, seed);
        for (unsigned int j = 0; j < 5; j++)
            disk_put_chunk(disk, 20000);
        CHECK_INT(rig_feed(&disk->rig, 0, 500), SINK_ROOM);
        disk_submit(disk);
        if (c->before)
            CHECK_INT(disk_end_write(disk, 0, c->before), 0);
        disk_submit(disk);
        check_abandon(disk, c->after);
        CHECK_INT(rig_feed(&disk->rig, 0, 100), SINK_HAS_FAILED);
        disk_check_end(disk);
        disk_free(disk);
    }
}

/* All is written: there is nothing to give up, and nothing is lost. */
static void test_abort_of_nothing(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct disk *disk = disk_new(&config, seed);

    test_case("an abort of nothing");
    disk_put_chunk(disk, 20000);
    disk_settle(disk);
    CHECK(!sink_abandon(disk->rig.sink, &disk->uring, true));
    CHECK_UINT(disk_totals(disk).output_bytes, disk->end_bytes);
    disk_check_end(disk);
    disk_free(disk);
}

/* Cancellations that the submission queue does not take are asked for again. */
static void test_cancel_later(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct disk *disk = disk_new(&config, seed);

    test_case("cancelled later");
    disk_put_chunk(disk, 20000);
    disk_put_chunk(disk, 20000);
    disk_submit(disk);
    disk->uring.refuses_cancels = true;
    CHECK(sink_abandon(disk->rig.sink, &disk->uring, true));
    CHECK(sink_retry_usec(disk->rig.sink) != 0);
    disk->uring.refuses_cancels = false;
    disk_submit(disk);
    CHECK_UINT(sink_retry_usec(disk->rig.sink), 0);
    CHECK_UINT(disk->uring.nr_writes, 2);
    while (disk->uring.nr_writes > 0) {
        CHECK(disk->uring.writes[0].cancelled);
        CHECK_INT(disk_end_write(disk, 0, -ECANCELED), 0);
    }
    disk_check_end(disk);
    disk_free(disk);
}

/* --- At random. --- */

static int32_t random_result(struct disk *disk, bool may_fail)
{
    uint64_t random = test_random(&disk->rig.random);

    switch (random % (may_fail ? 64 : 60)) {
    case 0:
        return -EINTR;
    case 1:
        return -EAGAIN;
    case 2:
        return (int32_t)((random >> 32 & 0x3ffff) | PAGE_BYTES); /* short, by a block at least */
    case 62:
        return -EIO;
    case 63:
        return 0;
    default:
        return INT32_MAX;
    }
}

static void random_step(struct disk *disk, uint64_t *granted, bool may_fail)
{
    struct sink *sink = disk->rig.sink;
    uint64_t random = test_random(&disk->rig.random);

    disk->now_usec += random >> 40 & 0x1fff;
    switch (random % 8) {
    case 0:
    case 1:
    case 2:
        (void)rig_feed(&disk->rig, random >> 8 & 3, (uint32_t)(random >> 16 & 0x1ffff));
        break;
    case 3:
        if (random >> 8 & 1)
            sink_flush(sink);
        break;
    case 4:
        if (sink_wants_grant(sink))
            sink_grant(sink, *granted += random >> 8 & 0x1fffff, (random >> 32) % 16 == 0);
        break;
    default:
        disk_submit(disk);
        if (disk->uring.nr_writes > 0)
            (void)disk_end_write(disk, (unsigned int)(random >> 8) % disk->uring.nr_writes,
                                 random_result(disk, may_fail));
    }
    CHECK(disk->end_bytes <= *granted || sink_config(sink)->is_stream);
    CHECK(disk->end_bytes <= sink_config(sink)->max_bytes);
}

static void test_random_life(uint64_t seed)
{
    struct sink_config config = rig_config(seed & 1 ? 4 : PAGE_BYTES);
    uint64_t granted = seed >> 8 & 0x1fffff;
    struct disk *disk;

    config.is_stream = (seed & 7) == 1;
    config.granted_bytes = config.is_stream ? SINK_NO_LIMIT : granted;
    config.grant_ahead_bytes = seed >> 16 & 0xfffff;
    config.max_bytes = UINT64_C(4) << 20 | (seed >> 24 & 0xfffff);
    disk = disk_new(&config, seed);
    for (unsigned int i = 0; i < 300; i++)
        random_step(disk, &granted, seed >> 3 & 1);
    if (seed & 16)
        (void)sink_abandon(disk->rig.sink, &disk->uring, true);
    sink_flush(disk->rig.sink);
    while (!sink_is_quiet(disk->rig.sink)) {
        if (sink_wants_grant(disk->rig.sink))
            sink_grant(disk->rig.sink, granted += 1 << 20, false);
        disk->now_usec += RETRY_USEC;
        disk_submit(disk);
        if (!CHECK(disk->uring.nr_writes > 0))
            exit(EXIT_FAILURE);
        (void)disk_end_write(disk, 0, INT32_MAX);
    }
    disk_check_end(disk);
    disk_free(disk);
}

int main(void)
{
    uint64_t seed = test_seed(), random = seed;

    test_limit(seed);
    test_grant(seed);
    test_final_grant(seed);
    test_failure_after_final_grant(seed);
    test_abort(seed);
    test_abort_of_nothing(seed);
    test_cancel_later(seed);
    test_case("random life");
    for (int i = 0; i < 100; i++)
        test_random_life(test_random(&random));
    return test_end();
}
