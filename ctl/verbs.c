// SPDX-License-Identifier: GPL-2.0-or-later
/* The commands, and their help: pages that fit a screen. xentracectl(1) says the rest. */

#include <getopt.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/completion-data.h"
#include "ctl/ctl.h"
#include "ctl/hint.h"
#include "ctl/synopsis.h"

static const struct verb *const verbs[] = {
    &verb_start,   &verb_record,   &verb_stop,    &verb_snapshot, &verb_trigger, &verb_rotate,
    &verb_reload,  &verb_monitor,  &verb_top,     &verb_doctor,   &verb_status,  &verb_list,
    &verb_vacuum,  &verb_remove,   &verb_info,    &verb_report,   &verb_why,     &verb_timeline,
    &verb_diff,    &verb_cut,      &verb_repair,  &verb_dump,     &verb_export,  &verb_events,
    &verb_metrics, &verb_xentrace, &verb_version, &verb_help,
};

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    }
    return NULL;
}

bool verb_takes_command(const struct verb *verb)
{
    return strstr(verb->words, "[-- ");
}

const struct verb *const *verbs_all(size_t *ret_count)
{
    *ret_count = ARRAY_SIZE(verbs);
    return verbs;
}

int verb_refuse(const char *typed)
{
    char *error = NULL;
    int r;

    if (strcmp(typed, "bridge") == 0) { /* what -H of 0.1.0 runs */
        ctl_error("xentracectl " PACKAGE_VERSION " is newer than the one that uses it through -H: "
                  "install the same version on both hosts.");
        return CTL_USAGE;
    }
    r = hint_refuse_command(typed, &error);
    return args_exit(NULL, r, error);
}

static void print_overview(FILE *file)
{
    (void)fputs("Usage: xentracectl [OPTION]... COMMAND [ARGUMENT]...\n"
                "Captures Xen's trace records through xentraced.\n\n",
                file);
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        const char *words = verbs[i]->words;
        /* the first of its arguments: the page of the command has all of them */
        int width = fprintf(file, "  %s %.*s", verbs[i]->name, (int)strcspn(words, " "), words);

        (void)fprintf(file, "%*s%s\n", width < 24 ? 24 - width : 1, "", verbs[i]->summary);
    }
    (void)fputc('\n', file);
    args_print_help(file, NULL);
    (void)fputs("      --version         print the versions\n\n"
                "  xentracectl record -e sched -T 10 -o sched.xentrace\n",
                file);
}

void verb_print_help(FILE *file, const struct verb *verb)
{
    if (!verb) {
        print_overview(file);
        return;
    }
    (void)fprintf(file, "Usage: xentracectl %s%s%s%s\n%s", verb->name,
                  verb->options ? " [OPTION]..." : "", *verb->words ? " " : "", verb->words,
                  verb->help);
    if (verb->options) {
        (void)fputc('\n', file);
        args_print_help(file, verb->options);
    }
    if (verb->examples)
        (void)fprintf(file, "\n%s", verb->examples);
}

struct options {
    bool completion, synopsis;
};

static const struct args_option help_options[] = {
    {"completion", .offset = offsetof(struct options, completion),
     .help = "print data for shell completion"},
    {"synopsis", .offset = offsetof(struct options, synopsis),
     .help = "print the synopsis of the manual, as mdoc"},
    {},
};

static int cmd_help(struct ctl *ctl, int argc, char **argv)
{
    const struct verb *verb = NULL;
    struct options options = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, help_options, argc, argv, 1, &options, NULL, &error);
    if (r < 0)
        return args_exit(&verb_help, r, error);
    if (optind < argc) {
        verb = verb_find(argv[optind]);
        if (!verb)
            return verb_refuse(argv[optind]);
    }
    if (options.synopsis)
        synopsis_print(stdout);
    else if (options.completion)
        completion_data_print(stdout, verb);
    else
        verb_print_help(stdout, verb);
    return CTL_OK;
}

const struct verb verb_help = {
    .name = "help",
    .run = cmd_help,
    .words = "[COMMAND]",
    .completes = "commands",
    .summary = "show this page, or the page of a command",
    .help = "Explains xentracectl, or one of its commands.\n",
    .options = help_options,
    .remote = VERB_STAYS_HERE,
};
