/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A sink with a pool of its own, fed as the collector feeds it, and the proof of what came out:
 * each record carries its CPU's running number, so whatever is missing, doubled or out of place
 * shows.
 */

#include "collector/pool.h"
#include "collector/sink.h"
#include "common/record.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define RIG_CPUS   4u
#define RIG_CHUNKS 8u

struct rig {
    struct pool *pool;
    struct sink *sink;
    uint64_t random;
    uint32_t number[RIG_CPUS]; /* of the CPU's next record; all before went into the sink */
    uint64_t lost[RIG_CPUS];   /* as its lost_records records in the sink say */
};

/* A file that may grow without end. */
static inline struct sink_config rig_config(uint32_t align_bytes)
{
    struct sink_config config = {
        .fd = -1,
        .align_bytes = align_bytes,
        .granted_bytes = SINK_NO_LIMIT,
        .max_bytes = SINK_NO_LIMIT,
        .nr_cpus = RIG_CPUS,
    };

    event_set_add_mask(&config.events, 0x0002f000);
    for (unsigned int cpu = 0; cpu < RIG_CPUS; cpu++)
        cpu_set_add(&config.cpus, cpu);
    return config;
}

/* With room for so many of the smallest CHUNKS. */
static inline void rig_init_large(struct rig *rig, const struct sink_config *config,
                                  unsigned int chunks, uint64_t seed)
{
    *rig = (struct rig){.random = seed};
    if (pool_new((uint64_t)chunks * CHUNK_BYTES, &rig->pool) < 0 ||
        sink_new(config, rig->pool, &rig->sink) < 0) {
        perror("rig");
        exit(EXIT_FAILURE);
    }
}

static inline void rig_init(struct rig *rig, const struct sink_config *config, uint64_t seed)
{
    rig_init_large(rig, config, RIG_CHUNKS, seed);
}

/* --- Feeding. --- */

static inline uint32_t rig_put_lost(uint8_t *p, uint32_t count)
{
    struct lost_record lost = {.header = LOST_RECORD_HEADER, .count = count};

    memcpy(p, &lost, sizeof(lost));
    return sizeof(lost);
}

/* A record of 8 to 40 bytes whose words are all NUMBER. */
static inline uint32_t rig_put_record(struct rig *rig, uint8_t *p, uint32_t number)
{
    uint64_t random = test_random(&rig->random);
    uint32_t extra_words = (uint32_t)(1 + random % 7);
    uint32_t has_tsc = (uint32_t)(random >> 63) << 31;
    uint32_t header = 0x00021001u | extra_words << TRACE_EXTRA_SHIFT | has_tsc;

    memcpy(p, &header, sizeof(header));
    for (uint32_t offset = 4; offset < record_bytes(header); offset += 4)
        memcpy(p + offset, &number, sizeof(number));
    return record_bytes(header);
}

/*
 * Offers about BYTES of CPU's records, as they might lie in its trace buffer, in as many windows as
 * it takes; those that are not taken never were. Returns what sink_begin_window() said last.
 */
static inline enum sink_room rig_feed(struct rig *rig, unsigned int cpu, uint32_t bytes)
{
    static uint8_t waiting[4 * CHUNK_BYTES];
    uint32_t end = 0, number = rig->number[cpu];
    enum sink_room said = SINK_ROOM;

    if (test_random(&rig->random) % 8 == 0)
        end += rig_put_lost(waiting, 3);
    do
        end += rig_put_record(rig, waiting + end, number++);
    while (end < bytes && end + RECORD_MAX_BYTES <= sizeof(waiting));

    for (uint32_t begin = 0; begin < end;) {
        uint64_t classes[EVENT_CLASSES] = {0};
        struct window_source source = {.cpu = cpu};
        struct walk_result walked;
        uint8_t *records;
        uint32_t room;

        said = sink_begin_window(rig->sink, cpu, RECORD_MAX_BYTES, end - begin, 1, &records, &room);
        if (said != SINK_ROOM)
            break;
        room = (uint32_t)min_u64(room, end - begin);
        memcpy(records, waiting + begin, room);
        walk_window(records, room, room == end - begin, sink_filter(rig->sink), records, classes,
                    &walked);
        CHECK(!walked.broken && walked.consumed_bytes > 0);
        sink_end_window(rig->sink, &source, &walked, classes);
        rig->number[cpu] += (uint32_t)walked.records;
        rig->lost[cpu] += walked.lost;
        begin += walked.consumed_bytes;
    }
    return said;
}

