// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A reply that cannot be made, such as one whose text is not UTF-8, becomes an error: a client that
 * received neither would wait for ever.
 *
 * A stream whose client is slow is not queued for it: the next reply is made when the one before
 * was read, from what is true then.
 */

#include "daemon/control/calls.h"

#include <errno.h>
#include <string.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/varlink.h"
#include "daemon/base/json-put.h"
#include "daemon/base/vacate.h"
#include "daemon/control/connection.h"
#include "daemon/control/reload.h"
#include "daemon/control/status.h"
#include "daemon/document/document.h"
#include "daemon/document/files-document.h"
#include "daemon/manager.h"
#include "daemon/output/vacuum.h"
#include "daemon/session/session.h"
#include "daemon/session/snapshot.h"

/* A text that is not UTF-8, or no memory. */
static struct json_object *make_impossible(void)
{
    json *parameters = json_object_new_object();

    json_put_text(parameters, FIELD_SENTENCE,
                  "The reply cannot be sent. This is an error in xentraced: please report it.");
    return varlink_make_error(ERROR_NO_MEMORY, parameters);
}

static void call_send(const struct call *call, struct json_object *message, bool continues)
{
    size_t bytes;

    if (message && varlink_text(message, &bytes)) {
        connection_reply(call->connection, message, continues);
        return;
    }
    json_object_put(message);
    connection_reply(call->connection, make_impossible(), false);
}

void call_answer_failure(const struct call *call, const struct failure *failure)
{
    json *parameters;

    if (!call->connection)
        return;
    parameters = json_object_new_object();
    if (strcmp(failure->name, SERVICE_ERROR_PARAMETER) == 0)
        json_put_text(parameters, "parameter", failure->parameter);
    else
        json_put_text(parameters, FIELD_SENTENCE, failure->text);
    call_send(call, varlink_make_error(failure->name, parameters), false);
}

/* Sends VALUE, which is given away, as the parameter KEY. */
static void call_send_value(const struct call *call, const char *key, json *value, bool continues)
{
    json *parameters;

    if (!call->connection) {
        json_object_put(value);
        return;
    }
    parameters = json_object_new_object();
    json_put(parameters, key, value);
    call_send(call, varlink_make_reply(parameters, continues), continues);
}

void call_answer_document(const struct call *call, json *document)
{
    call_send_value(call, call->reply, document, false);
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

void call_send_document(const struct call *call, json *document)
{
    call_send_value(call, call->reply, document, true);
}

void call_forget(struct call *call)
{
    json_object_put(call->message);
    vacate_close(call->output);
}

/* --- Streams. --- */

static void calls_drop(struct calls *calls, size_t index)
{
    call_forget(&calls->kept[index]);
    calls->count--;
    memmove(&calls->kept[index], &calls->kept[index + 1],
            (calls->count - index) * sizeof(calls->kept[0]));
}

static uint64_t calls_now_usec(const struct calls *calls)
{
    uint64_t usec = 0;

    (void)sd_event_now(calls->manager->event, CLOCK_MONOTONIC, &usec); /* the clock exists */
    return usec;
}

/* For the first of them that is due. Neither can fail for a source that exists, in this process. */
static void calls_set_timer(struct calls *calls)
{
    uint64_t next_usec = UINT64_MAX;

    for (size_t i = 0; i < calls->count; i++)
        if (calls->kept[i].stream && calls->kept[i].next_usec < next_usec)
            next_usec = calls->kept[i].next_usec;
    if (next_usec == UINT64_MAX) {
        (void)sd_event_source_set_enabled(calls->timer, SD_EVENT_OFF);
        return;
    }
    (void)sd_event_source_set_time(calls->timer, next_usec);
    (void)sd_event_source_set_enabled(calls->timer, SD_EVENT_ONESHOT);
}

static json *progress_document(const struct snapshot *snapshot)
{
    json *progress = json_object_new_object();

    json_put_count(progress, "bytes", ring_write_progress_bytes(&snapshot->write));
    json_put_count(progress, "total_bytes", ring_write_total_bytes(&snapshot->write));
    return progress;
}

/* Returns whether CALL is kept. */
static bool calls_continue(struct calls *calls, struct call *call)
{
    struct failure failure = {0};

    switch (call->stream) {
    case STREAM_NONE:
        return true;
    case STREAM_STATUS:
        call_send_document(call, call->session ? document_of_session(call->session)
                                               : status_document(calls->manager));
        return true;
    case STREAM_PROGRESS:
        call_send_value(call, REPLY_PROGRESS, progress_document(call->snapshot), true);
        return true;
    case STREAM_LIVE:
        if (call->snapshot || calls->next_part(calls->userdata, call, &failure) >= 0)
            return true;
        call_answer_failure(call, &failure);
        return false;
    }
    return true;
}

static int calls_handle_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct calls *calls = userdata;

    (void)source;
    for (size_t i = calls->count; i-- > 0;) {
        struct call *call = &calls->kept[i];

        if (!call->stream || call->next_usec > usec)
            continue;
        call->next_usec = usec + call->interval_usec;
        if (connection_unsent_bytes(call->connection) == 0 && !calls_continue(calls, call))
            calls_drop(calls, i);
    }
    calls_set_timer(calls);
    return 0;
}

