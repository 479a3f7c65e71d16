// SPDX-License-Identifier: GPL-2.0-or-later
/* How far back a ring goes, and why a snapshot covers less than was asked for. */

#include "daemon/session/history.h"

#include <stdlib.h>

#include "common/units.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define KHZ 1000u /* a tick is a microsecond */
#define SEC USEC_PER_SEC
#define MIN (60 * SEC)
#define MIB UINT64_C(1048576)
#define NOW (100000 * SEC)

/* --- Snapshots. --- */

struct coverage_case {
    const char *name;
    struct history_snapshot snapshot;
    enum history_limit limit;
    uint64_t held_usec;
};

/* A snapshot that was asked for NOW, of a ring that was pinned a second later. */
#define SNAPSHOT(asked, from, started, ...)                                                        \
    {                                                                                              \
        .tsc_khz = KHZ, .requested_tsc = NOW, .pinned_tsc = NOW + SEC, .chunk_bytes = MIB,         \
        .bytes = 8 * MIB, .asked_usec = (asked), .from_tsc = (from), .started_tsc = (started),     \
        .oldest_tsc = NOW - 30 * MIN, __VA_ARGS__                                                  \
    }

static const struct coverage_case coverage_cases[] = {
    {"everything", SNAPSHOT(0, NOW - 10 * MIN, 0), HISTORY_NO_LIMIT, 10 * MIN},
    {"what was asked for", SNAPSHOT(10 * MIN, NOW - 10 * MIN, 0), HISTORY_NO_LIMIT, 10 * MIN},
    {"more than was asked for", SNAPSHOT(10 * MIN, NOW - 11 * MIN, 0), HISTORY_NO_LIMIT, 10 * MIN},
    {"the recorder began", SNAPSHOT(60 * MIN, 0, NOW - 598 * SEC), HISTORY_BEGAN, 598 * SEC},
    {"it was complete a moment later",
     SNAPSHOT(60 * MIN, NOW - 597 * SEC, NOW - 598 * SEC, .complete_from_tsc = NOW - 597 * SEC),
     HISTORY_BEGAN, 597 * SEC},
    {"a CPU was added later",
     SNAPSHOT(60 * MIN, NOW - 5 * MIN, NOW - 50 * MIN, .complete_from_tsc = NOW - 5 * MIN,
              .is_resumed = true),
     HISTORY_JOINED, 5 * MIN},
    {"a restart alone",
     SNAPSHOT(60 * MIN, NOW - 50 * MIN, NOW - 50 * MIN, .complete_from_tsc = NOW - 50 * MIN,
              .is_resumed = true),
     HISTORY_BEGAN, 50 * MIN},
    {"the ring is full", SNAPSHOT(60 * MIN, NOW - 10 * MIN, NOW - 90 * MIN), HISTORY_EVICTED,
     10 * MIN},
    {"max-age",
     SNAPSHOT(60 * MIN, NOW - 5 * MIN - 3 * SEC, NOW - 90 * MIN, .max_age_usec = 5 * MIN),
     HISTORY_MAX_AGE, 5 * MIN},
    {"max-age, and the disk took a second to open the file",
     SNAPSHOT(5 * MIN, NOW - 5 * MIN + 1001000, NOW - 90 * MIN, .max_age_usec = 5 * MIN),
     HISTORY_MAX_AGE, 5 * MIN - 1001000},
    {"max-age would have kept it",
     SNAPSHOT(60 * MIN, NOW - 5 * MIN, NOW - 90 * MIN, .max_age_usec = 30 * MIN), HISTORY_EVICTED,
     5 * MIN},
    {"max-age has no part in it",
     SNAPSHOT(60 * MIN, NOW - 5 * MIN, NOW - 5 * MIN, .max_age_usec = 30 * MIN), HISTORY_BEGAN,
     5 * MIN},
    {"damaged", SNAPSHOT(60 * MIN, NOW - 10 * MIN, NOW - 90 * MIN, .is_damaged = true),
     HISTORY_DAMAGED, 10 * MIN},
    {"damaged, but older than was asked for",
     SNAPSHOT(5 * MIN, NOW - 10 * MIN, NOW - 90 * MIN, .is_damaged = true), HISTORY_NO_LIMIT,
     5 * MIN},
    {"max-size", SNAPSHOT(60 * MIN, NOW - 10 * MIN, NOW - 90 * MIN, .max_size_bytes = 8 * MIB),
     HISTORY_MAX_SIZE, 10 * MIN},
    {"max-size that was large enough",
     SNAPSHOT(60 * MIN, NOW - 10 * MIN, NOW - 90 * MIN, .max_size_bytes = 80 * MIB),
     HISTORY_EVICTED, 10 * MIN},
    {"the file begins after a loss, within the ring",
     SNAPSHOT(10 * MIN, NOW - 9 * MIN, NOW - 90 * MIN), HISTORY_NO_LIMIT, 10 * MIN},
    {"the ring began after the request", SNAPSHOT(SEC, NOW + 1, NOW + 1), HISTORY_BEGAN, 0},
};

