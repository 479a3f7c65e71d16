/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The collector's thread with several sinks, while the test plays the hypervisor: it waits for
 * room, so nothing is lost, and each CPU's records are numbered. Whatever a sink has must be in a
 * row.
 */

#include "collector/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "collector/drain.h"
#include "collector/pool.h"
#include "collector/ring.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/record.h"
#include "common/units.h"
#include "common/util.h"
#include "tests/unit/fake-xen-host.h"
#include "tests/unit/test.h"

#define CPUS         3u /* of which the last is idle */
#define BUSY_CPUS    2u
#define CHUNKS       96u /* more than what comes at once */
#define SINKS        16u
#define SMALL_PAGES  8u
#define LARGE_PAGES  256u
#define RECORD       0x90021001u /* with a TSC and one word, its number */
#define RECORD_BYTES 16u

/* --- A collector, and what produces records for it. --- */

struct bench {
    struct xen_host host;
    void *buffer[CPUS];
    uint32_t data_bytes;
    uint32_t number[CPUS]; /* of the next record; the producer's */
    uint64_t tsc;
    struct pool *pool;
    struct collector *collector;
    struct sink *sinks[SINKS];
    int fds[SINKS]; /* outputs; -1: a ring's */
    unsigned int nr_sinks;
    unsigned int seen[SINKS][MESSAGE_DIED + 1]; /* messages that were not waited for yet */
    pthread_t producer;
    bool stops;    /* atomic */
    bool is_quiet; /* the virtual interrupt does not come */
};

static inline void bench_init(struct bench *bench, uint32_t pages)
{
    struct xen_trace_buffers buffers = {.nr_cpus = CPUS, .pages = pages, .buffer = bench->buffer};

    *bench = (struct bench){
        .host.virq_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .data_bytes = pages * PAGE_BYTES - (uint32_t)sizeof(struct t_buf),
        .tsc = 1000,
    };
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        bench->buffer[cpu] = calloc(pages, PAGE_BYTES);
        ((struct t_buf *)bench->buffer[cpu])->cons = 400; /* as somebody before us has left it */
        ((struct t_buf *)bench->buffer[cpu])->prod = 400;
    }
    if (pool_new(CHUNKS * CHUNK_BYTES, &bench->pool) < 0 ||
        collector_new(&bench->host, bench->pool, &bench->collector) < 0 ||
        collector_set_buffers(bench->collector, &buffers) < 0)
        exit(EXIT_FAILURE);
}

/* Whether there is an io_uring; says so if not. */
static inline bool bench_is_possible(void)
{
    struct xen_host host = {.virq_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct collector *collector = NULL;
    struct pool *pool = NULL;
    int r = pool_new(CHUNKS * CHUNK_BYTES, &pool);

    if (r >= 0)
        r = collector_new(&host, pool, &collector);
    if (r < 0)
        printf("no io_uring here: %s\n", strerror(-r));
    collector_free(collector);
    pool_free(pool);
    (void)close(host.virq_fd);
    return r >= 0;
}

static inline void bench_done(struct bench *bench)
{
    collector_free(bench->collector);
    for (unsigned int i = 0; i < bench->nr_sinks; i++) {
        sink_free(bench->sinks[i]);
        fd_close(&bench->fds[i]);
    }
    CHECK_UINT(pool_free_bytes(bench->pool), pool_bytes(bench->pool));
    pool_free(bench->pool);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        free(bench->buffer[cpu]);
    (void)close(bench->host.virq_fd);
}

static inline uint32_t waiting(const struct bench *bench, unsigned int cpu)
{
    struct t_buf *shared = bench->buffer[cpu];
    uint32_t prod = __atomic_load_n(&shared->prod, __ATOMIC_RELAXED);
    uint32_t cons = __atomic_load_n(&shared->cons, __ATOMIC_ACQUIRE);

    return (prod + 2 * bench->data_bytes - cons) % (2 * bench->data_bytes);
}

/* False: there is no room. */
static inline bool put_record(struct bench *bench, unsigned int cpu)
{
    struct t_buf *shared = bench->buffer[cpu];
    const uint32_t words[4] = {RECORD, (uint32_t)bench->tsc, (uint32_t)(bench->tsc >> 32),
                               bench->number[cpu]};
    uint32_t before = waiting(bench, cpu), prod = shared->prod;

    if (before + RECORD_BYTES > bench->data_bytes)
        return false;
    for (uint32_t i = 0; i < 4; i++)
        memcpy((uint8_t *)shared + sizeof(*shared) + (prod + i * 4) % bench->data_bytes, &words[i],
               4);
    __atomic_store_n(&shared->prod, (prod + RECORD_BYTES) % (2 * bench->data_bytes),
                     __ATOMIC_RELEASE);
    __atomic_store_n(&bench->number[cpu], bench->number[cpu] + 1, __ATOMIC_RELAXED);
    bench->tsc++;
    if (!bench->is_quiet && before < bench->data_bytes / 2 &&
        before + RECORD_BYTES >= bench->data_bytes / 2)
        (void)eventfd_write(bench->host.virq_fd, 1);
    return true;
}

/* Waits for the writes, too: a sink drops records when its share of the pool is used up. */
static inline void *produce(void *context)
{
    struct bench *bench = context;
    const uint64_t enough_bytes = pool_bytes(bench->pool) / 4 * 3;

    for (; !__atomic_load_n(&bench->stops, __ATOMIC_ACQUIRE); usleep(50)) {
        if (pool_free_bytes(bench->pool) < enough_bytes)
            continue;
        for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++)
            for (unsigned int i = 0; i < 200 + cpu * 300; i++)
                if (!put_record(bench, cpu))
                    break;
    }
    return NULL;
}

