// SPDX-License-Identifier: GPL-2.0-or-later

#include "collector/tsc.h"

#include "common/util.h"
#include "tests/unit/test.h"

#define KHZ     UINT64_C(2300000)
#define MSEC(n) ((n)*KHZ)
#define SEC(n)  MSEC((n)*UINT64_C(1000))

static uint64_t now_tsc;

/* A round of 10 us, STEP after the last one, with a record that is AGE old by a clock that is
 * OFFSET ahead. */
static void learn(struct tsc_learner *learner, uint64_t step, int64_t offset, uint64_t age)
{
    struct tsc_round round = {.begin_tsc = now_tsc += step, .is_even = true};

    round.end_tsc = now_tsc += MSEC(1) / 100;
    round.newest_tsc = now_tsc + (uint64_t)offset - age;
    tsc_learn(learner, &round);
}

static void begin(const char *name)
{
    test_case(name);
    tsc_forget();
    now_tsc = SEC(1000);
}

static bool offset_is_within(uint64_t offset, uint64_t ticks)
{
    return tsc_offset() <= offset && offset - tsc_offset() <= ticks;
}

static void test_a_pv_dom0(void)
{
    struct tsc_learner learner = {0};

    begin("in a PV dom0 there is no offset");
    CHECK(tsc_offset() == 0);
    CHECK(tsc_offset_uncertainty() == 0);
    for (unsigned int i = 0; i < 1000; i++) {
        learn(&learner, MSEC(100), 0, MSEC(i % 2000));
        CHECK(tsc_offset() == 0);
    }
    for (unsigned int i = 0; i < 100; i++)
        learn(&learner, MSEC(1), (int64_t)MSEC(10), 0); /* a CPU whose clock is ahead */
    CHECK(tsc_offset() == 0);
    CHECK(tsc_offset_uncertainty() == 0);
}

static void test_a_pvh_dom0(void)
{
    struct tsc_learner learner = {0};

    begin("in a PVH dom0 it is learned");
    learn(&learner, MSEC(100), (int64_t)SEC(90), MSEC(70));
    CHECK(offset_is_within(SEC(90), MSEC(70)));
    CHECK(tsc_offset_uncertainty() >= MSEC(70));
    for (unsigned int i = 1; i <= 20; i++)
        learn(&learner, MSEC(100), (int64_t)SEC(90), MSEC(i * 5));
    CHECK(offset_is_within(SEC(90), MSEC(10)));
    CHECK(SEC(90) - tsc_offset() <= tsc_offset_uncertainty());
    CHECK(tsc_offset_uncertainty() < MSEC(101));

    begin("with VIRQ_TBUF it is close");
    for (unsigned int i = 0; i < 20; i++)
        learn(&learner, MSEC(5), (int64_t)SEC(90), MSEC(1) / 20);
    CHECK(offset_is_within(SEC(90), MSEC(1) / 20));
    CHECK(SEC(90) - tsc_offset() <= tsc_offset_uncertainty());
    CHECK(tsc_offset_uncertainty() < MSEC(6));
}

static void test_a_quiet_host(void)
{
    struct tsc_learner learner = {0};

    begin("a host that falls quiet has not forgotten it");
    for (unsigned int i = 0; i < 20; i++)
        learn(&learner, MSEC(5), (int64_t)SEC(2), MSEC(1));
    for (unsigned int i = 0; i < 50; i++) {
        struct tsc_round empty = {now_tsc + SEC(8), now_tsc + SEC(8) + 1, 0, true};

        now_tsc += SEC(8);
        tsc_learn(&learner, &empty);
        learn(&learner, SEC(8), (int64_t)SEC(2), SEC(3));
    }
    CHECK(offset_is_within(SEC(2), MSEC(1)));
    CHECK(SEC(2) - tsc_offset() <= tsc_offset_uncertainty());
}

static void test_garbage(void)
{
    struct tsc_learner learner = {0};
    struct tsc_round absurd;

    begin("one record with a TSC of its own moves nothing");
    for (unsigned int i = 0; i < 20; i++)
        learn(&learner, MSEC(5), (int64_t)SEC(90), MSEC(1));
    learn(&learner, MSEC(5), (int64_t)SEC(5000), 0);
    CHECK(offset_is_within(SEC(90), MSEC(1)));

    begin("nor does an absurd one, however often");
    for (unsigned int i = 0; i < 100; i++) {
        absurd = (struct tsc_round){now_tsc, now_tsc + 1, UINT64_MAX / 2 + i, true};
        tsc_learn(&learner, &absurd);
        absurd.newest_tsc = UINT64_C(1) << 63 | i;
        tsc_learn(&learner, &absurd);
    }
    learn(&learner, MSEC(5), (int64_t)SEC(90), MSEC(2));
    CHECK(offset_is_within(SEC(90), MSEC(1)));

    begin("if it was the first, the next one corrects it");
    learner = (struct tsc_learner){0};
    learn(&learner, MSEC(5), (int64_t)SEC(5000), 0);
    learn(&learner, MSEC(5), (int64_t)SEC(90), MSEC(1));
    CHECK(offset_is_within(SEC(90), MSEC(1)));
}

static void test_a_wandering_clock(void)
{
    struct tsc_learner learner = {0};
    int64_t offset = (int64_t)SEC(90);

    begin("a TSC that wanders is followed, in both directions");
    for (unsigned int i = 0; i < 100000; i++)
        learn(&learner, MSEC(5), offset += (int64_t)MSEC(1) / 1000, MSEC(1) / 20);
    CHECK(offset_is_within((uint64_t)offset, MSEC(1)));
    for (unsigned int i = 0; i < 100000; i++)
        learn(&learner, MSEC(5), offset -= (int64_t)MSEC(1) / 1000, MSEC(1) / 20);
    CHECK(tsc_offset() - (uint64_t)offset < MSEC(10));
    CHECK(tsc_offset() - (uint64_t)offset <= tsc_offset_uncertainty() + MSEC(6));
}

static void test_cut_rounds(void)
{
    struct tsc_learner learner = {0};
    struct tsc_round cut;

    begin("what a round has left over may be older than the round");
    learn(&learner, MSEC(5), (int64_t)SEC(90), MSEC(1));
    cut = (struct tsc_round){now_tsc, now_tsc + 1, now_tsc + SEC(90), false};
    tsc_learn(&learner, &cut);
    learn(&learner, MSEC(1) / 100, (int64_t)SEC(90), MSEC(900));
    CHECK(SEC(90) - tsc_offset() <= tsc_offset_uncertainty());
}

int main(void)
{
    test_a_pv_dom0();
    test_a_pvh_dom0();
    test_a_quiet_host();
    test_garbage();
    test_a_wandering_clock();
    test_cut_rounds();
    return test_end();
}
