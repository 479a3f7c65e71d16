// SPDX-License-Identifier: GPL-2.0-or-later
/* No rounds while the collector holds; and sinks that hold, until their successors come. */

#include "collector/account.h"
#include "collector/grower.h"
#include "tests/unit/collector-rig.h"

#define SOME 100u

static void put_some(struct bench *bench, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++)
        for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++)
            CHECK(put_record(bench, cpu));
}

static void hold(struct bench *bench, bool holds, bool softly)
{
    collector_send(bench->collector, MESSAGE_HOLD, NULL, holds, softly);
}

static bool is_taken(const struct bench *bench)
{
    for (unsigned int i = 0; i < 2000 && waiting(bench, 0) + waiting(bench, 1) > 0; i++)
        (void)usleep(1000);
    return waiting(bench, 0) + waiting(bench, 1) == 0;
}

/* After some of the fallback timer's periods. */
static bool is_left(const struct bench *bench, unsigned int count)
{
    (void)usleep(20000);
    return waiting(bench, 0) == count * RECORD_BYTES;
}

static void check_all(struct bench *bench, unsigned int i)
{
    struct span span = span_of_file(bench, i);

    for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++) {
        CHECK_UINT(span.first[cpu], 0);
        CHECK_UINT(span.next[cpu], bench->number[cpu]);
    }
}

static void test_together(void)
{
    struct bench bench;

    test_case("what is attached while it holds begins together");
    bench_init(&bench, LARGE_PAGES);
    (void)add_sink(&bench, config_of(1000), NULL);
    (void)add_sink(&bench, config_of(1000), NULL);
    hold(&bench, true, false);
    put_some(&bench, SOME);
    attach(&bench, 0);
    put_some(&bench, SOME);
    attach(&bench, 1);
    CHECK(is_left(&bench, 2 * SOME));
    hold(&bench, false, false);
    CHECK(is_taken(&bench));
    put_some(&bench, SOME);
    close_sink(&bench, 0, true);
    close_sink(&bench, 1, true);
    check_all(&bench, 0);
    check_all(&bench, 1);
    bench_done(&bench);
}

static void test_last_hold(void)
{
    struct bench bench;

    test_case("what comes after the last round stays in the buffers");
    bench_init(&bench, LARGE_PAGES);
    (void)add_sink(&bench, config_of(1000), NULL);
    attach(&bench, 0);
    put_some(&bench, SOME);
    CHECK(is_taken(&bench));
    hold(&bench, true, false);
    put_some(&bench, 5);
    CHECK(is_left(&bench, 5));
    tell(&bench, 0, MESSAGE_CLOSE, false, 0);
    must_come(&bench, 0, MESSAGE_CLOSED);
    CHECK(is_left(&bench, 5));
    CHECK_UINT(span_of_file(&bench, 0).next[0], SOME);
    bench_done(&bench);

    test_case("an end does not wait for rounds");
    bench_init(&bench, LARGE_PAGES);
    (void)add_sink(&bench, config_of(1000), NULL);
    attach(&bench, 0);
    hold(&bench, true, false);
    put_some(&bench, SOME);
    close_sink(&bench, 0, true);
    bench_done(&bench);

    test_case("nor does what has ended but for its last round");
    bench_init(&bench, LARGE_PAGES);
    (void)add_sink(&bench, config_of(1000), NULL);
    attach(&bench, 0);
    tell(&bench, 0, MESSAGE_DRAIN, true, 0);
    must_come(&bench, 0, MESSAGE_DRAINED);
    tell(&bench, 0, MESSAGE_CLOSE, true, 0);
    hold(&bench, true, false);
    must_come(&bench, 0, MESSAGE_CLOSED);
    bench_done(&bench);

    test_case("nor one that has waited for a soft hold's end");
    bench_init(&bench, LARGE_PAGES);
    (void)add_sink(&bench, config_of(1000), NULL);
    hold(&bench, true, true);
    attach(&bench, 0);
    put_some(&bench, SOME);
    tell(&bench, 0, MESSAGE_DRAIN, true, 0);
    CHECK(is_left(&bench, SOME));
    receive_all(&bench);
    CHECK_UINT(bench.seen[0][MESSAGE_DRAINED], 0);
    hold(&bench, true, false);
    must_come(&bench, 0, MESSAGE_DRAINED);
    tell(&bench, 0, MESSAGE_CLOSE, true, 0);
    must_come(&bench, 0, MESSAGE_CLOSED);
    bench_done(&bench);
}

static void test_soft(void)
{
    struct bench bench;

    test_case("a soft hold ends when a buffer is half full");
    bench_init(&bench, SMALL_PAGES);
    (void)add_sink(&bench, config_of(1000), NULL);
    hold(&bench, true, true);
    attach(&bench, 0);
    put_some(&bench, SOME);
    CHECK(is_left(&bench, SOME));
    while (waiting(&bench, 0) < bench.data_bytes / 2)
        (void)put_record(&bench, 0);
    CHECK(is_taken(&bench));
    close_sink(&bench, 0, true);
    check_all(&bench, 0);
    bench_done(&bench);
}

