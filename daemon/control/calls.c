// SPDX-License-Identifier: GPL-2.0-or-later
/* A client that has gone meanwhile gets no answer: errors of sending one are ignored. */

#include "daemon/control/calls.h"

#include <errno.h>
#include <string.h>

#include <json-c/json.h>
#include <systemd/sd-bus.h>

#include "common/protocol.h"
#include "daemon/document/document.h"
#include "daemon/session/session.h"
#include "daemon/session/snapshot.h"

int call_answer_failure(sd_bus_message *message, const struct failure *failure)
{
    return sd_bus_reply_method_errorf(message, failure->name, "%s", failure->text);
}

int call_answer_document(sd_bus_message *message, struct json_object *document)
{
    const char *text = json_object_to_json_string_ext(document, JSON_C_TO_STRING_PLAIN |
                                                                    JSON_C_TO_STRING_NOSLASHESCAPE);
    int r;

    r = text ? sd_bus_reply_method_return(message, "s", text) : -ENOMEM;
    json_object_put(document);
    return r;
}

int calls_keep(struct calls *calls, const struct call *call)
{
    if (calls->count == CALLS_MAX)
        return sd_bus_reply_method_errorf(call->message, ERROR_NO_MEMORY,
                                          "Too many clients wait for an answer; try again later.");
    calls->kept[calls->count] = *call;
    (void)sd_bus_message_ref(call->message);
    calls->count++;
    return 1; /* handled: sd-bus is not to answer */
}

static void drop(struct calls *calls, size_t index)
{
    sd_bus_message_unref(calls->kept[index].message);
    calls->count--;
    memmove(&calls->kept[index], &calls->kept[index + 1],
            (calls->count - index) * sizeof(calls->kept[0]));
}

void calls_forget_bus(struct calls *calls, const struct sd_bus *bus)
{
    for (size_t i = calls->count; i-- > 0;)
        if (sd_bus_message_get_bus(calls->kept[i].message) == bus)
            drop(calls, i);
}

void calls_handle_session(struct calls *calls, const struct session *session)
{
    for (size_t i = calls->count; i-- > 0;) {
        const struct call *call = &calls->kept[i];

        if (call->session != session || call->segment || session->state < call->until)
            continue;
        if (session->start_failure.name)
            (void)call_answer_failure(call->message, &session->start_failure);
        else
            (void)call_answer_document(call->message, document_of_session(session));
        drop(calls, i);
    }
}

void calls_handle_snapshot(struct calls *calls, const struct snapshot *snapshot)
{
    for (size_t i = calls->count; i-- > 0;) {
        const struct call *call = &calls->kept[i];

        if (call->snapshot != snapshot)
            continue;
        /* What got into a client's file before it failed is whole, and worth telling of. */
        if (snapshot->failure.name && snapshot->plan.bytes == 0)
            (void)call_answer_failure(call->message, &snapshot->failure);
        else
            (void)call_answer_document(call->message, document_of_snapshot(snapshot));
        drop(calls, i);
    }
}

void calls_handle_segment(struct calls *calls, const struct session *session, unsigned int number,
                          const struct segment *segment)
{
    for (size_t i = calls->count; i-- > 0;) {
        const struct call *call = &calls->kept[i];

        if (call->session != session || call->segment != number)
            continue;
        if (segment)
            (void)call_answer_document(call->message, document_of_segment(session, segment));
        else
            (void)sd_bus_reply_method_errorf(call->message, ERROR_EMPTY,
                                             "'%s' has recorded nothing since its last segment: "
                                             "there is nothing to close.",
                                             session->name);
        drop(calls, i);
    }
}