static void test_coverage(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(coverage_cases); i++) {
        const struct coverage_case *c = &coverage_cases[i];
        struct history_coverage coverage = history_of_snapshot(&c->snapshot);

        test_case(c->name);
        CHECK_INT(coverage.limit, c->limit);
        CHECK_UINT(coverage.asked_usec, c->snapshot.asked_usec);
        CHECK_UINT(coverage.held_usec, c->held_usec);
    }
}

/* A hundredth, 1 ms at least and 1 s at most. */
static void test_tolerance(void)
{
    static const struct {
        const char *name;
        uint64_t asked_usec, missing_usec;
    } cases[] = {
        {"tolerance of an hour", 60 * MIN, SEC},
        {"tolerance of a minute", MIN, 600000},
        {"tolerance of 10 ms", 10000, 1000},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct history_snapshot snapshot =
            SNAPSHOT(cases[i].asked_usec, 0, NOW - cases[i].asked_usec + cases[i].missing_usec);

        test_case(cases[i].name);
        CHECK_INT(history_of_snapshot(&snapshot).limit, HISTORY_NO_LIMIT);
        CHECK_UINT(history_of_snapshot(&snapshot).held_usec, cases[i].asked_usec);
        snapshot.started_tsc++;
        CHECK_INT(history_of_snapshot(&snapshot).limit, HISTORY_BEGAN);
    }
}

struct words_case {
    const char *text;
    const char *name; /* in documents */
    struct history_words words;
};

#define WORDS(why, held, ...)                                                                      \
    {                                                                                              \
        .coverage = {.limit = (why), .asked_usec = 60 * MIN, .held_usec = (held)},                 \
        .memory_bytes = 64 * MIB, .max_age_usec = 5 * MIN,                                         \
        .requested_ns = UINT64_C(1795241112123456789), __VA_ARGS__                                 \
    }

static const struct words_case words_cases[] = {
    {"", "", WORDS(HISTORY_NO_LIMIT, 0)},
    {"Recording began at 2026-11-21 05:55:14.", "began", WORDS(HISTORY_BEGAN, 598 * SEC)},
    {"Records are complete from 2026-11-21 06:05:02, when xentraced was restarted.", "joined",
     WORDS(HISTORY_JOINED, 10 * SEC)},
    {"The ring of 64M is full; to hold 1h, set about 384M with memory= in [flight-recorder].",
     "evicted", WORDS(HISTORY_EVICTED, 10 * MIN, .bytes = 50 * MIB, .is_recorder = true)},
    {"The ring of 64M is full; to hold 1h, set about 384M with --memory.", "evicted",
     WORDS(HISTORY_EVICTED, 10 * MIN, .bytes = 50 * MIB)},
    {"The ring of 64M is full; for a larger ring, set --memory.", "evicted",
     WORDS(HISTORY_EVICTED, SEC, .bytes = 50 * MIB)},
    {"The ring of 64M is full; for a larger ring, set --memory.", "evicted",
     WORDS(HISTORY_EVICTED, 10 * MIN, .bytes = 10 * MIB)},
    {"The ring of 64M is full; for a larger ring, set --memory.", "evicted",
     WORDS(HISTORY_EVICTED, 0, .bytes = 50 * MIB)},
    {"The ring keeps records for only 5min, as set by max-age= in [flight-recorder].", "max-age",
     WORDS(HISTORY_MAX_AGE, 5 * MIN, .is_recorder = true)},
    {"The ring keeps records for only 5min, as set by --max-age.", "max-age",
     WORDS(HISTORY_MAX_AGE, 5 * MIN)},
    {"Records from before the restart of xentraced were damaged and are omitted.", "damaged",
     WORDS(HISTORY_DAMAGED, 5 * MIN)},
    {"The file is limited to the requested size.", "max-size", WORDS(HISTORY_MAX_SIZE, 5 * MIN)},
};

