// SPDX-License-Identifier: GPL-2.0-or-later

#include "common/suggest.h"

#include "common/util.h"
#include "tests/unit/test.h"

static const char *const words[] = {"sched",         "sched-min",   "sched-class", "hvm",
                                    "hvm-entryexit", "hvm-handler", "mem",         "pv",
                                    "pv-entry",      "hw-irq",      "guest",       "all"};

struct suggest_case {
    const char *name;
    const char *typed;
    const char *nearest;
};

static const struct suggest_case cases[] = {
    {"the word itself", "mem", "mem"},
    {"a letter missing", "shed", "sched"},
    {"a letter too many", "scched", "sched"},
    {"a letter wrong", "hvn-handler", "hvm-handler"},
    {"two swapped count once", "shced", "sched"},
    {"two swapped in three", "hmv", "hvm"},
    {"upper case", "SCHED-MIM", "sched-min"},
    {"a beginning", "hvm-e", "hvm-entryexit"},
    {"a short beginning", "g", "guest"},
    {"the nearest of the beginnings", "s", "sched"},
    {"nearer than a beginning", "sched-", "sched"},
    {"two letters for pv: half wrong", "px", NULL},
    {"a third wrong", "guxxt", NULL},
    {"just a third wrong", "hxm", "hvm"},
    {"nothing alike", "network", NULL},
    {"nothing", "", NULL},
    {"a number", "12345", NULL},
    {"63 letters", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", NULL},
    {"64 letters", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", NULL},
    {"bytes above 127",
     "sch\xc3\xa9"
     "d",
     "sched"},
};

static void test_limits(void)
{
    static const char long_word[] =
        "sched-sched-sched-sched-sched-sched-sched-sched-sched-sched-sched";
    const char *const longs[] = {long_word, "sched-sched"};

    test_case("no words");
    CHECK_STR(suggest_nearest("sched", words, 0), NULL);
    test_case("words that are too long are left out");
    CHECK_STR(suggest_nearest("sched-schet", longs, ARRAY_SIZE(longs)), "sched-sched");
    CHECK_STR(suggest_nearest(long_word, longs, ARRAY_SIZE(longs)), NULL);
}

int main(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_case(cases[i].name);
        CHECK_STR(suggest_nearest(cases[i].typed, words, ARRAY_SIZE(words)), cases[i].nearest);
    }
    test_limits();
    return test_end();
}
