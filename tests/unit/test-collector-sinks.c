/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The collector's thread with several sinks, while a thread of the test's own plays the hypervisor:
 * it waits for room, so nothing is lost, and each CPU's records are numbered. Whatever a sink has
 * must be in a row.
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
#include "tests/unit/test.h"

#define CPUS         3u /* of which the last is idle */
#define BUSY_CPUS    2u
#define CHUNKS       32u
#define SINKS        16u
#define SMALL_PAGES  8u
#define LARGE_PAGES  256u
#define RECORD       0x90021001u /* with a TSC and one word, its number */
#define RECORD_BYTES 16u

/* --- Of collector/xen.h, what the collector calls. --- */

struct xen_host {
    int virq_fd;
};

int xen_host_virq_fd(const struct xen_host *host)
{
    return host->virq_fd;
}

void xen_host_virq_rearm(struct xen_host *host)
{
    eventfd_t count;

    (void)eventfd_read(host->virq_fd, &count);
}

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

static void bench_init(struct bench *bench, uint32_t pages)
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

static void bench_done(struct bench *bench)
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

static uint32_t waiting(const struct bench *bench, unsigned int cpu)
{
    struct t_buf *shared = bench->buffer[cpu];
    uint32_t prod = __atomic_load_n(&shared->prod, __ATOMIC_RELAXED);
    uint32_t cons = __atomic_load_n(&shared->cons, __ATOMIC_ACQUIRE);

    return (prod + 2 * bench->data_bytes - cons) % (2 * bench->data_bytes);
}

/* False: there is no room. */
static bool put_record(struct bench *bench, unsigned int cpu)
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

static void *produce(void *context)
{
    struct bench *bench = context;

    while (!__atomic_load_n(&bench->stops, __ATOMIC_ACQUIRE)) {
        for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++)
            for (unsigned int i = 0; i < 200 + cpu * 300; i++)
                if (!put_record(bench, cpu))
                    break;
        (void)usleep(50);
    }
    return NULL;
}

static void start_producer(struct bench *bench)
{
    __atomic_store_n(&bench->stops, false, __ATOMIC_RELEASE);
    if (pthread_create(&bench->producer, NULL, produce, bench) != 0)
        exit(EXIT_FAILURE);
}

static void stop_producer(struct bench *bench)
{
    __atomic_store_n(&bench->stops, true, __ATOMIC_RELEASE);
    (void)pthread_join(bench->producer, NULL);
}

/* Until COUNT more records are there. */
static void await_records(const struct bench *bench, uint32_t count)
{
    uint32_t begin = __atomic_load_n(&bench->number[0], __ATOMIC_RELAXED);

    while (__atomic_load_n(&bench->number[0], __ATOMIC_RELAXED) - begin < count)
        (void)usleep(100);
}

/* --- Sinks. --- */

static struct sink_config config_of(uint64_t poll_usec)
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

/* Into RING, or a file if that is NULL and CONFIG has none. Returns its number. */
static unsigned int add_sink(struct bench *bench, struct sink_config config, struct ring *ring)
{
    unsigned int i = bench->nr_sinks++;

    if (!config.is_stream)
        config.fd = ring ? -1 : memfd_create("output", MFD_CLOEXEC);
    bench->fds[i] = config.fd;
    if ((ring ? sink_new_ring(&config, ring, &bench->sinks[i])
              : sink_new(&config, bench->pool, &bench->sinks[i])) < 0)
        exit(EXIT_FAILURE);
    return i;
}

static void tell(struct bench *bench, unsigned int i, enum message_type type, bool flag,
                 int64_t value)
{
    collector_send(bench->collector, type, bench->sinks[i], flag, value);
}

static void receive_all(struct bench *bench)
{
    struct message message;

    while (collector_receive(bench->collector, &message))
        for (unsigned int i = 0; i < bench->nr_sinks; i++)
            if (bench->sinks[i] == message.sink)
                bench->seen[i][message.type]++;
}

/* Waits for a message about sink I; or the test ends here: it could not be taken down. */
static void must_come(struct bench *bench, unsigned int i, enum message_type type)
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

