// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/recorder.h"

#include <inttypes.h>
#include <string.h>

#include "common/protocol.h"
#include "ctl/doc.h"
#include "ctl/str.h"

/* "root (UID 0)", " by xentracectl, PID 1234" and so on, as far as it is known. */
static char *describe_peer(struct json_object *stopped)
{
    const char *user = doc_text(stopped, "user", ""), *comm = doc_text(stopped, "comm", "");
    uint64_t uid = doc_number(stopped, "uid"), pid = doc_number(stopped, "pid");

    if (!doc_find(stopped, "uid"))
        return strdup("an unknown user");
    if (pid)
        return str_format("%s%sUID %" PRIu64 " (%s%sPID %" PRIu64 ")", user, *user ? ", " : "", uid,
                          comm, *comm ? ", " : "", pid);
    return str_format("%s%sUID %" PRIu64, user, *user ? ", " : "", uid);
}

void recorder_print(FILE *file, struct json_object *recorder)
{
    const char *state = doc_text(recorder, "state", "");
    struct json_object *stopped = doc_find(recorder, "stopped");
    uint64_t stopped_ns = doc_number(stopped, "realtime_ns");
    _cleanup_free_ char *who = NULL;
    char ago[STR_AGO_MAX];

    if (strcmp(state, "failed") == 0)
        (void)fprintf(file,
                      "Flight recorder: could not be started, or failed; see journalctl -u "
                      "xentraced. To start it: xentracectl start %s\n",
                      PROTOCOL_RECORDER);
    if (strcmp(state, "stopped") != 0)
        return;
    who = describe_peer(stopped);
    (void)fprintf(file, "Flight recorder: stopped by %s%s%s. To start it: xentracectl start %s\n",
                  who ? who : "an unknown user", stopped_ns ? " " : "",
                  stopped_ns ? str_ago(ago, stopped_ns) : "", PROTOCOL_RECORDER);
}
