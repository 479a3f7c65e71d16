// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * What is whose, where one round does not take all there is: buffers that are larger than a chunk,
 * readers that do not read; and what the next daemon finds.
 */

#include "tests/unit/collector-rig.h"

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
    if (!bench_is_possible())
        return TEST_SKIPPED;
    test_whose_records();
    test_slow_reader();
    test_beside_a_starved_one();
    test_ring_cons();
    return test_end();
}
