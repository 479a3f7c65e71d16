// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Sizes and durations: tables, and the properties that tie parsing and formatting together.
 */

#include "common/units.h"

#include <errno.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

#define MIN (60 * USEC_PER_SEC)

struct parse_case {
    const char *name;
    const char *text;
    uint64_t default_unit;
    int result;
    uint64_t value;
};

static const struct parse_case size_cases[] = {
    {"bytes", "4096", 1, 0, 4096},
    {"MiB if no unit", "64", MIB, 0, 64 * MIB},
    {"a unit beats the default", "64K", MIB, 0, 64 * KIB},
    {"B is bytes", "64B", MIB, 0, 64},
    {"lower case", "64m", 1, 0, 64 * MIB},
    {"MB", "64MB", 1, 0, 64 * MIB},
    {"MiB", "64MiB", 1, 0, 64 * MIB},
    {"mib", "64mib", 1, 0, 64 * MIB},
    {"blank between", "64 MiB", 1, 0, 64 * MIB},
    {"blanks around", " 64M ", 1, 0, 64 * MIB},
    {"fraction", "1.5GiB", 1, 0, GIB + GIB / 2},
    {"fraction without whole", ".5K", 1, 0, 512},
    {"whole with a dot", "2.", KIB, 0, 2048},
    {"exact thousandths", "0.001T", 1, 0, 1099511627},
    {"finer than a byte", "1.9B", 1, 0, 1},
    {"many digits", "0.500000000000000000000000000000001K", 1, 0, 512},
    {"zero", "0", MIB, 0, 0},
    {"T", "3T", 1, 0, 3 * TIB},
    {"largest", "9223372036854775807", 1, 0, INT64_MAX},
    {"largest T", "8388607T", 1, 0, 8388607 * TIB},
    {"zeroes in front", "000000000000000000000000000001K", 1, 0, 1024},

    {"one too large", "9223372036854775808", 1, -ERANGE, 0},
    {"2^64", "18446744073709551616", 1, -ERANGE, 0},
    {"2^64 and more", "99999999999999999999999999999", 1, -ERANGE, 0},
    {"too large by its unit", "8388608T", 1, -ERANGE, 0},
    {"too large by the default", "9223372036854775807", MIB, -ERANGE, 0},
    {"too large, and no size", "99999999999999999999999999999x", 1, -EINVAL, 0},

    {"nothing", "", 1, -EINVAL, 0},
    {"blank", " ", 1, -EINVAL, 0},
    {"negative", "-1", 1, -EINVAL, 0},
    {"plus", "+1", 1, -EINVAL, 0},
    {"unit alone", "M", 1, -EINVAL, 0},
    {"dot alone", ".", 1, -EINVAL, 0},
    {"dot and unit", ".M", 1, -EINVAL, 0},
    {"two dots", "1.2.3", 1, -EINVAL, 0},
    {"unknown unit", "5X", 1, -EINVAL, 0},
    {"unit and more", "5MiBs", 1, -EINVAL, 0},
    {"BB", "5BB", 1, -EINVAL, 0},
    {"BiB", "5BiB", 1, -EINVAL, 0},
    {"long unit", "5Mibibibibibibi", 1, -EINVAL, 0},
    {"two sizes", "5M 3K", 1, -EINVAL, 0},
    {"hexadecimal", "0x10", 1, -EINVAL, 0},
    {"comma", "1,5M", 1, -EINVAL, 0},
    {"exponent", "1e3", 1, -EINVAL, 0},
    {"not a number", "nan", 1, -EINVAL, 0},
};

