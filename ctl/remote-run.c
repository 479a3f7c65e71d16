// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A command that streams runs there as `xentracectl bridge COMMAND --json --output=-`: the records
 * come from its standard output and go straight into the file, its document and its errors come
 * from standard error. So this host has the same file, sidecar and summary as if the daemon ran
 * here.
 *
 * Its standard input is a pipe from here. When that is closed, the bridge interrupts the command,
 * which ends the capture, and the rest of the records still arrives.
 */

#include "ctl/remote-run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/output.h"
#include "ctl/remote.h"
#include "ctl/session.h"
#include "ctl/snapshot.h"
#include "ctl/str.h"

#define VALUES_BYTES       4096u /* more than any command's options take */
#define ERRORS_MAX_BYTES   (64u * 1024 * 1024)
#define SHOW_INTERVAL_MSEC 500

/* A command line with -H, taken apart. */
struct line {
    const struct verb *verb;
    int argc; /* up to "--" */
    char **argv;
    _Alignas(16) char values[VALUES_BYTES]; /* of its options */
    uint64_t given;
    bool has_command; /* after "--" */
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
    while (line->argv && line->argc < argc && strcmp(argv[line->argc], "--") != 0) {
        line->argv[line->argc] = argv[line->argc];
        line->argc++;
    }
    line->has_command = line->argc < argc;
    if (!line->argv || args_parse(ctl, verb->options, line->argc, line->argv, line->argc,
                                  line->values, &line->given, &error) < 0) {
        line_free(line);
        return NULL;
    }
    return line;
}

/* --- A command whose output is passed through. --- */

