// SPDX-License-Identifier: GPL-2.0-or-later

/* Moments as people write them, in UTC and in zones with and without summer time. */

#include "common/time-spec.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "common/units.h"
#include "common/util.h"
#include "tests/unit/test.h"

/* Saturday, 2026-11-21 12:34:56.789 UTC */
#define NOW_NS    UINT64_C(1795264496789000000)
#define TODAY_SEC UINT64_C(1795219200) /* midnight before it, UTC */
#define DAY_SEC   UINT64_C(86400)
#define HOUR      UINT64_C(3600)
#define MINUTE    UINT64_C(60)

#define BERLIN   "CET-1CEST,M3.5.0,M10.5.0/3"
#define INDIA    "IST-5:30"
#define KIRIBATI "LINT-14"

struct relative_case {
    const char *text;
    int result;
    bool is_after;
    uint64_t offset_usec;
};

static const struct relative_case relative_cases[] = {
    {"now", 0, false, 0},
    {" NOW ", 0, false, 0},
    {"-40s", 0, false, 40 * USEC_PER_SEC},
    {"-40", 0, false, 40 * USEC_PER_SEC},
    {"- 40s", 0, false, 40 * USEC_PER_SEC},
    {"-1.5s", 0, false, 1500000},
    {"-250ms", 0, false, 250000},
    {"-5min", 0, false, 300 * USEC_PER_SEC},
    {"-5m", 0, false, 300 * USEC_PER_SEC},
    {"-1h 30min", 0, false, 5400 * USEC_PER_SEC},
    {"-1h30min", 0, false, 5400 * USEC_PER_SEC},
    {"-1hour", 0, false, 3600 * USEC_PER_SEC},
    {"-2 days", 0, false, 2 * DAY_SEC *USEC_PER_SEC},
    {"-1w", 0, false, 7 * DAY_SEC *USEC_PER_SEC},
    {"+3min", 0, true, 180 * USEC_PER_SEC},
    {"40s ago", 0, false, 40 * USEC_PER_SEC},
    {" 5 minutes ago ", 0, false, 300 * USEC_PER_SEC},
    {"1h 30min AGO", 0, false, 5400 * USEC_PER_SEC},
    {"10 ago", 0, false, 10 * USEC_PER_SEC},
    {"0s ago", 0, false, 0},
    {"-99999999999999d", -ERANGE, false, 0},
    {"-", -EINVAL, false, 0},
    {"--40s", -EINVAL, false, 0},
    {"-40x", -EINVAL, false, 0},
    {"-03:10", -EINVAL, false, 0},
    {"-40s ago", -EINVAL, false, 0},
    {"ago", -EINVAL, false, 0},
    {" ago", -EINVAL, false, 0},
    {"now 03:10", -EINVAL, false, 0},
    {"nowhere", -EINVAL, false, 0},
    {"40s", -EINVAL, false, 0}, /* when? */
    {"30", -EINVAL, false, 0},
};

static void test_relative(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(relative_cases); i++) {
        const struct relative_case *c = &relative_cases[i];
        struct time_spec spec = {.realtime_ns = 77};
        char name[96];

        (void)snprintf(name, sizeof(name), "relative: \"%s\"", c->text);
        test_case(name);
        CHECK_INT(time_spec_parse(c->text, NOW_NS, &spec), c->result);
        if (c->result < 0) {
            CHECK_UINT(spec.realtime_ns, 77); /* untouched */
            continue;
        }
        CHECK(spec.is_relative && spec.is_after == c->is_after);
        CHECK_UINT(spec.offset_usec, c->offset_usec);
    }
}

struct absolute_case {
    const char *zone; /* TZ */
    const char *text;
    int result;
    uint64_t seconds;
    uint64_t nsec;
};

