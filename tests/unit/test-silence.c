// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which CPUs are reported as silent, from looks at them every 5 s: those that must have made a
 * record and made none; and, more important, no other.
 */

#include "daemon/session/silence.h"

#include "common/units.h"
#include "tests/unit/test.h"

#define CPU      1u
#define NR_CPUS  3u
#define TICK_SEC 5u

static struct silence silence;
static struct silence_sample sample;
static uint64_t now_usec;

static void begin(const char *name)
{
    test_case(name);
    silence_done(&silence);
    CHECK_INT(silence_init(&silence, NR_CPUS), 0);
    now_usec = 1000 * USEC_PER_SEC;
    sample = (struct silence_sample){.is_expected = true, .drained_bytes = 4096, .idle_ns = 1};
    CHECK(!silence_look(&silence, CPU, &sample, now_usec));
}

/* So many milliseconds pass, of which CPU is idle for some. */
static bool pass_msec(uint64_t msec, uint64_t idle_msec)
{
    now_usec += msec * USEC_PER_MSEC;
    sample.idle_ns += idle_msec * 1000000;
    return silence_look(&silence, CPU, &sample, now_usec);
}

/* Looks every 5 s for SECONDS; returns after how many seconds it is silent first, 0: never. */
static unsigned int watch(unsigned int seconds, unsigned int idle_permille)
{
    for (unsigned int passed = TICK_SEC; passed <= seconds; passed += TICK_SEC)
        if (pass_msec(TICK_SEC * UINT64_C(1000), TICK_SEC * UINT64_C(1) * idle_permille))
            return passed;
    return 0;
}

static void test_silent(void)
{
    static const struct {
        const char *name;
        unsigned int idle_permille;
        unsigned int seconds; /* it is silent then; 0: never, within ten hours */
    } cases[] = {
        {"half idle", 500, 65},
        {"hardly idle", 20, 65},
        {"hardly busy", 900, 65},
        {"busy for a twentieth", 950, 105}, /* that is 5 s after 100 */
        {"always idle", 1000, 0},
        {"always idle, by a clock that is slow", 999, 0},
        {"always idle, by a clock that is fast", 1001, 0},
        {"always busy", 0, 0},
        {"busy, and clocks differ", 1, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(cases[i].name);
        CHECK_UINT(watch(36000, cases[i].idle_permille), cases[i].seconds);
    }
}

static void test_speaks(void)
{
    begin("records now and then");
    for (unsigned int i = 0; i < 100; i++) {
        CHECK_UINT(watch(55, 500), 0);
        sample.drained_bytes += 8;
    }

    begin("a record after a long silence");
    CHECK_UINT(watch(70, 500), 65);
    CHECK(pass_msec(5000, 2500)); /* it stays silent */
    sample.drained_bytes += 8;
    CHECK(!pass_msec(5000, 2500));
    CHECK_UINT(watch(70, 500), 65); /* from there on */

    begin("the record comes late");
    CHECK_UINT(watch(55, 500), 0);
    CHECK(!pass_msec(5000, 2500));
    CHECK(!pass_msec(3900, 0));
    sample.drained_bytes += 8;
    CHECK(!pass_msec(1100, 0));

    begin("its records wait in the buffer");
    sample.has_waiting = true;
    CHECK_UINT(watch(600, 500), 0);
    sample.has_waiting = false;
    CHECK_UINT(watch(70, 500), 65);
}

static void test_switches(void)
{
    begin("it runs one vCPU, since a moment after the first look");
    CHECK(!pass_msec(5000, 1));
    CHECK_UINT(watch(600, 0), 0);

    begin("idle, then busy");
    CHECK(!pass_msec(40000, 40000));
    CHECK(!pass_msec(20000, 0));
    CHECK(pass_msec(5000, 0));
}

static void test_not_expected(void)
{
    begin("not asked for");
    sample.is_expected = false;
    CHECK_UINT(watch(600, 500), 0);

    begin("offline");
    sample.idle_ns = 0;
    CHECK_UINT(watch(600, 0), 0);

    begin("it goes offline");
    CHECK_UINT(watch(70, 500), 65);
    sample.idle_ns = 0;
    CHECK(!pass_msec(5000, 0));

    begin("its idle time begins anew");
    CHECK_UINT(watch(50, 500), 0);
    sample.idle_ns = 1000;
    CHECK(!pass_msec(5000, 0));
    CHECK_UINT(watch(60, 500), 0);

    begin("tracing was off meanwhile");
    CHECK_UINT(watch(60, 500), 0);
    silence_reset(&silence);
    CHECK(!pass_msec(5000, 2500));
    CHECK_UINT(watch(70, 500), 65);
}

static void test_each(void)
{
    begin("each CPU has its own");
    CHECK_UINT(watch(70, 500), 65);
    CHECK(!silence_look(&silence, 0, &sample, now_usec));
    CHECK(!silence_look(&silence, 2, &sample, now_usec));
    CHECK(pass_msec(5000, 2500));
    silence_done(&silence);
    silence_done(&silence);
}

/* A ring that runs for ever is looked at once a minute. */
static void test_rarely(void)
{
    begin("a look once a minute");
    CHECK(!pass_msec(61000, 30000));
    CHECK(pass_msec(61000, 30000));
}

int main(void)
{
    test_silent();
    test_speaks();
    test_switches();
    test_not_expected();
    test_rarely();
    test_each();
    return test_end();
}
