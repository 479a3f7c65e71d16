// SPDX-License-Identifier: GPL-2.0-or-later
/* The commands, and their help: pages that fit a screen. xentracectl(1) says the rest. */

#include <getopt.h>
#include <string.h>

#include "common/suggest.h"
#include "ctl/args.h"
#include "ctl/ctl.h"

static const struct verb *const verbs[] = {
    &verb_start,  &verb_record, &verb_stop, &verb_snapshot, &verb_trigger, &verb_rotate,
    &verb_reload, &verb_status, &verb_list,   &verb_info, &verb_events,   &verb_version, &verb_help,
};

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    }
    return NULL;
}

int verb_refuse(const char *typed)
{
    const char *names[ARRAY_SIZE(verbs)], *nearest;

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        names[i] = verbs[i]->name;
    nearest = suggest_nearest(typed, names, ARRAY_SIZE(names));
    if (nearest)
        ctl_error("There is no command \"%s\"; did you mean \"%s\"? See: xentracectl --help", typed,
                  nearest);
    else
        ctl_error("There is no command \"%s\". See: xentracectl --help", typed);
    return CTL_USAGE;
}

static void print_overview(FILE *file)
{
    (void)fputs("Usage: xentracectl [OPTION]... COMMAND [ARGUMENT]...\n"
                "Captures Xen's trace records through xentraced.\n\n",
                file);
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        int width = fprintf(file, "  %s %s", verbs[i]->name, verbs[i]->words);

        (void)fprintf(file, "%*s%s\n", width < 24 ? 24 - width : 1, "", verbs[i]->summary);
    }
    (void)fputc('\n', file);
    args_print_help(file, NULL);
    (void)fputs("      --version         as the command\n"
                "\n"
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

/* VERB NULL: the command itself is completed. */
static void print_completion(const struct verb *verb)
{
    if (verb) {
        (void)printf("words %s\n", verb->completes ? verb->completes : "none");
        args_print_completion(stdout, verb->options);
        return;
    }
    (void)fputs("words list", stdout);
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        (void)printf(" %s", verbs[i]->name);
    (void)puts("\n--version|--version flag");
    args_print_completion(stdout, NULL);
}

struct options {
    bool completion;
};

static const struct args_option help_options[] = {
    {"completion", .offset = offsetof(struct options, completion),
     .help = "what the shell's completion needs to know"},
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
    if (options.completion)
        print_completion(verb);
    else
        verb_print_help(stdout, verb);
    return CTL_OK;
}

const struct verb verb_help = {
    .name = "help",
    .run = cmd_help,
    .words = "[COMMAND]",
    .completes = "commands",
    .summary = "this page, or that of a command",
    .help = "Explains xentracectl, or one of its commands.\n",
    .options = help_options,
};
