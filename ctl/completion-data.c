// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/completion-data.h"

#include <string.h>

#include "ctl/args-table.h"
#include "ctl/ctl.h"

static const char *kind_of(const struct args_option *option)
{
    switch (option->type) {
    case ARGS_FLAG:
    case ARGS_DESTROY:
        return "flag";
    case ARGS_TEXT:
    case ARGS_NAME:
    case ARGS_LIST:
        return "text";
    case ARGS_SESSION:
        return "session";
    case ARGS_FILE:
        return "file";
    case ARGS_HOST:
        return "host";
    case ARGS_CHOICE:
        return "choice";
    case ARGS_DURATION:
        return "duration";
    case ARGS_SIZE:
    case ARGS_SIZE_OR_0:
        return "size";
    case ARGS_COUNT:
        return "count";
    case ARGS_EVENTS:
        return "events";
    case ARGS_CPUS:
        return "cpus";
    }
    return "text";
}

static void print_options(FILE *file, const struct args_option *table)
{
    for (size_t i = 0; i < args_count(table); i++) {
        const struct args_option *option = &table[i];
        char letter[] = {'-', option->letter, '\0'};

        if (!option->name)
            continue;
        (void)fprintf(file, "option\t--%s\t%s\t%s\t%s\t%s\t", option->name, letter, kind_of(option),
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
