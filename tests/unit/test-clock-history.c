// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/base/clock-history.h"

#include "common/util.h"
#include "tests/unit/test.h"

#define KHZ      UINT32_C(2300000)
#define SEC(n)   ((uint64_t)(n)*KHZ * 1000) /* in ticks */
#define START_NS UINT64_C(1800000000000000000)

/* A host: the wall clock runs by PPM faster than the TSC does by its nominal frequency. */
struct host {
    struct clock_pair now;
    double ppm;
    struct clock_history *history;
    struct clock_pair readings[4096]; /* all that were noted */
    size_t nr_readings;
};

static void host_read(struct host *host, bool is_stepped)
{
    CHECK(host->nr_readings < ARRAY_SIZE(host->readings));
    host->readings[host->nr_readings++] = host->now;
    clock_history_note(host->history, host->now, is_stepped);
}

static void host_begin(struct host *host, const char *name, double ppm)
{
    test_case(name);
    *host = (struct host){.now = {START_NS, SEC(5000)}, .ppm = ppm};
    CHECK_INT(clock_history_new(KHZ, host->now, &host->history), 0);
    host_read(host, false);
}

static void host_end(struct host *host)
{
    CHECK(!clock_history_free(host->history));
}

static void host_run(struct host *host, double seconds)
{
    host->now.tsc += (uint64_t)(seconds * KHZ * 1000);
    host->now.realtime_ns += (uint64_t)(seconds * (1e9 + host->ppm * 1e3));
}

/* Minutes, each with its look at the clocks. */
static void host_run_minutes(struct host *host, unsigned int minutes)
{
    for (unsigned int i = 0; i < minutes; i++) {
        host_run(host, 60);
        host_read(host, false);
    }
}

static size_t host_count(const struct host *host)
{
    struct clock_pair pairs[CLOCK_PAIRS_MAX];

    return clock_history_read(host->history, 0, 0, pairs);
}

/* By how much a date is wrong at most, in microseconds, of all readings since the FROMth. */
static uint64_t host_worst_usec(const struct host *host, size_t from)
{
    uint64_t worst = 0;

    for (size_t i = from; i < host->nr_readings; i++) {
        struct clock_pair reading = host->readings[i];
        int64_t off =
            (int64_t)(clock_history_realtime_ns(host->history, reading.tsc) - reading.realtime_ns);

        worst = max_u64(worst, (uint64_t)(off < 0 ? -off : off));
    }
    return worst / 1000;
}

static void test_steady(void)
{
    static const double drifts[] = {0, 30, -30, 400, -400};
    struct host host;

    for (size_t i = 0; i < ARRAY_SIZE(drifts); i++) {
        host_begin(&host, "a constant drift takes two pairs", drifts[i]);
        CHECK_INT(clock_history_realtime_ns(host.history, 0), 0);
        host_run_minutes(&host, 24 * 60);
        CHECK(host_count(&host) <= 2);
        CHECK(host_worst_usec(&host, 0) <= 1100);
        host_run(&host, 30);
        CHECK(clock_history_realtime_ns(host.history, host.now.tsc) - host.now.realtime_ns +
                  1100000 <=
              2200000);
        host_end(&host);
    }
}

static void test_before_the_first(void)
{
    struct host host;

    host_begin(&host, "before the first pair the nominal frequency is taken", 0);
    CHECK(clock_history_realtime_ns(host.history, host.now.tsc - SEC(100)) ==
          START_NS - UINT64_C(100000000000));
    host_end(&host);

    test_case("what is no TSC has no date");
    CHECK_INT(clock_history_new(1000, host.now, &host.history), 0);
    CHECK_INT(clock_history_realtime_ns(host.history, UINT64_MAX / 2), 0);
    CHECK_INT(clock_history_realtime_ns(host.history, host.now.tsc + UINT64_MAX / 2 + 2), 0);
    CHECK_INT(clock_history_realtime_ns(host.history, 0), 0);
    host_end(&host);
}

