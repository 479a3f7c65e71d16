// SPDX-License-Identifier: GPL-2.0-or-later

#include "common/tracer.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"

static bool is_tracer(const char *name, bool of_others)
{
    static const char *const names[] = {"xentrace", "xenbaked", "xentraced"};

    for (size_t i = 0; i < ARRAY_SIZE(names) - of_others; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static void read_process_name(const char *pid, char name[static 32])
{
    char path[64];
    _cleanup_file_ FILE *file = NULL;

    name[0] = '\0';
    (void)snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
    file = fopen(path, "re");
    if (file && fgets(name, 32, file))
        name[strcspn(name, "\n")] = '\0';
}

bool tracer_find(bool of_others, char who[static TRACER_TEXT_MAX])
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    char name[32];
    bool found = false;

    if (!proc)
        return false;
    while (!found && (entry = readdir(proc))) {
        if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == getpid())
            continue;
        read_process_name(entry->d_name, name);
        if (!is_tracer(name, of_others))
            continue;
        (void)snprintf(who, TRACER_TEXT_MAX, "%s (PID %.16s)", name, entry->d_name);
        found = true;
    }
    (void)closedir(proc);
    return found;
}
