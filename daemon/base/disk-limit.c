// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/base/disk-limit.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "common/units.h"

/* A number of at most two digits and '%', of which 0 is none. */
static int parse_percent(const char *text, struct disk_limit *ret_limit)
{
    uint64_t percent = 0;
    size_t length = strlen(text) - 1;

    if (length == 0 || length > 2)
        return -EINVAL;
    for (size_t i = 0; i < length; i++) {
        if (!text_is_digit(text[i]))
            return -EINVAL;
        percent = percent * 10 + (uint64_t)(text[i] - '0');
    }
    *ret_limit = (struct disk_limit){
        .kind = percent ? DISK_LIMIT_PERCENT : DISK_LIMIT_NONE,
        .value = percent,
    };
    return 0;
}

int disk_limit_parse(const char *text, struct disk_limit *ret_limit)
{
    size_t length = strlen(text);
    uint64_t bytes;

    if (strcmp(text, "auto") == 0 || strcmp(text, "none") == 0) {
        *ret_limit =
            (struct disk_limit){.kind = text[0] == 'a' ? DISK_LIMIT_AUTO : DISK_LIMIT_NONE};
        return 0;
    }
    if (length > 0 && text[length - 1] == '%')
        return parse_percent(text, ret_limit);
    if (size_parse(text, 1, &bytes) < 0)
        return -EINVAL;
    *ret_limit = (struct disk_limit){
        .kind = bytes ? DISK_LIMIT_BYTES : DISK_LIMIT_NONE,
        .value = bytes,
    };
    return 0;
}