static void test_words(void)
{
    char text[HISTORY_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(words_cases); i++) {
        const struct words_case *c = &words_cases[i];

        test_case(c->text);
        CHECK_STR(history_explain(&c->words, text), c->text);
        CHECK_STR(history_limit_name(c->words.coverage.limit), c->name);
    }
}

/* --- Rings. --- */

struct ring_case {
    const char *name;
    struct history_ring ring;
    struct history history;
};

#define RING(used, ...)                                                                            \
    {                                                                                              \
        .tsc_khz = KHZ, .now_tsc = NOW, .memory_bytes = 64 * MIB, .used_bytes = (used),            \
        __VA_ARGS__                                                                                \
    }

static const struct ring_case ring_cases[] = {
    {"just begun", RING(MIB, .started_tsc = NOW - 4 * SEC), {.usec = 4 * SEC}},
    {"silent", RING(0, .started_tsc = NOW - 40 * SEC), {.usec = 40 * SEC}},
    {"it fills",
     RING(2 * MIB, .started_tsc = NOW - 20 * SEC, .oldest_tsc = NOW - 5 * SEC),
     {.usec = 20 * SEC, .bytes_per_second = MIB / 10, .full_usec = 560003204}},
    {"complete later than it began",
     RING(2 * MIB, .started_tsc = NOW - 50 * SEC, .complete_from_tsc = NOW - 20 * SEC),
     {.usec = 20 * SEC, .bytes_per_second = MIB / 10, .full_usec = 560003204}},
    {"full",
     RING(50 * MIB, .started_tsc = NOW - 5000 * SEC, .oldest_tsc = NOW - 500 * SEC,
          .has_evicted = true),
     {.usec = 500 * SEC, .bytes_per_second = MIB / 10, .full_usec = 500 * SEC, .is_full = true}},
    {"full within a second",
     RING(50 * MIB, .started_tsc = NOW - 5000 * SEC, .oldest_tsc = NOW - SEC / 10,
          .has_evicted = true),
     {.usec = SEC / 10, .bytes_per_second = 500 * MIB, .full_usec = SEC / 10, .is_full = true}},
    {"shortened by a snapshot",
     RING(20 * MIB, .started_tsc = NOW - 5000 * SEC, .oldest_tsc = NOW - 200 * SEC,
          .has_evicted = true),
     {.usec = 200 * SEC, .bytes_per_second = MIB / 10, .full_usec = 560003204}},
    {"max-age will be less",
     RING(2 * MIB, .started_tsc = NOW - 20 * SEC, .max_age_usec = MIN),
     {.usec = 20 * SEC, .bytes_per_second = MIB / 10, .full_usec = MIN}},
    {"max-age is reached",
     RING(6 * MIB, .started_tsc = NOW - 500 * SEC, .oldest_tsc = NOW - 61 * SEC,
          .max_age_usec = MIN, .has_evicted = true),
     {.usec = MIN, .bytes_per_second = 103138, .full_usec = MIN}},
    {"it has not begun", RING(0, .started_tsc = NOW + 1), {.usec = 0}},
};

static void test_rings(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(ring_cases); i++) {
        const struct history *expected = &ring_cases[i].history;
        struct history history = history_of_ring(&ring_cases[i].ring);

        test_case(ring_cases[i].name);
        CHECK_UINT(history.usec, expected->usec);
        CHECK_UINT(history.bytes_per_second, expected->bytes_per_second);
        CHECK_UINT(history.full_usec, expected->full_usec);
        CHECK(history.is_full == expected->is_full);
    }
}

int main(void)
{
    if (setenv("TZ", "UTC", 1) < 0)
        return 77;
    test_coverage();
    test_tolerance();
    test_words();
    test_rings();
    return test_end();
}
