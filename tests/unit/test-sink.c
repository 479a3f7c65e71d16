// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The sink's state machine, with writes that end as the test wants: filling, the order of
 * completions, failures, short writes. Limits, grants and aborts: test-sink-limits.c.
 */

#include "tests/unit/fake-disk.h"

#include <sys/mman.h>

#include "collector/xen.h"

/* --- Filling. --- */

struct fill_case {
    const char *name;
    uint32_t align_bytes;
    uint32_t window_bytes;
    unsigned int windows; /* of each CPU, each followed by what can be written */
};

static const struct fill_case fill_cases[] = {
    {"one record", 4, 8, 1},
    {"small windows", 4, 300, 100},
    {"windows of half a chunk", 4, CHUNK_BYTES / 2, 6},
    {"windows as large as a chunk", 4, CHUNK_BYTES, 4},
    {"windows larger than a chunk", 4, 3 * CHUNK_BYTES, 2},
    {"one record, whole blocks", PAGE_BYTES, 8, 1},
    {"small windows, whole blocks", PAGE_BYTES, 300, 100},
    {"windows as large as a chunk, whole blocks", PAGE_BYTES, CHUNK_BYTES, 4},
    {"windows larger than a chunk, whole blocks", PAGE_BYTES, 3 * CHUNK_BYTES, 2},
};

static void test_fill(uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_SIZE(fill_cases); i++) {
        const struct fill_case *c = &fill_cases[i];
        struct sink_config config = rig_config(c->align_bytes);
        struct disk *disk = disk_new(&config, seed);

        test_case(c->name);
        for (unsigned int j = 0; j < c->windows; j++) {
            for (unsigned int cpu = 0; cpu < RIG_CPUS; cpu++) {
                CHECK_INT(rig_feed(&disk->rig, cpu, c->window_bytes), SINK_ROOM);
                disk_settle(disk);
            }
        }
        sink_flush(disk->rig.sink);
        disk_settle(disk);
        CHECK_UINT(disk_totals(disk).output_bytes, disk->end_bytes);
        CHECK(disk->rig.number[RIG_CPUS - 1] > 0);
        disk_check_end(disk);
        disk_free(disk);
    }
}

/* --- How large a chunk is. --- */

#define LARGE_CHUNKS 64u /* of the smallest: chunks of 4 of them */

/* Feeds the sink until it has closed a chunk. Returns how long that is. */
static uint32_t next_write(struct disk *disk, uint32_t window_bytes)
{
    for (unsigned int cpu = 0; disk->uring.nr_writes == 0; cpu = (cpu + 1) % RIG_CPUS) {
        CHECK_INT(rig_feed(&disk->rig, cpu, window_bytes), SINK_ROOM);
        disk_submit(disk);
    }
    return disk->uring.writes[0].bytes;
}

static void check_next_write(struct disk *disk, uint32_t window_bytes, unsigned int chunks)
{
    uint32_t bytes = next_write(disk, window_bytes);

    CHECK(bytes <= chunks * CHUNK_BYTES);
    CHECK(bytes > chunks * CHUNK_BYTES - window_bytes - 4 * RECORD_MAX_BYTES);
    disk_settle(disk);
}

/* Each is twice as large as the one that it follows, if that was full, up to what the pool allows.
 */
static void test_growth(uint64_t seed)
{
    struct sink_config config = rig_config(PAGE_BYTES);
    struct disk *disk = disk_new_large(&config, LARGE_CHUNKS, seed);

    test_case("growth");
    check_next_write(disk, 10000, 1);
    check_next_write(disk, 10000, 2);
    check_next_write(disk, 10000, 4);
    check_next_write(disk, 10000, 4);

    test_case("and falls when little comes");
    CHECK_INT(rig_feed(&disk->rig, 0, 10000), SINK_ROOM);
    sink_flush(disk->rig.sink);
    disk_settle(disk);
    check_next_write(disk, 10000, 1);
    sink_flush(disk->rig.sink);
    disk_settle(disk);
    disk_check_end(disk);
    disk_free(disk);
}

/* A window that has room in a larger chunk is not cut. */
static void test_large_window(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct disk *disk = disk_new_large(&config, LARGE_CHUNKS, seed);

    test_case("a large window");
    CHECK_INT(rig_feed(&disk->rig, 0, 2 * CHUNK_BYTES), SINK_ROOM);
    CHECK_UINT(disk_totals(disk).windows, 1);
    sink_flush(disk->rig.sink);
    disk_settle(disk);
    disk_check_end(disk);
    disk_free(disk);
}