/* --- What came out. --- */

struct rig_output {
    bool sound; /* whole windows of whole records, each CPU's numbers from 0 without a gap */
    uint64_t records[RIG_CPUS];
    uint64_t windows;
};

/* Steps over one window's records. Returns whether they are what they should be. */
static inline bool rig_read_window(const uint8_t *records, uint32_t bytes, uint64_t *number)
{
    uint32_t offset = 0;

    while (offset < bytes) {
        uint32_t header, word;

        memcpy(&header, records + offset, sizeof(header));
        if (record_bytes(header) > bytes - offset)
            return false;
        for (uint32_t i = 4;
             !record_is_wrap(header) && !record_is_lost(header) && i < record_bytes(header);
             i += 4) {
            memcpy(&word, records + offset + i, sizeof(word));
            if (word != *number)
                return false;
        }
        *number += !record_is_wrap(header) && !record_is_lost(header);
        offset += record_bytes(header);
    }
    return offset == bytes;
}

static inline struct rig_output rig_read_output(const uint8_t *data, uint64_t bytes)
{
    struct rig_output output = {0};
    uint64_t offset = 0;

    while (offset < bytes) {
        struct window_header window;

        if (bytes - offset < sizeof(window))
            return output;
        memcpy(&window, data + offset, sizeof(window));
        offset += sizeof(window);
        if (window.header != WINDOW_HEADER || window.cpu >= RIG_CPUS ||
            window.bytes > bytes - offset ||
            !rig_read_window(data + offset, window.bytes, &output.records[window.cpu]))
            return output;
        offset += window.bytes;
        output.windows++;
    }
    output.sound = true;
    return output;
}

/*
 * When all is over: DATA is the output as a reader finds it, or what it holds, if another thread
 * has written it. Its records are those that the ledger calls delivered, its windows and classes
 * are those of the totals, every CPU's ledger balances, and every chunk is back.
 */
static inline void rig_check_end(const struct rig *rig, const uint8_t *data)
{
    struct rig_output output;
    struct sink_totals totals;
    uint64_t records = 0;

    sink_read_totals(rig->sink, &totals);
    output = rig_read_output(data, sink_config(rig->sink)->handoff ? totals.plain_bytes
                                                                   : totals.output_bytes);
    CHECK(output.sound);
    CHECK(sink_is_quiet(rig->sink));
    CHECK_UINT(totals.queued_bytes, 0);
    if (!sink_config(rig->sink)->handoff)
        CHECK_UINT(totals.output_bytes % sink_config(rig->sink)->align_bytes, 0);
    for (unsigned int cpu = 0; cpu < RIG_CPUS; cpu++) {
        struct ledger ledger;

        sink_read_ledger(rig->sink, cpu, &ledger);
        CHECK_UINT(ledger.produced, rig->number[cpu] + rig->lost[cpu]);
        CHECK_UINT(ledger.delivered, output.records[cpu]);
        CHECK_UINT(ledger.lost, rig->lost[cpu]);
        CHECK_UINT(ledger.dropped, rig->number[cpu] - output.records[cpu]);
        CHECK_UINT(ledger.evicted, 0);
        records += output.records[cpu];
    }
    CHECK_UINT(totals.windows, output.windows);
    CHECK_UINT(totals.class_records[1], records); /* all are of one class */
    CHECK_UINT(totals.writing_since_usec, 0);
    CHECK_UINT(pool_free_bytes(rig->pool), pool_bytes(rig->pool));
}

static inline void rig_done(struct rig *rig)
{
    rig->sink = sink_free(rig->sink);
    rig->pool = pool_free(rig->pool);
}