static const struct parse_case duration_cases[] = {
    {"seconds by default", "10", USEC_PER_SEC, 0, 10 * USEC_PER_SEC},
    {"milliseconds by default", "100", USEC_PER_MSEC, 0, 100 * USEC_PER_MSEC},
    {"s", "10s", USEC_PER_MSEC, 0, 10 * USEC_PER_SEC},
    {"fraction", "1.5s", 1, 0, 1500000},
    {"fraction by default", "0.5", USEC_PER_SEC, 0, 500000},
    {"ms", "500ms", 1, 0, 500000},
    {"us", "250us", USEC_PER_SEC, 0, 250},
    {"min", "5min", 1, 0, 5 * MIN},
    {"m", "5m", 1, 0, 5 * MIN},
    {"h", "2h", 1, 0, 120 * MIN},
    {"d", "1d", 1, 0, 24 * 60 * MIN},
    {"words", "1 week 2days 1 hour 3 minutes 1 second", 1, 0, UINT64_C(781381000000)},
    {"sum", "1min 30s", 1, 0, 90 * USEC_PER_SEC},
    {"sum without a blank", "1min30s", 1, 0, 90 * USEC_PER_SEC},
    {"sum of all", "1d 2h 3min 4s 5ms 6us", 1, 0, UINT64_C(93784005006)},
    {"blanks", "  10 s  ", 1, 0, 10 * USEC_PER_SEC},
    {"zero", "0", USEC_PER_SEC, 0, 0},
    {"largest", "9223372036854775807us", 1, 0, INT64_MAX},

    {"one too large", "9223372036854775808us", 1, -ERANGE, 0},
    {"too large by its unit", "106751992d", 1, -ERANGE, 0},
    {"too large by the default", "9223372036854775807", USEC_PER_SEC, -ERANGE, 0},
    {"too large by the sum", "106751991d 24h", 1, -ERANGE, 0},
    {"too large, and no duration", "99999999999999999999999x", 1, -EINVAL, 0},
    {"too large, then nonsense", "99999999999999999999999s x", 1, -EINVAL, 0},

    {"nothing", "", 1, -EINVAL, 0},
    {"blank", "  ", 1, -EINVAL, 0},
    {"negative", "-1s", 1, -EINVAL, 0},
    {"unit alone", "s", 1, -EINVAL, 0},
    {"unknown unit", "5y", 1, -EINVAL, 0},
    {"upper case", "5M", 1, -EINVAL, 0},
    {"a part without a unit", "1min 30", 1, -EINVAL, 0},
    {"a first part without a unit", "1 30s", 1, -EINVAL, 0},
    {"clock", "1:30", 1, -EINVAL, 0},
    {"comma", "1min,30s", 1, -EINVAL, 0},
};

typedef int (*parse_fn)(const char *text, uint64_t default_unit, uint64_t *ret_value);
typedef const char *(*format_fn)(char buffer[static UNITS_TEXT_MAX], uint64_t value);

static void test_parse(parse_fn parse, const struct parse_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 77;

        test_case(cases[i].name);
        CHECK_INT(parse(cases[i].text, cases[i].default_unit, &value), cases[i].result);
        CHECK_UINT(value, cases[i].result < 0 ? 77 : cases[i].value);
    }
}

struct format_case {
    const char *text;
    uint64_t value;
};

static const struct format_case size_formats[] = {
    {"0B", 0},
    {"512B", 512},
    {"1023B", 1023},
    {"1K", 1024},
    {"1.5K", 1536},
    {"64M", 64 * MIB},
    {"2.3G", 2 * GIB + 3 * GIB / 10},
    {"99.9K", 102298},
    {"100K", 102399},
    {"1000K", 1000 * KIB},
    {"1023K", 1023 * KIB},
    {"1M", MIB - 1},
    {"1G", GIB - 1},
    {"1.1M", MIB + MIB / 10},
    {"8E", INT64_MAX},
    {"16E", UINT64_MAX},
};

static const struct format_case duration_formats[] = {
    {"0us", 0},
    {"250us", 250},
    {"999us", 999},
    {"1ms", 1000},
    {"12ms", 12000},
    {"1.5ms", 1599},
    {"999.9ms", 999999},
    {"1s", USEC_PER_SEC},
    {"1.5s", 1500000},
    {"10s", 10 * USEC_PER_SEC},
    {"59.9s", MIN - 1},
    {"1min", MIN},
    {"1min", MIN + USEC_PER_SEC - 1},
    {"1min 30s", 90 * USEC_PER_SEC},
    {"5min", 5 * MIN},
    {"59min 59s", 60 * MIN - 1},
    {"2h 5min", 125 * MIN},
    {"1d", 24 * 60 * MIN},
    {"1d 23h", 48 * 60 * MIN - 1},
    {"213503982d 8h", UINT64_MAX},
};

