// SPDX-License-Identifier: GPL-2.0-or-later

/* Sinks that are attached, pinned, succeeded and closed beside each other, while records flow. */

#include "tests/unit/collector-rig.h"

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

/* On each busy CPU, in this thread. */
static void put_some(struct bench *bench)
{
    for (unsigned int i = 0; i < 100; i++)
        for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++)
            while (!put_record(bench, cpu))
                (void)usleep(50);
}

/*
 * Produces, in this thread, until MESSAGE about sink I comes: what it was told before is then known
 * to the collector before records come, however late this thread gets its turn.
 */
static void produce_until(struct bench *bench, unsigned int i, enum message_type message)
{
    while (bench->seen[i][message] == 0) {
        if (!put_record(bench, 0) || !put_record(bench, 1))
            (void)usleep(50);
        receive_all(bench);
    }
    must_come(bench, i, message);
}

/* Each is as long as it is to be, but for a round; the last is ended early. */
static void test_successors_by_length(void)
{
    const uint64_t round_bytes = CPUS * (SMALL_PAGES * PAGE_BYTES + WINDOW_HEADER_BYTES);
    struct sink_config config = config_of(1000);
    struct bench bench;
    unsigned int i;

    test_case("successors, by length");
    config.rotate_bytes = 1000000;
    bench_init(&bench, SMALL_PAGES);
    (void)add_sink(&bench, config, NULL);
    attach(&bench, 0);
    for (i = 1; i < 8; i++) {
        (void)add_sink(&bench, config, NULL);
        collector_send_successor(bench.collector, bench.sinks[i - 1], bench.sinks[i], false);
        if (i == 7) { /* asked for again, and now */
            put_some(&bench);
            collector_send_successor(bench.collector, bench.sinks[i - 1], bench.sinks[i], true);
        }
        produce_until(&bench, i - 1, MESSAGE_SUCCEEDED);
        must_come(&bench, i - 1, MESSAGE_CLOSED);
    }
    put_some(&bench);
    close_sink(&bench, i - 1, true);
    check_in_a_row(&bench, i);
    for (unsigned int j = 0; j + 2 < i; j++) {
        struct sink_totals totals;

        sink_read_totals(bench.sinks[j], &totals);
        CHECK(totals.output_bytes >= config.rotate_bytes - round_bytes);
        CHECK(totals.output_bytes <= config.rotate_bytes + round_bytes);
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

/* --- Nobody has room. --- */

#define FULL_RECORD       0xb0021001u /* with a TSC and three words: a buffer is a multiple of it */
#define FULL_RECORD_BYTES 24u

struct filler {
    struct bench *bench;
    uint64_t records; /* that were produced on each busy CPU */
};

/* The busy CPUs' buffers are full of records again as soon as they are empty. */
static void *keep_full(void *context)
{
    struct filler *filler = context;
    struct bench *bench = filler->bench;

    while (!__atomic_load_n(&bench->stops, __ATOMIC_ACQUIRE)) {
        if (waiting(bench, 0) > 0 || waiting(bench, 1) > 0)
            continue;
        for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++) {
            struct t_buf *shared = bench->buffer[cpu];

            __atomic_store_n(&shared->prod,
                             (shared->prod + bench->data_bytes) % (2 * bench->data_bytes),
                             __ATOMIC_RELEASE);
        }
        filler->records += bench->data_bytes / FULL_RECORD_BYTES;
        (void)eventfd_write(bench->host.virq_fd, 1);
    }
    return NULL;
}

static void fill_with_records(struct bench *bench)
{
    const uint32_t words[FULL_RECORD_BYTES / 4] = {FULL_RECORD, 1000};

    CHECK_UINT(bench->data_bytes % FULL_RECORD_BYTES, 0);
    for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++) {
        struct t_buf *shared = bench->buffer[cpu];

        shared->cons = shared->prod = 0;
        for (uint32_t i = 0; i < bench->data_bytes; i += FULL_RECORD_BYTES)
            memcpy((uint8_t *)shared + sizeof(*shared) + i, words, sizeof(words));
    }
}

static uint64_t dropped_by(const struct bench *bench, unsigned int i)
{
    uint64_t dropped = 0;

    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        struct ledger ledger;

        sink_read_ledger(bench->sinks[i], cpu, &ledger);
        dropped += ledger.dropped;
    }
    return dropped;
}

/*
 * While all that its rounds do is to drop, the thread leaves the processor to the disk's workers,
 * however full the buffers are: it waits up to 5 ms for one of them. One that has room changes
 * that.
 */
