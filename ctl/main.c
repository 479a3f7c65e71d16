// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl: finds the command and runs it. */

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdarg.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/remote.h"
#include "ctl/served.h"
#include "ctl/str.h"

#define MEMORY_KEPT_BYTES (4 << 20)

/* Whether --json is among the arguments: a mistake may be found before it is parsed. */
static bool arg_json;

static void print_json(const char *level, const char *host, const char *message)
{
    _cleanup_free_ char *text = *host ? str_format("%s: %s", host, message) : NULL;
    _cleanup_doc_ struct json_object *doc = doc_new(DOC_FORMAT_ERROR);

    doc_add_text(doc, "level", level);
    doc_add_text(doc, "message", text ? text : message);
    doc_print_line(stderr, doc);
}

__attribute__((format(printf, 2, 0))) static void report(const char *level, const char *format,
                                                         va_list ap)
{
    const char *host = served_host();
    _cleanup_free_ char *line = NULL;

    if (vasprintf(&line, format, ap) < 0)
        line = NULL;
    if (line)
        str_make_printable(line);
    if (arg_json)
        print_json(level, host, line ? line : "Out of memory.");
    else
        (void)fprintf(stderr, "xentracectl: %s%s%s\n", host, *host ? ": " : "",
                      line ? line : "Out of memory.");
}

void ctl_error(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    report("error", format, ap);
    va_end(ap);
}

void ctl_warning(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    report("warning", format, ap);
    va_end(ap);
}

void ctl_error_sentence(const char *sentence)
{
    ctl_error("%s", sentence ? sentence : "Out of memory.");
}

static bool has_json(char **argv)
{
    for (size_t i = 1; argv[i] && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0)
            return true;
    }
    return false;
}

struct options {
    bool version;
};

static const struct args_option main_options[] = {
    {"version", .offset = offsetof(struct options, version), .help = "print the versions"},
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
    argc -= optind;
    argv += optind;
    return remote_run(ctl, verb, argc, argv, &r) ? r : verb->run(ctl, argc, argv);
}

int main(int argc, char **argv)
{
    const char *socket = getenv("XENTRACED_SOCKET");
    struct ctl ctl = {.default_socket = socket && *socket ? socket : XENTRACED_SOCKET};
    int code;

    /*
     * Windows of a pipe come and go. By default, their memory is given back to the kernel and asked
     * for again each time that the last one happens to be free, which took half of all the time.
     */
    (void)mallopt(M_TRIM_THRESHOLD, MEMORY_KEPT_BYTES);
    (void)mallopt(M_MMAP_THRESHOLD, MEMORY_KEPT_BYTES);
    arg_json = argc > 0 && has_json(argv);
    ctl.socket = ctl.default_socket;
    if (argc > 0 && served_begin(argv + 1, &code))
        return code;
    if (*served_host()) {
        argv[SERVED_WORDS] = argv[0];
        argv += SERVED_WORDS;
        argc -= SERVED_WORDS;
    }
    code = run(&ctl, argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        ctl_error("Cannot write to standard output: %s.", strerror(errno));
        return code == CTL_OK ? CTL_FAILURE : code;
    }
    return code;
}