static const struct absolute_case absolute_cases[] = {
    {"UTC0", "today", 0, TODAY_SEC, 0},
    {"UTC0", "Today", 0, TODAY_SEC, 0},
    {"UTC0", "yesterday", 0, TODAY_SEC - DAY_SEC, 0},
    {"UTC0", "tomorrow", 0, TODAY_SEC + DAY_SEC, 0},
    {"UTC0", "today 03:10", 0, TODAY_SEC + 3 * HOUR + 10 * MINUTE, 0},
    {"UTC0", "yesterday 23:50:05", 0, TODAY_SEC - 10 * MINUTE + 5, 0},
    {"UTC0", "03:10", 0, TODAY_SEC + 3 * HOUR + 10 * MINUTE, 0},
    {"UTC0", "3:10", 0, TODAY_SEC + 3 * HOUR + 10 * MINUTE, 0},
    {"UTC0", "03:10:05", 0, TODAY_SEC + 3 * HOUR + 10 * MINUTE + 5, 0},
    {"UTC0", "03:10:05.25", 0, TODAY_SEC + 3 * HOUR + 10 * MINUTE + 5, 250000000},
    {"UTC0", "03:10:05.1234567899", 0, TODAY_SEC + 3 * HOUR + 10 * MINUTE + 5, 123456789},
    {"UTC0", "23:59:59", 0, TODAY_SEC + DAY_SEC - 1, 0}, /* later today */
    {"UTC0", "2026-11-21", 0, TODAY_SEC, 0},
    {"UTC0", "26-11-21", 0, TODAY_SEC, 0},
    {"UTC0", "2026-11-1", 0, TODAY_SEC - 20 * DAY_SEC, 0},
    {"UTC0", "2026-11-20 03:10", 0, TODAY_SEC - DAY_SEC + 3 * HOUR + 10 * MINUTE, 0},
    {"UTC0", "2026-11-20T03:10:05", 0, TODAY_SEC - DAY_SEC + 3 * HOUR + 10 * MINUTE + 5, 0},
    {"UTC0", "2026-11-20  03:10", 0, TODAY_SEC - DAY_SEC + 3 * HOUR + 10 * MINUTE, 0},
    {"UTC0", "Sat 2026-11-21", 0, TODAY_SEC, 0},
    {"UTC0", "saturday 2026-11-21 00:00:01", 0, TODAY_SEC + 1, 0},
    {"UTC0", "Sat, 2026-11-21", 0, TODAY_SEC, 0},
    {"UTC0", "2024-02-29", 0, UINT64_C(1709164800), 0},
    {"UTC0", "1970-01-01", 0, 0, 0},
    {"UTC0", "70-01-01 00:00:01", 0, 1, 0},
    {"UTC0", "@0", 0, 0, 0},
    {"UTC0", "@1795219200", 0, TODAY_SEC, 0},
    {"UTC0", " @1795219200.5 ", 0, TODAY_SEC, 500000000},
    {"UTC0", "2262-04-11", 0, UINT64_C(9223286400), 0},

    /* Local time: +1 in winter, +2 in summer. */
    {BERLIN, "today", 0, TODAY_SEC - HOUR, 0},
    {BERLIN, "03:10", 0, TODAY_SEC + 2 * HOUR + 10 * MINUTE, 0},
    {BERLIN, "2026-11-21 03:10", 0, TODAY_SEC + 2 * HOUR + 10 * MINUTE, 0},
    {BERLIN, "2026-07-01", 0, UINT64_C(1782856800), 0},
    {BERLIN, "2026-03-29 01:59", 0, UINT64_C(1774745940), 0}, /* the minute before summer time */
    {BERLIN, "2026-03-29 03:00", 0, UINT64_C(1774746000), 0}, /* ... the one after */
    {BERLIN, "2026-10-25 03:00", 0, UINT64_C(1792893600), 0}, /* winter time again */
    {BERLIN, "2026-10-25 00:00", 0, UINT64_C(1792879200), 0},
    {BERLIN, "2026-10-26", 0, UINT64_C(1792969200), 0}, /* that day had 25 hours */
    {BERLIN, "@1795219200", 0, TODAY_SEC, 0},
    {INDIA, "today", 0, TODAY_SEC - 5 * HOUR - 30 * MINUTE, 0},
    {INDIA, "18:00", 0, TODAY_SEC + 12 * HOUR + 30 * MINUTE, 0},
    {KIRIBATI, "today", 0, TODAY_SEC + DAY_SEC - 14 * HOUR, 0}, /* it is the 22nd there */
    {KIRIBATI, "yesterday", 0, TODAY_SEC - 14 * HOUR, 0},

    /* A zone of its own. */
    {BERLIN, "today UTC", 0, TODAY_SEC, 0},
    {BERLIN, "03:10 UTC", 0, TODAY_SEC + 3 * HOUR + 10 * MINUTE, 0},
    {BERLIN, "03:10utc", 0, TODAY_SEC + 3 * HOUR + 10 * MINUTE, 0},
    {BERLIN, "2026-11-21T03:10:05Z", 0, TODAY_SEC + 3 * HOUR + 10 * MINUTE + 5, 0},
    {BERLIN, "2026-11-21 03:10:05.5Z", 0, TODAY_SEC + 3 * HOUR + 10 * MINUTE + 5, 500000000},
    {BERLIN, "2026-11-21T03:10:05+02:00", 0, TODAY_SEC + HOUR + 10 * MINUTE + 5, 0},
    {BERLIN, "2026-11-21 03:10 -0330", 0, TODAY_SEC + 6 * HOUR + 40 * MINUTE, 0},
    {BERLIN, "2026-11-21 +01:00", 0, TODAY_SEC - HOUR, 0},
    {"UTC0", "today +14:00", 0, TODAY_SEC + DAY_SEC - 14 * HOUR, 0},
    {KIRIBATI, "today -11:00", 0, TODAY_SEC + 11 * HOUR, 0},

    {"UTC0", "", -EINVAL, 0, 0},
    {"UTC0", "  ", -EINVAL, 0, 0},
    {"UTC0", "soon", -EINVAL, 0, 0},
    {"UTC0", "todays", -EINVAL, 0, 0},
    {"UTC0", "today03:10", -EINVAL, 0, 0},
    {"UTC0", "today today", -EINVAL, 0, 0},
    {"UTC0", "today 3", -EINVAL, 0, 0},
    {"UTC0", "03", -EINVAL, 0, 0},
    {"UTC0", "03:1", -EINVAL, 0, 0},
    {"UTC0", "03:10:5", -EINVAL, 0, 0},
    {"UTC0", "03:10:05.", -EINVAL, 0, 0},
    {"UTC0", "03:10:", -EINVAL, 0, 0},
    {"UTC0", "003:10", -EINVAL, 0, 0},
    {"UTC0", "24:00", -EINVAL, 0, 0},
    {"UTC0", "03:60", -EINVAL, 0, 0},
    {"UTC0", "03:10:60", -EINVAL, 0, 0},
    {"UTC0", "03:10 2026-11-21", -EINVAL, 0, 0},
    {"UTC0", "2026-13-01", -EINVAL, 0, 0},
    {"UTC0", "2026-00-01", -EINVAL, 0, 0},
    {"UTC0", "2026-02-30", -EINVAL, 0, 0},
    {"UTC0", "2025-02-29", -EINVAL, 0, 0},
    {"UTC0", "2026-11-00", -EINVAL, 0, 0},
    {"UTC0", "2026-11", -EINVAL, 0, 0},
    {"UTC0", "2026-11-21T", -EINVAL, 0, 0},
    {"UTC0", "2026-11-21x", -EINVAL, 0, 0},
    {"UTC0", "2026-11-21 CET", -EINVAL, 0, 0},
    {"UTC0", "2026-11-21 03:10 UTC x", -EINVAL, 0, 0},
    {"UTC0", "2026-11-21 +25:00", -EINVAL, 0, 0},
    {"UTC0", "2026-11-21 +01:60", -EINVAL, 0, 0},
    {"UTC0", "202-11-21", -EINVAL, 0, 0},
    {"UTC0", "20260-11-21", -EINVAL, 0, 0},
    {"UTC0", "Sun 2026-11-21", -EINVAL, 0, 0}, /* it was a Saturday */
    {"UTC0", "Sat", -EINVAL, 0, 0},
    {"UTC0", "Sat 03:10", -EINVAL, 0, 0},
    {"UTC0", "@", -EINVAL, 0, 0},
    {"UTC0", "@-1", -EINVAL, 0, 0},
    {"UTC0", "@1x", -EINVAL, 0, 0},
    {"UTC0", "@1.", -EINVAL, 0, 0},
    {"UTC0", "@9223372037", -ERANGE, 0, 0},
    {"UTC0", "@99999999999999999999999", -ERANGE, 0, 0},
    {"UTC0", "1969-12-31", -ERANGE, 0, 0},
    {"UTC0", "2263-01-01", -ERANGE, 0, 0},
    {BERLIN, "1970-01-01", -ERANGE, 0, 0}, /* an hour before */
};

static void test_absolute(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(absolute_cases); i++) {
        const struct absolute_case *c = &absolute_cases[i];
        struct time_spec spec = {.realtime_ns = 77};
        char name[96];

        (void)snprintf(name, sizeof(name), "%s: \"%s\"", c->zone, c->text);
        test_case(name);
        (void)setenv("TZ", c->zone, true);
        tzset();
        CHECK_INT(time_spec_parse(c->text, NOW_NS, &spec), c->result);
        CHECK_UINT(spec.realtime_ns, c->result < 0 ? 77 : c->seconds * NSEC_PER_SEC + c->nsec);
        CHECK(!spec.is_relative);
    }
}

int main(void)
{
    test_relative();
    test_absolute();
    return test_end();
}
