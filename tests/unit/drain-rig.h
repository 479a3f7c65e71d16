/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Several sinks on one set of trace buffers in our own memory, and the proof of what each got: all
 * that was produced for it, in order, but for what it was told that it has not.
 */

#include <errno.h>

#include "collector/attachment.h"
#include "collector/drain.h"
#include "collector/pool.h"
#include "collector/ring.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/record.h"
#include "common/util.h"
#include "tests/unit/fake-uring.h"
#include "tests/unit/test.h"

#define BENCH_CPUS   3u
#define BENCH_CHUNKS 64u
#define BENCH_OUTS   6u
#define OUT_BYTES    ((size_t)64 << 20)

#define SCHED 0x80021001u /* with TSCs */
#define HVM   0x80081003u
#define BARE  0x00021002u /* without */

#define XEN_DOMID 7u /* in the lost_records records that Xen made */

/* What was produced. */
struct made {
    uint32_t header;
    uint32_t number;
    uint32_t weight; /* records: 1, or as many as were lost */
    uint64_t tsc;
    uint64_t first_tsc; /* of a loss */
};

/* A sink and its output. */
struct out {
    struct sink *sink;
    struct event_set events;
    struct cpu_set cpus;
    struct uring uring;
    uint8_t *data;
    size_t bytes;
    size_t begin[BENCH_CPUS]; /* in `made`: what was produced before is not for it */
};

struct bench {
    void *buffer[BENCH_CPUS];
    uint32_t data_bytes;
    struct pool *pool;
    struct drain *drain;
    struct out outs[BENCH_OUTS];
    struct attachment attachments[BENCH_OUTS]; /* [i]: of outs[i] */
    unsigned int nr_outs;
    uint64_t tsc;
    uint64_t random;
    struct made *made[BENCH_CPUS];
    size_t nr_made[BENCH_CPUS];
    size_t max_made;
};

static inline void bench_init(struct bench *bench, uint32_t pages, uint64_t seed)
{
    struct xen_trace_buffers buffers = {
        .nr_cpus = BENCH_CPUS, .pages = pages, .buffer = bench->buffer};

    *bench = (struct bench){
        .data_bytes = pages * PAGE_BYTES - (uint32_t)sizeof(struct t_buf),
        .tsc = 1000000,
        .random = seed,
        .max_made = 1 << 20,
    };
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++) {
        bench->buffer[cpu] = calloc(pages, PAGE_BYTES);
        bench->made[cpu] = calloc(bench->max_made, sizeof(struct made));
    }
    if (pool_new(BENCH_CHUNKS * CHUNK_BYTES, &bench->pool) < 0 ||
        drain_new(&buffers, &bench->drain) < 0)
        exit(EXIT_FAILURE);
}

static inline void bench_done(struct bench *bench)
{
    for (unsigned int i = 0; i < bench->nr_outs; i++) {
        sink_free(bench->outs[i].sink);
        free(bench->outs[i].data);
    }
    drain_free(bench->drain);
    pool_free(bench->pool);
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++) {
        free(bench->buffer[cpu]);
        free(bench->made[cpu]);
    }
}

static inline struct sink_config bench_config(uint32_t mask, unsigned int cpu_bits)
{
    struct sink_config config = {
        .fd = -1,
        .align_bytes = 4,
        .granted_bytes = SINK_NO_LIMIT,
        .max_bytes = SINK_NO_LIMIT,
        .nr_cpus = BENCH_CPUS,
    };

    event_set_add_mask(&config.events, mask);
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
        if (cpu_bits >> cpu & 1)
            cpu_set_add(&config.cpus, cpu);
    return config;
}

/* A sink that takes what is produced from now on; into RING, or, if NULL, a file. */
static inline struct attachment *bench_add(struct bench *bench, const struct sink_config *config,
                                           struct ring *ring)
{
    struct out *out = &bench->outs[bench->nr_outs];
    struct attachment *attachment = &bench->attachments[bench->nr_outs++];
    int r =
        ring ? sink_new_ring(config, ring, &out->sink) : sink_new(config, bench->pool, &out->sink);

    out->data = malloc(OUT_BYTES);
    if (r < 0 || !out->data)
        exit(EXIT_FAILURE);
    out->events = config->events;
    out->cpus = config->cpus;
    out->uring.max_writes = FAKE_MAX_WRITES;
    memcpy(out->begin, bench->nr_made, sizeof(out->begin));
    *attachment = (struct attachment){.sink = out->sink, .mode = DRAIN_RECORDS};
    return attachment;
}

static inline struct round bench_round(struct bench *bench)
{
    return drain_round(bench->drain, bench->attachments, bench->nr_outs, 1);
}

