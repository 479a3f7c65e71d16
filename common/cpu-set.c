// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * CPU lists, as xentrace(8) has them ("-3" is 0-3) without its traps: "0-0" is CPU 0 and not all of
 * them, masks may be longer than 32 bits, and a CPU that the host does not have is reported, not
 * ignored.
 */

#include "common/cpu-set.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"

/* At worst pairs: ",16380-16381" and a gap, 12 letters for 3 CPUs; the first one lacks its comma.
 */
#define FORMAT_MAX_BYTES (CPU_SET_MAX * 4)

/*
 * A number at *P, which moves past it; false and nothing if there is none. Anything beyond
 * CPU_SET_MAX is as good as CPU_SET_MAX.
 */
static bool number_read(const char **p, const char *end, unsigned int *ret_number)
{
    const char *begin = *p;
    unsigned int number = 0;

    for (; *p < end && text_is_digit(**p); (*p)++) {
        number = number * 10 + (unsigned int)(**p - '0');
        if (number > CPU_SET_MAX)
            number = CPU_SET_MAX;
    }
    if (*p == begin)
        return false;
    *ret_number = number;
    return true;
}

static int refuse_range(const struct text_item *item, unsigned int nr_cpus, char **ret_error)
{
    char quoted[TEXT_QUOTE_MAX];

    if (nr_cpus == CPU_SET_MAX)
        return text_refuse(-ERANGE, ret_error,
                           "\"%s\" exceeds the CPUs that Xen supports; the highest is CPU %u.",
                           text_quote(quoted, item), nr_cpus - 1);
    return text_refuse(-ERANGE, ret_error,
                       "\"%s\" exceeds the CPUs of this host; the highest is CPU %u.",
                       text_quote(quoted, item), nr_cpus - 1);
}

static int refuse_syntax(const struct text_item *item, char **ret_error)
{
    char quoted[TEXT_QUOTE_MAX];

    if (item->length == 0)
        return text_refuse(
            -EINVAL, ret_error,
            "The CPU list has an empty item; write CPUs as in 0-7, 0,2,4- or 0xff, or \"all\".");
    return text_refuse(
        -EINVAL, ret_error,
        "\"%s\" is not a CPU list; write CPUs as in 0-7, 0,2,4- or 0xff, or \"all\".",
        text_quote(quoted, item));
}

/* "4", "0-7", "4-", "-3". */
static int add_range(struct cpu_set *set, const struct text_item *item, unsigned int nr_cpus,
                     char **ret_error)
{
    const char *end = item->begin + item->length;
    const char *p = item->begin;
    unsigned int first = 0, last = nr_cpus - 1;
    bool has_first = number_read(&p, end, &first);
    bool is_range = p < end && *p == '-';
    bool has_last;

    p += is_range;
    has_last = is_range && number_read(&p, end, &last);
    if (p < end || !(has_first || has_last))
        return refuse_syntax(item, ret_error);
    if (!is_range)
        last = first;
    if (first >= nr_cpus || last >= nr_cpus)
        return refuse_range(item, nr_cpus, ret_error);
    if (first > last)
        return text_refuse(-EINVAL, ret_error, "The CPU range %u-%u is reversed: use %u-%u.", first,
                           last, last, first);
    for (unsigned int cpu = first; cpu <= last; cpu++)
        cpu_set_add(set, cpu);
    return 0;
}

/* "0xff00": the last digit is CPUs 0 to 3. */
static int add_mask(struct cpu_set *set, const struct text_item *item, unsigned int nr_cpus,
                    char **ret_error)
{
    const char *digits = item->begin + 2;
    size_t count = item->length - 2;
    bool in_range = true;

    for (size_t i = 0; i < count; i++) {
        if (text_hex_digit(digits[i]) > 15)
            return refuse_syntax(item, ret_error);
    }
    for (size_t i = 0; i < count * 4; i++) {
        if (!(text_hex_digit(digits[count - 1 - i / 4]) >> (i % 4) & 1))
            continue;
        if (i < nr_cpus)
            cpu_set_add(set, (unsigned int)i);
        else
            in_range = false;
    }
    if (!in_range)
        return refuse_range(item, nr_cpus, ret_error);
    if (cpu_set_count(set) == 0)
        return text_refuse(-EINVAL, ret_error,
                           "The CPU mask contains no CPU; for all CPUs, write \"all\".");
    return 0;
}

int cpu_set_parse(const char *text, unsigned int nr_cpus, struct cpu_set *ret_set, char **ret_error)
{
    struct cpu_set set = {0};
    struct text_item item;

    assert(nr_cpus > 0 && nr_cpus <= CPU_SET_MAX);

    for (const char *rest = text; text_next_item(&rest, &item);) {
        bool is_word = text_item_is(&item, "all") || text_item_is_hex(&item);
        char quoted[TEXT_QUOTE_MAX];
        int r;

        if (is_word && strchr(text, ','))
            return text_refuse(-EINVAL, ret_error,
                               "\"%s\" must be the whole CPU list; in lists, CPUs are decimal "
                               "numbers, as in 0,2,4-.",
                               text_quote(quoted, &item));
        if (text_item_is(&item, "all"))
            item = (struct text_item){.begin = "0-", .length = 2};
        r = text_item_is_hex(&item) ? add_mask(&set, &item, nr_cpus, ret_error)
                                    : add_range(&set, &item, nr_cpus, ret_error);
        if (r < 0)
            return r;
    }
    *ret_set = set;
    return 0;
}

unsigned int cpu_set_count(const struct cpu_set *set)
{
    unsigned int count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(set->bits); i++)
        count += (unsigned int)__builtin_popcountll(set->bits[i]);
    return count;
}

int cpu_set_format(const struct cpu_set *set, char **ret_text)
{
    char *text = malloc(FORMAT_MAX_BYTES), *p = text;

    if (!text)
        return -ENOMEM;
    *p = '\0';
    for (unsigned int cpu = 0; cpu < CPU_SET_MAX; cpu++) {
        unsigned int first = cpu;

        if (!cpu_set_has(set, cpu))
            continue;
        while (cpu_set_has(set, cpu + 1))
            cpu++;
        p += sprintf(p, p > text ? ",%u" : "%u", first);
        if (cpu > first)
            p += sprintf(p, "-%u", cpu);
    }
    *ret_text = text;
    return 0;
}
