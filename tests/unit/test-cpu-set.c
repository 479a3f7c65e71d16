// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * CPU lists: a table of what people type on a host with some number of CPUs, and random sets that
 * must come back from their own text, and from the mask that means them.
 */

#include "common/cpu-set.h"

#include <errno.h>

#include "common/util.h"
#include "tests/unit/test.h"

struct parse_case {
    const char *name;
    const char *text;
    unsigned int nr_cpus;
    int result;
    const char *formatted; /* or what the sentence must contain */
};

static const struct parse_case parse_cases[] = {
    {"range", "0-7", 8, 0, "0-7"},
    {"list with an open range", "0,2,4-", 8, 0, "0,2,4-7"},
    {"all", "all", 4, 0, "0-3"},
    {"ALL", "ALL", 4, 0, "0-3"},
    {"CPU 0 and not all", "0-0", 8, 0, "0"},
    {"up to", "-3", 8, 0, "0-3"},
    {"up to, and one", "-3,7", 8, 0, "0-3,7"},
    {"neighbours join", "3,2,1", 8, 0, "1-3"},
    {"twice the same", "1,1,0-1", 8, 0, "0-1"},
    {"blanks", " 0 , 2 ", 8, 0, "0,2"},
    {"open range at the last one", "7-", 8, 0, "7"},
    {"mask", "0xff00", 16, 0, "8-15"},
    {"mask in upper case", "0XA", 4, 0, "1,3"},
    {"mask of 64 CPUs", "0x8000000000000001", 64, 0, "0,63"},
    {"mask beyond 64 CPUs", "0x10000000000000000", 65, 0, "64"},
    {"mask with zeroes in front", "0x000000000000000000000000000001", 1, 0, "0"},
    {"only the syntax", "16383", CPU_SET_MAX, 0, "16383"},

    {"one too high", "8", 8, -ERANGE, "highest is CPU 7"},
    {"range too high", "0-8", 8, -ERANGE, "highest is CPU 7"},
    {"open range too high", "8-", 8, -ERANGE, "highest is CPU 7"},
    {"mask too high", "0x100", 8, -ERANGE, "highest is CPU 7"},
    {"more than Xen can have", "16384", CPU_SET_MAX, -ERANGE, "highest is CPU 16383"},
    {"2^32", "4294967296", 8, -ERANGE, "highest is CPU 7"},
    {"2^64", "18446744073709551616", 8, -ERANGE, "highest is CPU 7"},
    {"range up to 2^64", "0-18446744073709551616", 8, -ERANGE, "highest is CPU 7"},

    {"nothing", "", 8, -EINVAL, "empty item"},
    {"blank", " ", 8, -EINVAL, "empty item"},
    {"comma at the end", "0,", 8, -EINVAL, "empty item"},
    {"dash alone", "-", 8, -EINVAL, "\"-\" is not a CPU list"},
    {"backwards", "5-3", 8, -EINVAL, "use 3-5"},
    {"a word", "some", 8, -EINVAL, "\"some\" is not a CPU list"},
    {"a number and more", "3x", 8, -EINVAL, "\"3x\""},
    {"two dashes", "1-2-3", 8, -EINVAL, "\"1-2-3\""},
    {"a negative number", "--1", 8, -EINVAL, "\"--1\""},
    {"0x alone", "0x", 8, -EINVAL, "\"0x\""},
    {"not hexadecimal", "0xfg", 8, -EINVAL, "\"0xfg\""},
    {"not hexadecimal, too high", "0xffffffffg", 8, -EINVAL, "\"0xffffffffg\""},
    {"empty mask", "0x0", 8, -EINVAL, "contains no CPU"},
    {"mask in a list", "0x1,3", 8, -EINVAL, "must be the whole CPU list"},
    {"all in a list", "3,all", 8, -EINVAL, "must be the whole CPU list"},
    {"fraction", "1.5", 8, -EINVAL, "\"1.5\""},
};

static void test_parse(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(parse_cases); i++) {
        const struct parse_case *c = &parse_cases[i];
        _cleanup_free_ char *error = NULL, *text = NULL;
        struct cpu_set set = {{0xabcd}};

        test_case(c->name);
        if (!CHECK_INT(cpu_set_parse(c->text, c->nr_cpus, &set, &error), c->result))
            continue;
        if (c->result < 0) {
            CHECK_UINT(set.bits[0], 0xabcd); /* written on success only */
            CHECK(error && error[strlen(error) - 1] == '.');
            if (!CHECK(error && strstr(error, c->formatted)))
                fprintf(stderr, "    %s\n", error ? error : "(null)");
            continue;
        }
        CHECK_STR(error, NULL);
        CHECK_INT(cpu_set_format(&set, &text), 0);
        CHECK_STR(text, c->formatted);
    }
}