static const struct format_case about_formats[] = {
    {"0us", 0},
    {"250ms", 250000},
    {"2s", 1500000},
    {"8s", 8 * USEC_PER_SEC + 400000},
    {"20s", 19 * USEC_PER_SEC},
    {"1min 30s", 85 * USEC_PER_SEC},
    {"8min", 493 * USEC_PER_SEC},
    {"1h", 60 * MIN - 1},
    {"3h 20min", 198 * MIN},
    {"1d 6h", 30 * 60 * MIN},
    {"12d", 290 * 60 * MIN},
};

/* As of a snapshot that is shorter than was asked for. */
static void test_parts(void)
{
    static const struct {
        const char *text;
        uint64_t part_usec, whole_usec;
    } cases[] = {
        {"9min 58s of the 1h", 598 * USEC_PER_SEC, 60 * MIN},
        {"0us of the 30s", 0, 30 * USEC_PER_SEC},
        {"all but 20s of the 2h", 120 * MIN + 5 * USEC_PER_SEC, 120 * MIN + 25 * USEC_PER_SEC},
        {"30s of the 30s", 30 * USEC_PER_SEC, 30 * USEC_PER_SEC},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char buffer[UNITS_PART_MAX];

        test_case(cases[i].text);
        CHECK_STR(duration_format_part(buffer, cases[i].part_usec, cases[i].whole_usec),
                  cases[i].text);
    }
}

static void test_format(format_fn format, const struct format_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char buffer[UNITS_TEXT_MAX];

        test_case(cases[i].text);
        CHECK_STR(format(buffer, cases[i].value), cases[i].text);
    }
}

/*
 * What was formatted means nearly the same, and formatting that again changes nothing. Only values
 * whose text fits into 63 bits.
 */
static void test_comes_back(format_fn format, parse_fn parse, unsigned int percent)
{
    uint64_t random = test_seed();

    test_case("parse(format(x))");
    for (unsigned int i = 0; i < 200000; i++) {
        uint64_t x = test_random(&random) >> (2 + test_random(&random) % 62), parsed = 0;
        char text[UNITS_TEXT_MAX], again[UNITS_TEXT_MAX];
        uint64_t off;

        if (!CHECK_INT(parse(format(text, x), 1, &parsed), 0) ||
            !CHECK_STR(format(again, parsed), text))
            return;
        off = parsed > x ? parsed - x : x - parsed;
        if (off > x / 100 * percent + x % 100 * percent / 100 + 1) {
            fprintf(stderr, "%" PRIu64 " is shown as %s\n", x, text);
            CHECK(false);
            return;
        }
    }
}

/* Exact numbers come back exactly, in every unit. */
static void test_exact(void)
{
    static const char *const size_units[] = {"B", "K", "M", "G", "T"};
    uint64_t random = test_seed();

    test_case("parse(n + unit)");
    for (unsigned int i = 0; i < 20000; i++) {
        unsigned int unit = i % ARRAY_SIZE(size_units);
        uint64_t n = test_random(&random) >> (1 + 10 * unit + test_random(&random) % 20), got = 0;
        char text[UNITS_TEXT_MAX];

        snprintf(text, sizeof(text), "%" PRIu64 "%s", n, size_units[unit]);
        if (!CHECK_INT(size_parse(text, 1, &got), 0) || !CHECK_UINT(got, n << (10 * unit)))
            return;
        snprintf(text, sizeof(text), "%" PRIu64, n);
        if (!CHECK_INT(duration_parse(text, 1, &got), 0) || !CHECK_UINT(got, n))
            return;
    }
}

int main(void)
{
    test_parse(size_parse, size_cases, ARRAY_SIZE(size_cases));
    test_parse(duration_parse, duration_cases, ARRAY_SIZE(duration_cases));
    test_format(size_format, size_formats, ARRAY_SIZE(size_formats));
    test_format(duration_format, duration_formats, ARRAY_SIZE(duration_formats));
    test_format(duration_format_about, about_formats, ARRAY_SIZE(about_formats));
    test_parts();
    test_comes_back(size_format, size_parse, 5);
    test_comes_back(duration_format, duration_parse, 10);
    test_exact();
    return test_end();
}
