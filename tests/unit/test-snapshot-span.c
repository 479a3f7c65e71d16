// SPDX-License-Identifier: GPL-2.0-or-later

/* Times that a snapshot may be asked for, and what they are by the clock of the records. */

#include "daemon/session/snapshot-span.h"

#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/clock-history.h"
#include "tests/unit/test.h"

#define KHZ           UINT32_C(1000000) /* a tick is a nanosecond */
#define START_NS      UINT64_C(1800000000000000000)
#define SEC(n)        ((uint64_t)(n)*NSEC_PER_SEC)
#define REQUESTED_TSC SEC(1000)
#define AT(n)         (START_NS + SEC(n)) /* the wall clock at that second */

struct span_case {
    const char *name;
    struct snapshot_span span;
    const char *error; /* part of the sentence; NULL: accepted */
    uint64_t since_sec, end_sec, asked_sec;
};

static const struct span_case cases[] = {
    {"everything", {0}, NULL, 0, 1000, 0},
    {"the newest part", {.last_usec = 30 * USEC_PER_SEC}, NULL, 970, 1000, 30},
    {"since then", {.since_ns = AT(900)}, NULL, 900, 1000, 100},
    {"until then", {.until_ns = AT(900)}, NULL, 0, 900, 0},
    {"from then to then", {.since_ns = AT(850), .until_ns = AT(900)}, NULL, 850, 900, 50},
    {"both before now",
     {.last_usec = 40 * USEC_PER_SEC, .until_ago_usec = 10 * USEC_PER_SEC},
     NULL,
     960,
     990,
     30},
    {"since a date, until before now",
     {.since_ns = AT(900), .until_ago_usec = 10 * USEC_PER_SEC},
     NULL,
     900,
     990,
     90},
    {"since before now, until a date",
     {.last_usec = 100 * USEC_PER_SEC, .until_ns = AT(950)},
     NULL,
     900,
     950,
     50},
    {"until the future is until now", {.until_ns = AT(2000)}, NULL, 0, 1000, 0},
    {"since the future", {.since_ns = AT(2000)}, NULL, 2000, 1000, 0},
    {"since before the TSC began", {.since_ns = START_NS - SEC(5)}, NULL, 0, 1000, 1000},
    {"two beginnings",
     {.last_usec = 1, .since_ns = AT(1)},
     "--last and --since both set the beginning",
     0,
     0,
     0},
    {"two ends", {.until_ns = AT(1), .until_ago_usec = 1}, "The end is given twice", 0, 0, 0},
    {"a beginning after the end",
     {.since_ns = AT(3), .until_ns = AT(2)},
     "--since must be before --until",
     0,
     0,
     0},
    {"a beginning after the end, before now",
     {.last_usec = 5, .until_ago_usec = 6},
     "--since must be before --until",
     0,
     0,
     0},
    {"no time at all",
     {.last_usec = 5, .until_ago_usec = 5},
     "--since must be before --until",
     0,
     0,
     0},
};

static void check_read(const struct span_case *c, const struct clock_history *clock)
{
    struct snapshot_ticks ticks = snapshot_span_read(&c->span, clock, KHZ, REQUESTED_TSC);

    CHECK_UINT(ticks.since_tsc / NSEC_PER_SEC, c->since_sec);
    CHECK_UINT(ticks.end_tsc / NSEC_PER_SEC, c->end_sec);
    CHECK(ticks.has_until == (c->end_sec < 1000));
    CHECK_UINT((ticks.asked_usec + 1) / USEC_PER_SEC, c->asked_sec);
}

int main(void)
{
    struct clock_history *clock;

    if (clock_history_new(KHZ, (struct clock_pair){START_NS, 0}, &clock) < 0)
        return EXIT_FAILURE;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct failure failure = {0};

        test_case(cases[i].name);
        CHECK_INT(snapshot_span_check(&cases[i].span, &failure), cases[i].error ? -EINVAL : 0);
        CHECK_STR(failure.name, cases[i].error ? ERROR_INVALID : NULL);
        if (cases[i].error)
            CHECK(strstr(failure.text, cases[i].error));
        else
            check_read(&cases[i], clock);
    }
    clock_history_free(clock);
    return test_end();
}