static void test_bits(void)
{
    struct cpu_set set = {0};
    _cleanup_free_ char *text = NULL;

    test_case("bits");
    CHECK_UINT(cpu_set_count(&set), 0);
    cpu_set_add(&set, 0);
    cpu_set_add(&set, 63);
    cpu_set_add(&set, 64);
    cpu_set_add(&set, CPU_SET_MAX - 1);
    CHECK_UINT(cpu_set_count(&set), 4);
    CHECK(cpu_set_has(&set, 63) && cpu_set_has(&set, 64) && !cpu_set_has(&set, 62));
    CHECK(!cpu_set_has(&set, CPU_SET_MAX) && !cpu_set_has(&set, UINT32_MAX));
    cpu_set_remove(&set, 64);
    CHECK_UINT(cpu_set_count(&set), 3);

    test_case("the empty set's text");
    set = (struct cpu_set){0};
    CHECK_INT(cpu_set_format(&set, &text), 0);
    CHECK_STR(text, "");
}

/* A set as one mask: "0x" and a digit for every 4 CPUs. */
static void format_mask(const struct cpu_set *set, char text[static CPU_SET_MAX / 4 + 3])
{
    char *p = text + sprintf(text, "0x");

    for (size_t i = ARRAY_SIZE(set->bits); i-- > 0;)
        p += sprintf(p, "%016" PRIx64, set->bits[i]);
}

static void check_comes_back(const struct cpu_set *set)
{
    _cleanup_free_ char *text = NULL, *error = NULL;
    char mask[CPU_SET_MAX / 4 + 3];
    struct cpu_set parsed;

    CHECK_INT(cpu_set_format(set, &text), 0);
    CHECK_INT(cpu_set_parse(text, CPU_SET_MAX, &parsed, &error), 0);
    CHECK(memcmp(&parsed, set, sizeof(parsed)) == 0);
    format_mask(set, mask);
    CHECK_INT(cpu_set_parse(mask, CPU_SET_MAX, &parsed, &error), 0);
    CHECK(memcmp(&parsed, set, sizeof(parsed)) == 0);
}

/* Sets of all densities, and those with the longest texts. */
static void test_comes_back(void)
{
    uint64_t random = test_seed();

    for (unsigned int gap = 1; gap <= 4; gap++) {
        struct cpu_set set = {0};

        test_case("one CPU, or two, and a gap");
        for (unsigned int cpu = 0; cpu < CPU_SET_MAX; cpu++) {
            if (gap == 1 || cpu % gap != 0)
                cpu_set_add(&set, cpu);
        }
        check_comes_back(&set);
    }
    test_case("random set");
    for (unsigned int i = 0; i < 300; i++) {
        struct cpu_set set = {0};
        unsigned int percent = i % 101;

        cpu_set_add(&set, (unsigned int)(test_random(&random) % CPU_SET_MAX));
        for (unsigned int cpu = 0; cpu < CPU_SET_MAX; cpu++) {
            if (test_random(&random) % 100 < percent)
                cpu_set_add(&set, cpu);
        }
        check_comes_back(&set);
    }
}

/* Anything may be typed: no crash, and a sentence for each refusal. */
static void test_garbage(void)
{
    static const char letters[] = "0123456789,,--  xXaAlLfF\xff\t";
    uint64_t random = test_seed();

    test_case("garbage");
    for (unsigned int i = 0; i < 100000; i++) {
        _cleanup_free_ char *error = NULL;
        struct cpu_set set = {0};
        char text[16];
        size_t length = test_random(&random) % sizeof(text);
        int r;

        for (size_t j = 0; j < length; j++)
            text[j] = letters[test_random(&random) % (sizeof(letters) - 1)];
        text[length] = '\0';
        r = cpu_set_parse(text, 1 + (unsigned int)(test_random(&random) % CPU_SET_MAX), &set,
                          &error);
        if (r == 0 ? cpu_set_count(&set) == 0 || error : !error || (r != -EINVAL && r != -ERANGE)) {
            fprintf(stderr, "\"%s\": %d, %s\n", text, r, error ? error : "(null)");
            CHECK(false);
        }
    }
}

int main(void)
{
    test_bits();
    test_parse();
    test_comes_back();
    test_garbage();
    return test_end();
}
