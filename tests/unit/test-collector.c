// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The collector's thread on buffers in our own memory, as far as it takes a sink through its life.
 * What needs a hypervisor that goes on writing is tested on the stand-in (tests/xensim).
 */

#include "collector/collector.h"
#include "collector/drain.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <xen/trace.h>

#include "collector/pool.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/record.h"
#include "common/util.h"
#include "tests/unit/fake-xen-host.h"
#include "tests/unit/test.h"

#define CPUS       3u
#define PAGES      8u
#define DATA_BYTES (PAGES * PAGE_BYTES - 8u)

#define SCHED  0x10021001u /* 8 bytes */
#define HVM    0x10082003u
#define CHUNKS 4u

/* --- A collector with a sink. --- */

struct bench {
    struct xen_host host;
    void *buffer[CPUS];
    struct pool *pool;
    struct collector *collector;
    struct sink *sink;
    int fd;
};

static void bench_init(struct bench *bench, struct sink_config config)
{
    struct xen_trace_buffers buffers = {.nr_cpus = CPUS, .pages = PAGES, .buffer = bench->buffer};

    *bench = (struct bench){
        .host.virq_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .fd = memfd_create("output", MFD_CLOEXEC),
    };
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        bench->buffer[cpu] = calloc(PAGES, PAGE_BYTES);
    config.fd = bench->fd;
    if (pool_new(CHUNKS * CHUNK_BYTES, &bench->pool) < 0 ||
        collector_new(&bench->host, bench->pool, &bench->collector) < 0 ||
        collector_set_buffers(bench->collector, &buffers) < 0 ||
        sink_new(&config, bench->pool, &bench->sink) < 0)
        exit(EXIT_FAILURE);
}

static void bench_done(struct bench *bench)
{
    bench->collector = collector_free(bench->collector);
    CHECK_UINT(pool_free_bytes(bench->pool), pool_bytes(bench->pool));
    bench->sink = sink_free(bench->sink);
    bench->pool = pool_free(bench->pool);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        free(bench->buffer[cpu]);
    fd_close(&bench->host.virq_fd);
    fd_close(&bench->fd);
}

static struct sink_config config_of(uint32_t mask)
{
    struct sink_config config = {
        .align_bytes = 4,
        .granted_bytes = SINK_NO_LIMIT,
        .max_bytes = SINK_NO_LIMIT,
        .poll_usec = 1000,
        .nr_cpus = CPUS,
    };

    event_set_add_mask(&config.events, mask);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        cpu_set_add(&config.cpus, cpu);
    return config;
}

/* Writes COUNT records as Xen would, those that fit, and fires VIRQ_TBUF. */
static void produce(struct bench *bench, unsigned int cpu, uint32_t header, unsigned int count)
{
    struct t_buf *shared = bench->buffer[cpu];
    uint8_t *data = (uint8_t *)shared + sizeof(*shared);
    uint32_t prod = __atomic_load_n(&shared->prod, __ATOMIC_RELAXED);

    for (unsigned int i = 0; i < count; i++) {
        const uint32_t words[2] = {header, i};
        uint32_t cons = __atomic_load_n(&shared->cons, __ATOMIC_ACQUIRE);

        if ((prod + 2 * DATA_BYTES - cons) % (2 * DATA_BYTES) + sizeof(words) > DATA_BYTES)
            break;
        memcpy(data + prod % DATA_BYTES, words, sizeof(words));
        prod = (prod + (uint32_t)sizeof(words)) % (2 * DATA_BYTES);
        __atomic_store_n(&shared->prod, prod, __ATOMIC_RELEASE);
    }
    (void)eventfd_write(bench->host.virq_fd, 1);
}

static void tell(struct bench *bench, enum message_type type, bool flag, int64_t value)
{
    collector_send(bench->collector, type, bench->sink, flag, value);
}

/* Waits for a message of TYPE; whatever comes before is taken too. False: it does not come. */
static bool wait_for(struct bench *bench, enum message_type type)
{
    struct pollfd fd = {.fd = collector_fd(bench->collector), .events = POLLIN};
    struct message message;

    while (poll(&fd, 1, 5000) > 0) {
        while (collector_receive(bench->collector, &message))
            if (message.type == type)
                return true;
    }
    return false;
}

/* Or the test ends here: a sink that is not let go cannot be taken down. */
static void must_come(struct bench *bench, enum message_type type)
{
    if (CHECK(wait_for(bench, type)))
        return;
    TEST_SAY("message %d does not come", (int)type);
    exit(EXIT_FAILURE);
}

static void close_sink(struct bench *bench)
{
    tell(bench, MESSAGE_DRAIN, true, 0);
    must_come(bench, MESSAGE_DRAINED);
    tell(bench, MESSAGE_CLOSE, false, 0);
    must_come(bench, MESSAGE_CLOSED);
}

static struct ledger ledger_of(const struct bench *bench, unsigned int cpu)
{
    struct ledger ledger;

    sink_read_ledger(bench->sink, cpu, &ledger);
    return ledger;
}

/* --- Lives. --- */