/* What has been granted is used to its end: the next chunk is no larger than what is left of it. */
static void test_granted(uint64_t seed)
{
    struct sink_config config = rig_config(PAGE_BYTES);
    struct disk *disk;

    test_case("near the end of the grant");
    config.granted_bytes = UINT64_C(8) * CHUNK_BYTES;
    disk = disk_new_large(&config, LARGE_CHUNKS, seed);
    check_next_write(disk, 10000, 1);
    check_next_write(disk, 10000, 2);
    check_next_write(disk, 10000, 4);
    check_next_write(disk, 10000, 1); /* 4 more would be too many */
    (void)sink_grant(disk->rig.sink, SINK_NO_LIMIT, false);
    sink_flush(disk->rig.sink);
    disk_settle(disk);
    disk_check_end(disk);
    disk_free(disk);
}

/* What nobody asked for takes no space, and its chunk is given back. */
static void test_nothing_kept(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct disk *disk;

    test_case("nothing kept");
    config.events = (struct event_set){0};
    disk = disk_new(&config, seed);
    for (int i = 0; i < 100; i++) {
        static const uint32_t record = 0x00021001;
        static const struct window_source source = {.cpu = 0};
        uint64_t classes[EVENT_CLASSES] = {0};
        struct walk_result walked;
        uint8_t *records;
        uint32_t room;

        CHECK_INT(sink_begin_window(disk->rig.sink, 0, 4, 4, 1, &records, &room), SINK_ROOM);
        CHECK(room >= sizeof(record));
        memcpy(records, &record, sizeof(record));
        walk_window(records, sizeof(record), true, sink_filter(disk->rig.sink), records, classes,
                    &walked);
        sink_end_window(disk->rig.sink, &source, &walked, classes);
    }
    CHECK_UINT(sink_oldest_usec(disk->rig.sink), 0);
    CHECK(!sink_is_quiet(disk->rig.sink)); /* it holds a chunk, until it is told to flush */
    sink_flush(disk->rig.sink);
    disk_check_end(disk);
    CHECK_UINT(disk_totals(disk).output_bytes, 0);
    CHECK_UINT(disk_totals(disk).windows, 0);
    disk_free(disk);
}

/* With the pool empty the records stay where they are, until a write has ended. */
static void test_no_chunk(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct disk *disk = disk_new(&config, seed);
    uint32_t number;

    test_case("no chunk");
    for (unsigned int i = 0; i < RIG_CHUNKS; i++)
        disk_put_chunk(disk, 1000);
    number = disk->rig.number[0];
    CHECK_INT(rig_feed(&disk->rig, 0, 100), SINK_NO_CHUNK);
    CHECK_UINT(disk->rig.number[0], number);
    disk_submit(disk);
    CHECK_UINT(disk->uring.nr_writes, 8);
    CHECK_INT(disk_end_write(disk, 7, INT32_MAX), 0);
    CHECK_INT(rig_feed(&disk->rig, 0, 100), SINK_NO_CHUNK); /* those before it are not written */
    CHECK_INT(disk_end_write(disk, 0, INT32_MAX), 0);
    CHECK_INT(rig_feed(&disk->rig, 0, 100), SINK_ROOM);
    sink_flush(disk->rig.sink);
    disk_settle(disk);
    disk_check_end(disk);
    disk_free(disk);
}

/* --- How writes end. --- */

#define CHUNKS 5u
#define ALL    INT32_MAX

struct step {
    unsigned int chunk; /* whose write ends */
    int32_t result;     /* ALL, bytes, or a negative errno */
    int told;           /* what sink_complete() returns */
    unsigned int sound; /* chunks that are in the output by then */
};

struct order_case {
    const char *name;
    uint32_t align_bytes;
    struct step steps[12];
};

