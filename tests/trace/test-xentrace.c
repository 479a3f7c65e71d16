// SPDX-License-Identifier: GPL-2.0-or-later
/* The public interface, on traces in memory: records, fields, parts, observers, errors. */

#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "common/record.h"
#include "tests/unit/test.h"
#include "trace/xentrace.h"

struct bytes {
    unsigned char data[4096];
    size_t used;
};

static void put(struct bytes *bytes, uint32_t word)
{
    memcpy(bytes->data + bytes->used, &word, sizeof(word));
    bytes->used += sizeof(word);
}

static void put_window(struct bytes *bytes, uint32_t cpu, uint32_t records_bytes)
{
    put(bytes, WINDOW_HEADER);
    put(bytes, cpu);
    put(bytes, records_bytes);
}

/* A record of 16 bytes. */
static void put_record(struct bytes *bytes, uint32_t event, uint32_t tsc, uint32_t word)
{
    put(bytes, UINT32_C(1) << 31 | UINT32_C(1) << 28 | event);
    put(bytes, tsc);
    put(bytes, 0);
    put(bytes, word);
}

#define D1V2 0x00010002u

/* On CPU 3, d1v2 waits from 100 to 300 and runs to 500, with an exit from 350 to 400. */
static void make_trace(struct bytes *bytes)
{
    bytes->used = 0;
    put_window(bytes, 3, 6 * 16);
    put_record(bytes, 0x21211, 100, D1V2);
    put_record(bytes, 0x21101, 300, D1V2);
    put_record(bytes, 0x81002, 350, 12);
    put_record(bytes, 0x81001, 400, 0);
    put_record(bytes, 0x21021, 500, D1V2);
    put_record(bytes, 0x55123, 600, 77);
}

static struct xentrace *open_bytes(const struct bytes *bytes)
{
    struct xentrace *trace = NULL;

    CHECK_INT(xentrace_open_memory(bytes->data, bytes->used, NULL, &trace), 0);
    return trace;
}

static void test_records(void)
{
    const struct xentrace_record *record;
    const struct xentrace_field *fields;
    struct xentrace *trace;
    struct bytes bytes;

    test_case("records and their fields");
    make_trace(&bytes);
    trace = open_bytes(&bytes);
    CHECK_INT(xentrace_first_tsc(trace), 100);
    CHECK_INT(xentrace_fields(trace, &fields), 0);
    CHECK_STR(xentrace_text(trace), "");
    CHECK_INT(xentrace_next(trace, &record), 1);
    CHECK_INT(record->tsc, 100);
    CHECK_INT(record->nsec, 0);
    CHECK_INT(record->cpu, 3);
    CHECK_INT(record->event, 0x21211);
    CHECK_STR(record->name, "blocked_to_runnable");
    CHECK_INT(record->nr_words, 1);
    CHECK_INT(record->words[0], D1V2);
    CHECK_INT(xentrace_fields(trace, &fields), 1);
    CHECK_STR(fields[0].name, "vcpu");
    CHECK_INT(fields[0].type, XENTRACE_VCPU);
    CHECK_INT(fields[0].value, D1V2);
    CHECK_INT(xentrace_next(trace, &record), 1);
    CHECK_INT(record->nsec, 200 * 1000000 / 2400000);
    CHECK_STR(xentrace_text(trace), "+0.000000083 CPU3 runnable_to_running vcpu=d1v2");
    CHECK_INT(xentrace_next(trace, &record), 1);
    CHECK(xentrace_field(trace, "reason") && xentrace_field(trace, "reason")->text);
    CHECK(!xentrace_field(trace, "nothing"));
    for (int i = 0; i < 3; i++)
        CHECK_INT(xentrace_next(trace, &record), 1);
    test_case("an unknown event");
    CHECK(!record->name);
    CHECK_INT(xentrace_field(trace, "word0")->value, 77);
    CHECK_INT(xentrace_next(trace, &record), 0);
    CHECK_INT(xentrace_next(trace, &record), 0);
    CHECK_STR(xentrace_text(trace), "");
    xentrace_close(trace);
}

