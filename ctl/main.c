/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xentracectl: finds the command and runs it. */

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/str.h"

static const struct option main_options[] = {
    {"version", no_argument, NULL, 'V'},
    {},
};

void ctl_error(const char *format, ...)
{
    _cleanup_free_ char *line = NULL;
    va_list ap;

    va_start(ap, format);
    if (vasprintf(&line, format, ap) < 0)
        line = NULL;
    va_end(ap);
    if (line)
        str_make_printable(line);
    (void)fprintf(stderr, "xentracectl: %s\n", line ? line : "Out of memory.");
}

void ctl_error_sentence(const char *sentence)
{
    ctl_error("%s", sentence ? sentence : "Out of memory.");
}

static int unknown_command(const char *typed)
{
    const char *nearest = verb_suggest(typed);

    if (nearest)
        ctl_error("There is no command \"%s\"; did you mean \"%s\"? See: xentracectl --help", typed,
                  nearest);
    else
        ctl_error("There is no command \"%s\". See: xentracectl --help", typed);
    return CTL_USAGE;
}

int cmd_help(struct ctl *ctl, int argc, char **argv)
{
    const struct verb *verb = NULL;
    char *error = NULL;
    int r;

    r = args_parse_words(ctl, argc, argv, 1, &error);
    if (r < 0)
        return args_exit("help", r, error);
    if (optind < argc) {
        verb = verb_find(argv[optind]);
        if (!verb)
            return unknown_command(argv[optind]);
    }
    (void)fputs(verb ? verb->help : verb_overview(), stdout);
    return CTL_OK;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
    struct args args = {
        .ctl = ctl,
        .argc = argc,
        .argv = argv,
        .options = main_options,
        .until_command = true,
    };
    const struct verb *verb;
    char *error = NULL;
    int option, r;

    r = args_next(&args, &option, &error);
    args_done(&args);
    if (r < 0)
        return args_exit(NULL, r, error);
    if (r > 0)
        return cmd_version(ctl, 1, (char *[]){argv[0], NULL});
    if (optind >= argc) {
        ctl_error("A command is missing. See: xentracectl --help");
        return CTL_USAGE;
    }
    verb = verb_find(argv[optind]);
    if (!verb)
        return unknown_command(argv[optind]);
    return verb->run(ctl, argc - optind, argv + optind);
}

int main(int argc, char **argv)
{
    const char *socket = getenv("XENTRACED_SOCKET");
    struct ctl ctl = {.socket = socket && *socket ? socket : XENTRACED_SOCKET};
    int code;

    code = run(&ctl, argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        ctl_error("Cannot write to standard output: %s.", strerror(errno));
        return code == CTL_OK ? CTL_FAILURE : code;
    }
    return code;
}
