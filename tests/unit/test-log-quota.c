// SPDX-License-Identifier: GPL-2.0-or-later
/* How many lines of the log each person may cause, and what is counted instead. */

#include "daemon/base/log-quota.h"

#include "common/util.h"
#include "tests/unit/test.h"

#define NOW   UINT64_C(1000000000)
#define LATER (NOW + LOG_QUOTA_INTERVAL_USEC)

static unsigned int admit_many(struct log_quota *quota, uid_t person, uint64_t now_usec,
                               unsigned int times)
{
    unsigned int admitted = 0;

    for (unsigned int i = 0; i < times; i++)
        admitted += log_quota_admit(quota, person, now_usec);
    return admitted;
}

static void test_rate(void)
{
    struct log_quota quota = {0};
    uint64_t lines;
    uid_t person;

    test_case("some lines in an interval");
    CHECK_UINT(log_quota_next_usec(&quota), 0);
    CHECK_UINT(admit_many(&quota, 1000, NOW, 100), LOG_QUOTA_LINES_MAX);
    test_case("another person has lines of its own, and the others have, together");
    CHECK_UINT(admit_many(&quota, 1001, NOW, 100), LOG_QUOTA_LINES_MAX);
    CHECK_UINT(admit_many(&quota, PERSON_OTHERS, NOW, 100), LOG_QUOTA_LINES_MAX);
    test_case("none before the interval is over");
    CHECK_UINT(admit_many(&quota, 1000, LATER - 1, 1), 0);
    test_case("a sum of each when it is over");
    CHECK_UINT(log_quota_next_usec(&quota), LATER);
    CHECK(!log_quota_take_sum(&quota, LATER - 1, &person, &lines));
    CHECK(log_quota_take_sum(&quota, LATER, &person, &lines));
    CHECK_UINT(person, 1000);
    CHECK_UINT(lines, 81);
    CHECK(log_quota_take_sum(&quota, LATER, &person, &lines));
    CHECK(log_quota_take_sum(&quota, LATER, &person, &lines));
    CHECK_UINT(person, PERSON_OTHERS);
    CHECK_UINT(lines, 80);
    CHECK(!log_quota_take_sum(&quota, LATER, &person, &lines));
    CHECK_UINT(log_quota_next_usec(&quota), 0);
    test_case("afterwards lines again");
    CHECK_UINT(admit_many(&quota, 1000, LATER, 100), LOG_QUOTA_LINES_MAX);
}

static void test_many(void)
{
    struct log_quota quota = {0};
    unsigned int admitted = 0;
    uint64_t suppressed = 0, lines;
    uid_t person;

    test_case("many persons in turn: no more than all may cause together");
    for (unsigned int round = 0; round < 10; round++)
        for (uid_t i = 0; i < 1000; i++)
            admitted += log_quota_admit(&quota, 1000 + i, NOW + round);
    CHECK_UINT(admitted, LOG_QUOTA_ALL_MAX);
    test_case("each line is written or counted");
    while (log_quota_take_sum(&quota, LATER + 100, &person, &lines))
        suppressed += lines;
    CHECK_UINT(admitted + suppressed, 10000);
    CHECK_UINT(person, LOG_QUOTA_SEVERAL);
}

int main(void)
{
    test_rate();
    test_many();
    return test_end();
}
