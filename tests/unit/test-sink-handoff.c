// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A sink whose output another thread writes: a scripted writer that makes a third of what it is
 * given. No byte is written beyond the grant, the ledger is that of what is in the output whatever
 * ends it, and everything comes back.
 */

#include <errno.h>

#include "collector/handoff.h"
#include "tests/unit/fake-uring.h"
#include "tests/unit/sink-rig.h"

#define WRITER_BYTES (UINT64_C(16) << 20)
#define TABLE_BYTES  17u

struct writer {
    struct rig rig;
    struct uring uring;
    struct handoff *handoff;
    uint8_t *data; /* what it was given */
    uint64_t taken_bytes;
    uint64_t stored_bytes;
    uint64_t granted_bytes;
    unsigned int divisor;
    unsigned int wakes;
    bool was_released, has_end, ended_rounds, wants;
    int error;
};

static void note_wake(void *userdata)
{
    ((struct writer *)userdata)->wakes++;
}

static void note_release(void *userdata)
{
    struct writer *writer = userdata;

    writer->was_released = true;
    handoff_destroy(writer->handoff);
}

static struct writer *writer_new(struct sink_config config, uint64_t seed)
{
    struct writer *writer = calloc(1, sizeof(*writer));
    const struct handoff_config handoff = {
        .wake = note_wake, .release = note_release, .userdata = writer};

    if (!writer || !(writer->data = malloc(WRITER_BYTES)) ||
        handoff_new(&handoff, &writer->handoff) < 0)
        exit(EXIT_FAILURE);
    writer->uring.max_writes = FAKE_MAX_WRITES;
    writer->divisor = 3;
    writer->granted_bytes = config.granted_bytes;
    config.handoff = writer->handoff;
    rig_init(&writer->rig, &config, seed);
    return writer;
}

static void writer_free(struct writer *writer)
{
    rig_done(&writer->rig);
    CHECK(writer->was_released);
    free(writer->data);
    free(writer);
}

/* Takes the next one. False: there is none. */
static bool writer_take(struct writer *writer)
{
    struct handoff_item item;

    if (!handoff_take(writer->handoff, &item))
        return false;
    CHECK(!writer->has_end);
    writer->has_end = item.bytes == 0;
    writer->ended_rounds = item.ends_round;
    if (item.bytes > 0 && CHECK(writer->taken_bytes + item.bytes <= WRITER_BYTES)) {
        memcpy(writer->data + writer->taken_bytes, item.data, item.bytes);
        writer->taken_bytes += item.bytes;
    }
    return true;
}

/* Returns all that it took: it is written, unless it has failed. */
static void writer_return(struct writer *writer)
{
    struct handoff_done done = {.error = writer->error, .stored_bytes = writer->stored_bytes};

    if (!done.error) {
        done.stored_bytes = writer->taken_bytes / writer->divisor;
        done.stored_bytes += writer->has_end ? TABLE_BYTES : 0;
        writer->stored_bytes = done.stored_bytes;
        CHECK(writer->stored_bytes <= writer->granted_bytes);
    }
    done.least_bytes = writer->stored_bytes + (writer->has_end ? 0 : TABLE_BYTES);
    handoff_return(writer->handoff, &done);
}

static int writer_take_back(struct writer *writer)
{
    bool has_any = false;

    return sink_take_back(writer->rig.sink, 2, &has_any);
}

static bool writer_submit(struct writer *writer)
{
    return sink_submit(writer->rig.sink, &writer->uring, 1);
}

static void writer_settle(struct writer *writer)
{
    unsigned int wakes;

    do {
        wakes = writer->wakes;
        CHECK_INT(writer_take_back(writer), 0);
        (void)writer_submit(writer);
        while (writer_take(writer))
            continue;
        writer_return(writer);
    } while (writer->wakes > wakes);
}

/* Closes a chunk with BYTES of records, of all CPUs in turn, at the end of a round. */
static enum sink_room put_chunk(struct writer *writer, uint32_t bytes)
{
    enum sink_room said = SINK_ROOM;