static void test_capture(void)
{
    struct window_header window;
    struct bench bench;

    test_case("capture");
    bench_init(&bench, config_of(0x0002f000));
    produce(&bench, 2, SCHED, 10);
    tell(&bench, MESSAGE_ATTACH, false, 0);
    must_come(&bench, MESSAGE_ATTACHED);
    close_sink(&bench);
    CHECK_UINT(ledger_of(&bench, 2).delivered, 10);
    CHECK_INT(pread(bench.fd, &window, sizeof(window), 0), sizeof(window));
    CHECK_UINT(window.header, WINDOW_HEADER);
    CHECK_UINT(window.cpu, 2);
    CHECK_UINT(window.bytes, 80);
    bench_done(&bench);
}

/* Records came, and the filter kept none: the session ends all the same. */
static void test_nothing_kept(void)
{
    struct bench bench;

    test_case("nothing kept");
    bench_init(&bench, config_of(0x0002f000));
    produce(&bench, 0, HVM, 10);
    tell(&bench, MESSAGE_ATTACH, false, 0);
    must_come(&bench, MESSAGE_ATTACHED);
    close_sink(&bench);
    CHECK_UINT(ledger_of(&bench, 0).produced, 0);
    bench_done(&bench);
}

/* The last grant comes when more is closed already: the session is told to end. */
static void test_final_grant(void)
{
    struct sink_config config = config_of(0x0002f000);
    struct bench bench;

    test_case("final grant");
    config.granted_bytes = 0;
    bench_init(&bench, config);
    produce(&bench, 0, SCHED, 100);
    tell(&bench, MESSAGE_ATTACH, false, 0);
    must_come(&bench, MESSAGE_GRANT_WANTED);
    tell(&bench, MESSAGE_DRAIN, true, 0); /* so that the chunk is closed */
    must_come(&bench, MESSAGE_DRAINED);
    tell(&bench, MESSAGE_GRANT, true, 100);
    produce(&bench, 0, SCHED, 100);
    tell(&bench, MESSAGE_DRAIN, true, 0);
    must_come(&bench, MESSAGE_LIMIT);
    must_come(&bench, MESSAGE_DRAINED);
    tell(&bench, MESSAGE_CLOSE, false, 0);
    must_come(&bench, MESSAGE_CLOSED);
    CHECK_UINT(ledger_of(&bench, 0).delivered, 0);
    CHECK_UINT(ledger_of(&bench, 0).dropped, 100);
    bench_done(&bench);
}

/* A buffer that makes no sense is set aside, and touched no more; the others go on. */
static void test_set_aside(void)
{
    struct bench bench;
    struct drain_cpu cpu;

    test_case("set aside");
    bench_init(&bench, config_of(0x0002f000));
    tell(&bench, MESSAGE_ATTACH, false, 0);
    must_come(&bench, MESSAGE_ATTACHED);
    __atomic_store_n(&((struct t_buf *)bench.buffer[0])->prod, 3, __ATOMIC_RELEASE);
    produce(&bench, 1, 0xf0021001u, 1); /* 8 bytes, of which it says that they are 40 */
    produce(&bench, 2, SCHED, 10);
    close_sink(&bench);
    for (unsigned int i = 0; i < CPUS; i++) {
        drain_read_cpu(collector_drain(bench.collector), i, &cpu);
        CHECK(cpu.has_buffer && cpu.set_aside == (i < 2));
    }
    CHECK_UINT(((struct t_buf *)bench.buffer[0])->cons, 0);
    CHECK_UINT(ledger_of(&bench, 2).delivered, 10);
    bench_done(&bench);
}

/* A watchdog's: the thread runs once for each, though there is nothing to do. */
static void test_poke(void)
{
    struct collector_stats before, after;
    struct bench bench;

    test_case("poke");
    bench_init(&bench, config_of(0x0002f000));
    for (unsigned int i = 0; i < 10; i++) {
        collector_read_stats(bench.collector, &before);
        collector_poke(bench.collector);
        for (unsigned int ms = 0; ms < 20000; ms++) {
            collector_read_stats(bench.collector, &after);
            if (after.wakeups != before.wakeups)
                break;
            (void)usleep(1000);
        }
        CHECK(after.wakeups != before.wakeups);
    }
    CHECK_UINT(after.rounds, 0);
    bench_done(&bench);
}

static void test_virq_is_counted(void)
{
    struct collector_stats stats = {0};
    struct bench bench;

    test_case("VIRQ_TBUF is counted");
    bench_init(&bench, config_of(0x0002f000));
    tell(&bench, MESSAGE_ATTACH, false, 0);
    must_come(&bench, MESSAGE_ATTACHED);
    collector_read_stats(bench.collector, &stats);
    CHECK_UINT(stats.virqs, 0);
    (void)eventfd_write(bench.host.virq_fd, 1);
    for (int i = 0; i < 5000 && stats.virqs == 0; i++) {
        (void)usleep(1000);
        collector_read_stats(bench.collector, &stats);
    }
    CHECK_UINT(stats.virqs, 1);
    close_sink(&bench);
    bench_done(&bench);
}

int main(void)
{
    struct xen_host host = {.virq_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct pool *pool = NULL;
    struct collector *collector = NULL;
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
    test_capture();
    test_nothing_kept();
    test_final_grant();
    test_set_aside();
    test_poke();
    test_virq_is_counted();
    return test_end();
}
