// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Integers all the way: a size that decides when a disk is full must not pass through a double.
 * A number is kept as whole part and billionths, which 128 bits multiply exactly by any unit;
 * what is finer than a billionth, or than one byte or microsecond, is cut off.
 *
 * The formats lose precision on purpose, and never the other way of what they say: a duration is
 * cut off, so that 59.99 s is not shown as a minute that has not passed; a size is rounded.
 */

#include "common/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"

#define VALUE_MAX  ((uint64_t)INT64_MAX) /* 63 bits */
#define BILLION    UINT64_C(1000000000)
#define LETTER_MAX 8u

typedef unsigned __int128 u128;

struct number {
    uint64_t whole;
    uint64_t billionths;
};

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit duration_units[] = {
    {"us", 1},
    {"usec", 1},
    {"ms", USEC_PER_MSEC},
    {"msec", USEC_PER_MSEC},
    {"s", USEC_PER_SEC},
    {"sec", USEC_PER_SEC},
    {"second", USEC_PER_SEC},
    {"seconds", USEC_PER_SEC},
    {"m", 60 * USEC_PER_SEC},
    {"min", 60 * USEC_PER_SEC},
    {"minute", 60 * USEC_PER_SEC},
    {"minutes", 60 * USEC_PER_SEC},
    {"h", 3600 * USEC_PER_SEC},
    {"hr", 3600 * USEC_PER_SEC},
    {"hour", 3600 * USEC_PER_SEC},
    {"hours", 3600 * USEC_PER_SEC},
    {"d", 86400 * USEC_PER_SEC},
    {"day", 86400 * USEC_PER_SEC},
    {"days", 86400 * USEC_PER_SEC},
    {"w", 604800 * USEC_PER_SEC},
    {"week", 604800 * USEC_PER_SEC},
    {"weeks", 604800 * USEC_PER_SEC},
};

static const char size_letters[] = "BKMGTPE"; /* [i] is 1024 to the power of i */

static bool is_letter(char c)
{
    return text_to_lower(c) >= 'a' && text_to_lower(c) <= 'z';
}

static const char *skip_blanks(const char *p)
{
    while (text_is_blank(*p))
        p++;
    return p;
}

/* Reads "12", "1.5", ".5" at *P and moves *P past it. */
static int number_parse(const char **p, struct number *ret_number)
{
    struct number number = {0};
    const char *begin = *p;
    const char *c = begin;
    uint64_t place = BILLION / 10;
    bool too_large = false;
    bool any = false;

    for (; text_is_digit(*c); c++, any = true) {
        uint64_t digit = (uint64_t)(*c - '0');

        if (number.whole > (VALUE_MAX - digit) / 10)
            too_large = true;
        else
            number.whole = number.whole * 10 + digit;
    }
    if (*c == '.') {
        for (c++; text_is_digit(*c); c++, any = true, place /= 10)
            number.billionths += (uint64_t)(*c - '0') * place;
    }
    if (!any)
        return -EINVAL;
    *p = c;
    if (too_large)
        return -ERANGE;
    *ret_number = number;
    return 0;
}

/* NUMBER * FACTOR, added to *SUM. */
static int sum_add(uint64_t *sum, const struct number *number, uint64_t factor)
{
    u128 product = (u128)number->whole * factor;

    product += (u128)number->billionths * factor / BILLION;
    if (product > VALUE_MAX - *sum)
        return -ERANGE;
    *sum += (uint64_t)product;
    return 0;
}

/* Reads letters at *P into WORD and moves *P past them; -EINVAL if there are too many. */
static int letters_read(const char **p, char word[static LETTER_MAX])
{
    size_t length = 0;

    for (; is_letter(**p); (*p)++) {
        if (length == LETTER_MAX - 1)
            return -EINVAL;
        word[length++] = **p;
    }
    word[length] = '\0';
    return 0;
}

/* The factor of "K", "kb", "KiB"; 0 if WORD is none. */
static uint64_t size_factor(const char *word)
{
    for (size_t i = 0; size_letters[i] != '\0'; i++) {
        char letter = size_letters[i];

        if (text_to_lower(word[0]) != text_to_lower(letter))
            continue;
        if (word[1] == '\0' || (i > 0 && strcasecmp(word + 1, "B") == 0) ||
            (i > 0 && strcasecmp(word + 1, "iB") == 0))
            return UINT64_C(1) << (10 * i);
    }
    return 0;
}

int size_parse(const char *text, uint64_t default_unit_bytes, uint64_t *ret_bytes)
{
    const char *p = skip_blanks(text);
    char word[LETTER_MAX];
    struct number number;
    uint64_t factor, bytes = 0;
    int r, range;

    range = number_parse(&p, &number);
    if (range == -EINVAL)
        return range;
    p = skip_blanks(p);
    r = letters_read(&p, word);
    if (r < 0)
        return r;
    factor = word[0] == '\0' ? default_unit_bytes : size_factor(word);
    if ((word[0] != '\0' && factor == 0) || *skip_blanks(p) != '\0')
        return -EINVAL;
    if (range < 0) /* reported only now: "99999999999999999999x" is no size at all */
        return range;

    r = sum_add(&bytes, &number, factor);
    if (r < 0)
        return r;
    *ret_bytes = bytes;
    return 0;
}

