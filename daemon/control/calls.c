// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A client that has gone meanwhile receives no answer: errors of sending one are ignored. An answer
 * that cannot be made, such as one whose text is not UTF-8, becomes an error: a client that
 * received neither would wait for ever.
 */

#include "daemon/control/calls.h"

#include <errno.h>
#include <string.h>

#include <json-c/json.h>
#include <systemd/sd-bus.h>

#include "common/protocol.h"
#include "daemon/control/reload.h"
#include "daemon/document/document.h"
#include "daemon/document/files-document.h"
#include "daemon/output/vacuum.h"
#include "daemon/session/session.h"
#include "daemon/session/snapshot.h"

/* The answer could not be made, for ERROR: the client must not wait for ever. */
static int call_answer_impossible(sd_bus_message *message, int error)
{
    return sd_bus_reply_method_errorf(
        message, SD_BUS_ERROR_FAILED,
        "The answer cannot be sent: %s. This is an error in xentraced: please report it.",
        strerror(-error));
}

int call_answer_failure(sd_bus_message *message, const struct failure *failure)
{
    int r;

    if (!message)
        return 1;
    r = sd_bus_reply_method_errorf(message, failure->name, "%s", failure->text);
    return r < 0 ? call_answer_impossible(message, r) : r;
}

int call_answer_document(sd_bus_message *message, struct json_object *document)
{
    const char *text = json_object_to_json_string_ext(document, JSON_C_TO_STRING_PLAIN |
                                                                    JSON_C_TO_STRING_NOSLASHESCAPE);
    int r;

    if (!message)
        r = 1;
    else
        r = text ? sd_bus_reply_method_return(message, "s", text) : -ENOMEM;
    json_object_put(document);
    return r < 0 ? call_answer_impossible(message, r) : r;
}

int calls_check(const struct calls *calls, uid_t person, struct failure *failure)
{
    size_t of_users = 0, of_user = 0;

    for (size_t i = 0; i < calls->count; i++) {
        of_users += calls->kept[i].audit.who.person != PERSON_ROOT;
        of_user += calls->kept[i].audit.who.person == person;
    }
    if (person != PERSON_ROOT && of_user >= CALLS_OF_USER_MAX)
        return failure_set(failure, -EBUSY, ERROR_BUSY,
                           "You have %u unanswered calls, which is the limit for one user. Try "
                           "again when one of them is answered.",
                           CALLS_OF_USER_MAX);
    if (calls->count >= CALLS_MAX || (person != PERSON_ROOT && of_users >= CALLS_OF_USERS_MAX))
        return failure_set(failure, -EBUSY, ERROR_BUSY,
                           "Too many calls are unanswered. Try again later.");
    return 0;
}

int calls_keep(struct calls *calls, const struct call *call)
{
    struct failure failure = {0};

    if (calls->count == CALLS_MAX) { /* calls_check() was not asked */
        (void)failure_set(&failure, -EBUSY, ERROR_BUSY, "Too many calls wait for their answers.");
        return call_answer_failure(call->message, &failure);
    }
    calls->kept[calls->count] = *call;
    (void)sd_bus_message_ref(call->message);
    calls->count++;
    return 1; /* handled: sd-bus is not to answer */
}

static void calls_drop(struct calls *calls, size_t index)
{
    sd_bus_message_unref(calls->kept[index].message);
    calls->count--;
    memmove(&calls->kept[index], &calls->kept[index + 1],
            (calls->count - index) * sizeof(calls->kept[0]));
}

void calls_forget_bus(struct calls *calls, const struct sd_bus *bus)
{
    for (size_t i = calls->count; i-- > 0;)
        if (calls->kept[i].message && sd_bus_message_get_bus(calls->kept[i].message) == bus) {
            audit_log_abandoned(&calls->kept[i].audit);
            calls_drop(calls, i);
        }
}

void calls_handle_session(struct calls *calls, const struct session *session)
{
    for (size_t i = calls->count; i-- > 0;) {
        struct call *call = &calls->kept[i];
        bool has_failed = session->start_failure.name;

        if (call->session != session || session->state < call->until)
            continue;
        if (call->segment && !session->is_aborted)
            continue; /* calls_handle_segment() comes, at the latest for the last one */
        if (has_failed)
            (void)call_answer_failure(call->message, &session->start_failure);
        else
            (void)call_answer_document(call->message, document_of_session(session));
        audit_name_object(&call->audit, session->name); /* it may have been made up */
        audit_log(&call->audit, has_failed ? &session->start_failure : NULL);
        calls_drop(calls, i);
    }
}

void calls_handle_recorder_stopped(struct calls *calls, struct json_object *document)
{
    for (size_t i = calls->count; i-- > 0;) {
        if (!calls->kept[i].stops_recorder)
            continue;
        (void)call_answer_document(calls->kept[i].message, json_object_get(document));
        audit_log(&calls->kept[i].audit, NULL);
        calls_drop(calls, i);
    }
}

void calls_handle_vacuum(struct calls *calls, uint64_t ticket, const char *state_dir,
                         const struct vacuum_result *result)
{
    for (size_t i = calls->count; i-- > 0;) {
        if (calls->kept[i].ticket != ticket)
            continue;
        if (result->failure->name)
            (void)call_answer_failure(calls->kept[i].message, result->failure);
        else
            (void)call_answer_document(calls->kept[i].message,
                                       document_of_files(state_dir, result));
        audit_log(&calls->kept[i].audit, result->failure->name ? result->failure : NULL);
        calls_drop(calls, i);
    }
}

void calls_handle_reload(struct calls *calls, const struct reload_result *result)
{
    for (size_t i = calls->count; i-- > 0;) {
        if (calls->kept[i].reload != result->number)
            continue;
        if (result->failure)
            (void)call_answer_failure(calls->kept[i].message, result->failure);
        else
            (void)call_answer_document(calls->kept[i].message, json_object_get(result->document));
        audit_log(&calls->kept[i].audit, result->failure);
        calls_drop(calls, i);
    }
}

void calls_handle_snapshot(struct calls *calls, const struct snapshot *snapshot)
{
    for (size_t i = calls->count; i-- > 0;) {
        struct call *call = &calls->kept[i];

        if (call->snapshot != snapshot)
            continue;
        /*
         * The records in a client's file from before the failure are readable: the document
         * describes them.
         */
        if (snapshot->failure.name && snapshot->plan.bytes == 0)
            (void)call_answer_failure(call->message, &snapshot->failure);
        else
            (void)call_answer_document(call->message, document_of_snapshot(snapshot));
        audit_name_object(&call->audit, snapshot->name);
        audit_log(&call->audit, snapshot->failure.name ? &snapshot->failure : NULL);
        calls_drop(calls, i);
    }
}

static void calls_answer_empty(const struct call *call)
{
    struct failure failure;

    (void)failure_set(
        &failure, -ENODATA, ERROR_EMPTY,
        "'%s' has recorded nothing since its last segment: there is no segment to close.",
        call->session->name);
    (void)call_answer_failure(call->message, &failure);
    audit_log(&call->audit, &failure);
}

void calls_handle_segment(struct calls *calls, const struct session *session, unsigned int number,
                          const struct segment *segment)
{
    for (size_t i = calls->count; i-- > 0;) {
        const struct call *call = &calls->kept[i];

        if (call->session != session || call->segment != number)
            continue;
        if (segment) {
            (void)call_answer_document(call->message, document_of_segment(session, segment));
            audit_log(&call->audit, NULL);
        } else {
            calls_answer_empty(call);
        }
        calls_drop(calls, i);
    }
}
