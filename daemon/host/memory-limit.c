// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/host/memory-limit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define LINE_MAX_BYTES (PATH_MAX + 8)

static FILE *open_file(const char *root, const char *path, const char *file)
{
    char name[2 * PATH_MAX];

    (void)snprintf(name, sizeof(name), "%s/sys/fs/cgroup%s/%s", root, path, file);
    return fopen(name, "re");
}

/* UINT64_MAX: "max", or there is no such file, as in the root of all groups. */
static uint64_t read_bytes(const char *root, const char *path, const char *file)
{
    _cleanup_file_ FILE *stream = open_file(root, path, file);
    unsigned long long bytes;

    return stream && fscanf(stream, "%llu", &bytes) == 1 ? bytes : UINT64_MAX;
}

/* Returns the bytes of cached files, which the kernel takes back before it kills. */
static uint64_t read_cached_bytes(const char *root, const char *path)
{
    _cleanup_file_ FILE *stream = open_file(root, path, "memory.stat");
    unsigned long long bytes;
    uint64_t sum = 0;
    char key[64];

    while (stream && fscanf(stream, "%63s %llu", key, &bytes) == 2)
        if (strcmp(key, "inactive_file") == 0 || strcmp(key, "active_file") == 0)
            sum += bytes;
    return sum;
}

static void apply_group(struct memory_limit *limit, const char *root, const char *path)
{
    uint64_t max_bytes = read_bytes(root, path, "memory.max"), used_bytes, cached_bytes;

    if (max_bytes == UINT64_MAX)
        return;
    used_bytes = read_bytes(root, path, "memory.current");
    cached_bytes = read_cached_bytes(root, path);
    used_bytes -= min_u64(cached_bytes, used_bytes);
    limit->max_bytes = min_u64(limit->max_bytes, max_bytes);
    limit->left_bytes = min_u64(limit->left_bytes, max_bytes - min_u64(used_bytes, max_bytes));
}

struct memory_limit memory_limit_read(const char *root)
{
    struct memory_limit limit = {.max_bytes = UINT64_MAX, .left_bytes = UINT64_MAX};
    char name[PATH_MAX], line[LINE_MAX_BYTES], *path = NULL;
    _cleanup_file_ FILE *file = NULL;

    (void)snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
    file = fopen(name, "re");
    while (file && !path && fgets(line, sizeof(line), file))
        if (strncmp(line, "0::/", 4) == 0)
            path = line + 3;
    if (!path)
        return limit;
    path[strcspn(path, "\n")] = '\0';
    while (path[0]) {
        apply_group(&limit, root, path);
        *strrchr(path, '/') = '\0'; /* the one above */
    }
    return limit;
}