static void test_parts(void)
{
    const struct xentrace_record *record;
    struct xentrace *trace;
    struct bytes bytes;

    test_case("parts of a trace");
    make_trace(&bytes);
    trace = open_bytes(&bytes);
    CHECK_INT(xentrace_seek(trace, 301), 0);
    CHECK_INT(xentrace_next(trace, &record), 1);
    CHECK_INT(record->tsc, 350);
    CHECK_INT(record->nsec, 250 * 1000000 / 2400000); /* since the trace began */
    CHECK_INT(xentrace_seek(trace, 0), 0);
    CHECK_INT(xentrace_next(trace, &record), 1);
    CHECK_INT(record->tsc, 100);
    CHECK_INT(xentrace_select(trace, 300, 400), 0);
    CHECK_INT(xentrace_next(trace, &record), 1);
    CHECK_INT(xentrace_next(trace, &record), 1);
    CHECK_INT(record->tsc, 350);
    CHECK_INT(xentrace_next(trace, &record), 0);
    CHECK_INT(xentrace_select(trace, 400, 400), -EINVAL);
    CHECK_INT(xentrace_seek(trace, UINT64_MAX), 0);
    CHECK_INT(xentrace_next(trace, &record), 0);
    xentrace_close(trace);
}

struct seen {
    unsigned int intervals, exits, of_cpus, gaps;
    struct xentrace_gap gap;
    struct xentrace_cpu_interval of_cpu;
    struct xentrace_interval interval;
    struct xentrace_exit exit;
    int result;
};

static int on_interval(void *context, const struct xentrace_interval *interval)
{
    struct seen *seen = context;

    seen->intervals++;
    seen->interval = *interval;
    return seen->result;
}

static int on_exit_end(void *context, const struct xentrace_exit *exit)
{
    struct seen *seen = context;

    seen->exits++;
    seen->exit = *exit;
    return seen->result;
}

static int on_cpu_interval(void *context, const struct xentrace_cpu_interval *interval)
{
    struct seen *seen = context;

    seen->of_cpus++;
    seen->of_cpu = *interval;
    return seen->result;
}

/* On CPU 3: an idle state from 100 to 300, another one that a loss at 500 cuts. */
static void test_cpu_intervals(void)
{
    struct seen seen = {};
    struct xentrace_observer observer = {
        .size = sizeof(observer),
        .context = &seen,
        .cpu_interval = on_cpu_interval,
    };
    struct xentrace *trace;
    struct bytes bytes = {};

    test_case("intervals of CPUs");
    put_window(&bytes, 3, 3 * 16 + 28);
    put_record(&bytes, 0x801002, 100, 2);
    put_record(&bytes, 0x801003, 300, 2);
    put_record(&bytes, 0x801002, 400, 1);
    put(&bytes, UINT32_C(1) << 31 | UINT32_C(4) << 28 | 0x1f001);
    for (size_t i = 0; i < 6; i++)
        put(&bytes, (const uint32_t[]){700, 0, 9, 0, 500, 0}[i]);
    trace = open_bytes(&bytes);
    CHECK_INT(xentrace_observe(trace, &observer), 0);
    CHECK_INT(xentrace_run(trace, 2), 1);
    CHECK_INT(seen.of_cpus, 1);
    CHECK_INT(seen.of_cpu.cpu, 3);
    CHECK_INT(seen.of_cpu.kind, XENTRACE_IDLE);
    CHECK_INT(seen.of_cpu.value, 2);
    CHECK_INT(seen.of_cpu.from_tsc, 100);
    CHECK_INT(seen.of_cpu.to_tsc, 300);
    CHECK_INT(seen.of_cpu.is_complete, 1);
    CHECK_INT(seen.of_cpu.ends_in_loss, 0);
    CHECK_INT(xentrace_run(trace, 0), 0);
    CHECK_INT(seen.of_cpus, 2);
    CHECK_INT(seen.of_cpu.value, 1);
    CHECK_INT(seen.of_cpu.to_tsc, 500);
    CHECK_INT(seen.of_cpu.is_complete, 0);
    CHECK_INT(seen.of_cpu.ends_in_loss, 1);

    test_case("an observer of older callers, which ends before cpu_interval");
    seen = (struct seen){};
    observer.size = offsetof(struct xentrace_observer, cpu_interval);
    CHECK_INT(xentrace_observe(trace, &observer), 0);
    CHECK_INT(xentrace_seek(trace, 0), 0);
    CHECK_INT(xentrace_run(trace, 0), 0);
    CHECK_INT(seen.of_cpus, 0);
    observer.size = sizeof(observer) + 8;
    CHECK_INT(xentrace_observe(trace, &observer), -EINVAL);
    observer.size = 0;
    CHECK_INT(xentrace_observe(trace, &observer), -EINVAL);
    xentrace_close(trace);
}