static const struct order_case order_cases[] = {
    {"in order",
     4,
     {{0, ALL, 0, 1}, {1, ALL, 0, 2}, {2, ALL, 0, 3}, {3, ALL, 0, 4}, {4, ALL, 0, 5}}},
    {"backwards",
     4,
     {{4, ALL, 0, 0}, {3, ALL, 0, 0}, {2, ALL, 0, 0}, {1, ALL, 0, 0}, {0, ALL, 0, 5}}},
    {"mixed",
     4096,
     {{2, ALL, 0, 0}, {0, ALL, 0, 1}, {4, ALL, 0, 1}, {1, ALL, 0, 3}, {3, ALL, 0, 5}}},
    {"the first fails",
     4,
     {{0, -EIO, -EIO, 0}, {1, ALL, 0, 0}, {2, ALL, 0, 0}, {3, ALL, 0, 0}, {4, ALL, 0, 0}}},
    {"the first fails last",
     4,
     {{1, ALL, 0, 0}, {2, ALL, 0, 0}, {3, ALL, 0, 0}, {4, ALL, 0, 0}, {0, -ENOSPC, -ENOSPC, 0}}},
    {"the middle fails, those before it come later",
     4096,
     {{2, -EIO, -EIO, 0}, {4, ALL, 0, 0}, {1, ALL, 0, 0}, {0, ALL, 0, 2}, {3, ALL, 0, 2}}},
    {"the last fails",
     4,
     {{0, ALL, 0, 1}, {4, -EFBIG, -EFBIG, 1}, {3, ALL, 0, 1}, {2, ALL, 0, 1}, {1, ALL, 0, 4}}},
    {"all fail: told once",
     4,
     {{3, -EIO, -EIO, 0}, {1, -EIO, 0, 0}, {4, -EIO, 0, 0}, {0, -ENOSPC, 0, 0}, {2, -EIO, 0, 0}}},
    {"an earlier one fails later",
     4,
     {{0, ALL, 0, 1}, {3, -EIO, -EIO, 1}, {2, ALL, 0, 1}, {1, -EIO, 0, 1}, {4, ALL, 0, 1}}},
    {"nothing written means no space",
     4,
     {{0, ALL, 0, 1}, {1, 0, -ENOSPC, 1}, {2, ALL, 0, 1}, {3, ALL, 0, 1}, {4, ALL, 0, 1}}},
    {"interrupted, then well",
     4,
     {{0, -EINTR, 0, 0},
      {1, -EAGAIN, 0, 0},
      {2, -ECANCELED, 0, 0},
      {0, ALL, 0, 1},
      {4, ALL, 0, 1},
      {3, ALL, 0, 1},
      {2, ALL, 0, 1},
      {1, ALL, 0, 5}}},
    {"interrupted behind the end",
     4,
     {{1, -EIO, -EIO, 0}, {2, -EINTR, 0, 0}, {3, 4, 0, 0}, {4, ALL, 0, 0}, {0, ALL, 0, 1}}},
    {"short, then well",
     4,
     {{0, 1000, 0, 0},
      {1, ALL, 0, 0},
      {2, ALL, 0, 0},
      {3, ALL, 0, 0},
      {4, ALL, 0, 0},
      {0, 4, 0, 0},
      {0, ALL, 0, 5}}},
    {"short inside a word",
     4,
     {{0, 1001, 0, 0},
      {1, ALL, 0, 0},
      {2, ALL, 0, 0},
      {3, ALL, 0, 0},
      {4, ALL, 0, 0},
      {0, ALL, 0, 5}}},
    {"short inside a block",
     4096,
     {{0, 5000, 0, 0},
      {1, ALL, 0, 0},
      {2, ALL, 0, 0},
      {3, ALL, 0, 0},
      {4, ALL, 0, 0},
      {0, ALL, 0, 5}}},
    {"short, then it fails",
     4096,
     {{0, 8192, 0, 0},
      {1, ALL, 0, 0},
      {2, ALL, 0, 0},
      {3, ALL, 0, 0},
      {4, ALL, 0, 0},
      {0, -ENOSPC, -ENOSPC, 0}}},
    {"less than a block fits",
     4096,
     {{0, 4096, 0, 0},
      {1, ALL, 0, 0},
      {2, ALL, 0, 0},
      {3, ALL, 0, 0},
      {4, ALL, 0, 0},
      {0, 1024, -ENOSPC, 0}}},
    {"less than a word fits",
     4,
     {{0, 4096, 0, 0},
      {1, ALL, 0, 0},
      {2, ALL, 0, 0},
      {3, ALL, 0, 0},
      {4, ALL, 0, 0},
      {0, 3, -ENOSPC, 0}}},
};

/* The write under way that is of the chunk from BEGIN to END in the output. */
static unsigned int find_write(const struct disk *disk, uint64_t begin, uint64_t end)
{
    for (unsigned int i = 0; i < disk->uring.nr_writes; i++)
        if (disk->uring.writes[i].offset >= begin && disk->uring.writes[i].offset < end)
            return i;
    TEST_SAY("nothing from %ju to %ju is being written", (uintmax_t)begin, (uintmax_t)end);
    exit(EXIT_FAILURE);
}

