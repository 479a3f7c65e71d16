// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/output/compression.h"

#include <errno.h>
#include <string.h>

#include "common/protocol.h"

int compression_parse(const char *text, bool *ret_is_packed, struct failure *failure)
{
    bool is_packed = text && strcmp(text, "zstd") == 0;

    if (text && *text && !is_packed && strcmp(text, "no") != 0)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "'%s' is no compression: use zstd or no.", text);
    *ret_is_packed = is_packed;
    return 0;
}

const char *compression_name(bool is_packed)
{
    return is_packed ? "zstd" : "no";
}