static void test_observer(void)
{
    struct seen seen = {};
    const struct xentrace_observer observer = {
        .size = sizeof(observer),
        .context = &seen,
        .interval = on_interval,
        .exit = on_exit_end,
    };
    const struct xentrace_record *record;
    struct xentrace *trace;
    struct bytes bytes;

    test_case("intervals and exits");
    make_trace(&bytes);
    trace = open_bytes(&bytes);
    CHECK_INT(xentrace_observe(trace, &observer), 0);
    CHECK_INT(xentrace_next(trace, &record), 1);
    CHECK_INT(xentrace_next(trace, &record), 1);
    CHECK_INT(seen.intervals, 1);
    CHECK_INT(seen.interval.domid, 1);
    CHECK_INT(seen.interval.vcpu, 2);
    CHECK_INT(seen.interval.runstate, XENTRACE_RUNNABLE);
    CHECK_INT(seen.interval.wait, XENTRACE_WAKE);
    CHECK_INT(seen.interval.cpu, XENTRACE_NO_CPU);
    CHECK_INT(seen.interval.begin_cpu, 3);
    CHECK_INT(seen.interval.from_tsc, 100);
    CHECK_INT(seen.interval.to_tsc, 300);
    CHECK_INT(xentrace_run(trace, 0), 0);
    CHECK_INT(seen.intervals, 2);
    CHECK_INT(seen.interval.runstate, XENTRACE_RUNNING);
    CHECK_INT(seen.interval.cpu, 3);
    CHECK_INT(seen.interval.next_runstate, XENTRACE_BLOCKED);
    CHECK_INT(seen.exits, 1);
    CHECK_INT(seen.exit.is_complete, 1);
    CHECK_INT(seen.exit.reason, 12);
    CHECK_INT(seen.exit.cpu, 3);
    CHECK_INT(seen.exit.from_tsc, 350);
    CHECK_INT(seen.exit.to_tsc, 400);
    CHECK_INT(seen.exit.cycles, 50);

    test_case("an observer can stop");
    seen = (struct seen){.result = 1};
    CHECK_INT(xentrace_seek(trace, 0), 0);
    CHECK_INT(xentrace_run(trace, 0), 1);
    CHECK_INT(seen.intervals, 1);
    CHECK_INT(xentrace_run(trace, 1), 1);
    CHECK_INT(seen.intervals + seen.exits, 1);
    CHECK_INT(xentrace_observe(trace, NULL), 0);
    CHECK_INT(xentrace_run(trace, 0), 0);
    CHECK_INT(seen.intervals + seen.exits, 1);
    xentrace_close(trace);
}

static int on_gap(void *context, const struct xentrace_gap *gap)
{
    struct seen *seen = context;

    seen->gaps++;
    seen->gap = *gap;
    return seen->result;
}

static void test_gaps(void)
{
    struct seen seen = {};
    struct xentrace_observer observer = {.size = sizeof(observer), .context = &seen, .gap = on_gap};
    struct xentrace *trace;
    struct bytes bytes = {};

    test_case("losses");
    put_window(&bytes, 3, 2 * 16 + 28);
    put_record(&bytes, 0x801002, 100, 2);
    put(&bytes, UINT32_C(1) << 31 | UINT32_C(4) << 28 | 0x1f001);
    for (size_t i = 0; i < 6; i++)
        put(&bytes, (const uint32_t[]){700, 0, 9, 0, 500, 0}[i]);
    put_record(&bytes, 0x801002, 800, 1);
    trace = open_bytes(&bytes);
    CHECK_INT(xentrace_observe(trace, &observer), 0);
    CHECK_INT(xentrace_run(trace, 1), 1);
    CHECK_INT(seen.gaps, 0);
    CHECK_INT(xentrace_run(trace, 0), 0);
    CHECK_INT(seen.gaps, 1);
    CHECK_INT(seen.gap.cpu, 3);
    CHECK_INT(seen.gap.records, 9);
    CHECK_INT(seen.gap.from_tsc, 500);
    CHECK_INT(seen.gap.to_tsc, 700);

    test_case("a part that ends in a loss, in which it ends with the last record");
    CHECK_INT(xentrace_select(trace, 50, 600), 0);
    CHECK_INT(xentrace_run(trace, 0), 0);
    CHECK_INT(seen.gaps, 2);
    CHECK_INT(seen.gap.from_tsc, 500);
    CHECK_INT(seen.gap.to_tsc, 500);

    test_case("an observer of older callers, which ends before gap");
    observer.size = offsetof(struct xentrace_observer, gap);
    CHECK_INT(xentrace_observe(trace, &observer), 0);
    CHECK_INT(xentrace_seek(trace, 0), 0);
    CHECK_INT(xentrace_run(trace, 0), 0);
    CHECK_INT(seen.gaps, 2);
    xentrace_close(trace);
}

