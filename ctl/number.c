// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *number_format(char buffer[static NUMBER_MAX], uint64_t number)
{
    char digits[NUMBER_MAX], *out = buffer;
    size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, number);

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = 0;
    return buffer;
}

/* Cut off, never rounded up: 999,999 is not yet a million. */
const char *number_format_short(char buffer[static NUMBER_MAX], uint64_t number)
{
    static const char units[] = {0, 'k', 'M', 'G', 'T', 'P', 'E'};
    uint64_t unit = 1;
    size_t i = 0;

    while (i + 1 < sizeof(units) && number / unit >= 1000) {
        unit *= 1000;
        i++;
    }
    if (i == 0)
        (void)snprintf(buffer, NUMBER_MAX, "%" PRIu64, number);
    else if (number / unit >= 100)
        (void)snprintf(buffer, NUMBER_MAX, "%" PRIu64 "%c", number / unit, units[i]);
    else
        (void)snprintf(buffer, NUMBER_MAX, "%" PRIu64 ".%" PRIu64 "%c", number / unit,
                       number / (unit / 10) % 10, units[i]);
    return buffer;
}