static void test_only_dropping(bool one_has_room)
{
    const unsigned int measured_ms = 300;
    struct ring *ring = one_has_room ? new_ring(RING_MIN_BYTES) : NULL;
    struct sink_config config = config_of(1000);
    struct collector_stats before, after;
    struct bench bench;
    struct filler filler = {.bench = &bench};

    test_case(one_has_room ? "two drop, one has room" : "all drop");
    bench_init(&bench, SMALL_PAGES);
    collector_free(bench.collector); /* the buffers are other ones now */
    fill_with_records(&bench);
    if (collector_new(&bench.host, bench.pool, &bench.collector) < 0 ||
        collector_set_buffers(bench.collector,
                              &(struct xen_trace_buffers){.nr_cpus = CPUS,
                                                          .pages = SMALL_PAGES,
                                                          .buffer = bench.buffer}) < 0)
        exit(EXIT_FAILURE);
    config.granted_bytes = 0;
    attach(&bench, add_sink(&bench, config, NULL));
    attach(&bench, add_sink(&bench, config, NULL));
    if (ring)
        attach(&bench, add_sink(&bench, config_of(1000), ring));
    if (pthread_create(&bench.producer, NULL, keep_full, &filler) != 0)
        exit(EXIT_FAILURE);
    while (dropped_by(&bench, 0) == 0 || dropped_by(&bench, 1) == 0)
        (void)usleep(1000);
    collector_read_stats(bench.collector, &before);
    (void)usleep(measured_ms * USEC_PER_MSEC);
    collector_read_stats(bench.collector, &after);
    printf("%s: %ju rounds in %u ms\n", one_has_room ? "two drop, one has room" : "all drop",
           (uintmax_t)(after.rounds - before.rounds), measured_ms);
    if (one_has_room)
        CHECK(after.rounds - before.rounds > measured_ms);
    else
        CHECK(after.rounds - before.rounds < measured_ms);
    stop_producer(&bench);
    for (unsigned int i = 0; i < 2; i++)
        tell(&bench, i, MESSAGE_GRANT, false, INT64_MAX);
    for (unsigned int i = 0; i < bench.nr_sinks; i++)
        close_sink(&bench, i, true);
    for (unsigned int i = 0; i < bench.nr_sinks; i++) {
        struct sink_totals totals;

        sink_read_totals(bench.sinks[i], &totals);
        CHECK((totals.drops[DROP_NO_SPACE] > 0) == (i < 2)); /* they were granted none */
        CHECK_UINT(totals.drops[DROP_NO_SPACE] + totals.drops[DROP_SLOW_OUTPUT],
                   dropped_by(&bench, i));
        for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
            struct ledger ledger;

            sink_read_ledger(bench.sinks[i], cpu, &ledger);
            CHECK_UINT(ledger.produced, cpu < BUSY_CPUS ? filler.records : 0);
            CHECK_UINT(ledger.produced, ledger.delivered + ledger.dropped + ledger.evicted);
        }
    }
    bench_done(&bench);
    ring_free(ring);
}

/* --- Sinks that are given up. --- */

/* Produces, in this thread, until sink I has a write under way that does not end. */
static void produce_until_stuck(struct bench *bench, unsigned int i)
{
    struct sink_totals totals;

    do {
        put_some(bench);
        sink_read_totals(bench->sinks[i], &totals);
    } while (totals.writing_since_usec == 0 || totals.queued_bytes < 2 * CHUNK_BYTES);
}

static struct ledger ledger_of(const struct bench *bench, unsigned int i)
{
    struct ledger sum = {0};

    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        struct ledger ledger;

        sink_read_ledger(bench->sinks[i], cpu, &ledger);
        CHECK_UINT(ledger.produced, ledger.delivered + ledger.dropped + ledger.lost);
        sum.produced += ledger.produced;
        sum.delivered += ledger.delivered;
        sum.dropped += ledger.dropped;
    }
    return sum;
}

/* An output that nobody reads, which is stuck as long as PIPE's other end is open. */
static unsigned int add_stuck(struct bench *bench, int *ret_reader)
{
    struct sink_config config = config_of(1000);
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        exit(EXIT_FAILURE);
    config.fd = fds[1];
    config.is_stream = true;
    config.granted_bytes = CHUNK_BYTES; /* so that no successor takes over */
    *ret_reader = fds[0];
    return add_sink(bench, config, NULL);
}

/* While records flow, with a successor waiting: nothing of it is taken any more, nothing is lost
 * for others, and its figures are final with ABANDONED. */