static void test_steps(void)
{
    static const int64_t steps_ms[] = {3600000, -3600000, 500, -500, 3, -3};
    struct host host;
    uint64_t before_tsc, before_ns;

    for (size_t i = 0; i < ARRAY_SIZE(steps_ms); i++) {
        host_begin(&host, "a step that was reported: each record has the wall clock of its time",
                   50);
        host_run_minutes(&host, 10);
        host_run(&host, 20);
        before_tsc = host.now.tsc - SEC(1);
        before_ns = host.now.realtime_ns - 1000050000;
        host.now.realtime_ns += (uint64_t)(steps_ms[i] * 1000000);
        host_read(&host, true);
        CHECK(clock_history_realtime_ns(host.history, before_tsc) - before_ns + 100000 <= 200000);
        host_run(&host, 40);
        host_read(&host, false);
        host_run_minutes(&host, 10);
        CHECK(host_worst_usec(&host, 0) <= 1100);
        CHECK(host_count(&host) <= 4);
        host_end(&host);
    }
}

static void test_a_step_that_was_missed(void)
{
    struct host host;

    host_begin(&host, "a step that nobody reported is noticed after a minute", 50);
    host_run_minutes(&host, 10);
    host_run(&host, 20);
    host.now.realtime_ns += UINT64_C(5000000000);
    host_run(&host, 40);
    host_read(&host, false);
    host_run_minutes(&host, 10);
    CHECK(host_worst_usec(&host, 0) <= 1100);
    CHECK_INT(host_count(&host), 3);
    host_end(&host);
}

static void test_a_false_alarm(void)
{
    struct host host;

    host_begin(&host, "a clock that was set to what it showed adds nothing", 50);
    host_run_minutes(&host, 10);
    for (unsigned int i = 0; i < 100; i++) {
        host_run(&host, 0.01);
        host_read(&host, true);
    }
    host_run_minutes(&host, 10);
    CHECK_INT(host_count(&host), 1);
    CHECK(host_worst_usec(&host, 0) <= 1100);
    host_end(&host);
}

static void test_slewing(void)
{
    struct host host;

    host_begin(&host, "an adjusted clock is followed to a millisecond", 10);
    for (unsigned int i = 0; i < 100; i++) {
        host.ppm = i % 10 == 5 ? 500 : 10 + i / 10.0;
        host_run_minutes(&host, 7);
    }
    CHECK(host_worst_usec(&host, 0) <= 1100);
    CHECK(host_count(&host) < 60);
    host_end(&host);
}

static void test_thinning(void)
{
    struct host host;
    size_t middle;

    host_begin(&host, "of too many pairs those go that matter least", 10);
    for (unsigned int i = 0; i < 900; i++) {
        host.ppm = i & 1 ? 40 : 10; /* 1.8 ms a minute */
        host_run_minutes(&host, 1);
    }
    host_run(&host, 0.001);
    host.now.realtime_ns += UINT64_C(60000000000);
    host_read(&host, true);
    middle = host.nr_readings;
    for (unsigned int i = 0; i < 900; i++) {
        host.ppm = i & 1 ? 60 : 10;
        host_run_minutes(&host, 1);
    }
    CHECK(host_count(&host) <= CLOCK_PAIRS_MAX);
    CHECK(host_worst_usec(&host, 0) <= 3000);
    CHECK(host_worst_usec(&host, middle) <= 3000);
    host_end(&host);
}

static void test_forgetting(void)
{
    struct host host;
    size_t step;

    host_begin(&host, "what is not needed any more is forgotten", 10);
    for (unsigned int i = 0; i < 20; i++) {
        host_run_minutes(&host, 5);
        host.now.realtime_ns += UINT64_C(7000000000);
        host_run(&host, 0.001);
        step = host.nr_readings;
        host_read(&host, true);
    }
    host_run_minutes(&host, 5);
    CHECK(host_count(&host) > 20);
    clock_history_forget(host.history, host.readings[step].tsc);
    CHECK(host_worst_usec(&host, step) <= 1100);
    CHECK_INT(host_count(&host), 1);
    clock_history_forget(host.history, UINT64_MAX);
    CHECK_INT(host_count(&host), 1);
    CHECK(host_worst_usec(&host, step) <= 1100);
    host_end(&host);
}