static inline void start_producer(struct bench *bench)
{
    __atomic_store_n(&bench->stops, false, __ATOMIC_RELEASE);
    if (pthread_create(&bench->producer, NULL, produce, bench) != 0)
        exit(EXIT_FAILURE);
}

static inline void stop_producer(struct bench *bench)
{
    __atomic_store_n(&bench->stops, true, __ATOMIC_RELEASE);
    (void)pthread_join(bench->producer, NULL);
}

/* Until COUNT more records are there. */
static inline void await_records(const struct bench *bench, uint32_t count)
{
    uint32_t begin = __atomic_load_n(&bench->number[0], __ATOMIC_RELAXED);

    while (__atomic_load_n(&bench->number[0], __ATOMIC_RELAXED) - begin < count)
        (void)usleep(100);
}

/* --- Sinks. --- */

static inline struct sink_config config_of(uint64_t poll_usec)
{
    struct sink_config config = {
        .align_bytes = 4,
        .granted_bytes = SINK_NO_LIMIT,
        .max_bytes = SINK_NO_LIMIT,
        .poll_usec = poll_usec,
        .nr_cpus = CPUS,
    };

    event_set_add_mask(&config.events, 0x0002f000);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        cpu_set_add(&config.cpus, cpu);
    return config;
}

/* Into RING, or a file of its own if that is NULL and CONFIG has no output. Returns its number. */
static inline unsigned int add_sink(struct bench *bench, struct sink_config config,
                                    struct ring *ring)
{
    unsigned int i = bench->nr_sinks++;

    if (config.fd == 0)
        config.fd = ring ? -1 : memfd_create("output", MFD_CLOEXEC);
    bench->fds[i] = config.fd;
    if ((ring ? sink_new_ring(&config, ring, &bench->sinks[i])
              : sink_new(&config, bench->pool, &bench->sinks[i])) < 0)
        exit(EXIT_FAILURE);
    return i;
}

static inline void tell(struct bench *bench, unsigned int i, enum message_type type, bool flag,
                        int64_t value)
{
    collector_send(bench->collector, type, bench->sinks[i], flag, value);
}

static inline void receive_all(struct bench *bench)
{
    struct message message;

    while (collector_receive(bench->collector, &message))
        for (unsigned int i = 0; i < bench->nr_sinks; i++)
            if (bench->sinks[i] == message.sink)
                bench->seen[i][message.type]++;
}

/* Waits for a message about sink I; or the test ends here: it could not be taken down. */
static inline void must_come(struct bench *bench, unsigned int i, enum message_type type)
{
    struct pollfd fd = {.fd = collector_fd(bench->collector), .events = POLLIN};

    receive_all(bench);
    while (bench->seen[i][type] == 0 && poll(&fd, 1, 20000) > 0)
        receive_all(bench);
    if (!CHECK(bench->seen[i][type] > 0)) {
        TEST_SAY("message %d of sink %u does not come", (int)type, i);
        exit(EXIT_FAILURE);
    }
    bench->seen[i][type]--;
}

