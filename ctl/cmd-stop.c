// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xentracectl stop: waits for the finished file, or with --abort for nothing. The flight recorder
 * has an option of its own, so that nobody ends it by mistake; the daemon checks who asks.
 */

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/recorder.h"
#include "ctl/session.h"
#include "ctl/stop.h"
#include "ctl/storage.h"
#include "ctl/str.h"

struct options {
    const char *name; /* "": the only capture */
    bool all, abort, recorder;
};

static const struct args_option stop_options[] = {
    {"all", 'a', .offset = offsetof(struct options, all),
     .help = "end all captures except the flight recorder"},
    {"recorder", .offset = offsetof(struct options, recorder), .type = ARGS_DESTROY,
     .help = "end the flight recorder (as root); its history is lost\n"
             "(to start it again: xentracectl start " PROTOCOL_RECORDER ")"},
    {"abort", .offset = offsetof(struct options, abort), .type = ARGS_DESTROY,
     .help = "end the capture NAME at once even if its disk does not\n"
             "answer; records that are not on the disk are dropped"},
    {},
};

static int check(const struct options *options, char **ret_error)
{
    if (options->recorder && (options->all || options->abort || *options->name))
        return str_refuse(-EINVAL, ret_error,
                          "stop --recorder takes no name and no other option: it ends the flight "
                          "recorder only.");
    if (options->all && options->abort)
        return str_refuse(-EINVAL, ret_error, "stop takes --all or --abort, not both.");
    if (options->all && *options->name)
        return str_refuse(-EINVAL, ret_error, "stop takes a name or --all, not both.");
    if (options->abort && !*options->name) /* it discards records: never by accident */
        return str_refuse(-EINVAL, ret_error, "stop --abort needs the name of a capture.");
    return 0;
}

static int parse(struct ctl *ctl, int argc, char **argv, struct options *options, char **ret_error)
{
    int r;

    *options = (struct options){.name = ""};
    r = args_parse(ctl, stop_options, argc, argv, 1, options, NULL, ret_error);
    if (r < 0)
        return r;
    if (optind < argc && !*argv[optind])
        return str_refuse(-EINVAL, ret_error, "\"\" is not the name of a capture.");
    if (optind < argc)
        options->name = argv[optind];
    return check(options, ret_error);
}

/* Stops one; the document goes into ARRAY if there is one, else it is printed. */
static int stop_one(struct ctl *ctl, struct client *client, const char *name,
                    struct json_object *array)
{
    _cleanup_doc_ struct json_object *session = NULL;
    _cleanup_free_ char *error = NULL;
    bool is_ok;

    if (stop_session(client, name, &session, &error) < 0) {
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    is_ok = session_is_ok(session);
    if (array)
        (void)json_object_array_add(array, json_object_get(session)); /* no memory: left out */
    else if (ctl->json)
        doc_print(stdout, session);
    else
        session_print_result(stdout, session);
    return is_ok ? CTL_OK : CTL_FAILURE;
}

/* What was asked for is the end, so an aborted capture is a success although records are missing.
 */
static int abort_one(struct ctl *ctl, struct client *client, const char *name)
{
    _cleanup_doc_ struct json_object *session = NULL;
    _cleanup_free_ char *error = NULL;
    bool is_aborted;

    if (client_abort(client, name, &session, &error) < 0) {
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    is_aborted = session_was_aborted(session);
    if (ctl->json)
        doc_print(stdout, session);
    else if (is_aborted)
        session_print_aborted(stdout, session);
    else /* it ended by itself at the same moment */
        session_print_result(stdout, session);
    return is_aborted || session_is_ok(session) ? CTL_OK : CTL_FAILURE;
}

static int stop_recorder(struct ctl *ctl, struct client *client)
{
    _cleanup_doc_ struct json_object *recorder = NULL;
    _cleanup_free_ char *error = NULL;

    if (client_stop_recorder(client, &recorder, &error) < 0) {
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    if (ctl->json) {
        doc_print(stdout, recorder);
        return CTL_OK;
    }
    doc_make_printable(recorder);
    recorder_print(stdout, recorder);
    if (!doc_flag(recorder, "stopped.kept"))
        (void)puts(
            "No service manager has confirmed that it keeps this: the next xentraced may start "
            "the recorder.");
    return CTL_OK;
}

static int stop_all(struct ctl *ctl, struct client *client)
{
    _cleanup_doc_ struct json_object *status = NULL, *array = NULL;
    _cleanup_free_ char *error = NULL;
    struct json_object *sessions;
    bool recorder_runs = false;
    int code = CTL_OK, stopped = 0;

    if (client_status(client, "", &status, &error) < 0) {
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    if (ctl->json)
        array = json_object_new_array();
    sessions = doc_array(status, "sessions");
    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);
        const char *name = doc_text(session, "name", "");

        if (!*name || doc_session_has_ended(session))
            continue;
        if (storage_is_recorder(session)) {
            recorder_runs = true;
            continue;
        }
        stopped++;
        if (stop_one(ctl, client, name, array) != CTL_OK)
            code = CTL_FAILURE;
    }
    if (array)
        doc_print(stdout, array);
    else if (!stopped)
        (void)puts(recorder_runs ? "No capture is running. The flight recorder continues."
                                 : "No capture is running.");
    return code;
}

static int cmd_stop(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_client_ struct client *client = NULL;
    struct options options;
    char *error = NULL;
    int r;

    r = parse(ctl, argc, argv, &options, &error);
    if (r < 0)
        return args_exit(&verb_stop, r, error);
    r = client_new(ctl->socket, &client, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    if (options.recorder)
        return stop_recorder(ctl, client);
    if (options.abort)
        return abort_one(ctl, client, options.name);
    return options.all ? stop_all(ctl, client) : stop_one(ctl, client, options.name, NULL);
}

const struct verb verb_stop = {
    .name = "stop",
    .run = cmd_stop,
    .words = "[NAME]",
    .completes = "running",
    .summary = "end a capture and wait for its finished file",
    .help = "Ends the capture NAME, or the only one, and waits until its file is finished.\n"
            "The flight recorder ends only with --recorder.\n",
    .options = stop_options,
};
