// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stuck-sink FROZEN: a sink of the collector writes to a file in the directory FROZEN, whose file
 * system is frozen meanwhile, beside a sink with a healthy output. The stuck one is given up: its
 * figures are final while it is frozen, it is closed after the thaw, and the other one has all
 * records. Needs root.
 */

#include <linux/fs.h>
#include <sys/ioctl.h>

#include "tests/unit/collector-rig.h"

#define FILE_BYTES (UINT64_C(1) << 20) /* that are written before the freeze, at least */

static struct sink_totals totals_of(const struct bench *bench, unsigned int i)
{
    struct sink_totals totals;

    sink_read_totals(bench->sinks[i], &totals);
    return totals;
}

static struct ledger ledger_of(const struct bench *bench, unsigned int i)
{
    struct ledger sum = {0};

    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        struct ledger ledger;

        sink_read_ledger(bench->sinks[i], cpu, &ledger);
        sum.produced += ledger.produced;
        sum.delivered += ledger.delivered;
        sum.dropped += ledger.dropped;
    }
    return sum;
}

static bool has_come(struct bench *bench, unsigned int i, enum message_type type)
{
    receive_all(bench);
    return bench->seen[i][type] > 0;
}

/* Gives up sink STUCK, whose file system is frozen: then and after the thaw it is as long as it is
 * counted. */
static void give_up(struct bench *bench, unsigned int stuck, int frozen)
{
    struct sink_totals totals;
    struct ledger ledger;

    tell(bench, stuck, MESSAGE_ABORT, false, 0);
    must_come(bench, stuck, MESSAGE_ABANDONED);
    totals = totals_of(bench, stuck);
    ledger = ledger_of(bench, stuck);
    CHECK(ledger.dropped > 0);
    CHECK_UINT(ledger.produced, ledger.delivered + ledger.dropped);
    CHECK(totals.writing_since_usec > 0);
    await_records(bench, 20000);
    CHECK(!has_come(bench, stuck, MESSAGE_CLOSED));
    CHECK(ioctl(frozen, FITHAW, 0) >= 0);
    must_come(bench, stuck, MESSAGE_CLOSED);
    CHECK_UINT(totals_of(bench, stuck).output_bytes, totals.output_bytes);
    CHECK_UINT(totals_of(bench, stuck).writing_since_usec, 0);
    CHECK_UINT(ledger_of(bench, stuck).delivered, ledger.delivered);
    CHECK_UINT(ledger_of(bench, stuck).dropped, ledger.dropped);
}

/* The file is whole up to output_bytes: all that was delivered. */
static void check_file(struct bench *bench, unsigned int i)
{
    struct sink_totals totals = totals_of(bench, i);
    struct span span = {.sound = true};
    uint8_t *data = aligned_alloc(PAGE_BYTES, align_up(totals.output_bytes, PAGE_BYTES));
    uint64_t records = 0;

    CHECK_INT(pread(bench->fds[i], data, totals.output_bytes, 0), totals.output_bytes);
    span_add_windows(&span, data, totals.output_bytes);
    CHECK(span.sound);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        records += span.next[cpu] - span.first[cpu];
    CHECK_UINT(records, ledger_of(bench, i).delivered);
    free(data);
}

static void test_stuck_sink(const char *dir)
{
    struct sink_config config = config_of(1000);
    unsigned int stuck, healthy;
    struct bench bench;
    struct span span;
    char path[4096];
    int frozen;

    test_case("a sink on a frozen file system");
    (void)snprintf(path, sizeof(path), "%s/stuck", dir);
    frozen = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    config.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
    config.align_bytes = PAGE_BYTES;
    if (frozen < 0 || config.fd < 0) {
        perror(dir);
        exit(EXIT_FAILURE);
    }
    bench_init(&bench, SMALL_PAGES);
    healthy = add_sink(&bench, config_of(1000), NULL);
    stuck = add_sink(&bench, config, NULL);
    attach(&bench, healthy);
    attach(&bench, stuck);
    start_producer(&bench);
    while (totals_of(&bench, stuck).output_bytes < FILE_BYTES)
        (void)usleep(1000);
    CHECK(ioctl(frozen, FIFREEZE, 0) >= 0);
    while (totals_of(&bench, stuck).queued_bytes < FILE_BYTES)
        (void)usleep(1000);
    give_up(&bench, stuck, frozen);
    stop_producer(&bench);
    close_sink(&bench, healthy, true);
    check_file(&bench, stuck);
    span = span_of_file(&bench, healthy);
    for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++)
        CHECK_UINT(span.next[cpu], bench.number[cpu]);
    bench_done(&bench);
    (void)close(frozen);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: stuck-sink FROZEN\n");
        return EXIT_FAILURE;
    }
    test_stuck_sink(argv[1]);
    return test_end();
}
