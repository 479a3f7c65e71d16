// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl start: a capture in the background. */

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/capture.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/served.h"
#include "ctl/session.h"
#include "ctl/storage.h"
#include "ctl/str.h"
#include "ctl/table.h"

#define FORECAST_STEP_USEC (500 * USEC_PER_MSEC)
#define FORECAST_STEPS     3 /* records are written after a second at the latest */

/*
 * How soon a capture without a limit fills the disk is known when it has written something.
 * Somebody at a terminal wants to see it; a script does not wait. Any failure leaves the forecast
 * out.
 */
static void await_forecast(FILE *file, struct client *client, struct json_object **session)
{
    for (int i = 0; i < FORECAST_STEPS && isatty(fileno(file)); i++) {
        _cleanup_free_ char *error = NULL;
        struct json_object *newer;

        if (session_has_forecast(*session) || client_sleep(client, FORECAST_STEP_USEC) < 0 ||
            client_status(client, doc_text(*session, "name", ""), &newer, &error) < 0)
            return;
        doc_free(*session);
        *session = newer;
    }
}

static void print_started(FILE *file, struct json_object *session)
{
    _cleanup_free_ char *forecast = session_end_forecast(session);
    uint64_t limit = doc_number(session, "limits.time_usec");
    const char *name, *remote, *option;
    char duration[UNITS_TEXT_MAX];

    doc_make_printable(session);
    name = doc_text(session, "name", "(without a name)");
    remote = doc_text(session, "remote", "");
    option = *remote ? " -H " : "";
    table_print_field(file, "Name", "%s", name);
    storage_print_start(file, session);
    if (limit)
        table_print_field(file, "Ends", "after %s, or: xentracectl%s%s stop %s",
                          duration_format(duration, limit), option, remote, name);
    else if (forecast)
        table_print_field(file, "Ends", "%s, or: xentracectl%s%s stop %s", forecast, option, remote,
                          name);
    else
        table_print_field(file, "Ends", "on request: xentracectl%s%s stop %s", option, remote,
                          name);
    table_print_field(file, "Status", "xentracectl%s%s status %s", option, remote, name);
}

/* It runs as the configuration says: the command is for one that was stopped. */
static void print_recorder(FILE *file, struct json_object *session, uint64_t asked_ns)
{
    uint64_t started_ns = doc_number(session, "started.realtime_ns");
    char since[STR_TIME_MAX], memory[UNITS_TEXT_MAX];

    if (started_ns && started_ns < asked_ns)
        (void)fprintf(file, "The flight recorder is running already, since %s.\n",
                      str_time(since, started_ns));
    else
        (void)fprintf(file, "The flight recorder is running again, with a new ring of %s.\n",
                      size_format(memory, storage_memory_bytes(session)));
}

static int start(struct ctl *ctl, const struct capture_options *options, char **ret_error)
{
    _cleanup_client_ struct client *client = NULL;
    _cleanup_doc_ struct json_object *session = NULL;
    FILE *talk = output_talk(options->output);
    struct timespec asked;
    int r;

    (void)clock_gettime(CLOCK_REALTIME, &asked); /* cannot fail for this clock */
    r = client_new(ctl->socket, &client, ret_error);
    if (r < 0)
        return r;
    r = client_catch_signals(client, ret_error);
    if (r < 0)
        return r;
    r = capture_start(client, options, NULL, &session, ret_error);
    if (r < 0)
        return r;
    if (!ctl->json)
        await_forecast(talk, client, &session);
    if (ctl->json)
        doc_print(talk, session);
    else if (storage_is_recorder(session))
        print_recorder(talk, session,
                       (uint64_t)asked.tv_sec * NSEC_PER_SEC + (uint64_t)asked.tv_nsec);
    else
        print_started(talk, session);
    return 0;
}

static int cmd_start(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_(options_done) struct capture_options options;
    char *error = NULL;
    int r;

    r = options_parse(ctl, OPTIONS_OF_START, argc, argv, &options, &error);
    if (r == 0 && options.output && *served_host())
        r = str_refuse(-EINVAL, &error,
                       "start returns at once and cannot stream records to a file on another host "
                       "(-o): use record.");
    if (r < 0)
        return args_exit(&verb_start, r, error);
    r = start(ctl, &options, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    return CTL_OK;
}

const struct verb verb_start = {
    .name = "start",
    .run = cmd_start,
    .words = "[NAME]",
    .summary = "start a capture in the background",
    .help = "Starts a capture in the background and returns at once. To start a stopped\n"
            "flight recorder: xentracectl start " PROTOCOL_RECORDER "\n",
    .options = OPTIONS_OF_START,
    .examples = "  xentracectl start -e sched -c 0-7 -T 10\n",
};