static void attach(struct bench *bench, unsigned int i)
{
    tell(bench, i, MESSAGE_ATTACH, false, 0);
    must_come(bench, i, MESSAGE_ATTACHED);
}

/* MUTED: nothing is produced any more. */
static void close_sink(struct bench *bench, unsigned int i, bool muted)
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

static bool has_records(const struct span *span, unsigned int cpu)
{
    return span->first[cpu] != span->next[cpu];
}

/* Adds a window; its records go on where SPAN ends. */
static bool span_add(struct span *span, unsigned int cpu, const uint8_t *p, uint32_t bytes)
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

static void span_add_windows(struct span *span, const uint8_t *data, uint64_t bytes)
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
static struct span span_of_file(struct bench *bench, unsigned int i)
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

static uint64_t sum_bytes(const uint8_t *data, uint64_t bytes, uint64_t sum)
{
    for (uint64_t i = 0, word; i + 8 <= bytes; i += 8) {
        memcpy(&word, data + i, sizeof(word));
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15) + (sum >> 29);
    }
    return sum;
}

static struct span span_of_pin(const struct ring *ring, int pin, uint64_t *ret_sum)
{
    struct span span = {.sound = true};

    *ret_sum = 0;
    for (const struct chunk *chunk = ring_pin_first(ring, pin); chunk;
         chunk = ring_pin_next(ring, pin, chunk)) {
        struct ring_chunk_info info;

        ring_read_chunk(ring, chunk, &info);
        CHECK(ring_verify_chunk(ring, chunk));
        span_add_windows(&span, chunk->data, info.bytes);
        *ret_sum = sum_bytes(chunk->data, info.bytes, *ret_sum);
    }
    CHECK(span.sound);
    return span;
}

static struct ring *new_ring(uint64_t bytes)
{
    struct ring *ring;

    if (ring_new(bytes, CPUS, &ring) < 0)
        exit(EXIT_FAILURE);
    return ring;
}

/* --- Lives. --- */

/* A snapshot that takes its time, while others come and go. Returns how much it had. */
static uint32_t take_snapshot(struct bench *bench, unsigned int i, struct ring *ring)
{
    int pin = ring_take_pin(ring), other = ring_take_pin(ring);
    uint64_t sum, again;
    struct span span;

    CHECK(pin >= 0 && other >= 0);
    tell(bench, i, MESSAGE_PIN, false, pin);
    tell(bench, i, MESSAGE_PIN, false, other);
    must_come(bench, i, MESSAGE_PINNED);
    must_come(bench, i, MESSAGE_PINNED);
    span = span_of_pin(ring, pin, &sum);
    ring_advance_pin(ring, other, NULL);
    await_records(bench, 20000);
    (void)span_of_pin(ring, pin, &again);
    CHECK_UINT(again, sum);
    for (const struct chunk *chunk = ring_pin_first(ring, pin); chunk;
         chunk = ring_pin_next(ring, pin, chunk))
        ring_advance_pin(ring, pin, chunk);
    ring_advance_pin(ring, pin, NULL);
    return span.next[0] - span.first[0];
}

/* One file has all there ever was, another a part, and a ring the newest at any time. */
static void test_together(void)
{
    struct ring *ring = new_ring(RING_MIN_BYTES);
    unsigned int all, part, recorder;
    struct span span, part_span;
    struct bench bench;

    test_case("together");
    bench_init(&bench, SMALL_PAGES);
    all = add_sink(&bench, config_of(1000), NULL);
    recorder = add_sink(&bench, config_of(1000), ring);
    part = add_sink(&bench, config_of(5000), NULL);
    attach(&bench, all);
    start_producer(&bench);
    await_records(&bench, 1000);
    attach(&bench, recorder);
    for (unsigned int i = 0; i < 10; i++) {
        CHECK(take_snapshot(&bench, recorder, ring) > 0 || i == 0);
        if (i == 2)
            attach(&bench, part);
        if (i == 5)
            close_sink(&bench, part, false);
    }
    stop_producer(&bench);
    close_sink(&bench, recorder, true);
    close_sink(&bench, all, true);
    span = span_of_file(&bench, all);
    part_span = span_of_file(&bench, part);
    for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++) {
        CHECK_UINT(span.first[cpu], 0);
        CHECK_UINT(span.next[cpu], bench.number[cpu]);
        CHECK(part_span.first[cpu] > 0 && part_span.next[cpu] > part_span.first[cpu] + 20000);
        CHECK(part_span.next[cpu] < bench.number[cpu]);
    }
    bench_done(&bench);
    ring_free(ring);
}