static void test_abandon(void)
{
    unsigned int healthy, stuck, next;
    struct sink_totals totals, later;
    struct ledger ledger;
    struct bench bench;
    struct span span;
    int reader;

    test_case("abandon while fed");
    bench_init(&bench, SMALL_PAGES);
    healthy = add_sink(&bench, config_of(1000), NULL);
    stuck = add_stuck(&bench, &reader);
    next = add_sink(&bench, config_of(1000), NULL);
    attach(&bench, healthy);
    attach(&bench, stuck);
    produce_until_stuck(&bench, stuck);
    collector_send_successor(bench.collector, bench.sinks[stuck], bench.sinks[next], true);
    tell(&bench, stuck, MESSAGE_ABORT, true, 0);
    tell(&bench, stuck, MESSAGE_ABORT, true, 0);
    tell(&bench, stuck, MESSAGE_DRAIN, false, 0); /* sent before we knew */
    tell(&bench, stuck, MESSAGE_SETTLE, false, 0);
    tell(&bench, stuck, MESSAGE_GRANT, true, 0);
    tell(&bench, stuck, MESSAGE_CLOSE, false, 0);
    must_come(&bench, stuck, MESSAGE_FAILED);
    must_come(&bench, stuck, MESSAGE_ABANDONED);
    ledger = ledger_of(&bench, stuck);
    sink_read_totals(bench.sinks[stuck], &totals);
    CHECK_UINT(totals.queued_bytes, 0);
    CHECK(ledger.dropped > 0);
    CHECK(totals.drops[DROP_ABORTED] > 0); /* the disk was slow before, maybe */
    CHECK_UINT(totals.drops[DROP_ABORTED] + totals.drops[DROP_SLOW_OUTPUT], ledger.dropped);
    must_come(&bench, stuck, MESSAGE_CLOSED);
    put_some(&bench);
    tell(&bench, stuck, MESSAGE_ABORT, false, 0); /* crosses with CLOSED */
    put_some(&bench);
    close_sink(&bench, healthy, true);

    sink_read_totals(bench.sinks[stuck], &later);
    CHECK_UINT(later.output_bytes, totals.output_bytes);
    CHECK_UINT(later.windows, totals.windows);
    CHECK_UINT(later.writing_since_usec, 0);
    CHECK_UINT(ledger_of(&bench, stuck).produced, ledger.produced);
    CHECK_UINT(ledger_of(&bench, stuck).delivered, ledger.delivered);
    CHECK_UINT(ledger_of(&bench, stuck).dropped, ledger.dropped);
    bench.seen[stuck][MESSAGE_GRANT_WANTED] = 0; /* may come before */
    for (enum message_type type = 0; type <= MESSAGE_DIED; type++)
        CHECK_UINT(bench.seen[stuck][type], 0); /* once each, and nothing else */
    CHECK_UINT(ledger_of(&bench, next).produced, 0);
    span = span_of_file(&bench, healthy);
    for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++)
        CHECK_UINT(span.next[cpu], bench.number[cpu]);
    (void)close(reader);
    bench_done(&bench);
}

/*
 * What a successor has is not written before the end of the output that it continues: after a
 * SIGKILL, or a write that fails, no output begins after an unreported gap.
 */
static void test_successor_waits(bool before_fails)
{
    struct sink_config config = config_of(1000);
    unsigned int before, next;
    struct sink_totals totals;
    struct ledger ledger;
    struct bench bench;
    char bytes[4096];
    int fds[2];

    test_case(before_fails ? "a successor of an output that fails" : "a successor waits");
    bench_init(&bench, SMALL_PAGES);
    if (pipe2(fds, O_CLOEXEC) < 0)
        exit(EXIT_FAILURE);
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK); /* known to work for a pipe */
    config.fd = fds[1];
    config.is_stream = true;
    before = add_sink(&bench, config, NULL);
    next = add_sink(&bench, config_of(1000), NULL);
    attach(&bench, before);
    produce_until_stuck(&bench, before);
    collector_send_successor(bench.collector, bench.sinks[before], bench.sinks[next], true);
    must_come(&bench, before, MESSAGE_SUCCEEDED);
    do {
        put_some(&bench);
        sink_read_totals(bench.sinks[next], &totals);
    } while (totals.queued_bytes < 2 * CHUNK_BYTES);
    CHECK_UINT(totals.writing_since_usec, 0);
    CHECK_INT(lseek(bench.fds[next], 0, SEEK_END), 0);

    if (before_fails) {
        (void)close(fds[0]); /* EPIPE */
        must_come(&bench, before, MESSAGE_FAILED);
    }
    for (; bench.seen[before][MESSAGE_CLOSED] == 0; receive_all(&bench))
        if (!before_fails)
            (void)!read(fds[0], bytes, sizeof(bytes)); /* EAGAIN: the next one comes */
    close_sink(&bench, next, true);
    ledger = ledger_of(&bench, next);
    sink_read_totals(bench.sinks[next], &totals);
    CHECK(ledger.produced > 0);
    CHECK_UINT(before_fails ? ledger.delivered : ledger.dropped, 0);
    CHECK_UINT(totals.drops[DROP_OUTPUT_FAILED], ledger.dropped);
    CHECK_UINT(totals.windows == 0, before_fails);
    CHECK_INT(lseek(bench.fds[next], 0, SEEK_END), (int64_t)totals.output_bytes);
    CHECK_UINT(totals.output_bytes == 0, before_fails);
    if (!before_fails)
        CHECK_UINT(ledger_of(&bench, before).produced + ledger.produced,
                   (uint64_t)bench.number[0] + bench.number[1]);
    bench_done(&bench);
}

