// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command runs there as `xentracectl bridge COMMAND --json --output=-`: the records come from
 * its standard output and go straight into the file, its document and its errors come from standard
 * error. So this host has the same file, sidecar and summary as if the daemon ran here.
 *
 * Its standard input is a pipe from here. When that is closed, the bridge interrupts the command,
 * which ends the capture, and the rest of the records still arrives.
 */

#include "ctl/remote-stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "common/json-text.h"
#include "common/units.h"
#include "ctl/child.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/remote.h"
#include "ctl/session.h"
#include "ctl/snapshot.h"
#include "ctl/str.h"
#include "ctl/target.h"

#define ERRORS_MAX_BYTES    (64u * 1024 * 1024)
#define SHOW_INTERVAL_MSEC  500
#define BEGIN_INTERVAL_MSEC 50 /* what the capture there reports is looked for so often */

static uint64_t monotonic_usec(void)
{
    struct timespec now = {};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

struct stream {
    struct ctl *ctl;
    const struct remote_stream_options *options;
    struct remote *remote;
    struct target target;
    struct output *output;   /* the target's */
    struct json_object *doc; /* what the command printed */
    int stop_fd;             /* closed: the command there is to end */
    int signals_fd;
    uint64_t started_usec;
    unsigned int interrupts;
    bool has_reported; /* an error of the command there */

    struct child *child; /* the command here; NULL: none */
    bool has_child_begun, has_child_ended;
    int child_status; /* as of waitpid() */
};

static void stream_done(struct stream *stream)
{
    (void)remote_free(stream->remote);
    target_done(&stream->target);
    (void)doc_free(stream->doc);
    (void)child_free(stream->child);
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
    _cleanup_fd_ int theirs = -1;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return str_refuse(-errno, ret_error, "Cannot begin ssh: %m.");
    theirs = fds[0];
    stream->stop_fd = fds[1];
    return remote_new(stream->options->host,
                      &(struct remote_command){.words = stream->options->words,
                                               .in = theirs,
                                               .out = stream->output->trace.fd,
                                               .err = -1},
                      &stream->remote, ret_error);
}

/* --- While it runs. --- */

/* "12s  80M", rewritten on a terminal: what has come so far. */
static void stream_show(const struct stream *stream)
{
    char elapsed[UNITS_TEXT_MAX], bytes[UNITS_TEXT_MAX];
    uint64_t usec = monotonic_usec() - stream->started_usec;
    struct stat st;

    if (stream->output->is_stream || fstat(stream->output->trace.fd, &st) < 0)
        return;
    (void)fprintf(stderr, "\r%s  %s\033[K", duration_format(elapsed, usec - usec % USEC_PER_SEC),
                  size_format(bytes, (uint64_t)st.st_size));
}

/* Lets the command here begin as soon as the capture there runs, which it reports. */
static void stream_begin_child(struct stream *stream)
{
    _cleanup_free_ char *text = remote_errors(stream->remote, ERRORS_MAX_BYTES), *error = NULL;

    if (!text || !strstr(text, "\"" DOC_FORMAT_STARTED "\""))
        return;
    stream->has_child_begun = true;
    if (child_begin(stream->child, &error) < 0)
        ctl_error_sentence(error); /* its exit status ends the capture */
}

/* Ctrl-C and SIGTERM end the command here, and with it the capture; without one, the capture. */
static int stream_interrupt(struct stream *stream, const struct signalfd_siginfo *info)
{
    bool runs = stream->has_child_begun && !stream->has_child_ended;

    stream->interrupts++;
    if (runs && stream->interrupts == 1) {
        if (info->ssi_code != SI_KERNEL) /* a terminal sends it to both */
            (void)kill(child_pid(stream->child), (int)info->ssi_signo); /* it is not reaped yet */
        return 0;
    }
    if (stream->stop_fd < 0)
        return -EINTR;
    if (runs)
        (void)kill(child_pid(stream->child), SIGTERM); /* it is not reaped yet */
    if (!stream->options->quiet)
        (void)fputs("Stopping; press Ctrl-C again to stop waiting for the file.\n", stderr);
    fd_close(&stream->stop_fd);
    return 0;
}

static void stream_reap_child(struct stream *stream)
{
    if (!stream->has_child_begun || stream->has_child_ended ||
        waitpid(child_pid(stream->child), &stream->child_status, WNOHANG) <= 0)
        return;
    stream->has_child_ended = true;
    fd_close(&stream->stop_fd);
}

/* The next signal into INFO: 1; 0 after a while. */
static int stream_next_signal(const struct stream *stream, int timeout_msec,
                              struct signalfd_siginfo *info)
{
    struct pollfd polls[] = {{.fd = stream->signals_fd, .events = POLLIN}};

    return poll(polls, 1, timeout_msec) > 0 &&
           read(stream->signals_fd, info, sizeof(*info)) == sizeof(*info);
}

/* Until ssh has ended: its exit status, or -EINTR if the user has given up. */
static int stream_wait(struct stream *stream)
{
    bool shows = !stream->options->quiet && isatty(STDERR_FILENO);
    struct signalfd_siginfo info;

    for (;;) {
        bool waits = stream->child && !stream->has_child_begun;
        bool is_signal = stream_next_signal(stream,
                                            waits   ? BEGIN_INTERVAL_MSEC
                                            : shows ? SHOW_INTERVAL_MSEC
                                                    : -1,
                                            &info);

        if (waits)
            stream_begin_child(stream);
        if (!is_signal && shows)
            stream_show(stream);
        if (is_signal && shows)
            (void)fputs("\r\033[K", stderr);
        if (is_signal && info.ssi_signo == SIGCHLD)
            stream_reap_child(stream);
        else if (is_signal && stream_interrupt(stream, &info) < 0)
            return -EINTR;
        if (is_signal && remote_has_ended(stream->remote))
            return remote_wait(stream->remote);
    }
}

/* The exit code with a command here, whose own comes first; CODE is the capture's. */
static int stream_wait_for_child(struct stream *stream, int code)
{
    struct signalfd_siginfo info;

    if (!stream->has_child_begun)
        return code;
    stream_reap_child(stream);
    if (!stream->has_child_ended)
        ctl_warning("The command continues without being recorded.");
    while (!stream->has_child_ended) {
        if (stream_next_signal(stream, -1, &info) && info.ssi_signo != SIGCHLD)
            (void)kill(child_pid(stream->child), SIGTERM); /* it is not reaped yet */
        stream_reap_child(stream);
    }
    return stream->child_status ? child_exit_code(stream->child_status) : code;
}

/* --- When it has ended. --- */

/* One JSON document of standard error: an error is passed on, another is kept. */
static void stream_take(struct stream *stream, struct json_object *doc)
{
    const char *host = remote_host(stream->remote), *message = doc_text(doc, "message", "");

    if (doc_is(doc, DOC_FORMAT_STARTED))
        return;
    if (!doc_is(doc, DOC_FORMAT_ERROR)) {
        (void)doc_free(stream->doc);
        stream->doc = json_object_get(doc);
    } else if (strcmp(doc_text(doc, "level", ""), "warning") == 0) {
        ctl_warning("%s: %s", host, message);
    } else {
        ctl_error("%s: %s", host, message);
        stream->has_reported = true;
    }
}

/* Reads standard error: documents, and lines of ssh and of the other host's shell. */
static void stream_read_errors(struct stream *stream)
{
    _cleanup_free_ char *text = remote_errors(stream->remote, ERRORS_MAX_BYTES);

    for (const char *at = text ? text : ""; *at;) {
        size_t length = strcspn(at, "\n");

        if (*at == '{') {
            _cleanup_doc_ struct json_object *doc = NULL;
            size_t used;

            if (json_text_parse(at, strlen(at), JSON_FILE_MAX_MEMORY, &used, &doc) == 0) {
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

    return stream->output->trace.path && !stream->output->is_stream &&
           fstat(stream->output->trace.fd, &st) == 0 && st.st_size > 0;
}

/* No document came. A file with records stays, without a sidecar. ERROR NULL: it was reported. */
static void stream_report_break(struct stream *stream, const char *error)
{
    struct output_file *trace = &stream->output->trace;
    _cleanup_free_ char *path = NULL;

    if (!error && !stream->has_reported)
        error = "The command on the other host ended without a report.";
    if (stream_has_records(stream)) {
        trace->is_new = false;
        path = str_shell_quote(trace->temporary ? trace->temporary : trace->path);
    }
    if (path)
        ctl_error("%s%sThe windows written so far are readable; see: xentracectl info %s",
                  error ? error : "", error ? " " : "", path);
    else if (error)
        ctl_error("%s", error);
}

/* The files are complete: under their names, and packed. */
static int stream_complete(struct stream *stream, char **ret_error)
{
    int r;

    r = stream_write_sidecar(stream);
    if (r < 0) {
        ctl_error("Cannot write %s: %s.", stream->output->sidecar.path, strerror(-r));
        return r;
    }
    r = output_keep(stream->output, ret_error);
    if (r < 0)
        return r;
    return target_finish(&stream->target, stream->doc, ret_error);
}

/* What came of it; STATUS as of stream_wait(). */
static int stream_report(struct stream *stream, int status)
{
    FILE *talk = stream->child ? stderr : output_talk(stream->options->output);
    _cleanup_free_ char *error = NULL;

    if (status >= 0 && status < REMOTE_NOT_FOUND)
        stream_read_errors(stream);
    else if (status == -EINTR)
        error = strdup("Gave up waiting; the capture on the other host ends.");
    else
        (void)remote_explain(stream->remote, &error);
    if (!stream->doc) {
        stream_report_break(stream, error);
        return CTL_FAILURE;
    }
    if (stream_complete(stream, &error) < 0)
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

static int stream_open_target(struct stream *stream, char **ret_error)
{
    const struct remote_stream_options *options = stream->options;
    const struct output_options output = {
        .typed = options->output,
        .nothing = "Nothing was started",
        .force = options->force,
    };
    int r = target_open(&stream->target, &output, options->is_bundle, ret_error);

    stream->output = stream->target.output;
    return r;
}

/* Of the command here, if there is one. */
static int stream_prepare_child(struct stream *stream, char **ret_error)
{
    const struct remote_stream_options *options = stream->options;

    if (!options->command)
        return 0;
    return child_new(options->command, output_talk(options->output) == stderr, &stream->child,
                     ret_error);
}

static int child_failure(int r)
{
    if (r == -ENOENT)
        return CHILD_NOT_FOUND;
    return r == -EACCES ? CHILD_NOT_RUN : CTL_FAILURE;
}

static int stream_start(struct stream *stream, char **ret_error)
{
    int r = stream_catch_signals(stream, ret_error);

    return r < 0 ? r : stream_begin(stream, ret_error);
}

static int report_failure(const char *error, int code)
{
    ctl_error_sentence(error);
    return code;
}

int remote_stream(struct ctl *ctl, const struct remote_stream_options *options)
{
    _cleanup_(stream_done) struct stream stream = {
        .ctl = ctl,
        .options = options,
        .stop_fd = -1,
        .signals_fd = -1,
        .started_usec = monotonic_usec(),
    };
    _cleanup_free_ char *error = NULL;
    int r, code;

    if (stream_open_target(&stream, &error) < 0)
        return report_failure(error, CTL_FAILURE);
    r = stream_prepare_child(&stream, &error);
    if (r < 0)
        return report_failure(error, child_failure(r));
    if (stream_start(&stream, &error) < 0)
        return report_failure(error, CTL_FAILURE);
    code = stream_report(&stream, stream_wait(&stream));
    return stream_wait_for_child(&stream, code);
}
