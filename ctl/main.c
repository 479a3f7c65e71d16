// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl: finds the command and runs it. */

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/str.h"

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

struct options {
    bool version;
};

static const struct args_option main_options[] = {
    {"version", .offset = offsetof(struct options, version), .help = "as the command"},
    {},
};

static int run(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {};
    const struct verb *verb;
    char *error = NULL;
    int r;

    r = args_parse(ctl, main_options, argc, argv, -1, &options, NULL, &error);
    if (r < 0)
        return args_exit(NULL, r, error);
    if (options.version)
        return verb_version.run(ctl, 1, (char *[]){argv[0], NULL});
    if (optind >= argc) {
        ctl_error("A command is missing. See: xentracectl --help");
        return CTL_USAGE;
    }
    verb = verb_find(argv[optind]);
    if (!verb)
        return verb_refuse(argv[optind]);
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