static void test_order(uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_SIZE(order_cases); i++) {
        const struct order_case *c = &order_cases[i];
        struct sink_config config = rig_config(c->align_bytes);
        struct disk *disk = disk_new(&config, seed);
        uint64_t begin[CHUNKS + 1] = {0};

        test_case(c->name);
        for (unsigned int j = 0; j < CHUNKS; j++) {
            disk_put_chunk(disk, 20000);
            begin[j + 1] = disk_totals(disk).queued_bytes;
        }
        for (const struct step *step = c->steps; step->result != 0 || step->told != 0; step++) {
            unsigned int write;

            disk->now_usec += RETRY_USEC;
            disk_submit(disk);
            write = find_write(disk, begin[step->chunk], begin[step->chunk + 1]);
            CHECK_INT(disk_end_write(disk, write, step->result), step->told);
            CHECK_UINT(disk_totals(disk).output_bytes, begin[step->sound]);
            CHECK(rig_read_output(disk->data, begin[step->sound]).sound);
        }
        disk_check_end(disk);
        disk_free(disk);
    }
}

/* Once it has failed nothing more is taken. */
static void test_after_failure(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct disk *disk = disk_new(&config, seed);

    test_case("after a failure");
    disk_put_chunk(disk, 2000);
    CHECK_INT(rig_feed(&disk->rig, 1, 500), SINK_ROOM); /* the filling chunk goes too */
    disk_submit(disk);
    CHECK_INT(disk_end_write(disk, 0, -EPIPE), -EPIPE);
    CHECK_INT(rig_feed(&disk->rig, 1, 500), SINK_HAS_FAILED);
    disk_settle(disk);
    disk_check_end(disk);
    CHECK_UINT(disk_totals(disk).output_bytes, 0);
    disk_free(disk);
}

/* --- A queue that is long when its first write fails. --- */

#define QUEUE_CHUNKS 200u

static uint64_t free_chunks(const struct disk *disk)
{
    return pool_free_bytes(disk->rig.pool) / CHUNK_BYTES;
}

/*
 * The others' records do not wait until all of it is walked: its memory, which cannot be read here,
 * is not looked at, the figures are exact at once, and each turn gives back some of the chunks.
 */
static void test_long_queue(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct disk *disk = disk_new_large(&config, QUEUE_CHUNKS + 8, seed);
    void *base = pool_base(disk->rig.pool);
    uint64_t bytes = pool_bytes(disk->rig.pool), before;
    uint64_t delivered, began_tsc;

    test_case("a long queue fails");
    for (unsigned int i = 0; i < QUEUE_CHUNKS; i++)
        disk_put_chunk(disk, 2000);
    disk_submit(disk);
    delivered = disk_ledger(disk).delivered;
    began_tsc = xen_read_tsc();
    CHECK(disk_totals(disk).last_loss_tsc < began_tsc);
    before = free_chunks(disk);
    (void)mprotect(base, bytes, PROT_NONE);
    CHECK_INT(disk_end_write(disk, 0, -EIO), -EIO);
    (void)mprotect(base, bytes, PROT_READ | PROT_WRITE);
    CHECK_UINT(disk_ledger(disk).delivered, 0);
    CHECK_UINT(disk_ledger(disk).dropped, delivered);
    CHECK_UINT(disk_totals(disk).drops[DROP_OUTPUT_FAILED], delivered);
    CHECK(disk_totals(disk).last_loss_tsc >= began_tsc);
    CHECK_UINT(disk_totals(disk).queued_bytes, 0);
    CHECK_UINT(disk_totals(disk).windows, 0);
    for (unsigned int turns = 0; sink_retry_usec(disk->rig.sink) != 0 && CHECK(turns < 10);
         turns++) {
        CHECK(free_chunks(disk) - before <= 64);
        CHECK(sink_retry_usec(disk->rig.sink) <= disk->now_usec); /* at once */
        before = free_chunks(disk);
        disk_submit(disk);
    }
    CHECK_UINT(disk->uring.nr_writes, 7); /* that the kernel has not given back */
    CHECK_UINT(free_chunks(disk), QUEUE_CHUNKS + 8 - 7);
    while (disk->uring.nr_writes > 0)
        CHECK_INT(disk_end_write(disk, 0, INT32_MAX), 0);
    disk_check_end(disk);
    disk_free(disk);
}

/* --- Submitting. --- */

static void test_busy(uint64_t seed)
{
    struct sink_config config = rig_config(4096);
    struct disk *disk = disk_new(&config, seed);

    test_case("a busy ring");
    disk->uring.max_writes = 2;
    for (unsigned int i = 0; i < CHUNKS; i++)
        disk_put_chunk(disk, 5000);
    disk_submit(disk);
    disk_submit(disk);
    CHECK_UINT(disk->uring.nr_writes, 2);
    disk_settle(disk);
    disk_check_end(disk);
    disk_free(disk);
}