/* The successors' files, one behind the other, are as if there was one. */
static void check_in_a_row(struct bench *bench, unsigned int count)
{
    struct span before = {0};

    for (unsigned int i = 0; i < count; i++) {
        struct span span = span_of_file(bench, i);

        for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++) {
            CHECK(has_records(&span, cpu));
            CHECK_UINT(span.first[cpu], before.next[cpu]);
        }
        before = span;
    }
    for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++)
        CHECK_UINT(before.next[cpu], bench->number[cpu]);
}

static void test_successors_now(uint32_t pages)
{
    struct bench bench;
    unsigned int i;

    test_case("successors, now");
    bench_init(&bench, pages);
    (void)add_sink(&bench, config_of(1000), NULL);
    attach(&bench, 0);
    start_producer(&bench);
    for (i = 1; i < 8; i++) {
        await_records(&bench, 5000);
        (void)add_sink(&bench, config_of(1000), NULL);
        collector_send_successor(bench.collector, bench.sinks[i - 1], bench.sinks[i], true);
        must_come(&bench, i - 1, MESSAGE_SUCCEEDED);
        must_come(&bench, i - 1, MESSAGE_CLOSED);
    }
    await_records(&bench, 1000);
    stop_producer(&bench);
    close_sink(&bench, i - 1, true);
    check_in_a_row(&bench, i);
    bench_done(&bench);
}

/* Each is as long as it is to be, and a little more; the last is ended early. */
static void test_successors_by_length(void)
{
    struct sink_config config = config_of(1000);
    struct bench bench;
    unsigned int i;

    test_case("successors, by length");
    config.rotate_bytes = 1000000;
    bench_init(&bench, SMALL_PAGES);
    (void)add_sink(&bench, config, NULL);
    attach(&bench, 0);
    start_producer(&bench);
    for (i = 1; i < 8; i++) {
        (void)add_sink(&bench, config, NULL);
        collector_send_successor(bench.collector, bench.sinks[i - 1], bench.sinks[i], false);
        if (i == 7) /* asked for again, and now */
            collector_send_successor(bench.collector, bench.sinks[i - 1], bench.sinks[i], true);
        must_come(&bench, i - 1, MESSAGE_SUCCEEDED);
        must_come(&bench, i - 1, MESSAGE_CLOSED);
    }
    await_records(&bench, 1000);
    stop_producer(&bench);
    close_sink(&bench, i - 1, true);
    check_in_a_row(&bench, i);
    for (unsigned int j = 0; j + 2 < i; j++) {
        struct sink_totals totals;

        sink_read_totals(bench.sinks[j], &totals);
        CHECK(totals.output_bytes >= config.rotate_bytes);
        CHECK(totals.output_bytes <= config.rotate_bytes + 3 * SMALL_PAGES * PAGE_BYTES);
    }
    CHECK_UINT(bench.seen[6][MESSAGE_SUCCEEDED], 0);
    bench_done(&bench);
}

/* A pin that was asked for is answered, though the sink is closed at once. */
static void test_pin_and_close(void)
{
    struct ring *ring = new_ring(RING_MIN_BYTES);
    struct bench bench;
    struct span span;
    uint64_t sum;
    int pin;

    test_case("pin and close");
    bench_init(&bench, SMALL_PAGES);
    (void)add_sink(&bench, config_of(USEC_PER_SEC), ring);
    attach(&bench, 0);
    for (unsigned int i = 0; i < 1000; i++)
        CHECK(put_record(&bench, 1));
    pin = ring_take_pin(ring);
    tell(&bench, 0, MESSAGE_DRAIN, true, 0);
    tell(&bench, 0, MESSAGE_PIN, false, pin);
    must_come(&bench, 0, MESSAGE_DRAINED);
    must_come(&bench, 0, MESSAGE_PINNED);
    ring_advance_pin(ring, pin, NULL);
    pin = ring_take_pin(ring);
    tell(&bench, 0, MESSAGE_PIN, false, pin);
    tell(&bench, 0, MESSAGE_CLOSE, false, 0);
    must_come(&bench, 0, MESSAGE_PINNED);
    must_come(&bench, 0, MESSAGE_CLOSED);
    span = span_of_pin(ring, pin, &sum);
    CHECK_UINT(span.next[1], 1000);
    ring_advance_pin(ring, pin, NULL);
    bench_done(&bench);
    ring_free(ring);
}

