// SPDX-License-Identifier: GPL-2.0-or-later

/* docs/file-format.md */

#include "common/sidecar-path.h"

#include <stdio.h>
#include <string.h>

/* LENGTH without SUFFIX. A file that is called ".xentrace" keeps its name. */
static size_t without(const char *path, size_t length, const char *suffix)
{
    size_t cut = strlen(suffix);

    if (length > cut && path[length - cut - 1] != '/' &&
        memcmp(path + length - cut, suffix, cut) == 0)
        return length - cut;
    return length;
}

size_t trace_path_stem(const char *path)
{
    size_t length = strlen(path), unpacked = without(path, length, TRACE_SUFFIX_PACKED);

    return without(path, unpacked, TRACE_SUFFIX);
}

bool trace_path_is_trace(const char *path)
{
    size_t length = strlen(path), unpacked = without(path, length, TRACE_SUFFIX_PACKED);

    return without(path, unpacked, TRACE_SUFFIX) < unpacked;
}

char *sidecar_path_of(const char *trace_path)
{
    char *path;
    int length = (int)trace_path_stem(trace_path);

    return asprintf(&path, "%.*s.json", length, trace_path) < 0 ? NULL : path;
}