    sink_begin_round(writer->rig.sink, true);
    for (unsigned int cpu = 0; cpu < RIG_CPUS && said == SINK_ROOM; cpu++)
        said = rig_feed(&writer->rig, cpu, bytes / RIG_CPUS);
    (void)sink_end_round(writer->rig.sink, true);
    sink_flush(writer->rig.sink);
    return said;
}

static struct sink_totals totals_of(const struct writer *writer)
{
    struct sink_totals totals;

    sink_read_totals(writer->rig.sink, &totals);
    return totals;
}

static void grant(struct writer *writer, uint64_t bytes, bool final)
{
    writer->granted_bytes = bytes;
    writer->wants = false;
    CHECK(!sink_grant(writer->rig.sink, bytes, final)); /* sink_submit() finds out */
}

static void finish(struct writer *writer)
{
    sink_finish(writer->rig.sink);
    writer_settle(writer);
    CHECK(sink_is_quiet(writer->rig.sink));
    rig_check_end(&writer->rig, writer->data);
    CHECK_UINT(totals_of(writer).output_bytes, writer->stored_bytes);
}

static void test_life(uint64_t seed)
{
    struct writer *writer = writer_new(rig_config(4), seed);

    test_case("it is written as it comes");
    for (unsigned int i = 0; i < 3; i++) {
        CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
        CHECK(totals_of(writer).queued_bytes > 0);
        writer_settle(writer);
        CHECK(writer->ended_rounds);
        CHECK_UINT(totals_of(writer).queued_bytes, 0);
        CHECK_UINT(totals_of(writer).plain_bytes, writer->taken_bytes);
        CHECK_UINT(totals_of(writer).output_bytes, writer->taken_bytes / 3);
    }
    test_case("the end is told once, and completes the output");
    CHECK(!sink_is_quiet(writer->rig.sink));
    finish(writer);
    CHECK(writer->has_end);
    writer_free(writer);

    test_case("nothing was recorded: the output is completed all the same");
    writer = writer_new(rig_config(4), seed);
    finish(writer);
    CHECK_UINT(totals_of(writer).output_bytes, TABLE_BYTES);
    writer_free(writer);
}

/* What is being written is waited for, as a disk is. */
static void test_waiting(uint64_t seed)
{
    struct writer *writer = writer_new(rig_config(4), seed);

    test_case("chunks that were given");
    CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    CHECK_UINT(totals_of(writer).writing_since_usec, 0);
    (void)writer_submit(writer);
    CHECK_UINT(totals_of(writer).writing_since_usec, 1);
    CHECK(writer_take(writer));
    CHECK(!writer_take(writer));
    CHECK_INT(writer_take_back(writer), 0);
    CHECK(totals_of(writer).queued_bytes > 0);
    writer_return(writer);
    CHECK_UINT(writer->wakes, 1);
    CHECK_INT(writer_take_back(writer), 0);
    CHECK_UINT(totals_of(writer).queued_bytes, 0);
    finish(writer);
    writer_free(writer);
}

/* The longest that it can become counts, so chunks are given one by one near the grant's end. */
static void test_grant(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct writer *writer;
    uint64_t given;

    test_case("a grant");
    config.granted_bytes = 50000;
    config.grant_ahead_bytes = 1000;
    writer = writer_new(config, seed);
    for (unsigned int i = 0; i < 4; i++)
        CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    CHECK(!writer_submit(writer));
    while (writer_take(writer))
        continue;
    given = writer->taken_bytes;
    CHECK(given > 30000 && given < 50000); /* two of four */
    CHECK(handoff_is_held_up(writer->handoff));
    CHECK(sink_wants_grant(writer->rig.sink));

    test_case("a grant: what came back was shorter, so there is room");
    writer_return(writer);
    writer_settle(writer);
    CHECK(writer->taken_bytes > given);
    grant(writer, 1 << 20, false);
    writer_settle(writer);
    CHECK_UINT(totals_of(writer).queued_bytes, 0);
    CHECK(!handoff_is_held_up(writer->handoff));
    finish(writer);
    writer_free(writer);
}

