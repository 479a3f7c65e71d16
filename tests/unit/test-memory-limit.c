// SPDX-License-Identifier: GPL-2.0-or-later

/* What control groups allow, in a directory with files as the kernel has them. */

#include "daemon/host/memory-limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "tests/unit/test.h"

static char root[] = "test-memory-limit-XXXXXX"; /* in the working directory */

static void put(const char *file, const char *text)
{
    _cleanup_file_ FILE *stream = NULL;
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", root, file);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    stream = fopen(path, "we");
    CHECK(stream && fputs(text, stream) >= 0);
}

static void check_limit(const char *name, uint64_t max_bytes, uint64_t left_bytes)
{
    struct memory_limit limit = memory_limit_read(root);

    test_case(name);
    CHECK_UINT(limit.max_bytes, max_bytes);
    CHECK_UINT(limit.left_bytes, left_bytes);
}

static void remove_all(void)
{
    char command[64];

    (void)snprintf(command, sizeof(command), "rm -r %s", root);
    CHECK_INT(system(command), 0);
}

int main(void)
{
    const char *unit = "sys/fs/cgroup/system.slice/xentraced.service";
    char file[128];

    CHECK(mkdtemp(root));
    check_limit("without control groups", UINT64_MAX, UINT64_MAX);

    put("proc/self/cgroup", "4:memory:/old\n0::/\n");
    check_limit("in the root group", UINT64_MAX, UINT64_MAX);

    put("proc/self/cgroup", "0::/system.slice/xentraced.service\n");
    (void)snprintf(file, sizeof(file), "%s/memory.max", unit);
    put(file, "max\n");
    put("sys/fs/cgroup/system.slice/memory.max", "max\n");
    check_limit("without a limit", UINT64_MAX, UINT64_MAX);

    put(file, "500000\n");
    (void)snprintf(file, sizeof(file), "%s/memory.current", unit);
    put(file, "300000\n");
    (void)snprintf(file, sizeof(file), "%s/memory.stat", unit);
    put(file, "anon 200000\nfile 90000\ninactive_file 60000\nactive_file 20000\n");
    check_limit("cached files do not count", 500000, 280000);

    put("sys/fs/cgroup/system.slice/memory.max", "900000\n");
    put("sys/fs/cgroup/system.slice/memory.current", "800000\n");
    check_limit("of a slice less is left", 500000, 100000);

    put("sys/fs/cgroup/system.slice/memory.current", "950000\n");
    check_limit("nothing is left", 500000, 0);

    put("sys/fs/cgroup/system.slice/memory.max", "400000\n");
    put("sys/fs/cgroup/system.slice/memory.current", "1\n");
    check_limit("a slice allows less", 400000, 280000);

    put("proc/self/cgroup", "0::/../outside\n");
    check_limit("outside of the name space's root", UINT64_MAX, UINT64_MAX);
    remove_all();
    return test_end();
}
