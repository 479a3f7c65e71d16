// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/args-table.h"

#include <string.h>

#include "common/protocol.h"
#include "ctl/ctl.h"

const struct args_option args_global_options[] = {
    {"socket", 0, "PATH", ARGS_FILE, offsetof(struct ctl, socket),
     .help = "the daemon's socket (default $XENTRACED_SOCKET, else\n" XENTRACED_SOCKET ")"},
    {"host", 'H', "HOST", ARGS_HOST, offsetof(struct ctl, host),
     .help = "run the command on HOST or USER@HOST, through ssh"},
    {"json", .offset = offsetof(struct ctl, json), .help = "print JSON"},
    {"no-pager", .offset = offsetof(struct ctl, no_pager), .help = "print without a pager"},
    {"help", 'h', .help = "print this page, or the page of a command"},
    {},
};

size_t args_count(const struct args_option *table)
{
    size_t n = 0;

    while (table && table[n].help)
        n++;
    return n;
}

const struct args_option *args_find(const struct args_option *table, const char *name)
{
    for (size_t i = 0; i < args_count(table); i++) {
        if (table[i].name && strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

const char *args_label(char buffer[static ARGS_LABEL_MAX], const struct args_option *option)
{
    if (option->letter)
        (void)snprintf(buffer, ARGS_LABEL_MAX, "-%c", option->letter);
    else
        (void)snprintf(buffer, ARGS_LABEL_MAX, "--%s", option->name);
    return buffer;
}
