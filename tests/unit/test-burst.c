// SPDX-License-Identifier: GPL-2.0-or-later

#include "collector/burst.h"

#include <errno.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define MAX_TIMES 12u

struct burst_case {
    const char *name;
    uint32_t count;
    uint64_t within;
    size_t times;
    uint64_t time[MAX_TIMES];
    int at; /* index of the first one that completes a burst; -1: none does */
};

static const struct burst_case burst_cases[] = {
    {"one", 1, 0, 1, {5}, 0},
    {"exactly within", 3, 100, 3, {0, 50, 100}, 2},
    {"one too late", 3, 100, 3, {0, 50, 101}, -1},
    {"the window slides", 3, 100, 5, {0, 90, 180, 190, 280}, 3},
    {"it slides by one too many", 3, 100, 5, {0, 90, 191, 281, 382}, -1},
    {"all at once", 3, 0, 3, {7, 7, 7}, 2},
    {"not quite at once", 3, 0, 4, {7, 7, 8, 8}, -1},
    {"one CPU after the other", 4, 100, 6, {0, 500, 1000, 40, 100, 80}, 5},
    {"one CPU after the other, too far apart", 4, 100, 6, {0, 500, 1000, 40, 101, 102}, -1},
    {"the last one in front", 3, 10, 3, {20, 30, 22}, 2},
    {"the last one before all", 3, 10, 3, {25, 30, 20}, 2},
    {"the last one before all, too early", 3, 10, 3, {25, 30, 19}, -1},
    {"a burst in the past", 3, 10, 7, {100, 104, 500, 600, 700, 800, 110}, 6},
};

static void test_bursts(uint64_t base)
{
    for (size_t i = 0; i < ARRAY_SIZE(burst_cases); i++) {
        const struct burst_case *c = &burst_cases[i];
        struct burst *burst;
        int at = -1;

        test_case(c->name);
        CHECK_INT(burst_new(c->count, c->within, &burst), 0);
        for (size_t k = 0; k < c->times; k++)
            if (burst_note(burst, base + c->time[k]) && at < 0)
                at = (int)k;
        CHECK_INT(at, c->at);

        burst_reset(burst);
        CHECK(burst_note(burst, base) == (c->count == 1));
        burst_free(burst);
    }
}

/* A long sequence in order, against counting; and one that comes after all were forgotten. */
static void test_many(void)
{
    uint64_t random = test_seed();
    uint64_t times[20000];
    struct burst *burst;
    uint64_t tsc = 0;
    uint32_t wrong = 0;

    test_case("many");
    CHECK_INT(burst_new(100, 10000, &burst), 0);
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        tsc += test_random(&random) % 204;
        times[i] = tsc;
        wrong += burst_note(burst, tsc) != (i >= 99 && tsc - times[i - 99] <= 10000);
    }
    CHECK_UINT(wrong, 0);
    CHECK(!burst_note(burst, times[0]));
    burst_free(burst);

    test_case("as many as are remembered");
    CHECK_INT(burst_new(2, 5, &burst), 0);
    for (uint64_t i = 1; i <= 3 * BURST_REMEMBERED; i++)
        wrong += burst_note(burst, 100 * i);
    CHECK_UINT(wrong, 0);
    CHECK(!burst_note(burst, 105)); /* its neighbour at 100 has been forgotten */
    CHECK(burst_note(burst, UINT64_C(100) * (2 * BURST_REMEMBERED + 2) - 5));
    burst_free(burst);
}

static void test_bad(void)
{
    struct burst *burst;

    test_case("bad");
    CHECK_INT(burst_new(0, 1, &burst), -EINVAL);
    CHECK_INT(burst_new(BURST_COUNT_MAX + 1, 1, &burst), -EINVAL);
    CHECK(!burst_free(NULL));
}

int main(void)
{
    test_bursts(0);
    test_bursts(UINT64_MAX - 90);
    test_bursts((UINT64_C(1) << 63) - 90);
    test_many();
    test_bad();
    return test_end();
}