static void test_wrong(void)
{
    struct xentrace_options options = {.size = 3};
    const struct xentrace_record *record;
    struct xentrace *trace = NULL;
    struct bytes bytes;
    uint64_t offset = 0;
    int fds[2];

    test_case("what is no trace");
    make_trace(&bytes);
    CHECK_INT(xentrace_open("/nonexistent", NULL, &trace), -ENOENT);
    CHECK_INT(xentrace_open("/", NULL, &trace), -EISDIR);
    CHECK_INT(xentrace_open_memory("no trace at all", 16, NULL, &trace), -EBADMSG);
    CHECK_INT(xentrace_open_memory(bytes.data, bytes.used, &options, &trace), -EINVAL);
    CHECK(!trace);

    test_case("a trace without records");
    CHECK_INT(xentrace_open_memory("", 0, NULL, &trace), 0);
    CHECK_INT(xentrace_next(trace, &record), 0);
    CHECK_INT(xentrace_damage(trace, &offset), 0);
    trace = xentrace_close(trace);

    test_case("damage ends a trace");
    put(&bytes, 12345);
    trace = open_bytes(&bytes);
    CHECK_INT(xentrace_damage(trace, &offset), 0);
    CHECK_INT(xentrace_run(trace, 0), 0);
    CHECK_INT(xentrace_damage(trace, &offset), 1);
    CHECK_INT(offset, bytes.used - 4);
    trace = xentrace_close(trace);

    test_case("a pipe");
    make_trace(&bytes);
    CHECK_INT(pipe(fds), 0);
    CHECK_INT(write(fds[1], bytes.data, bytes.used), (ssize_t)bytes.used);
    close(fds[1]);
    CHECK_INT(xentrace_open_fd(fds[0], NULL, &trace), 0);
    CHECK_INT(xentrace_first_tsc(trace), 0);
    CHECK_INT(xentrace_seek(trace, 1), -ESPIPE);
    CHECK_INT(xentrace_next(trace, &record), 1);
    CHECK_INT(xentrace_first_tsc(trace), 100);
    CHECK_INT(xentrace_run(trace, 4), 1);
    CHECK_INT(xentrace_run(trace, 4), 0);
    xentrace_close(trace);
}

static const char sidecar[] = "{\"format\": \"xentraced-session\", \"host\": {\"tsc_khz\": "
                              "1000000, \"hostname\": \"h\", \"boot_id\": \"b\","
                              "\"scheduler\": \"credit2\", \"cpu_vendor\": \"AuthenticAMD\"},"
                              "\"clock\": [{\"tsc\": 100, \"realtime_ns\": 5000000000}],"
                              "\"domains\": [{\"domid\": 1, \"name\": \"web\", \"uuid\": \"u-1\","
                              "\"first_seen_ns\": 4000000000, \"last_seen_ns\": 6000000000}]}";

