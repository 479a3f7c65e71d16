/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * getopt_long(3) permutes its words, so options and names may come in any order. Its own messages
 * are turned off and said again here with the nearest option that exists.
 */

#include "ctl/args.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/suggest.h"
#include "ctl/str.h"

enum {
    GLOBAL_SOCKET = 0x1000,
    GLOBAL_JSON,
};

static const struct option global_options[] = {
    {"socket", required_argument, NULL, GLOBAL_SOCKET},
    {"json", no_argument, NULL, GLOBAL_JSON},
    {"help", no_argument, NULL, 'h'},
    {},
};

static size_t count_options(const struct option *options)
{
    size_t n = 0;

    while (options && options[n].name)
        n++;
    return n;
}

/* The letters of all options as getopt wants them, after a ':' that tells errors apart. */
static void fill_letters(char *p, const struct option *options, bool until_command)
{
    if (until_command)
        *p++ = '+';
    *p++ = ':';
    for (; options->name; options++) {
        if (options->val > UCHAR_MAX)
            continue;
        *p++ = (char)options->val;
        for (int i = 0; i < options->has_arg; i++)
            *p++ = ':';
    }
    *p = 0;
}

static int prepare(struct args *args)
{
    size_t own = count_options(args->options), n = own + count_options(global_options);

    args->long_options = calloc(n + 1, sizeof(struct option));
    args->short_options = malloc(3 * n + 3);
    if (!args->long_options || !args->short_options)
        return -ENOMEM;
    if (own)
        memcpy(args->long_options, args->options, own * sizeof(struct option));
    memcpy(args->long_options + own, global_options, sizeof(global_options));
    fill_letters(args->short_options, args->long_options, args->until_command);
    optind = 0; /* glibc: start over, other vector */
    opterr = 0;
    return 0;
}

void args_done(struct args *args)
{
    free(args->long_options);
    free(args->short_options);
    args->long_options = NULL;
    args->short_options = NULL;
}

static char *unknown_option(const struct args *args, const char *typed)
{
    size_t n = count_options(args->long_options), length = strcspn(typed + 2, "=");
    _cleanup_free_ char *word = strndup(typed + 2, length);
    const char **names = calloc(n, sizeof(*names)), *nearest = NULL;
    char *error;

    if (word && names) {
        for (size_t i = 0; i < n; i++)
            names[i] = args->long_options[i].name;
        nearest = suggest_nearest(word, names, n);
    }
    free(names);
    error = nearest ? str_format("There is no option --%s; did you mean --%s?", word ? word : "",
                                 nearest)
                    : str_format("There is no option --%s.", word ? word : "");
    if (error)
        str_make_printable(error);
    return error;
}

static bool is_known(const struct args *args, int option)
{
    for (const struct option *o = args->long_options; o->name; o++) {
        if (o->val == option)
            return true;
    }
    return false;
}

/* RESULT is getopt's complaint, '?' or ':', which optopt tells more about. */
static char *explain(const struct args *args, int result)
{
    const char *word = args->argv[optind - 1];

    if (result == ':' && strncmp(word, "--", 2) == 0)
        return str_format("Option %s needs a value.", word);
    if (result == ':')
        return str_format("Option -%c needs a value.", optopt);
    if (!optopt)
        return unknown_option(args, word);
    if (is_known(args, optopt)) /* "--json=yes" */
        return str_format("Option %.*s takes no value.", (int)strcspn(word, "="), word);
    return str_format("There is no option -%c.", optopt > 0x20 && optopt < 0x7f ? optopt : '?');
}

/* Returns whether it was a global option. */
static bool take_global(struct ctl *ctl, int option)
{
    switch (option) {
    case GLOBAL_SOCKET:
        ctl->socket = optarg;
        return true;
    case GLOBAL_JSON:
        ctl->json = true;
        return true;
    }
    return false;
}

int args_next(struct args *args, int *ret_option, char **ret_error)
{
    int option, r;

    if (!args->long_options) {
        r = prepare(args);
        if (r < 0)
            return r;
    }
    do {
        option = getopt_long(args->argc, args->argv, args->short_options, args->long_options, NULL);
    } while (take_global(args->ctl, option));

    if (option < 0)
        return 0;
    if (option == 'h')
        return -ECANCELED;
    if (option == '?' || option == ':') {
        *ret_error = explain(args, option);
        return *ret_error ? -EINVAL : -ENOMEM;
    }
    *ret_option = option;
    return 1;
}

int args_exit(const char *verb, int r, char *error)
{
    const struct verb *found = verb ? verb_find(verb) : NULL;

    if (r == -ECANCELED) {
        (void)fputs(found ? found->help : verb_overview(), stdout);
        return CTL_OK;
    }
    if (r != -EINVAL) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    ctl_error("%s See: xentracectl %s%s--help", error, verb ? verb : "", verb ? " " : "");
    free(error);
    return CTL_USAGE;
}

int args_check_words(int argc, char **argv, int max, char **ret_error)
{
    if (argc - optind <= max)
        return 0;
    if (max == 0)
        return str_refuse(-EINVAL, ret_error, "%s takes no argument, but was given %s.", argv[0],
                          argv[optind]);
    return str_refuse(-EINVAL, ret_error, "%s takes one argument, but was given %d: %s, %s ...",
                      argv[0], argc - optind, argv[optind], argv[optind + 1]);
}

int args_parse_words(struct ctl *ctl, int argc, char **argv, int max, char **ret_error)
{
    struct args args = {.ctl = ctl, .argc = argc, .argv = argv};
    int option, r;

    r = args_next(&args, &option, ret_error);
    args_done(&args);
    return r < 0 ? r : args_check_words(argc, argv, max, ret_error);
}