static void test_suspend(void)
{
    struct host host;
    size_t resumed;

    host_begin(&host, "a TSC that stood still while the host slept is a step", 10);
    host_run_minutes(&host, 5);
    host.now.realtime_ns += UINT64_C(8) * 3600 * 1000000000;
    host_run(&host, 1);
    host_read(&host, true);
    host_run_minutes(&host, 5);
    CHECK(host_worst_usec(&host, 0) <= 1100);
    host_end(&host);

    host_begin(&host, "a TSC that began at 0 again begins a new history", 10);
    host_run_minutes(&host, 5);
    host.now.realtime_ns += UINT64_C(8) * 3600 * 1000000000;
    host.now.tsc = SEC(1);
    resumed = host.nr_readings;
    host_read(&host, true);
    host_run_minutes(&host, 5);
    CHECK(host_worst_usec(&host, resumed) <= 1100);
    host_end(&host);
}

static void test_adopting(void)
{
    struct clock_pair earlier = {START_NS - UINT64_C(3600360000000), SEC(5000 - 3600)};
    struct host host;

    host_begin(&host, "a pair of an earlier daemon", 100);
    clock_history_adopt(host.history, earlier);
    CHECK_INT(host_count(&host), 2);
    CHECK(clock_history_realtime_ns(host.history, earlier.tsc) == earlier.realtime_ns);
    CHECK(clock_history_realtime_ns(host.history, SEC(5000 - 1800)) ==
          START_NS - UINT64_C(1800180000000));
    clock_history_adopt(host.history, (struct clock_pair){START_NS, SEC(6000)});
    CHECK_INT(host_count(&host), 2);
    host_end(&host);

    host_begin(&host, "a pair of an earlier daemon, and the clock was set since", 0);
    earlier.realtime_ns = START_NS - UINT64_C(86400000000000);
    clock_history_adopt(host.history, earlier);
    CHECK_INT(host_count(&host), 3);
    CHECK(clock_history_realtime_ns(host.history, SEC(5000 - 1800)) ==
          START_NS - UINT64_C(1800000000000));
    host_end(&host);
}

/* The way back: to the moment that has that date, or to the step that passed it over. */
static void test_finding(void)
{
    static const struct {
        const char *name;
        int64_t step_sec;    /* after an hour; then another hour */
        int64_t since_sec;   /* after the start, by the wall clock as it was then */
        int64_t first, last; /* seconds after the start, by the TSC */
    } cases[] = {
        {"before the first pair", 0, -100, -100, -100},
        {"between two readings", 0, 1800, 1800, 1800},
        {"now", 0, 7200, 7200, 7200},
        {"in the future", 0, 9000, 9000, 9000},
        {"before a step ahead", 600, 3000, 3000, 3000},
        {"passed over by a step ahead", 600, 3900, 3600, 3600},
        {"after a step ahead", 600, 4260, 3660, 3660},
        {"before a step back", -600, 2940, 2940, 2940},
        {"shown twice, because of a step back", -600, 3300, 3300, 3900},
        {"after a step back", -600, 3660, 4260, 4260},
    };

    struct host limits;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t ns = START_NS + (uint64_t)(cases[i].since_sec * 1000000000);
        int64_t first_off, last_off;
        struct host host;

        host_begin(&host, cases[i].name, 0);
        host_run_minutes(&host, 60);
        host_run(&host, 0.001);
        host.now.realtime_ns += (uint64_t)(cases[i].step_sec * 1000000000);
        host_read(&host, true);
        host_run_minutes(&host, 60);
        first_off = (int64_t)(clock_history_tsc(host.history, ns, CLOCK_FIRST) -
                              SEC(5000 + cases[i].first));
        last_off =
            (int64_t)(clock_history_tsc(host.history, ns, CLOCK_LAST) - SEC(5000 + cases[i].last));
        CHECK(first_off > -(int64_t)SEC(1) / 500 && first_off < (int64_t)SEC(1) / 500);
        CHECK(last_off > -(int64_t)SEC(1) / 500 && last_off < (int64_t)SEC(1) / 500);
        host_end(&host);
    }

    host_begin(&limits, "beyond what the TSC can count", 0);
    CHECK_UINT(clock_history_tsc(limits.history, 0, CLOCK_FIRST), 1);
    CHECK_UINT(clock_history_tsc(limits.history, 0, CLOCK_LAST), 1);
    CHECK_UINT(clock_history_tsc(limits.history, INT64_MAX, CLOCK_FIRST), INT64_MAX);
    CHECK_UINT(clock_history_tsc(limits.history, INT64_MAX, CLOCK_LAST), INT64_MAX);
    host_end(&limits);
}

