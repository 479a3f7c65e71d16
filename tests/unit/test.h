/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What every unit test needs: checks that print file, line, case and values and do not end the
 * test, and random numbers that can be reproduced. A test program is one file, so its state may be
 * static here.
 *
 * On standard output there is one line for each case, as in tests/check.sh: "ok - NAME" or
 * "not ok - NAME". Checks that failed are on standard error.
 *
 * Exit status: `return test_end();` in main(): 0 passed, 1 failed (or nothing checked). A test that
 * cannot run here returns TEST_SKIPPED and says why.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TEST_SKIPPED 77

static unsigned long test_checks;
static unsigned long test_failures;

static char test_case_name[128];
static unsigned long test_case_checks;   /* when the case began */
static unsigned long test_case_failures; /* ... */
static unsigned long test_cases_passed;
static unsigned long test_cases_failed;

/* The case's line. Flushed: a test may fork, or be killed. */
static inline void test_end_case(void)
{
    bool failed = test_failures > test_case_failures;

    if (test_checks == test_case_checks)
        return; /* there was none, or it checked nothing */
    if (failed)
        test_cases_failed++;
    else
        test_cases_passed++;
    printf("%sok - %s\n", failed ? "not " : "",
           *test_case_name ? test_case_name : program_invocation_short_name);
    fflush(stdout);
    test_case_checks = test_checks;
    test_case_failures = test_failures;
}

/* Names the case that the next checks belong to. The same name again: it is the same case. */
static inline void test_case(const char *name)
{
    if (strncmp(name, test_case_name, sizeof(test_case_name) - 1) == 0)
        return;
    test_end_case();
    snprintf(test_case_name, sizeof(test_case_name), "%s", name);
}

static inline bool test_passed(bool ok)
{
    test_checks++;
    test_failures += !ok;
    return ok;
}

#define TEST_SAY(format, ...)                                                                      \
    fprintf(stderr, "# %s:%d: [%s] " format "\n", __FILE__, __LINE__, test_case_name, __VA_ARGS__)

/* Each is an expression that tells whether the check passed. */
#define CHECK(condition) (test_passed(condition) || (TEST_SAY("not true: %s", #condition), false))

/* Where the test must not come. */
#define CHECK_NEVER(what) (test_passed(false) || (TEST_SAY("%s", what), false))

#define CHECK_INT(got, expected)                                                                   \
    ({                                                                                             \
        intmax_t got_ = (intmax_t)(got), expected_ = (intmax_t)(expected);                         \
        test_passed(got_ == expected_) ||                                                          \
            (TEST_SAY("%s is %jd, not %jd", #got, got_, expected_), false);                        \
    })

#define CHECK_UINT(got, expected)                                                                  \
    ({                                                                                             \
        uintmax_t got_ = (uintmax_t)(got), expected_ = (uintmax_t)(expected);                      \
        test_passed(got_ == expected_) || (TEST_SAY("%s is %ju (0x%jx), not %ju (0x%jx)", #got,    \
                                                    got_, got_, expected_, expected_),             \
                                           false);                                                 \
    })

/* Strings; NULL equals NULL only. */
#define CHECK_STR(got, expected)                                                                   \
    ({                                                                                             \
        const char *got_ = (got), *expected_ = (expected);                                         \
        bool same_ = got_ && expected_ ? strcmp(got_, expected_) == 0 : got_ == expected_;         \
        test_passed(same_) || (TEST_SAY("%s is \"%s\", not \"%s\"", #got, got_ ? got_ : "(null)",  \
                                        expected_ ? expected_ : "(null)"),                         \
                               false);                                                             \
    })

static inline int test_end(void)
{
    test_end_case();
    printf("# %s: %lu passed, %lu failed, %lu checks\n", program_invocation_short_name,
           test_cases_passed, test_cases_failed, test_checks);
    return test_failures == 0 && test_checks > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * A new seed, or the one in the environment as TEST_SEED; printed with the test's name, so that a
 * failure can be had again.
 */
#define test_seed() test_seed_for(__func__)

static inline uint64_t test_seed_for(const char *test)
{
    const char *given = getenv("TEST_SEED");
    uint64_t seed = 1;

    if (given)
        seed = strtoull(given, NULL, 0);
    else if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        seed = 1; /* any number is as good */
    printf("# %s: TEST_SEED=0x%016" PRIx64 "\n", test, seed);
    return seed;
}

/* The next random number: Steele, Lea and Flood's SplitMix64. */
static inline uint64_t test_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