static void test_sidecar(void)
{
    char path[] = "/tmp/test-xentrace.XXXXXX";
    struct xentrace_options options = {.size = sizeof(options), .sidecar = path};
    struct xentrace *trace = NULL;
    struct bytes bytes;
    uint32_t domid = 0;
    uint64_t tsc = 0;
    int fd = mkstemp(path);

    test_case("the facts of a sidecar");
    CHECK_INT(write(fd, sidecar, strlen(sidecar)), (ssize_t)strlen(sidecar));
    close(fd);
    make_trace(&bytes);
    CHECK_INT(xentrace_open_memory(bytes.data, bytes.used, &options, &trace), 0);
    unlink(path);
    CHECK_INT(xentrace_tsc_khz(trace), 1000000);
    CHECK_INT(xentrace_tsc_khz_is_assumed(trace), 0);
    CHECK_STR(xentrace_hostname(trace), "h");
    CHECK_STR(xentrace_boot_id(trace), "b");
    CHECK_STR(xentrace_scheduler(trace), "credit2");
    CHECK_STR(xentrace_cpu_vendor(trace), "amd");
    CHECK(!xentrace_reason(trace));
    CHECK_INT(xentrace_realtime_nsec(trace, 300), UINT64_C(5000000200));
    CHECK_INT(xentrace_find_realtime(trace, UINT64_C(5000000200), &tsc), 0);
    CHECK_INT(tsc, 300);
    CHECK_STR(xentrace_domain_name(trace, 1, 0), "web");
    CHECK_STR(xentrace_domain_uuid(trace, 1, 300), "u-1");
    CHECK(!xentrace_domain_name(trace, 2, 0));
    CHECK_STR(xentrace_domain_label(trace, 1, 0), "web");
    CHECK(!xentrace_domain_label(trace, 2, 0));
    CHECK_INT(xentrace_find_domain(trace, "U-1", &domid), 0);
    CHECK_INT(domid, 1);
    CHECK_INT(xentrace_find_domain(trace, "db", &domid), -ENOENT);
    CHECK_STR(xentrace_domain(trace, 0)->name, "web");
    CHECK(!xentrace_domain(trace, 1));
    CHECK_INT(xentrace_ticks_to_nsec(trace, UINT64_MAX), UINT64_MAX);
    CHECK_INT(xentrace_nsec_to_ticks(trace, 7), 7);
    xentrace_close(trace);
    xentrace_close(NULL);
}

/* A trace without records, with that sidecar. */
static struct xentrace *open_with(const char *text)
{
    char path[] = "/tmp/test-xentrace.XXXXXX";
    struct xentrace_options options = {.size = sizeof(options), .sidecar = path};
    struct xentrace *trace = NULL;
    int fd = mkstemp(path);

    CHECK(dprintf(fd, "%s", text) >= 0);
    close(fd);
    CHECK_INT(xentrace_open_memory("", 0, &options, &trace), 0);
    unlink(path);
    return trace;
}

static void test_clocks(void)
{
    struct xentrace *trace;

    test_case("an empty sidecar");
    trace = open_with("");
    CHECK_INT(xentrace_realtime_nsec(trace, 100), 0);
    CHECK_INT(xentrace_tsc_khz_is_assumed(trace), 1);
    xentrace_close(trace);

    test_case("a wall clock that was set back");
    trace = open_with("{\"format\": \"xentraced-session\", \"host\": {\"tsc_khz\": 1000000},"
                      "\"clock\": [{\"tsc\": 100, \"realtime_ns\": 5000000000},"
                      "{\"tsc\": 900, \"realtime_ns\": 4000000000}]}");
    CHECK_INT(xentrace_realtime_nsec(trace, 500), UINT64_C(4500000000));
    CHECK_INT(xentrace_realtime_nsec(trace, 1000), UINT64_C(4000000100));
    xentrace_close(trace);

    test_case("clocks beyond all times");
    trace = open_with("{\"format\": \"xentraced-session\", \"host\": {\"tsc_khz\": 1},"
                      "\"clock\": [{\"tsc\": 0, \"realtime_ns\": 1},"
                      "{\"tsc\": 18446744073709551615, \"realtime_ns\": 18446744073709551615}]}");
    CHECK(xentrace_realtime_nsec(trace, UINT64_MAX - 1) <= INT64_MAX);
    CHECK(xentrace_realtime_nsec(trace, UINT64_MAX) <= INT64_MAX);
    xentrace_close(trace);
}

int main(void)
{
    test_records();
    test_parts();
    test_observer();
    test_cpu_intervals();
    test_gaps();
    test_wrong();
    test_sidecar();
    test_clocks();
    return test_end();
}
