/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xentracectl stop: waits for finished files. Ctrl-C ends the wait only; the daemon goes on. */

#include <errno.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/session.h"
#include "ctl/storage.h"
#include "ctl/str.h"

static const struct option stop_options[] = {
    {"all", no_argument, NULL, 'a'},
    {},
};

static int parse(struct ctl *ctl, int argc, char **argv, const char **ret_name, bool *ret_all,
                 char **ret_error)
{
    struct args args = {.ctl = ctl, .argc = argc, .argv = argv, .options = stop_options};
    bool all = false;
    int option, r;

    while ((r = args_next(&args, &option, ret_error)) > 0)
        all = true; /* there is no other */
    args_done(&args);
    if (r < 0)
        return r;
    r = args_check_words(argc, argv, 1, ret_error);
    if (r < 0)
        return r;
    if (all && optind < argc)
        return str_refuse(-EINVAL, ret_error, "stop takes a name or --all, not both.");
    if (optind < argc && !*argv[optind])
        return str_refuse(-EINVAL, ret_error, "\"\" is not the name of a capture.");
    *ret_name = optind < argc ? argv[optind] : "";
    *ret_all = all;
    return 0;
}

/* Stops one; the document goes into ARRAY if there is one, else it is printed. */
static int stop_one(struct ctl *ctl, struct client *client, const char *name,
                    struct json_object *array)
{
    _cleanup_doc_ struct json_object *session = NULL;
    _cleanup_free_ char *error = NULL;
    bool is_ok;

    if (client_stop(client, name, &session, &error) < 0) {
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

/* RECORDER is the name of the flight recorder, which goes on, or NULL. */
static void print_none(const char *recorder)
{
    _cleanup_free_ char *name = recorder ? strdup(recorder) : NULL;

    if (!name) {
        (void)puts("No capture is running.");
        return;
    }
    str_make_printable(name);
    (void)printf("No capture is running but the flight recorder. To end it: xentracectl stop %s\n",
                 name);
}

static int stop_all(struct ctl *ctl, struct client *client)
{
    _cleanup_doc_ struct json_object *status = NULL, *array = NULL;
    _cleanup_free_ char *error = NULL;
    struct json_object *sessions;
    const char *recorder = NULL;
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

        if (!*name || session_has_ended(session))
            continue;
        if (storage_is_recorder(session)) {
            recorder = name;
            continue;
        }
        stopped++;
        if (stop_one(ctl, client, name, array) != CTL_OK)
            code = CTL_FAILURE;
    }
    if (array)
        doc_print(stdout, array);
    else if (!stopped)
        print_none(recorder);
    return code;
}

int cmd_stop(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_client_ struct client *client = NULL;
    const char *name = "";
    char *error = NULL;
    bool all = false;
    int r;

    r = parse(ctl, argc, argv, &name, &all, &error);
    if (r < 0)
        return args_exit("stop", r, error);
    r = client_new(ctl->socket, &client, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    return all ? stop_all(ctl, client) : stop_one(ctl, client, name, NULL);
}
