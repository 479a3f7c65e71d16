// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xentracectl record: start, show progress, wait, sum up.
 *
 * The session is polled: the daemon sends no events. It is attached to this connection, so it ends
 * with this process, however the process ends.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/capture.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/progress.h"
#include "ctl/session.h"
#include "ctl/stop.h"
#include "ctl/storage.h"
#include "ctl/str.h"

struct record {
    struct client *client;
    struct json_object *session; /* the newest document */
    char *name;
    uint64_t started_usec;
    struct progress progress;
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

/* Polls until the session has ended: 0; -EINTR when the user wants it to end. */
static int watch(struct record *record, char **ret_error)
{
    int r;

    while (!doc_session_has_ended(record->session)) {
        uint64_t elapsed = monotonic_usec() - record->started_usec;
        struct progress_sample sample = progress_read(record->session, elapsed);
        _cleanup_doc_ struct json_object *session = NULL;

        progress_show(&record->progress, &sample);
        r = client_sleep(record->client,
                         progress_interval_usec(&record->progress, elapsed, sample.limit_usec));
        if (r < 0)
            return r;
        r = client_status(record->client, record->name, &session, ret_error);
        if (r < 0)
            return r;
        take_session(record, &session);
    }
    return 0;
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

/* The connection is lost: reports where the records are. */
static void explain_break(const struct record *record, int r, const char *error)
{
    _cleanup_free_ char *path = NULL;
    const char *typed;

    doc_make_printable(record->session);
    typed = storage_file(record->session);
    path = str_shell_quote(typed);
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
        ctl_error("%s The windows written so far are readable; see: xentracectl info %s", error,
                  path);
}

static int run(struct ctl *ctl, struct record *record, const struct capture_options *options)
{
    _cleanup_free_ char *error = NULL;
    FILE *talk = output_talk(options->output);
    int r;

    r = watch(record, &error);
    if (r == -EINTR)
        r = stop(record, &error);
    progress_clear(&record->progress);
    if (r < 0) {
        explain_break(record, r, error);
        return CTL_FAILURE;
    }
    if (ctl->json)
        doc_print(talk, record->session);
    else
        session_print_summary(talk, record->session);
    return doc_session_has_ended(record->session) && session_is_ok(record->session) ? CTL_OK
                                                                                    : CTL_FAILURE;
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
    r = capture_start(record->client, options, true, &record->session, ret_error);
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

static int cmd_record(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_(options_done) struct capture_options options;
    struct record record = {};
    char *error = NULL;
    int r, code = CTL_FAILURE;

    r = options_parse(ctl, OPTIONS_OF_RECORD, argc, argv, &options, &error);
    if (r < 0)
        return args_exit(&verb_record, r, error);
    progress_init(&record.progress, options.quiet);
    r = start(ctl, &record, &options, &error);
    if (r < 0)
        ctl_error_sentence(error);
    else
        code = run(ctl, &record, &options);
    free(error);
    (void)doc_free(record.session);
    (void)client_free(record.client);
    free(record.name);
    return code;
}

const struct verb verb_record = {
    .name = "record",
    .run = cmd_record,
    .words = "[NAME]",
    .summary = "start a capture, show its progress, wait for its end",
    .help = "Starts a capture, shows its progress on standard error and waits for its end.\n"
            "Ctrl-C ends the capture cleanly; a second one gives up waiting for its file.\n",
    .options = OPTIONS_OF_RECORD,
    .examples = "  xentracectl record -e hvm -T 30 -o hvm.xentrace\n"
                "  xentracectl record -T 10 -o - | zstd > all.xentrace.zst\n",
    .remote = VERB_STREAMS,
};