/* The output ends before the first chunk that does not fit with nothing else under way. */
static void test_limit(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct writer *writer;
    unsigned int told = 0;

    test_case("a limit");
    config.granted_bytes = config.max_bytes = 60000;
    writer = writer_new(config, seed);
    for (unsigned int i = 0; i < 20; i++) {
        (void)put_chunk(writer, 20000);
        told += writer_submit(writer);
        while (writer_take(writer))
            continue;
        writer_return(writer);
        CHECK_INT(writer_take_back(writer), 0);
    }
    CHECK_UINT(told, 1);
    CHECK_INT(put_chunk(writer, 100), SINK_AT_LIMIT);
    CHECK(writer->taken_bytes > 100000); /* three times as much, nearly */
    finish(writer);
    writer_free(writer);

    test_case("a last grant");
    config.granted_bytes = 1 << 20;
    config.max_bytes = SINK_NO_LIMIT;
    writer = writer_new(config, seed);
    CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    writer_settle(writer);
    CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    grant(writer, writer->stored_bytes + TABLE_BYTES, true);
    CHECK(writer_submit(writer));
    CHECK_INT(put_chunk(writer, 100), SINK_AT_LIMIT);
    finish(writer);
    writer_free(writer);
}

static void test_failure(uint64_t seed)
{
    struct writer *writer = writer_new(rig_config(4), seed);

    test_case("a write fails: the output ends before what was not written");
    CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    writer_settle(writer);
    for (unsigned int i = 0; i < 3; i++)
        CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    (void)writer_submit(writer);
    CHECK(writer_take(writer) && writer_take(writer));
    writer->error = -EIO;
    writer_return(writer);
    CHECK_INT(writer_take_back(writer), -EIO);
    CHECK_INT(put_chunk(writer, 100), SINK_HAS_FAILED);
    CHECK(!sink_is_quiet(writer->rig.sink)); /* it still has one */
    CHECK(writer_take(writer));
    writer_return(writer);
    CHECK_INT(writer_take_back(writer), 0); /* told once */
    finish(writer);
    CHECK(!writer->has_end);
    writer_free(writer);

    test_case("only its end fails: it is what it was without");
    writer = writer_new(rig_config(4), seed);
    CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    writer_settle(writer);
    sink_finish(writer->rig.sink);
    (void)writer_submit(writer);
    CHECK(writer_take(writer));
    writer->error = -ENOSPC;
    writer_return(writer);
    CHECK_INT(writer_take_back(writer), -ENOSPC);
    CHECK(sink_is_quiet(writer->rig.sink));
    rig_check_end(&writer->rig, writer->data);
    writer_free(writer);
}

static void test_abort(uint64_t seed)
{
    struct writer *writer = writer_new(rig_config(4), seed);

    test_case("an abort: what is under way is dropped at once, and comes back");
    CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    writer_settle(writer);
    CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    (void)writer_submit(writer);
    CHECK(writer_take(writer));
    CHECK(sink_abandon(writer->rig.sink, &writer->uring, true));
    CHECK(handoff_is_canceled(writer->handoff));
    CHECK(!sink_is_quiet(writer->rig.sink));
    writer->error = -ECANCELED;
    finish(writer);
    CHECK(!writer->has_end);
    writer_free(writer);
}

/* Memory that runs out is told, and that it does not any more. */
static void test_behind(uint64_t seed)
{
    struct writer *writer = writer_new(rig_config(4), seed);

    test_case("behind");
    sink_set_share(writer->rig.sink, UINT64_C(8) * CHUNK_BYTES, 0);
    CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    (void)writer_submit(writer);
    CHECK(!handoff_is_behind(writer->handoff));
    for (unsigned int i = 0; i < 4; i++)
        CHECK_INT(put_chunk(writer, 20000), SINK_ROOM);
    (void)writer_submit(writer);
    CHECK(handoff_is_behind(writer->handoff));
    writer_settle(writer);
    CHECK(!handoff_is_behind(writer->handoff));
    finish(writer);
    writer_free(writer);
}

