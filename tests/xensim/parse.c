// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Strict parsers: the whole text must be a number, signs are refused.
 */

#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

int parse_u64(const char *text, uint64_t most, uint64_t *ret_value)
{
    unsigned long long value;
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -EINVAL;
    errno = 0;
    value = strtoull(text, &end, 0);
    if (errno || *end || value > most)
        return -EINVAL;
    *ret_value = value;
    return 0;
}

int parse_bytes(const char *text, uint64_t *ret_bytes)
{
    double value, unit = 1;
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -EINVAL;
    value = strtod(text, &end);
    switch (*end) {
    case 'K':
        unit = 1 << 10;
        break;
    case 'M':
        unit = 1 << 20;
        break;
    case 'G':
        unit = 1 << 30;
        break;
    case '\0':
        end--;
        break;
    default:
        return -EINVAL;
    }
    if (end[1] || value * unit > 1e15)
        return -EINVAL;
    *ret_bytes = (uint64_t)(value * unit);
    return 0;
}

int parse_seconds(const char *text, double *ret_seconds)
{
    double value;
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -EINVAL;
    value = strtod(text, &end);
    if (*end && strcmp(end, "s") != 0)
        return -EINVAL;
    *ret_seconds = value;
    return 0;
}

static int parse_range(const char *text, struct parse_cpus *cpus)
{
    char first[16];
    const char *dash = strchr(text, '-');
    uint64_t from, to;

    if (!dash)
        dash = text + strlen(text);
    if ((size_t)(dash - text) >= sizeof(first))
        return -EINVAL;
    (void)snprintf(first, sizeof(first), "%.*s", (int)(dash - text), text);
    if (parse_u64(first, SIM_MAX_CPUS - 1, &from) < 0)
        return -EINVAL;
    to = from;
    if (*dash && parse_u64(dash + 1, SIM_MAX_CPUS - 1, &to) < 0)
        return -EINVAL;
    for (uint64_t cpu = from; cpu <= to; cpu++)
        cpus->bits[cpu / 64] |= UINT64_C(1) << (cpu % 64);
    return from <= to ? 0 : -EINVAL;
}

int parse_cpus(const char *text, struct parse_cpus *ret_cpus)
{
    _cleanup_free_ char *copy = strdup(text);
    struct parse_cpus cpus = {0};
    char *rest = copy, *item;

    if (!copy)
        return -ENOMEM;
    while ((item = strsep(&rest, ",")))
        if (parse_range(item, &cpus) < 0)
            return -EINVAL;
    *ret_cpus = cpus;
    return 0;
}

int parse_u32_list(const char *text, uint32_t *values, uint32_t most, uint32_t *ret_count)
{
    _cleanup_free_ char *copy = strdup(text);
    char *rest = copy, *item;
    uint32_t n = 0;

    if (!copy)
        return -ENOMEM;
    while ((item = strsep(&rest, ","))) {
        uint64_t value;

        if (n == most || parse_u64(item, UINT32_MAX, &value) < 0)
            return -EINVAL;
        values[n++] = (uint32_t)value;
    }
    *ret_count = n;
    return 0;
}