/* The factor of "ms"; 0 if WORD is none. Case matters: "M" is no minute to anybody. */
static uint64_t duration_factor(const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(duration_units); i++) {
        if (strcmp(word, duration_units[i].name) == 0)
            return duration_units[i].factor;
    }
    return 0;
}

int duration_parse(const char *text, uint64_t default_unit_usec, uint64_t *ret_usec)
{
    const char *p = skip_blanks(text);
    uint64_t usec = 0;
    int range = 0;

    for (bool first = true; first || *p != '\0'; first = false) {
        char word[LETTER_MAX];
        struct number number = {0};
        uint64_t factor;
        int r;

        r = number_parse(&p, &number);
        if (r == -EINVAL)
            return r;
        range = r < 0 ? r : range;
        p = skip_blanks(p);
        r = letters_read(&p, word);
        if (r < 0)
            return r;
        p = skip_blanks(p);
        factor = duration_factor(word);
        if (first && word[0] == '\0' && *p == '\0')
            factor = default_unit_usec;
        else if (factor == 0)
            return -EINVAL;
        r = sum_add(&usec, &number, factor);
        range = r < 0 ? r : range;
    }
    if (range < 0)
        return range;
    *ret_usec = usec;
    return 0;
}

const char *size_format(char buffer[static UNITS_TEXT_MAX], uint64_t bytes)
{
    unsigned int power = 0;
    uint64_t tenths = 0, rounded = bytes;

    while (rounded >= 1024) {
        u128 unit;

        power++;
        unit = (u128)1 << (10 * power);
        tenths = (uint64_t)(((u128)bytes * 10 + unit / 2) / unit);
        rounded = (uint64_t)(((u128)bytes + unit / 2) / unit);
    }
    if (power > 0 && tenths < 1000 && tenths % 10 != 0)
        (void)snprintf(buffer, UNITS_TEXT_MAX, "%" PRIu64 ".%" PRIu64 "%c", tenths / 10,
                       tenths % 10, size_letters[power]); /* at most 5 letters */
    else
        (void)snprintf(buffer, UNITS_TEXT_MAX, "%" PRIu64 "%c", rounded, size_letters[power]);
    return buffer;
}

/* "2h 5min", or "2h" without a second part. */
static void duration_format_two(char *buffer, uint64_t usec, uint64_t unit, const char *name,
                                uint64_t part, const char *part_name)
{
    uint64_t rest = usec % unit / part;

    if (rest > 0) /* 21 and 3 letters at most, a blank, 2 and 3 letters */
        (void)snprintf(buffer, UNITS_TEXT_MAX, "%" PRIu64 "%s %" PRIu64 "%s", usec / unit, name,
                       rest, part_name);
    else
        (void)snprintf(buffer, UNITS_TEXT_MAX, "%" PRIu64 "%s", usec / unit, name);
}

const char *duration_format(char buffer[static UNITS_TEXT_MAX], uint64_t usec)
{
    const uint64_t second = USEC_PER_SEC, minute = 60 * second, hour = 60 * minute;

    if (usec >= 24 * hour) {
        duration_format_two(buffer, usec, 24 * hour, "d", hour, "h");
    } else if (usec >= hour) {
        duration_format_two(buffer, usec, hour, "h", minute, "min");
    } else if (usec >= minute) {
        duration_format_two(buffer, usec, minute, "min", second, "s");
    } else if (usec < USEC_PER_MSEC) {
        (void)snprintf(buffer, UNITS_TEXT_MAX, "%" PRIu64 "us", usec);
    } else {
        uint64_t unit = usec < second ? USEC_PER_MSEC : second;
        const char *name = usec < second ? "ms" : "s";
        uint64_t tenth = usec % unit / (unit / 10);

        if (tenth > 0)
            (void)snprintf(buffer, UNITS_TEXT_MAX, "%" PRIu64 ".%" PRIu64 "%s", usec / unit, tenth,
                           name);
        else
            (void)snprintf(buffer, UNITS_TEXT_MAX, "%" PRIu64 "%s", usec / unit, name);
    }
    return buffer;
}

/* A step is about a tenth of what it is for. */
static uint64_t about_step_usec(uint64_t usec)
{
    const uint64_t second = USEC_PER_SEC, minute = 60 * second, hour = 60 * minute;

    if (usec < 10 * second)
        return second;
    if (usec < 2 * minute)
        return 10 * second;
    if (usec < hour)
        return minute;
    if (usec < 10 * hour)
        return 10 * minute;
    return usec < 240 * hour ? hour : 24 * hour;
}

const char *duration_format_about(char buffer[static UNITS_TEXT_MAX], uint64_t usec)
{
    uint64_t step = about_step_usec(usec);

    if (usec < USEC_PER_SEC)
        return duration_format(buffer, usec);
    return duration_format(buffer, (usec / step + (usec % step >= step / 2)) * step);
}

const char *duration_format_part(char buffer[static UNITS_PART_MAX], uint64_t part_usec,
                                 uint64_t whole_usec)
{
    char part[UNITS_TEXT_MAX], whole[UNITS_TEXT_MAX];
    const char *but = "";

    (void)duration_format(part, part_usec);
    (void)duration_format(whole, whole_usec);
    if (part_usec < whole_usec && strcmp(part, whole) == 0) {
        but = "all but ";
        (void)duration_format(part, whole_usec - part_usec);
    }
    (void)snprintf(buffer, UNITS_PART_MAX, "%s%s of the %s", but, part, whole);
    return buffer;
}