static inline void attach(struct bench *bench, unsigned int i)
{
    tell(bench, i, MESSAGE_ATTACH, false, 0);
    must_come(bench, i, MESSAGE_ATTACHED);
}

/* MUTED: nothing is produced any more. */
static inline void close_sink(struct bench *bench, unsigned int i, bool muted)
{
    tell(bench, i, MESSAGE_DRAIN, muted, 0);
    must_come(bench, i, MESSAGE_DRAINED);
    tell(bench, i, MESSAGE_CLOSE, muted, 0);
    must_come(bench, i, MESSAGE_CLOSED);
}

/* --- What came out. --- */

/* Each CPU's records, from `first` to in front of `next`. */
struct span {
    bool sound;
    uint32_t first[CPUS];
    uint32_t next[CPUS];
};

static inline bool has_records(const struct span *span, unsigned int cpu)
{
    return span->first[cpu] != span->next[cpu];
}

/* Adds a window; its records go on where SPAN ends. */
static inline bool span_add(struct span *span, unsigned int cpu, const uint8_t *p, uint32_t bytes)
{
    for (uint32_t offset = 0, header; offset < bytes; offset += record_bytes(header)) {
        uint32_t number;

        memcpy(&header, p + offset, sizeof(header));
        if (record_is_wrap(header))
            continue;
        memcpy(&number, p + offset + 12, sizeof(number));
        if (header != RECORD || (has_records(span, cpu) && number != span->next[cpu]))
            return false;
        if (!has_records(span, cpu))
            span->first[cpu] = number;
        span->next[cpu] = number + 1;
    }
    return true;
}

static inline void span_add_windows(struct span *span, const uint8_t *data, uint64_t bytes)
{
    struct window_header window;

    for (uint64_t offset = 0; span->sound && offset < bytes; offset += window.bytes) {
        memcpy(&window, data + offset, sizeof(window));
        offset += sizeof(window);
        span->sound = window.header == WINDOW_HEADER && window.cpu < CPUS &&
                      window.bytes <= bytes - offset &&
                      span_add(span, window.cpu, data + offset, window.bytes);
    }
}

/* Of a file that is closed. */
static inline struct span span_of_file(struct bench *bench, unsigned int i)
{
    struct span span = {.sound = true};
    struct sink_totals totals;
    uint8_t *data;

    sink_read_totals(bench->sinks[i], &totals);
    data = malloc(totals.output_bytes + 1);
    if (!data)
        exit(EXIT_FAILURE);
    CHECK_INT(pread(bench->fds[i], data, totals.output_bytes + 1, 0), totals.output_bytes);
    span_add_windows(&span, data, totals.output_bytes);
    CHECK(span.sound);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        struct ledger ledger;

        sink_read_ledger(bench->sinks[i], cpu, &ledger);
        CHECK_UINT(ledger.delivered, span.next[cpu] - span.first[cpu]);
        CHECK_UINT(ledger.produced, ledger.delivered);
    }
    free(data);
    return span;
}

static inline uint64_t sum_bytes(const uint8_t *data, uint64_t bytes, uint64_t sum)
{
    for (uint64_t i = 0, word; i + 8 <= bytes; i += 8) {
        memcpy(&word, data + i, sizeof(word));
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15) + (sum >> 29);
    }
    return sum;
}

static inline struct span span_of_pin(const struct ring *ring, int pin, uint64_t *ret_sum)
{
    struct span span = {.sound = true};
    uint8_t *copy = malloc(ring_chunk_bytes(ring));

    if (!copy)
        exit(EXIT_FAILURE);
    *ret_sum = 0;
    for (const struct chunk *chunk = ring_pin_first(ring, pin); chunk;
         chunk = ring_pin_next(ring, pin, chunk)) {
        uint32_t bytes = ring_copy_chunk(ring, chunk, 0, copy);

        CHECK(ring_verify_chunk(ring, chunk));
        span_add_windows(&span, copy, bytes);
        *ret_sum = sum_bytes(copy, bytes, *ret_sum);
    }
    free(copy);
    CHECK(span.sound);
    return span;
}

static inline struct ring *new_ring(uint64_t bytes)
{
    struct ring *ring;

    if (ring_new(bytes, CPUS, true, NULL, &ring) < 0)
        exit(EXIT_FAILURE);
    return ring;
}