/* Writes what OUT's sink has queued; LAST: also what it is filling. */
static inline void bench_write(struct bench *bench, unsigned int out_index, bool last)
{
    struct out *out = &bench->outs[out_index];

    (void)bench;
    if (last)
        sink_flush(out->sink);
    for (sink_submit(out->sink, &out->uring, 1); out->uring.nr_writes > 0;
         sink_submit(out->sink, &out->uring, 1)) {
        struct fake_write write = fake_uring_take(&out->uring, 0);

        if (write.offset + write.bytes > OUT_BYTES)
            exit(EXIT_FAILURE);
        memcpy(out->data + write.offset, write.data, write.bytes);
        CHECK_INT(
            sink_complete(out->sink, (struct chunk *)(uintptr_t)write.tag, (int)write.bytes, 1), 0);
    }
}

static inline void bench_write_all(struct bench *bench, bool last)
{
    for (unsigned int i = 0; i < bench->nr_outs; i++)
        bench_write(bench, i, last);
}

/* --- The hypervisor. --- */

static inline uint32_t bench_waiting(const struct bench *bench, unsigned int cpu)
{
    const struct t_buf *shared = bench->buffer[cpu];

    return (shared->prod + 2 * bench->data_bytes - shared->cons) % (2 * bench->data_bytes);
}

/* False: there is no room. */
static inline bool bench_insert(struct bench *bench, unsigned int cpu, const void *record,
                                uint32_t bytes)
{
    struct t_buf *shared = bench->buffer[cpu];
    uint8_t *data = (uint8_t *)shared + sizeof(*shared);

    if (bench_waiting(bench, cpu) + bytes > bench->data_bytes)
        return false;
    for (uint32_t i = 0; i < bytes; i++)
        data[(shared->prod + i) % bench->data_bytes] = ((const uint8_t *)record)[i];
    shared->prod = (shared->prod + bytes) % (2 * bench->data_bytes);
    return true;
}

static inline void bench_note(struct bench *bench, unsigned int cpu, struct made made)
{
    if (bench->nr_made[cpu] == bench->max_made)
        exit(EXIT_FAILURE);
    bench->made[cpu][bench->nr_made[cpu]++] = made;
}

/* A record with a number and up to 4 words more. */
static inline bool bench_produce(struct bench *bench, unsigned int cpu, uint32_t kind)
{
    uint32_t words[RECORD_MAX_BYTES / 4] = {0}, n = 1;
    uint32_t number = (uint32_t)bench->nr_made[cpu];
    uint32_t header = kind | (uint32_t)(1 + test_random(&bench->random) % 5) << TRACE_EXTRA_SHIFT;

    words[0] = header;
    bench->tsc += 3;
    if (record_has_tsc(header)) {
        words[n++] = (uint32_t)bench->tsc;
        words[n++] = (uint32_t)(bench->tsc >> 32);
    }
    words[n] = number;
    if (!bench_insert(bench, cpu, words, record_bytes(header)))
        return false;
    bench_note(bench, cpu,
               (struct made){
                   .header = header,
                   .number = number,
                   .weight = 1,
                   .tsc = record_has_tsc(header) ? bench->tsc : 0,
               });
    return true;
}

/* COUNT records were lost, as Xen tells it. */
static inline bool bench_lose(struct bench *bench, unsigned int cpu, uint32_t count)
{
    uint64_t first_tsc = bench->tsc + 1, tsc = bench->tsc += 3;
    struct lost_record lost = {
        .header = LOST_RECORD_HEADER,
        .tsc = {(uint32_t)tsc, (uint32_t)(tsc >> 32)},
        .count = count,
        .domid = XEN_DOMID,
        .first_tsc = {(uint32_t)first_tsc, (uint32_t)(first_tsc >> 32)},
    };

    if (!bench_insert(bench, cpu, &lost, sizeof(lost)))
        return false;
    bench_note(bench, cpu,
               (struct made){
                   .header = LOST_RECORD_HEADER,
                   .number = count,
                   .weight = count,
                   .tsc = tsc,
                   .first_tsc = first_tsc,
               });
    return true;
}

/* Up to COUNT records of all kinds, as long as there is room. */
static inline void bench_produce_some(struct bench *bench, unsigned int cpu, unsigned int count)
{
    static const uint32_t kinds[] = {SCHED, HVM, SCHED, HVM, SCHED, BARE};

    for (unsigned int i = 0; i < count; i++) {
        uint64_t r = test_random(&bench->random);

        if (!(r % 50 == 0 ? bench_lose(bench, cpu, (uint32_t)(r >> 32) % 9 + 1)
                          : bench_produce(bench, cpu, kinds[r % ARRAY_SIZE(kinds)])))
            return;
    }
}

/* --- What came out. --- */

/* Reading an output against what was produced, of one CPU. */
struct reader {
    size_t next;        /* in `made` */
    uint64_t delivered; /* records */
    uint64_t told;      /* records that we told to be missing */
    uint64_t told_tsc;  /* of the record that told so last */
    uint64_t wrong;
};

static inline bool out_wants(const struct out *out, const struct made *made)
{
    return record_is_lost(made->header) || event_set_has(&out->events, made->header);
}

/* The next of what was produced that OUT wants; NULL: there is none. */
static inline const struct made *next_made(const struct bench *bench, const struct out *out,
                                           unsigned int cpu, struct reader *reader)
{
    while (reader->next < bench->nr_made[cpu]) {
        const struct made *made = &bench->made[cpu][reader->next++];

        if (out_wants(out, made))
            return made;
    }
    return NULL;
}