static uint64_t borrowed_bytes(const struct ring *ring)
{
    struct ring_stats stats;

    ring_read_stats(ring, &stats);
    return stats.borrowed_bytes;
}

/* Messages are taken in their order: a pin that is in the ring came after the hold. */
static void wait_for_hold(struct bench *bench, struct ring *ring)
{
    int pin = ring_take_pin(ring);

    tell(bench, 0, MESSAGE_PIN, false, pin);
    must_come(bench, 0, MESSAGE_PINNED);
    ring_advance_pin(ring, pin, NULL);
}

/* What fills the smallest ring N times; taken at the end. */
static void put_rings(struct bench *bench, unsigned int n)
{
    for (uint64_t i = 0; i < n * RING_MIN_BYTES / RECORD_BYTES;)
        if (put_record(bench, (unsigned int)(i % BUSY_CPUS)))
            i++;
        else
            (void)usleep(50);
    CHECK(is_taken(bench));
}

/* A real-time thread that has nothing to do until the next daemon comes must not use a CPU. */
static void test_idle(void)
{
    struct collector_stats before, after;
    struct grower *grower;
    struct bench bench;
    struct ring *ring;
    int pin;

    test_case("a hold does not spin while a ring has borrowed");
    if (grower_new(UINT64_C(32) << 20, &grower) < 0 ||
        ring_new(RING_MIN_BYTES, CPUS, false, grower, &ring) < 0)
        exit(EXIT_FAILURE);
    bench_init(&bench, SMALL_PAGES); /* a round is to be smaller than the ring */
    (void)add_sink(&bench, config_of(1000), ring);
    attach(&bench, 0);
    put_rings(&bench, 1);
    pin = ring_take_pin(ring);
    tell(&bench, 0, MESSAGE_PIN, false, pin);
    must_come(&bench, 0, MESSAGE_PINNED);
    do /* the grower needs some milliseconds; until then the ring becomes shorter */
        put_rings(&bench, 1);
    while (borrowed_bytes(ring) == 0);
    put_rings(&bench, 1);
    hold(&bench, true, false);
    wait_for_hold(&bench, ring);
    ring_advance_pin(ring, pin, NULL);
    hold(&bench, true, false); /* wakes it: what is borrowed may go back now, by the ring alone */
    collector_read_stats(bench.collector, &before);
    (void)usleep(100 * USEC_PER_MSEC);
    collector_read_stats(bench.collector, &after);
    CHECK(after.wakeups - before.wakeups < 10);
    CHECK(borrowed_bytes(ring) > 0);
    hold(&bench, false, false);
    for (unsigned int i = 0; i < 5000 && borrowed_bytes(ring) > 0; i++)
        (void)usleep(1000);
    CHECK_UINT(borrowed_bytes(ring), 0);
    close_sink(&bench, 0, true);
    bench_done(&bench);
    ring_free(ring);
    grower_free(grower);
}

static unsigned int add_holder(struct bench *bench, struct account *account)
{
    struct sink_config config = config_of(1000);

    config.fd = -1;
    config.holds = true;
    config.account = account;
    return add_sink(bench, config, NULL);
}

static void test_alone(void)
{
    struct bench bench;

    test_case("alone, a sink that holds leaves the records to its successor");
    bench_init(&bench, LARGE_PAGES);
    (void)add_holder(&bench, NULL);
    (void)add_sink(&bench, config_of(1000), NULL);
    attach(&bench, 0);
    put_some(&bench, SOME);
    CHECK(is_left(&bench, SOME));
    collector_send_successor(bench.collector, bench.sinks[0], bench.sinks[1], true);
    must_come(&bench, 0, MESSAGE_SUCCEEDED);
    must_come(&bench, 0, MESSAGE_CLOSED);
    CHECK(is_taken(&bench));
    put_some(&bench, SOME);
    close_sink(&bench, 1, true);
    check_all(&bench, 1);
    bench_done(&bench);
}

/* How many records the first window of a file reports as lost. */
static uint64_t first_told(const struct bench *bench, unsigned int i)
{
    uint8_t data[WINDOW_HEADER_BYTES + LOST_RECORD_BYTES];
    struct lost_record lost;
    uint32_t header;

    CHECK_INT(pread(bench->fds[i], data, sizeof(data), 0), sizeof(data));
    memcpy(&header, data + WINDOW_HEADER_BYTES, sizeof(header));
    memcpy(&lost, data + WINDOW_HEADER_BYTES, sizeof(lost));
    return record_is_lost(header) ? lost.count : 0;
}