/* --- Buffers that are larger than a chunk. --- */

/* Without anybody being woken. */
static void fill_buffer(struct bench *bench, unsigned int cpu)
{
    bench->is_quiet = true;
    while (put_record(bench, cpu))
        ;
    bench->is_quiet = false;
}

/* What was there before a sink came is not its, and what was there when it was to end is. */
static void test_whose_records(void)
{
    struct sink_config config = config_of(100 * USEC_PER_SEC);
    uint32_t number[CPUS];
    struct bench bench;
    struct span span;

    test_case("whose records");
    bench_init(&bench, LARGE_PAGES);
    for (unsigned int i = 0; i < 2; i++)
        (void)add_sink(&bench, config, NULL);
    attach(&bench, 0);
    CHECK(put_record(&bench, 0)); /* the round that attaching calls for is over when it is gone */
    (void)eventfd_write(bench.host.virq_fd, 1);
    while (waiting(&bench, 0) > 0)
        (void)usleep(100);
    fill_buffer(&bench, 0);
    fill_buffer(&bench, 1);
    memcpy(number, bench.number, sizeof(number));
    attach(&bench, 1);
    while (waiting(&bench, 0) > 0 || waiting(&bench, 1) > 0)
        (void)usleep(100);
    fill_buffer(&bench, 0);
    fill_buffer(&bench, 1);
    close_sink(&bench, 1, false);
    close_sink(&bench, 0, true);
    span = span_of_file(&bench, 1);
    for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++) {
        CHECK_UINT(span.first[cpu], number[cpu]);
        CHECK_UINT(span.next[cpu], bench.number[cpu]);
    }
    span = span_of_file(&bench, 0);
    for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++) {
        CHECK_UINT(span.first[cpu], 0);
        CHECK_UINT(span.next[cpu], bench.number[cpu]);
    }
    bench_done(&bench);
}

/* --- A reader that does not read. --- */

struct reader {
    int fd;
    uint64_t bytes;
};

static void *read_all(void *context)
{
    struct reader *reader = context;
    uint8_t buffer[65536];
    ssize_t n;

    while ((n = read(reader->fd, buffer, sizeof(buffer))) > 0)
        reader->bytes += (uint64_t)n;
    return NULL;
}

static unsigned int add_pipe(struct bench *bench, struct sink_config config, struct reader *reader)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        exit(EXIT_FAILURE);
    config.is_stream = true;
    config.fd = fds[1];
    *reader = (struct reader){.fd = fds[0]};
    return add_sink(bench, config, NULL);
}

/* Fills CPU 0's buffer until the pipe's sink has no chunk any more and leaves it full. */
static void starve(struct bench *bench)
{
    for (unsigned int idle = 0; idle < 200; idle++) {
        while (put_record(bench, 0))
            idle = 0;
        (void)eventfd_write(bench->host.virq_fd, 1);
        (void)usleep(1000);
    }
}

/* As long as it takes: what is in the buffers is the sink's. */
static void test_slow_reader(void)
{
    struct reader reader;
    pthread_t thread;
    struct bench bench;
    struct ledger ledger;

    test_case("a slow reader");
    bench_init(&bench, LARGE_PAGES);
    (void)add_pipe(&bench, config_of(1000), &reader);
    attach(&bench, 0);
    starve(&bench);
    tell(&bench, 0, MESSAGE_DRAIN, true, 0);
    (void)usleep(300000);
    receive_all(&bench);
    CHECK_UINT(bench.seen[0][MESSAGE_DRAINED], 0);
    if (pthread_create(&thread, NULL, read_all, &reader) != 0)
        exit(EXIT_FAILURE);
    must_come(&bench, 0, MESSAGE_DRAINED);
    tell(&bench, 0, MESSAGE_CLOSE, true, 0);
    must_come(&bench, 0, MESSAGE_CLOSED);
    sink_read_ledger(bench.sinks[0], 0, &ledger);
    CHECK_UINT(ledger.delivered, bench.number[0]);
    fd_close(&bench.fds[0]);
    (void)pthread_join(thread, NULL);
    CHECK(reader.bytes >= (uint64_t)bench.number[0] * RECORD_BYTES);
    (void)close(reader.fd);
    bench_done(&bench);
}

