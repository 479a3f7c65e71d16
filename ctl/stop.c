// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The daemon answers Stop when the file is finished, which a stuck disk can delay for hours. It
 * answers Status meanwhile, so the reason for the wait is asked for on another connection.
 */

#include "ctl/stop.h"

#include <errno.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/session.h"
#include "ctl/str.h"

/* Whether Stop(NAME) waits for this session. */
static bool is_stopped_one(struct json_object *session, const char *name)
{
    if (*name)
        return strcmp(doc_text(session, "name", ""), name) == 0;
    return strcmp(doc_text(session, "state", ""), "stopping") == 0;
}

static int report_stuck_disk(struct client *client, const char *name)
{
    _cleanup_doc_ struct json_object *status = NULL;
    _cleanup_free_ char *error = NULL;
    struct json_object *sessions;
    int r;

    r = client_status(client, "", &status, &error);
    if (r < 0)
        return r; /* Stop itself will show why */
    sessions = doc_array(status, "sessions");
    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);
        uint64_t since_ns = doc_number(session, "output.waiting_since_ns");
        const char *stopped = doc_text(session, "name", "");
        _cleanup_free_ char *quoted = str_shell_show(stopped);
        char since[STR_SINCE_MAX];

        if (!since_ns || !is_stopped_one(session, name))
            continue;
        ctl_warning("%s: the disk has not answered since %s. To end the capture without it: "
                    "xentracectl stop --abort %s",
                    stopped, str_since(since, since_ns), quoted ? quoted : "NAME");
        return 1;
    }
    return 0;
}

int stop_session(struct client *client, const char *name, struct json_object **ret_session,
                 char **ret_error)
{
    return client_stop(client, name, report_stuck_disk, ret_session, ret_error);
}