static int run_there(const struct ctl *ctl, const struct line *line)
{
    static const char *const left_out[] = {"host", NULL};
    _cleanup_(args_free_words) char **words = NULL;
    _cleanup_(remote_freep) struct remote *remote = NULL;
    _cleanup_free_ char *error = NULL;
    int r, status;

    r = args_rebuild(line->verb->options, line->argc, line->argv, left_out, NULL, &words);
    if (r >= 0)
        r = remote_new(
            ctl->host,
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

static uint64_t monotonic_usec(void)
{
    struct timespec now = {};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

struct stream {
    struct ctl *ctl;
    const struct line *line;
    struct remote *remote;
    struct output *output;
    struct json_object *doc; /* what the command printed */
    int stop_fd;             /* closed: the command is to end */
    int signals_fd;
};

static void stream_done(struct stream *stream)
{
    (void)remote_free(stream->remote);
    (void)output_free(stream->output);
    (void)doc_free(stream->doc);
    fd_close(&stream->stop_fd);
    fd_close(&stream->signals_fd);
}

static int stream_catch_signals(struct stream *stream, char **ret_error)
{
    sigset_t signals;

    if (sigemptyset(&signals) < 0 || sigaddset(&signals, SIGINT) < 0 ||
        sigaddset(&signals, SIGTERM) < 0 || sigaddset(&signals, SIGCHLD) < 0 ||
        sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
        return str_refuse(-errno, ret_error, "Cannot catch signals: %m.");
    stream->signals_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    if (stream->signals_fd < 0)
        return str_refuse(-errno, ret_error, "Cannot catch signals: %m.");
    return 0;
}

static int stream_begin(struct stream *stream, char **ret_error)
{
    static const char *const left_out[] = {"host",   "json",  "output", "force",
                                           "bundle", "quiet", NULL};
    static const char *const added[] = {"--json", "--output=-", "--quiet", NULL};
    const char *const *more = added;
    const struct verb *verb = stream->line->verb;
    _cleanup_(args_free_words) char **words = NULL;
    _cleanup_fd_ int theirs = -1;
    const char *only[] = {added[0], added[1], NULL};
    int fds[2], r;

    if (!args_find(verb->options, "quiet"))
        more = only;
    r = args_rebuild(verb->options, stream->line->argc, stream->line->argv, left_out, more, &words);
    if (r < 0)
        return r;
    r = args_prepend_word(&words, "bridge");
    if (r < 0)
        return r;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return str_refuse(-errno, ret_error, "Cannot begin ssh: %m.");
    theirs = fds[0];
    stream->stop_fd = fds[1];
    return remote_new(stream->ctl->host,
                      &(struct remote_command){
                          .words = words, .in = theirs, .out = stream->output->trace.fd, .err = -1},
                      &stream->remote, ret_error);
}

/* "12s  80M", rewritten on a terminal: what has come so far. */
static void stream_show(const struct stream *stream, uint64_t started_usec)
{
    char elapsed[UNITS_TEXT_MAX], bytes[UNITS_TEXT_MAX];
    uint64_t usec = monotonic_usec() - started_usec;
    struct stat st;

    if (stream->output->is_stream || fstat(stream->output->trace.fd, &st) < 0)
        return;
    (void)fprintf(stderr, "\r%s  %s\033[K", duration_format(elapsed, usec - usec % USEC_PER_SEC),
                  size_format(bytes, (uint64_t)st.st_size));
}

/* The next signal, while progress is shown. */
static uint32_t stream_next_signal(const struct stream *stream, bool shows, uint64_t started_usec)
{
    struct pollfd polls[] = {{.fd = stream->signals_fd, .events = POLLIN}};
    struct signalfd_siginfo info;

    for (;;) {
        int n = poll(polls, 1, shows ? SHOW_INTERVAL_MSEC : -1);

        if (n == 0)
            stream_show(stream, started_usec);
        else if (n > 0 && read(stream->signals_fd, &info, sizeof(info)) == sizeof(info))
            return info.ssi_signo;
    }
}

/* Until ssh has ended: its exit status, or -EINTR after the second signal. */
static int stream_wait(struct stream *stream, bool quiet)
{
    bool is_stopping = false, shows = !quiet && isatty(STDERR_FILENO);
    uint64_t started_usec = monotonic_usec();

    for (;;) {
        uint32_t signal = stream_next_signal(stream, shows, started_usec);

        if (shows)
            (void)fputs("\r\033[K", stderr);
        if (signal == SIGCHLD)
            return remote_wait(stream->remote);
        if (is_stopping)
            return -EINTR;
        is_stopping = true;
        fd_close(&stream->stop_fd);
        if (!quiet)
            (void)fputs("Stopping; press Ctrl-C again to stop waiting for the file.\n", stderr);
    }
}

/* One JSON document of standard error: an error is passed on, another is kept. */
static void stream_take(struct stream *stream, struct json_object *doc)
{
    const char *host = remote_host(stream->remote), *message = doc_text(doc, "message", "");

    if (!doc_is(doc, DOC_FORMAT_ERROR)) {
        (void)doc_free(stream->doc);
        stream->doc = json_object_get(doc);
    } else if (strcmp(doc_text(doc, "level", ""), "warning") == 0) {
        ctl_warning("%s: %s", host, message);
    } else {
        ctl_error("%s: %s", host, message);
    }
}

/* Reads standard error: documents, and lines of ssh and of the other host's shell. */
static void stream_read_errors(struct stream *stream)
{
    _cleanup_free_ char *text = remote_errors(stream->remote, ERRORS_MAX_BYTES);

    for (const char *at = text ? text : ""; *at;) {
        size_t length = strcspn(at, "\n");

        if (*at == '{') {
            struct json_tokener *tokener = json_tokener_new();
            _cleanup_doc_ struct json_object *doc =
                tokener ? json_tokener_parse_ex(tokener, at, (int)strlen(at)) : NULL;
            size_t used = doc ? json_tokener_get_parse_end(tokener) : 0;

            if (tokener)
                json_tokener_free(tokener);
            if (doc) {
                stream_take(stream, doc);
                at += used;
                continue;
            }
        }
        if (length && !stream->ctl->json)
            ctl_warning("%s: %.*s", remote_host(stream->remote), (int)length, at);
        at += length + (at[length] == '\n');
    }
}

/* The document is that of a stream: this host's files become its output. */
static int stream_write_sidecar(struct stream *stream)
{
    struct json_object *place = doc_find(stream->doc, "output");
    FILE *file;

    if (stream->output->trace.path)
        doc_set_text(place, "path", stream->output->trace.path);
    if (stream->output->sidecar.fd < 0)
        return 0;
    doc_set_text(place, "sidecar", stream->output->sidecar.path);
    file = fdopen(stream->output->sidecar.fd, "w");
    if (!file)
        return -errno;
    stream->output->sidecar.fd = -1; /* FILE's */
    doc_print(file, stream->doc);
    return fclose(file) < 0 ? -errno : 0;
}

static bool stream_has_records(const struct stream *stream)
{
    struct stat st;

    return !stream->output->is_stream && fstat(stream->output->trace.fd, &st) == 0 &&
           st.st_size > 0;
}

/* What came of it; STATUS as of stream_wait(). */
static int stream_report(struct stream *stream, int status)
{
    FILE *talk = stream->output->is_stdout ? stderr : stdout;
    _cleanup_free_ char *error = NULL;
    int r;

    if (status >= 0 && status < REMOTE_NOT_FOUND)
        stream_read_errors(stream);
    else
        (void)remote_explain(stream->remote, &error);
    if (!stream->doc) {
        bool is_kept = stream_has_records(stream);

        if (is_kept)
            output_abandon(stream->output); /* the file stays where it is */
        if (error || is_kept)
            ctl_error("%s%s%s", error ? error : "No summary came.",
                      is_kept ? " The windows written so far are readable; see: xentracectl info "
                              : "",
                      is_kept ? stream->output->trace.path : "");
        return CTL_FAILURE;
    }
    r = stream_write_sidecar(stream);
    if (r < 0)
        ctl_error("Cannot write %s: %s.", stream->output->sidecar.path, strerror(-r));
    if (r < 0 || output_keep(stream->output, &error) < 0)
        status = CTL_FAILURE;
    if (error)
        ctl_error_sentence(error);
    if (stream->ctl->json) {
        doc_print(talk, stream->doc);
    } else if (snapshot_is(stream->doc)) {
        doc_make_printable(stream->doc);
        snapshot_print(talk, stream->doc);
    } else {
        session_print_summary(talk, stream->doc);
    }
    return status;
}

static int stream_open(struct stream *stream, char **ret_error)
{
    const struct line *line = stream->line;
    const char *typed = *(const char *const *)line_value(line, "output");
    bool force = line_has(line, "force");

    return output_open(typed, force, "Nothing was started", &stream->output, ret_error);
}

static int run_stream(struct ctl *ctl, const struct line *line)
{
    _cleanup_(stream_done) struct stream stream = {
        .ctl = ctl, .line = line, .stop_fd = -1, .signals_fd = -1};
    _cleanup_free_ char *error = NULL;
    bool quiet = line_has(line, "quiet");
    int r;

    r = stream_open(&stream, &error);
    if (r >= 0)
        r = stream_catch_signals(&stream, &error);
    if (r >= 0)
        r = stream_begin(&stream, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    return stream_report(&stream, stream_wait(&stream, quiet));
}

/* --- Which of them. --- */

static int refuse(const struct verb *verb, const char *sentence)
{
    return args_exit(verb, -EINVAL, strdup(sentence));
}

bool remote_run(struct ctl *ctl, const struct verb *verb, int argc, char **argv, int *ret_code)
{
    _cleanup_(line_freep) struct line *line = NULL;

    if (verb->remote == VERB_STAYS_HERE)
        return false;
    line = line_new(ctl, verb, argc, argv);
    if (!line || !ctl->host)
        return false;
    if (verb->remote == VERB_RUNS_THERE) {
        *ret_code = run_there(ctl, line);
        return true;
    }
    if (!line_has(line, "output"))
        return false;
    if (verb->remote != VERB_STREAMS)
        *ret_code =
            refuse(verb, "-o names a file of this host, to which only a command that waits "
                         "can stream another host's records: use record in place of start.");
    else if (line->has_command)
        *ret_code =
            refuse(verb, "With -H, a capture around a command cannot have -o: leave it out, "
                         "and the file is made on the other host.");
    else
        *ret_code = run_stream(ctl, line);
    return true;
}
