// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/completion-data.h"

#include <string.h>

#include "ctl/args-table.h"
#include "ctl/ctl.h"

static const char *const kinds[] = {
    [ARGS_FLAG] = "flag",         [ARGS_TEXT] = "text",    [ARGS_NAME] = "text",
    [ARGS_SESSION] = "session",   [ARGS_FILE] = "file",    [ARGS_HOST] = "host",
    [ARGS_CHOICE] = "choice",     [ARGS_SIZE] = "size",    [ARGS_SIZE_OR_0] = "size",
    [ARGS_DURATION] = "duration", [ARGS_COUNT] = "count",  [ARGS_EVENTS] = "events",
    [ARGS_CPUS] = "cpus",         [ARGS_DESTROY] = "flag",
};

static void print_options(FILE *file, const struct args_option *table)
{
    for (size_t i = 0; i < args_count(table); i++) {
        const struct args_option *option = &table[i];
        char letter[] = {'-', option->letter, '\0'};

        if (!option->name)
            continue;
        (void)fprintf(file, "option\t--%s\t%s\t%s\t%s\t%s\t", option->name, letter,
                      option->argument ? kinds[option->type] : "flag",
                      option->argument ? option->argument : "-",
                      option->type == ARGS_CHOICE ? option->detail : "-");
        for (const char *c = option->help; *c; c++)
            (void)fputc(*c == '\n' ? ' ' : *c, file);
        (void)fputc('\n', file);
    }
}

void completion_data_print(FILE *file, const struct verb *verb)
{
    size_t count;
    const struct verb *const *verbs = verbs_all(&count);

    for (size_t i = 0; i < count && !verb; i++)
        (void)fprintf(file, "command\t%s\t%s\n", verbs[i]->name, verbs[i]->summary);
    if (verb)
        (void)fprintf(file, "words\t%s\n", verb->completes ? verb->completes : "none");
    else
        (void)fputs("option\t--version\t-\tflag\t-\t-\tprint the versions\n", file);
    print_options(file, verb ? verb->options : NULL);
    print_options(file, args_global_options);
}