static void test_reading(void)
{
    struct clock_pair pairs[CLOCK_PAIRS_MAX];
    struct host host;

    host_begin(&host, "a span has the pairs that concern it", 0);
    for (unsigned int i = 0; i < 3; i++) { /* steps after 600, 1200 and 1800 s */
        host_run_minutes(&host, 10);
        host.now.realtime_ns += UINT64_C(7000000000);
        host.now.tsc++;
        host_read(&host, true);
    }
    CHECK_INT(host_count(&host), 7);
    /* the later pair of the first step, and the earlier one of the second */
    CHECK_INT(clock_history_read(host.history, SEC(5700), SEC(5800), pairs), 2);
    CHECK(pairs[0].tsc / SEC(1) == 5600 && pairs[1].tsc / SEC(1) == 6200);
    CHECK(pairs[1].realtime_ns - START_NS < UINT64_C(1208000000000));
    CHECK_INT(clock_history_read(host.history, SEC(5700), SEC(6300), pairs), 4);
    CHECK_INT(clock_history_read(host.history, SEC(6900), SEC(7000), pairs), 1);
    CHECK_INT(clock_history_read(host.history, SEC(1), SEC(2), pairs), 2);
    host_end(&host);

    host_begin(&host, "a record from before our TSC began is older than all pairs", 0);
    for (unsigned int i = 0; i < 3; i++) {
        host_run_minutes(&host, 10);
        host.now.realtime_ns += UINT64_C(7000000000);
        host.now.tsc++;
        host_read(&host, true);
    }
    CHECK_INT(clock_history_read(host.history, 0 - SEC(300), 0, pairs), 7);
    CHECK_INT(clock_history_read(host.history, 0 - SEC(300), SEC(5001), pairs), 2);
    CHECK(clock_history_realtime_ns(host.history, 0 - SEC(300)) - START_NS ==
          0 - UINT64_C(5300000000000));
    CHECK_INT(clock_history_read(host.history, SEC(6900), SEC(5001), pairs), 2);
    host_end(&host);

    host_begin(&host, "a CPU whose TSC is a little behind changes nothing", 0);
    host_run_minutes(&host, 10);
    host.now.realtime_ns += UINT64_C(7000000000);
    host.now.tsc++;
    host_read(&host, true);
    clock_history_note(host.history, (struct clock_pair){host.now.realtime_ns, host.now.tsc - 1000},
                       false);
    CHECK_INT(host_count(&host), 3);
    host_end(&host);
}

int main(void)
{
    test_steady();
    test_before_the_first();
    test_steps();
    test_a_step_that_was_missed();
    test_a_false_alarm();
    test_slewing();
    test_thinning();
    test_forgetting();
    test_suspend();
    test_adopting();
    test_finding();
    test_reading();
    return test_end();
}
