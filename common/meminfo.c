// SPDX-License-Identifier: GPL-2.0-or-later

#include "common/meminfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

uint64_t meminfo_bytes(const char *key)
{
    _cleanup_file_ FILE *file = fopen("/proc/meminfo", "re");
    size_t length = strlen(key);
    char line[128];

    while (file && fgets(line, sizeof(line), file)) /* "MemTotal:   1024 kB" */
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            return strtoull(line + length + 1, NULL, 10) * 1024;
    return 0;
}