/* A ring, of another CPU, has all of a large buffer at once. */
static void test_beside_a_starved_one(void)
{
    struct sink_config config = config_of(100 * USEC_PER_SEC);
    struct ring *ring = new_ring(RING_MIN_BYTES);
    struct reader reader;
    struct ledger ledger;
    struct bench bench;

    test_case("beside a starved one");
    bench_init(&bench, LARGE_PAGES);
    config.cpus = (struct cpu_set){0};
    cpu_set_add(&config.cpus, 0);
    (void)add_pipe(&bench, config, &reader);
    config.cpus = (struct cpu_set){0};
    cpu_set_add(&config.cpus, 1);
    (void)add_sink(&bench, config, ring);
    attach(&bench, 0);
    attach(&bench, 1);
    starve(&bench);
    CHECK(waiting(&bench, 0) > 0);
    fill_buffer(&bench, 1);
    (void)eventfd_write(bench.host.virq_fd, 1);
    for (unsigned int i = 0; i < 500 && waiting(&bench, 1) > 0; i++)
        (void)usleep(10000);
    CHECK_UINT(waiting(&bench, 1), 0);
    close_sink(&bench, 1, false);
    sink_read_ledger(bench.sinks[1], 1, &ledger);
    CHECK_UINT(ledger.produced, bench.number[1]);
    tell(&bench, 0, MESSAGE_ABORT, false, 0);
    must_come(&bench, 0, MESSAGE_FAILED);
    tell(&bench, 0, MESSAGE_CLOSE, true, 0);
    must_come(&bench, 0, MESSAGE_CLOSED);
    (void)close(reader.fd);
    bench_done(&bench);
    ring_free(ring);
}

/* --- What the next daemon finds. --- */

/* A ring knows where each CPU's consumer is, also of one that had no record. */
static void test_ring_cons(void)
{
    struct ring *ring = new_ring(RING_MIN_BYTES);
    struct bench bench;
    uint32_t cons;

    test_case("a ring's cons");
    bench_init(&bench, SMALL_PAGES);
    (void)add_sink(&bench, config_of(USEC_PER_SEC), ring);
    attach(&bench, 0);
    for (unsigned int i = 0; i < 10; i++)
        CHECK(put_record(&bench, 1));
    close_sink(&bench, 0, true);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        uint32_t xen_cons = ((struct t_buf *)bench.buffer[cpu])->cons;

        CHECK_UINT(xen_cons, cpu == 1 ? 400 + 10 * RECORD_BYTES : 400);
        CHECK(ring_resume_cpu(ring, cpu, xen_cons, &cons));
        CHECK_UINT(cons, xen_cons);
    }
    bench_done(&bench);
    ring_free(ring);
}

int main(void)
{
    struct xen_host host = {.virq_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct collector *collector = NULL;
    struct pool *pool = NULL;
    int r = pool_new(CHUNKS * CHUNK_BYTES, &pool);

    if (r >= 0)
        r = collector_new(&host, pool, &collector);
    if (r < 0) {
        printf("no io_uring here: %s\n", strerror(-r));
        return TEST_SKIPPED;
    }
    collector_free(collector);
    pool_free(pool);
    (void)close(host.virq_fd);
    test_together();
    test_successors_now(SMALL_PAGES);
    test_successors_now(LARGE_PAGES);
    test_successors_by_length();
    test_pin_and_close();
    test_whose_records();
    test_slow_reader();
    test_beside_a_starved_one();
    test_ring_cons();
    return test_end();
}