static inline uint64_t both_words(const uint32_t word[2])
{
    return (uint64_t)word[1] << 32 | word[0];
}

/* A lost_records record of ours: it stands for exactly the next ones. */
static inline bool read_told(const struct bench *bench, const struct out *out, unsigned int cpu,
                             const struct lost_record *lost, struct reader *reader)
{
    uint64_t tsc = both_words(lost->tsc), first_tsc = both_words(lost->first_tsc);
    uint64_t weight = 0, earliest = 0, latest = 0;
    bool exact = true; /* else the first has no TSC, and that of one before may stand for it */

    while (weight < lost->count) {
        const struct made *made = next_made(bench, out, cpu, reader);

        if (!made)
            return false;
        exact = exact && (weight > 0 || made->tsc);
        weight += made->weight;
        if (!earliest)
            earliest = made->first_tsc ? made->first_tsc : made->tsc;
        latest = max_u64(latest, made->tsc);
    }
    reader->told += weight;
    reader->told_tsc = tsc;
    return weight == lost->count && tsc > first_tsc && tsc >= latest && first_tsc > 0 &&
           (first_tsc == earliest || (!exact && (first_tsc < earliest || !earliest)));
}

static inline bool read_record(const struct bench *bench, const struct out *out, unsigned int cpu,
                               const uint8_t *p, struct reader *reader)
{
    const struct made *made;
    uint32_t words[RECORD_MAX_BYTES / 4];
    struct lost_record lost;

    memcpy(words, p, 4);
    memcpy(words, p, record_bytes(words[0]));
    if (record_is_wrap(words[0]))
        return true;
    if (record_is_lost(words[0])) {
        memcpy(&lost, p, sizeof(lost));
        if (lost.domid != XEN_DOMID)
            return read_told(bench, out, cpu, &lost, reader);
        made = next_made(bench, out, cpu, reader);
        return made && record_is_lost(made->header) && made->weight == lost.count;
    }
    made = next_made(bench, out, cpu, reader);
    reader->delivered++;
    return made && made->header == words[0] && made->number == words[made->tsc ? 3 : 1] &&
           (!made->tsc || made->tsc >= reader->told_tsc);
}

static inline void read_windows(const struct bench *bench, const struct out *out,
                                const uint8_t *data, uint64_t bytes, struct reader *readers)
{
    struct window_header window;

    for (uint64_t offset = 0; offset < bytes; offset += window.bytes) {
        uint32_t header;

        memcpy(&window, data + offset, sizeof(window));
        offset += sizeof(window);
        if (!CHECK_UINT(window.header, WINDOW_HEADER) || !CHECK(window.cpu < BENCH_CPUS) ||
            !CHECK(cpu_set_has(&out->cpus, window.cpu)) || !CHECK(window.bytes <= bytes - offset))
            return;
        for (uint64_t i = 0; i < window.bytes; i += record_bytes(header)) {
            memcpy(&header, data + offset + i, sizeof(header));
            readers[window.cpu].wrong +=
                !read_record(bench, out, window.cpu, data + offset + i, &readers[window.cpu]);
        }
    }
}

/* What OUT's sink should have counted of what was produced from BEGIN to END. */
static inline struct ledger expect_ledger(const struct bench *bench, const struct out *out,
                                          unsigned int cpu, size_t end)
{
    struct ledger ledger = {0};

    for (size_t i = out->begin[cpu]; i < end && cpu_set_has(&out->cpus, cpu); i++) {
        const struct made *made = &bench->made[cpu][i];

        if (!out_wants(out, made))
            continue;
        ledger.produced += made->weight;
        ledger.lost += record_is_lost(made->header) ? made->weight : 0;
    }
    return ledger;
}

/*
 * When all of OUT's is written, and with nothing left in the buffers: its output and its ledger are
 * what was produced for it. What it could not tell any more is at the end.
 */
static inline void bench_check(const struct bench *bench, unsigned int out_index)
{
    const struct out *out = &bench->outs[out_index];
    struct reader readers[BENCH_CPUS] = {0};
    struct sink_totals totals;

    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++)
        readers[cpu].next = out->begin[cpu];
    sink_read_totals(out->sink, &totals);
    read_windows(bench, out, out->data, totals.output_bytes, readers);
    for (unsigned int cpu = 0; cpu < BENCH_CPUS; cpu++) {
        struct ledger expected = expect_ledger(bench, out, cpu, bench->nr_made[cpu]), ledger;

        sink_read_ledger(out->sink, cpu, &ledger);
        CHECK_UINT(readers[cpu].wrong, 0);
        CHECK_UINT(ledger.delivered, readers[cpu].delivered);
        CHECK_UINT(ledger.produced, ledger.delivered + ledger.lost + ledger.dropped);
        CHECK_UINT(ledger.produced, expected.produced);
        CHECK_UINT(ledger.lost, expected.lost);
    }
}