/* At each point of its end. */
static void test_abandon_ending(enum message_type last)
{
    struct bench bench;
    unsigned int stuck;
    int reader;

    test_case(last == MESSAGE_CLOSE ? "abandon while closing" : "abandon after draining");
    bench_init(&bench, SMALL_PAGES);
    stuck = add_stuck(&bench, &reader);
    attach(&bench, stuck);
    produce_until_stuck(&bench, stuck);
    tell(&bench, stuck, MESSAGE_DRAIN, true, 0);
    must_come(&bench, stuck, MESSAGE_DRAINED);
    if (last == MESSAGE_CLOSE)
        tell(&bench, stuck, MESSAGE_CLOSE, true, 0);
    tell(&bench, stuck, MESSAGE_ABORT, false, 0);
    must_come(&bench, stuck, MESSAGE_FAILED);
    must_come(&bench, stuck, MESSAGE_ABANDONED);
    must_come(&bench, stuck, MESSAGE_CLOSED);
    CHECK_UINT(ledger_of(&bench, stuck).produced,
               (uint64_t)bench.number[0] + bench.number[1] + bench.number[2]);
    (void)close(reader);
    bench_done(&bench);
}

/* A sink of which all is written loses nothing; a ring's pins are answered. */
static void test_abandon_quiet(void)
{
    struct ring *ring = new_ring(RING_MIN_BYTES);
    struct sink_totals totals = {0};
    unsigned int file, recorder;
    struct bench bench;
    uint64_t bytes;
    int pin;

    test_case("abandon with nothing to give up");
    bench_init(&bench, SMALL_PAGES);
    file = add_sink(&bench, config_of(1000), NULL);
    recorder = add_sink(&bench, config_of(USEC_PER_SEC), ring);
    attach(&bench, file);
    attach(&bench, recorder);
    put_some(&bench);
    tell(&bench, file, MESSAGE_DRAIN, true, 0);
    must_come(&bench, file, MESSAGE_DRAINED);
    bytes = ledger_of(&bench, file).delivered * RECORD_BYTES;
    while (totals.output_bytes < bytes)
        sink_read_totals(bench.sinks[file], &totals);
    tell(&bench, file, MESSAGE_ABORT, false, 0);
    must_come(&bench, file, MESSAGE_ABANDONED);
    must_come(&bench, file, MESSAGE_CLOSED);
    CHECK_UINT(bench.seen[file][MESSAGE_FAILED], 0);
    CHECK(ledger_of(&bench, file).delivered > 0);
    (void)span_of_file(&bench, file);

    pin = ring_take_pin(ring);
    tell(&bench, recorder, MESSAGE_PIN, false, pin);
    tell(&bench, recorder, MESSAGE_ABORT, false, 0);
    must_come(&bench, recorder, MESSAGE_PINNED);
    must_come(&bench, recorder, MESSAGE_ABANDONED);
    must_come(&bench, recorder, MESSAGE_CLOSED);
    CHECK_UINT(bench.seen[recorder][MESSAGE_FAILED], 0);
    ring_advance_pin(ring, pin, NULL);
    bench_done(&bench);
    ring_free(ring);
}

int main(void)
{
    if (!bench_is_possible())
        return TEST_SKIPPED;
    test_together();
    test_successors_now(SMALL_PAGES);
    test_successors_now(LARGE_PAGES);
    test_successors_by_length();
    test_pin_and_close();
    test_only_dropping(false);
    test_only_dropping(true);
    test_successor_waits(false);
    test_successor_waits(true);
    test_abandon();
    test_abandon_ending(MESSAGE_DRAIN);
    test_abandon_ending(MESSAGE_CLOSE);
    test_abandon_quiet();
    return test_end();
}