static void test_beside(void)
{
    struct sink_totals totals;
    struct ledger ledger;
    struct bench bench;

    test_case("beside another it drops them, and its successor reports that");
    bench_init(&bench, LARGE_PAGES);
    hold(&bench, true, false);
    (void)add_holder(&bench, NULL);
    (void)add_sink(&bench, config_of(1000), NULL);
    (void)add_sink(&bench, config_of(1000), NULL);
    attach(&bench, 0);
    attach(&bench, 1);
    hold(&bench, false, false);
    put_some(&bench, SOME);
    CHECK(is_taken(&bench));
    sink_add_gap(bench.sinks[2], 0, 1000, 1);
    collector_send_successor(bench.collector, bench.sinks[0], bench.sinks[2], true);
    must_come(&bench, 0, MESSAGE_SUCCEEDED);
    put_some(&bench, SOME);
    close_sink(&bench, 2, false);
    close_sink(&bench, 1, true);
    sink_read_ledger(bench.sinks[0], 0, &ledger);
    sink_read_totals(bench.sinks[0], &totals);
    CHECK_UINT(ledger.produced, SOME);
    CHECK_UINT(ledger.dropped, SOME);
    CHECK(totals.drops[DROP_RESUMING] >= SOME); /* of all CPUs */
    sink_read_ledger(bench.sinks[2], 0, &ledger);
    CHECK_UINT(ledger.delivered, SOME);
    CHECK_UINT(ledger.dropped, 0);
    CHECK_UINT(first_told(&bench, 2), 1000 + SOME);
    check_all(&bench, 1);
    bench_done(&bench);
}

/* Nothing that was produced while it held is in no figure. */
static void test_ended(bool in_hold, bool beside)
{
    struct bench bench;

    test_case(in_hold ? "ended in a soft hold, it counts what has waited"
                      : "ended, it counts what has waited");
    bench_init(&bench, LARGE_PAGES);
    hold(&bench, true, true);
    (void)add_holder(&bench, NULL);
    (void)add_sink(&bench, config_of(1000), NULL);
    attach(&bench, 0);
    if (beside)
        attach(&bench, 1);
    put_some(&bench, SOME);
    if (!in_hold)
        hold(&bench, false, false);
    CHECK(beside && !in_hold ? is_taken(&bench) : is_left(&bench, SOME));
    tell(&bench, 0, MESSAGE_GRANT, true, 0);
    tell(&bench, 0, MESSAGE_DRAIN, !beside, 0);
    if (in_hold)
        hold(&bench, false, false);
    must_come(&bench, 0, MESSAGE_DRAINED);
    tell(&bench, 0, MESSAGE_CLOSE, !beside, 0);
    must_come(&bench, 0, MESSAGE_CLOSED);
    CHECK(is_taken(&bench));
    for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++) {
        struct ledger ledger;

        sink_read_ledger(bench.sinks[0], cpu, &ledger);
        CHECK_UINT(ledger.produced, SOME);
        CHECK_UINT(ledger.dropped, SOME);
    }
    if (beside) {
        close_sink(&bench, 1, true);
        check_all(&bench, 1);
    }
    bench_done(&bench);
}

static void test_account(void)
{
    int fd = memfd_create("account", MFD_CLOEXEC);
    struct account *account = NULL;
    struct bench bench;

    test_case("an account is settled before the first round");
    if (!CHECK_INT(account_map(fd, CPUS, true, &account), 0))
        return;
    account_enter(account, 0, 100, 400, 70, 7); /* Xen's consumer stands at 400: see bench_init() */
    account_enter(account, 1, 100, 400, 50, 0);
    account_enter(account, 1, 400, 700, 9, 0); /* was not given back */
    account_free(account);
    if (!CHECK_INT(account_map(fd, CPUS, false, &account), 0))
        return;
    bench_init(&bench, LARGE_PAGES);
    hold(&bench, true, false);
    (void)add_holder(&bench, account);
    attach(&bench, 0);
    CHECK(!account_is_settled(account));
    hold(&bench, true, true);
    for (unsigned int i = 0; i < 2000 && !account_is_settled(account); i++)
        (void)usleep(1000);
    CHECK(account_is_settled(account));
    CHECK_UINT(account_base(account, 0).produced, 70);
    CHECK_UINT(account_base(account, 0).lost, 7);
    CHECK_UINT(account_base(account, 1).produced, 50);
    hold(&bench, false, false);
    tell(&bench, 0, MESSAGE_CLOSE, false, 0);
    must_come(&bench, 0, MESSAGE_CLOSED);
    bench_done(&bench);
    account_free(account);
    close(fd);
}

int main(void)
{
    if (!bench_is_possible())
        return TEST_SKIPPED;
    test_together();
    test_last_hold();
    test_soft();
    test_alone();
    test_beside();
    for (unsigned int i = 0; i < 4; i++)
        test_ended(i & 1, i & 2);
    test_idle();
    test_account();
    return test_end();
}