int calls_init(struct calls *calls, const struct manager *manager,
               int (*next_part)(void *userdata, struct call *call, struct failure *failure),
               void *userdata)
{
    int r;

    *calls = (struct calls){.manager = manager, .next_part = next_part, .userdata = userdata};
    r = sd_event_add_time(manager->event, &calls->timer, CLOCK_MONOTONIC, 0, USEC_PER_MSEC,
                          calls_handle_timer, calls);
    return r < 0 ? r : sd_event_source_set_enabled(calls->timer, SD_EVENT_OFF);
}

void calls_done(struct calls *calls)
{
    calls->timer = sd_event_source_disable_unref(calls->timer);
}

/* --- Waiting. --- */

int calls_keep(struct calls *calls, const struct call *call)
{
    struct failure failure = {0};

    if (calls->count == CALLS_MAX) { /* calls_check() was not asked */
        (void)failure_set(&failure, -EBUSY, ERROR_BUSY, "Too many calls wait for their answers.");
        call_answer_failure(call, &failure);
        return 0;
    }
    calls->kept[calls->count] = *call;
    if (call->stream)
        calls->kept[calls->count].next_usec = calls_now_usec(calls) + call->interval_usec;
    calls->count++;
    if (call->stream)
        calls_set_timer(calls);
    return 0;
}

void calls_forget_connection(struct calls *calls, const struct connection *connection)
{
    for (size_t i = calls->count; i-- > 0;)
        if (calls->kept[i].connection == connection) {
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
            call_answer_failure(call, &session->start_failure);
        else
            call_answer_document(call, document_of_session(session));
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
        call_answer_document(&calls->kept[i], json_object_get(document));
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
            call_answer_failure(&calls->kept[i], result->failure);
        else
            call_answer_document(&calls->kept[i], document_of_files(state_dir, result));
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
            call_answer_failure(&calls->kept[i], result->failure);
        else
            call_answer_document(&calls->kept[i], json_object_get(result->document));
        audit_log(&calls->kept[i].audit, result->failure);
        calls_drop(calls, i);
    }
}

void calls_handle_snapshot(struct calls *calls, const struct snapshot *snapshot)
{
    for (size_t i = calls->count; i-- > 0;) {
        struct call *call = &calls->kept[i];

        bool is_part = call->stream == STREAM_LIVE && !snapshot->failure.name;

        if (call->snapshot != snapshot)
            continue;
        /*
         * The records in a client's file from before the failure are readable: the document
         * describes them.
         */
        if (snapshot->failure.name && snapshot->plan.bytes == 0)
            call_answer_failure(call, &snapshot->failure);
        else
            call_send_value(call, call->reply, document_of_snapshot(snapshot), is_part);
        if (is_part) {
            call->snapshot = NULL;
            continue;
        }
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
    call_answer_failure(call, &failure);
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
            call_answer_document(call, document_of_segment(session, segment));
            audit_log(&call->audit, NULL);
        } else {
            calls_answer_empty(call);
        }
        calls_drop(calls, i);
    }
}