/* The kernel says "again" and means later: asking at once, at real-time priority, keeps it from it.
 */
static void test_again(uint64_t seed)
{
    struct sink_config config = rig_config(4096);
    struct disk *disk = disk_new(&config, seed);

    test_case("again");
    disk_put_chunk(disk, 5000);
    disk_submit(disk);
    CHECK_UINT(sink_retry_usec(disk->rig.sink), 0);
    CHECK_INT(disk_end_write(disk, 0, -EAGAIN), 0);
    CHECK_UINT(sink_retry_usec(disk->rig.sink), disk->now_usec + RETRY_USEC);
    disk->now_usec += RETRY_USEC - 1;
    disk_put_chunk(disk, 5000);
    disk_submit(disk);
    CHECK_UINT(disk->uring.nr_writes, 0);
    disk->now_usec++;
    disk_submit(disk);
    CHECK_UINT(disk->uring.nr_writes, 2);
    CHECK_UINT(sink_retry_usec(disk->rig.sink), 0);

    test_case("a busy ring is asked again");
    disk->uring.max_writes = 2;
    disk_put_chunk(disk, 5000);
    disk_submit(disk);
    CHECK_UINT(sink_retry_usec(disk->rig.sink), disk->now_usec + RETRY_USEC);
    disk_settle(disk);
    disk_check_end(disk);
    disk_free(disk);
}

/* Since when the oldest write waits: how long a disk has been stuck. */
static void test_writing_since(uint64_t seed)
{
    struct sink_config config = rig_config(4096);
    struct disk *disk = disk_new(&config, seed);

    test_case("writing since");
    for (unsigned int i = 0; i < 3; i++) {
        CHECK_UINT(disk_totals(disk).writing_since_usec, i ? 1000 : 0);
        disk_put_chunk(disk, 5000);
        disk_submit(disk);
        disk->now_usec += 1000;
    }
    CHECK_INT(disk_end_write(disk, 1, INT32_MAX), 0);
    CHECK_UINT(disk_totals(disk).writing_since_usec, 1000);
    CHECK_INT(disk_end_write(disk, 0, 4096), 0); /* short: what follows is another write */
    CHECK_UINT(disk_totals(disk).writing_since_usec, 3000);
    disk_submit(disk);
    CHECK_INT(disk_end_write(disk, 0, INT32_MAX), 0);
    CHECK_UINT(disk_totals(disk).writing_since_usec, 4000);
    disk_settle(disk);
    CHECK_UINT(disk_totals(disk).writing_since_usec, 0);
    disk_check_end(disk);
    disk_free(disk);
}

/* A stream is written in order, one write at a time, and goes on at the very byte. */
static void test_stream(uint64_t seed)
{
    static const int32_t results[] = {1, ALL, 4097, 3, -EINTR, 5, -EAGAIN, 1022, 2, ALL};
    struct sink_config config = rig_config(4);
    struct disk *disk;

    test_case("stream");
    config.is_stream = true;
    disk = disk_new(&config, seed);
    for (unsigned int i = 0; i < CHUNKS; i++)
        disk_put_chunk(disk, 20000);
    CHECK_UINT(disk_totals(disk).progress_usec, 0);
    for (unsigned int i = 0; !sink_is_quiet(disk->rig.sink); i++) {
        int32_t result = results[i % ARRAY_SIZE(results)];
        uint64_t progress_usec = disk_totals(disk).progress_usec;

        disk->now_usec += RETRY_USEC;
        disk_submit(disk);
        CHECK_UINT(disk->uring.nr_writes, 1);
        CHECK_INT(disk_end_write(disk, 0, result), 0);
        CHECK_UINT(disk_totals(disk).progress_usec, result > 0 ? disk->now_usec : progress_usec);
    }
    CHECK_UINT(disk->stream_bytes, disk_totals(disk).output_bytes);
    disk_check_end(disk);
    disk_free(disk);
}

int main(void)
{
    uint64_t seed = test_seed();

    test_fill(seed);
    test_growth(seed);
    test_large_window(seed);
    test_granted(seed);
    test_nothing_kept(seed);
    test_no_chunk(seed);
    test_order(seed);
    test_after_failure(seed);
    test_long_queue(seed);
    test_busy(seed);
    test_again(seed);
    test_writing_since(seed);
    test_stream(seed);
    return test_end();
}
