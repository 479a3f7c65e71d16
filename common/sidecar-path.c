// SPDX-License-Identifier: GPL-2.0-or-later

/* docs/file-format.md */

#include "common/sidecar-path.h"

#include <stdio.h>
#include <string.h>

char *sidecar_path_of(const char *trace_path)
{
    static const char suffix[] = ".xentrace";
    size_t length = strlen(trace_path), cut = strlen(suffix);
    char *path;

    /* A file that is called ".xentrace" keeps its name. */
    if (length > cut && trace_path[length - cut - 1] != '/' &&
        strcmp(trace_path + length - cut, suffix) == 0)
        length -= cut;
    return asprintf(&path, "%.*s.json", (int)length, trace_path) < 0 ? NULL : path;
}
