// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xentracectl record: start, show progress, wait, sum up.
 *
 * The daemon reports the session's state until it has ended. It is attached to this connection, so
 * it ends with this process, however the process ends.
 */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/capture.h"
#include "ctl/child.h"
#include "ctl/ctl.h"
#include "ctl/progress.h"
#include "ctl/served.h"
#include "ctl/session.h"
#include "ctl/stop.h"
#include "ctl/storage.h"
#include "ctl/str.h"
#include "ctl/target.h"

#define CHILD_WAIT_USEC (3600 * USEC_PER_SEC) /* its end or a signal ends the wait */
#define END_STEPS       50                    /* a file is finished in seconds, or not at all */
#define END_STEP_NSEC   (100 * USEC_PER_MSEC * NSEC_PER_USEC)

struct record {
    struct client *client;
    struct target target;
    struct json_object *session; /* the newest document */
    char *name;
    uint64_t started_usec;
    struct progress progress;
    struct child *child; /* the command that it records; NULL: none */
    int child_status;    /* as of waitpid(), when it has ended or nobody waits for it */
    bool is_interrupted; /* a signal was passed on to the command */
    bool has_given_up;   /* waiting for the command */
};

static uint64_t monotonic_usec(void)
{
    struct timespec now = {};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

static void take_session(struct record *record, struct json_object **session)
{
    (void)doc_free(record->session);
    record->session = *session;
    *session = NULL;
}

static bool child_has_ended(struct record *record)
{
    return record->child &&
           (record->has_given_up || client_child_has_ended(record->client, &record->child_status));
}

/*
 * A signal: the command ends by it, and the capture with the command. Returns -EINTR if the capture
 * is to end now: there is no command, or it is the second signal.
 */
static int pass_signal(struct record *record)
{
    int signal = client_take_signal(record->client);

    if (!record->child)
        return -EINTR;
    if (child_has_ended(record))
        return 0;
    if (!record->is_interrupted) {
        record->is_interrupted = true;
        if (signal)
            (void)kill(child_pid(record->child), signal); /* it has not been reaped */
        return 0;
    }
    (void)kill(child_pid(record->child), SIGTERM);
    record->has_given_up = true;
    record->child_status = SIGTERM;
    return -EINTR;
}

/* Until the session or the command has ended: 0; -EINTR when the user wants it to end. */
static int watch(struct record *record, char **ret_error)
{
    uint64_t interval_usec = progress_interval_usec(&record->progress);
    struct client_stream *stream; /* ends with the connection: Stop is waited for beside it */
    int r;

    r = client_stream_status(record->client, record->name, interval_usec, &stream, ret_error);
    if (r < 0)
        return r;
    while (!doc_session_has_ended(record->session) && !child_has_ended(record)) {
        _cleanup_doc_ struct json_object *session = NULL;
        struct progress_sample sample =
            progress_read(record->session, monotonic_usec() - record->started_usec);

        progress_show(&record->progress, &sample);
        r = client_next(stream, interval_usec + CLIENT_TIMEOUT_USEC, &session, ret_error);
        if (r == -EINTR)
            r = pass_signal(record);
        if (r < 0)
            return r;
        if (session)
            take_session(record, &session);
    }
    return 0;
}

/* The exit code with a command, whose own comes first; CODE is the capture's. */
static int wait_for_child(struct record *record, int code)
{
    if (!child_has_ended(record))
        ctl_warning("The command continues without being recorded.");
    while (!child_has_ended(record)) {
        if (client_sleep(record->client, CHILD_WAIT_USEC) == -EINTR)
            (void)pass_signal(record); /* the capture has ended already */
    }
    return record->child_status ? child_exit_code(record->child_status) : code;
}

/* Asks for the end and waits for the finished file. A second signal ends the wait. */
static int stop(struct record *record, char **ret_error)
{
    _cleanup_doc_ struct json_object *session = NULL;
    int r;

    progress_clear(&record->progress);
    if (!record->progress.quiet)
        (void)fputs("Stopping; press Ctrl-C again to stop waiting for the file.\n", stderr);
    r = stop_session(record->client, record->name, &session, ret_error);
    if (r == -EREMOTEIO) { /* it ended by itself at the same time */
        free(*ret_error);
        *ret_error = NULL;
        r = client_status(record->client, record->name, &session, ret_error);
    }
    if (r < 0)
        return r;
    take_session(record, &session);
    return 0;
}

/* Where the records are after the connection was lost, as far as this can be known. */
static void explain_break(const struct record *record, int r, const char *error)
{
    _cleanup_free_ char *path = NULL;
    const char *typed, *remote = doc_text(record->session, "remote", "");

    doc_make_printable(record->session);
    typed = storage_file(record->session);
    path = str_shell_show(typed);
    if (r == -EINTR)
        error = "Gave up waiting; xentraced continues to finish the file.";
    if (!error)
        error = "Out of memory.";
    if (storage_is_in_memory(record->session))
        ctl_error("%s The records in memory are in %s if xentraced could write them; see: "
                  "xentracectl list",
                  error, strcmp(typed, "-") == 0 ? "standard output" : typed);
    else if (strcmp(typed, "-") == 0 || !path)
        ctl_error("%s The records that were written so far are readable.", error);
    else
        ctl_error("%s The windows written so far are readable; see: xentracectl %s%s%sinfo %s",
                  error, *remote ? "-H " : "", remote, *remote ? " " : "", path);
}

/*
 * xentraced was stopped, restarted, or has died. If it ended the capture, its sidecar has the
 * summary, which takes a moment: 0 then.
 */
static int read_end(struct record *record)
{
    _cleanup_free_ char *path = strdup(doc_text(record->session, "output.sidecar", ""));
    const struct timespec step = {.tv_nsec = END_STEP_NSEC};

    if (!path || !*path)
        return -ENOENT;
    for (int i = 0; i < END_STEPS; i++) {
        _cleanup_doc_ struct json_object *session = NULL;

        if (doc_read_file(path, &session) == 0 && doc_is(session, DOC_FORMAT_SESSION) &&
            doc_session_has_ended(session)) {
            take_session(record, &session);
            return 0;
        }
        (void)nanosleep(&step, NULL); /* a signal only shortens it */
    }
    return -ENODATA;
}

static int report(struct ctl *ctl, struct record *record, FILE *talk)
{
    if (ctl->json)
        doc_print(talk, record->session);
    else
        session_print_summary(talk, record->session);
    return doc_session_has_ended(record->session) && session_is_ok(record->session) ? CTL_OK
                                                                                    : CTL_FAILURE;
}

static int run(struct ctl *ctl, struct record *record, const struct capture_options *options)
{
    _cleanup_free_ char *error = NULL;
    FILE *talk = record->child ? stderr : output_talk(options->output);
    int r;

    r = watch(record, &error);
    if (r == -EINTR || (r == 0 && !doc_session_has_ended(record->session)))
        r = stop(record, &error);
    progress_clear(&record->progress);
    if (r == -ECONNRESET && record->target.output) { /* what it wrote is still in the pipe */
        _cleanup_free_ char *ignored = NULL;

        (void)output_finish(record->target.output, &ignored);
    }
    if (r == -ECONNRESET && read_end(record) == 0) {
        ctl_error("xentraced %s, which ended the capture.",
                  strcmp(doc_text(record->session, "ended.reason", ""), "client-gone") == 0
                      ? "closed the connection"
                      : "was stopped or restarted");
        (void)report(ctl, record, talk);
        return CTL_FAILURE;
    }
    if (r < 0) {
        explain_break(record, r, error);
        return CTL_FAILURE;
    }
    r = target_finish(&record->target, record->session, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    return report(ctl, record, talk);
}

static int start(struct ctl *ctl, struct record *record, const struct capture_options *options,
                 char **ret_error)
{
    int r;

    r = client_new(ctl->socket, &record->client, ret_error);
    if (r < 0)
        return r;
    r = client_catch_signals(record->client, ret_error);
    if (r < 0)
        return r;
    if (record->child) {
        r = client_watch_child(record->client, child_pid(record->child), ret_error);
        if (r < 0)
            return r;
    }
    r = capture_start(record->client, options, &record->target, &record->session, ret_error);
    if (r < 0)
        return r;
    record->started_usec = monotonic_usec();
    record->name = strdup(doc_text(record->session, "name", ""));
    if (!record->name)
        return -ENOMEM;
    if (!*record->name)
        return str_refuse(-EBADMSG, ret_error,
                          "xentraced did not report the capture's name, so the capture ends now "
                          "(compare: xentracectl version).");
    return 0;
}

/* The command after "--", which is no part of ARGC and ARGV then; NULL: there is none. */
static char **split_command(int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--") != 0)
            continue;
        *argc = i;
        argv[i] = NULL;
        return argv + i + 1;
    }
    return NULL;
}

static int prepare_child(struct record *record, char **command, const char *output,
                         char **ret_error)
{
    bool records_to_stdout = output && strcmp(output, "-") == 0;

    if (!*command || !**command)
        return str_refuse(-EINVAL, ret_error, "A command is missing after --.");
    return child_new(command, records_to_stdout, &record->child, ret_error);
}

static int record_all(struct ctl *ctl, struct record *record, const struct capture_options *options)
{
    _cleanup_free_ char *error = NULL;
    int r, code;

    progress_init(&record->progress, options->quiet || record->child);
    r = start(ctl, record, options, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    served_send(SERVED_STARTED, "");
    if (record->child && child_begin(record->child, &error) < 0)
        ctl_error_sentence(error); /* its exit status ends the capture */
    code = run(ctl, record, options);
    return record->child ? wait_for_child(record, code) : code;
}

static int cmd_record(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_(options_done) struct capture_options options;
    char **command = split_command(&argc, argv), *error = NULL;
    struct record record = {};
    int r, code;

    r = options_parse(ctl, OPTIONS_OF_RECORD, argc, argv, &options, &error);
    if (r == 0 && command)
        r = prepare_child(&record, command, options.output, &error);
    if (r == -ENOENT || r == -EACCES) {
        ctl_error_sentence(error);
        free(error);
        return r == -ENOENT ? CHILD_NOT_FOUND : CHILD_NOT_RUN;
    }
    if (r < 0)
        return args_exit(&verb_record, r, error);
    code = record_all(ctl, &record, &options);
    (void)doc_free(record.session);
    target_done(&record.target);
    (void)client_free(record.client);
    (void)child_free(record.child);
    free(record.name);
    return code;
}

const struct verb verb_record = {
    .name = "record",
    .run = cmd_record,
    .words = "[NAME] [-- COMMAND [ARGUMENT]...]",
    .summary = "start a capture, show its progress, wait for its end",
    .help = "Starts a capture, shows its progress on standard error and waits for its end.\n"
            "Ctrl-C ends the capture cleanly; a second one gives up waiting for its file.\n"
            "With COMMAND, the capture ends when COMMAND does, and the exit status is that of\n"
            "COMMAND.\n",
    .options = OPTIONS_OF_RECORD,
    .examples = "  xentracectl record -e hvm -T 30 -o hvm.xentrace\n"
                "  xentracectl record -e sched -o boot.xentrace -- xl create web.cfg\n"
                "  xentracectl record -T 10 -o - | zstd > all.xentrace.zst\n",
};
