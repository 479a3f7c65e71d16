// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line is parsed here, for what is to run there; a command that runs here parses again.
 */

#include "ctl/remote-run.h"

#include <errno.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/remote.h"
#include "ctl/remote-stream.h"
#include "ctl/str.h"

#define VALUES_BYTES 4096u /* more than any command's options take */

/* A command line with -H, taken apart. */
struct line {
    const struct verb *verb;
    int argc; /* up to "--" */
    char **argv;
    _Alignas(16) char values[VALUES_BYTES]; /* of its options */
    uint64_t given;
    char **command; /* after "--"; NULL: there is none */
};

static bool line_has(const struct line *line, const char *name)
{
    const struct args_option *option = args_find(line->verb->options, name);

    return option && (line->given & (UINT64_C(1) << (option - line->verb->options)));
}

static const void *line_value(const struct line *line, const char *name)
{
    return line->values + args_find(line->verb->options, name)->offset;
}

static void line_free(struct line *line)
{
    const struct args_option *table = line->verb->options;

    for (size_t i = 0; i < args_count(table); i++) {
        if (table[i].name && table[i].type == ARGS_EVENTS)
            free(*(char **)(line->values + table[i].offset));
    }
    free(line->argv);
    free(line);
}

static void line_freep(struct line **line)
{
    if (*line)
        line_free(*line);
}

/* NULL: there is a mistake in it, or no memory. The words are borrowed from ARGV. */
static struct line *line_new(struct ctl *ctl, const struct verb *verb, int argc, char **argv)
{
    struct line *line = calloc(1, sizeof(*line));
    _cleanup_free_ char *error = NULL;

    if (!line)
        return NULL;
    line->verb = verb;
    line->argv = calloc((size_t)argc + 1, sizeof(*argv));
    for (; line->argv && line->argc < argc; line->argc++) {
        if (verb_takes_command(verb) && strcmp(argv[line->argc], "--") == 0)
            break;
        line->argv[line->argc] = argv[line->argc];
    }
    line->command = line->argc < argc ? argv + line->argc + 1 : NULL;
    if (!line->argv || args_parse(ctl, verb->options, line->argc, line->argv, line->argc,
                                  line->values, &line->given, &error) < 0) {
        line_free(line);
        return NULL;
    }
    return line;
}

/* --- The command line there. --- */

/* "--socket=PATH" if it is to be that of a path; NULL: the default one there, or no memory. */
static char *socket_option(const struct ctl *ctl)
{
    const char *path = remote_address_path(ctl->socket);

    return path ? str_format("--socket=%s", path) : NULL;
}

/*
 * Its options but those in LEFT_OUT and the global ones, which may stand before the command, and
 * those in ADDED.
 */
static int make_words(const struct ctl *ctl, const struct line *line, const char *const *left_out,
                      const char *const *added, char ***ret_words)
{
    _cleanup_free_ char *socket = socket_option(ctl);
    const char *all_left_out[16] = {"host", "socket", "json"};
    const char *all_added[16] = {};
    size_t n = 3, m = 0;

    while (*left_out)
        all_left_out[n++] = *left_out++;
    if (ctl->json)
        all_added[m++] = "--json";
    if (socket)
        all_added[m++] = socket;
    while (*added)
        all_added[m++] = *added++;
    return args_rebuild(line->verb->options, line->argc, line->argv, all_left_out, all_added,
                        ret_words);
}

/* --- A command whose output is passed through. --- */

static int run_there(const struct ctl *ctl, const char *host, const struct line *line)
{
    static const char *const none[] = {NULL};
    _cleanup_(args_free_words) char **words = NULL;
    _cleanup_(remote_freep) struct remote *remote = NULL;
    _cleanup_free_ char *error = NULL;
    int r, status;

    r = make_words(ctl, line, none, none, &words);
    if (r >= 0)
        r = remote_new(
            host,
            &(struct remote_command){.words = words, .in = -1, .out = -1, .err = STDERR_FILENO},
            &remote, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    status = remote_wait(remote);
    if (status < REMOTE_NOT_FOUND)
        return status;
    (void)remote_explain(remote, &error);
    ctl_error_sentence(error);
    return CTL_FAILURE;
}

/* --- Records for a file of this host. --- */

/* Its file, sidecar and summary are made here. */
static int make_stream_words(const struct ctl *ctl, const struct line *line, char ***ret_words)
{
    static const char *const left_out[] = {"output", "force", "bundle", "quiet", NULL};
    const char *const added[] = {
        "--output=-",
        "--json", /* its document is the sidecar */
        args_find(line->verb->options, "quiet") ? "--quiet" : NULL,
        NULL,
    };
    int r;

    r = make_words(ctl, line, left_out, added, ret_words);
    return r < 0 ? r : args_prepend_word(ret_words, "bridge");
}

static int stream(struct ctl *ctl, const char *host, const struct line *line)
{
    _cleanup_(args_free_words) char **words = NULL;
    struct remote_stream_options options = {
        .host = host,
        .output = *(const char *const *)line_value(line, "output"),
        .force = line_has(line, "force"),
        .is_bundle = line_has(line, "bundle"),
        .quiet = line_has(line, "quiet") || line->command,
        .command = line->command,
    };

    if (make_stream_words(ctl, line, &words) < 0) {
        ctl_error_sentence(NULL);
        return CTL_FAILURE;
    }
    options.words = words;
    return remote_stream(ctl, &options);
}

/* --- Which of them. --- */

static int refuse(const struct verb *verb, const char *sentence)
{
    return args_exit(verb, -EINVAL, strdup(sentence));
}

static int run(struct ctl *ctl, const char *host, const struct line *line)
{
    const struct verb *verb = line->verb;

    if (verb->remote == VERB_RUNS_THERE)
        return run_there(ctl, host, line);
    if (verb->remote != VERB_STREAMS)
        return refuse(verb, "start returns at once and cannot stream records to a file on this "
                            "host (-o): use record.");
    if (line->command && !*line->command)
        return refuse(verb, "A command is missing after --.");
    return stream(ctl, host, line);
}

bool remote_run(struct ctl *ctl, const struct verb *verb, int argc, char **argv, int *ret_code)
{
    _cleanup_(line_freep) struct line *line = NULL;
    _cleanup_free_ char *host = NULL;

    if (verb->remote == VERB_STAYS_HERE)
        return false;
    line = line_new(ctl, verb, argc, argv);
    if (!line || !remote_is_address(ctl->socket))
        return false;
    if (verb->remote != VERB_RUNS_THERE && !line_has(line, "output"))
        return false;
    host = remote_address_host(ctl->socket);
    if (!host)
        ctl_error_sentence(NULL);
    *ret_code = host ? run(ctl, host, line) : CTL_FAILURE;
    return true;
}