/* A chunk is closed in the middle of a round if it is full, and after one if it is half full. */
static void test_rounds(uint64_t seed)
{
    struct writer *writer = writer_new(rig_config(4), seed);
    struct sink *sink = writer->rig.sink;

    test_case("a round longer than a chunk");
    sink_begin_round(sink, true);
    CHECK_INT(rig_feed(&writer->rig, 0, CHUNK_BYTES - 50000), SINK_ROOM);
    CHECK_INT(rig_feed(&writer->rig, 1, CHUNK_BYTES - 50000), SINK_ROOM);
    (void)writer_submit(writer);
    CHECK(writer_take(writer));
    CHECK(!writer->ended_rounds);
    (void)sink_end_round(sink, true);
    (void)writer_submit(writer);
    CHECK(writer_take(writer));
    CHECK(writer->ended_rounds);

    test_case("a short round stays, for more");
    sink_begin_round(sink, true);
    CHECK_INT(rig_feed(&writer->rig, 0, 1000), SINK_ROOM);
    (void)sink_end_round(sink, true);
    (void)writer_submit(writer);
    CHECK(!writer_take(writer));
    writer_return(writer);
    CHECK_INT(writer_take_back(writer), 0);
    finish(writer);
    writer_free(writer);
}

/* --- At random. --- */

static void random_step(struct writer *writer, bool may_fail)
{
    uint64_t random = test_random(&writer->rig.random);

    switch (random % 8) {
    case 0:
    case 1:
        (void)put_chunk(writer, (uint32_t)(random >> 40) % 100000);
        break;
    case 2:
        (void)rig_feed(&writer->rig, (unsigned int)(random >> 32) % RIG_CPUS,
                       (uint32_t)(random >> 40) % 100000);
        break;
    case 3:
    case 4:
        (void)writer_take(writer);
        break;
    case 5:
        if (may_fail && (random >> 40) % 32 == 0)
            writer->error = -EIO;
        writer_return(writer);
        (void)writer_take_back(writer);
        break;
    case 6:
        writer->wants = sink_wants_grant(writer->rig.sink) || writer->wants;
        if (writer->wants && random >> 63)
            grant(writer, writer->granted_bytes + (random >> 44), (random >> 40) % 64 == 0);
        break;
    default:
        (void)writer_submit(writer);
        sink_flush(writer->rig.sink);
    }
}

static void test_random_life(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct writer *writer;

    config.granted_bytes = 30000;
    config.grant_ahead_bytes = 10000;
    writer = writer_new(config, seed);
    writer->divisor = 1 + (unsigned int)(seed % 5);
    for (unsigned int i = 0; i < 400 && writer->taken_bytes < WRITER_BYTES / 2; i++)
        random_step(writer, seed % 3 == 0);
    if (seed % 7 == 0 && sink_abandon(writer->rig.sink, &writer->uring, true))
        writer->error = -ECANCELED;
    sink_finish(writer->rig.sink);
    for (unsigned int i = 0; i < 1000 && !sink_is_quiet(writer->rig.sink); i++) {
        if (sink_wants_grant(writer->rig.sink) || writer->wants)
            grant(writer, writer->granted_bytes + 100000, false);
        (void)writer_submit(writer);
        while (writer_take(writer))
            continue;
        writer_return(writer);
        (void)writer_take_back(writer);
        (void)writer_submit(writer);
    }
    rig_check_end(&writer->rig, writer->data);
    writer_free(writer);
}

int main(void)
{
    uint64_t seed = test_seed(), random = seed;

    test_life(seed);
    test_waiting(seed);
    test_grant(seed);
    test_limit(seed);
    test_failure(seed);
    test_abort(seed);
    test_behind(seed);
    test_rounds(seed);
    test_case("random life");
    for (int i = 0; i < 200; i++)
        test_random_life(test_random(&random));
    return test_end();
}
