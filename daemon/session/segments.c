// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How one segment follows the other. Whatever may wait for the disk is done before and after: the
 * next file is created and granted its first space long before it is needed, so that the collector
 * can hand over at any time, and the one before is cut and synced when nothing is written to it any
 * more.
 *
 * All requests of a session are carried out by one worker, in order. So the file of an empty
 * segment is gone before the next one is given its number, and a sidecar is written before its
 * segment is deleted.
 *
 * Invariant: between the message that hands over and its answer the session does not know which of
 * the two sinks is fed; both are its own, and messages about either are understood.
 */

#include "daemon/session/segments.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/mailbox.h"
#include "collector/pool.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/sidecar-path.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/host/explain.h"
#include "daemon/output/disk-call.h"
#include "daemon/output/output.h"
#include "daemon/session/space.h"
#include "daemon/session/segments-state.h"

/* Until the collector asks for more, which it does at once; until that is answered the pool has
 * room. */
#define FIRST_GRANT_BYTES (UINT64_C(8) << 20)
/* Of a grant that is left when a segment asks for more; before its end it does not need all. */
#define GRANT_AHEAD_BYTES (UINT64_C(64) << 20)
#define RETRY_USEC        USEC_PER_SEC
#define TIMER_SLACK_USEC  USEC_PER_MSEC
#define NAME_TRIES        60u   /* for a name that the disk does not give, RETRY_USEC apart */
#define MAX_TAKEN_NUMBERS 1000u /* by files of somebody else, in a row */

static const char *const reason_names[] = {
    [SEGMENT_IS_WRITTEN] = "",   [SEGMENT_SIZE] = "size", [SEGMENT_TIME] = "time",
    [SEGMENT_ROTATE] = "rotate", [SEGMENT_END] = "end",   [SEGMENT_RESTART] = "restart",
};

enum segment_reason segment_reason_parse(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_SIZE(reason_names); i++)
        if (strcmp(name, reason_names[i]) == 0)
            return (enum segment_reason)i;
    return SEGMENT_RESTART;
}

const char *segment_reason_name(enum segment_reason reason)
{
    return reason_names[reason];
}

bool storage_is_segmented(const struct storage *storage)
{
    return storage && storage->kind == &storage_segments;
}

const struct segments *segments_of(const struct storage *storage)
{
    assert(storage_is_segmented(storage));
    return (const struct segments *)storage;
}

static struct segments *segments_own(struct storage *storage)
{
    return (struct segments *)segments_of(storage);
}

/* It may be longer by a round that was longer than those before it. */
uint64_t segments_aim_bytes(const struct segments *segments)
{
    return segments->size_bytes ? segments->size_bytes + UINT64_C(2) * CHUNK_BYTES : 0;
}

uint64_t segments_first_grant_bytes(const struct segments *segments)
{
    uint64_t aim_bytes = segments_aim_bytes(segments);

    return aim_bytes ? min_u64(aim_bytes, FIRST_GRANT_BYTES) : FIRST_GRANT_BYTES;
}

static bool is_empty(const struct sink *sink)
{
    struct sink_totals totals;

    sink_read_totals(sink, &totals);
    return totals.windows == 0;
}

static bool segments_are_running(const struct segments *segments)
{
    return segments_session(segments)->state == SESSION_RUNNING && !segments->is_stopped;
}

/* An aborted session has its reason already. */
static void segments_end_session(const struct segments *segments)
{
    struct session *session = segments_session(segments);

    if (!session->is_aborted)
        session_end_output(session, END_OUTPUT_ERROR);
}

/* --- Making. --- */

static int segments_init(struct segments *segments, struct session *session,
                         const struct session_options *options, struct failure *failure)
{
    int r;

    segments->number = 1;
    segments->first_number = 1;
    segments->nr_cpus = xen_host_info(session->context->xen)->nr_cpus;
    segments->past = calloc(segments->nr_cpus, sizeof(*segments->past));
    if (!segments->past)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    r = segments_take_options(segments, options, failure);
    if (r >= 0 && (options->resume || options->is_configured))
        r = segments_take_state(segments, options->resume, failure);
    if (r < 0)
        return r;
    return storage_init(&segments->storage, &storage_segments, session, options, failure);
}

int segments_new(struct session *session, const struct session_options *options,
                 struct storage **ret_storage, struct failure *failure)
{
    struct segments *segments = calloc(1, sizeof(*segments));
    int r;

    if (!segments)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    segments->storage = (struct storage){.kind = &storage_segments, .session = session};
    r = segments_init(segments, session, options, failure);
    if (r < 0) {
        storage_segments.free(&segments->storage);
        return r;
    }
    *ret_storage = &segments->storage;
    return 0;
}

static void segments_stop_timers(struct segments *segments)
{
    segments->time_source = sd_event_source_disable_unref(segments->time_source);
    segments->retry_source = sd_event_source_disable_unref(segments->retry_source);
    segments->name_source = sd_event_source_disable_unref(segments->name_source);
}

static struct storage *segments_free(struct storage *storage)
{
    struct segments *segments = segments_own(storage);

    segments_stop_timers(segments);
    space_stop_waiting(storage);
    segments->reader = worker_free(segments->reader);
    storage->sink = sink_free(storage->sink);
    segments->next = sink_free(segments->next);
    segments->before = sink_free(segments->before);
    storage->output = output_free(storage->output);
    segments->next_output = output_free(segments->next_output);
    segments->before_output = output_free(segments->before_output);
    if (segments->oldest.is_under_way || segments->empty.is_under_way || segments->nr_sidecars ||
        segments->is_recovering) {
        segments->is_released =
            true; /* the process ends, and a worker is stuck with a part of it */
        return NULL;
    }
    for (size_t i = 0; i < segments->nr_files; i++)
        free(segments->files[i]);
    free(segments->files);
    free(segments->past);
    free(segments->missing);
    free(segments);
    return NULL;
}

/* --- The first one. --- */

static struct output_request segments_request(const struct segments *segments, const char *name)
{
    const struct session *session = segments_session(segments);

    return (struct output_request){
        .fd = -1,
        .directory_fd = session->context->state_dir_fd,
        .directory = session->context->state_dir,
        .name = name,
        .naming = OUTPUT_PREPARED,
        .is_packed = session->settings.is_packed,
        .is_buffered = session->settings.is_packed,
        .reserve_bytes = session->settings.reserve_bytes,
        .keep_free = session->context->keep_free,
        .max_bytes = UINT64_MAX,
        .aim_bytes = segments_aim_bytes(segments),
    };
}

static void segments_handle_opened(void *userdata, int error, const struct failure *failure)
{
    struct segments *segments = userdata;
    struct session *session = segments_session(segments);

    segments->is_open = segments->is_named = error >= 0;
    session_handle_opened(session, session->name, error, failure); /* may free the segments */
}

/* Its name is the session's or none: "-002" after it would be a part of the number. */
static int segments_open(struct storage *storage, const struct session_options *options,
                         struct failure *failure)
{
    struct segments *segments = segments_own(storage);
    struct output_request request;
    char name[SEGMENT_NAME_MAX];
    int r;

    (void)options; /* what is in them was noted by segments_new() */
    if (segments->is_holding)
        return 1;
    segment_name(storage->session, segments->number, name);
    request = segments_request(segments, name);
    request.naming = OUTPUT_NAMED;
    request.check = segments_check_none;
    r = output_new(storage->session->worker, &request, segments_handle_opened, segments,
                   &storage->output);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    return 0;
}

static int segments_make_sink(struct storage *storage, struct watch_set *watch,
                              struct failure *failure)
{
    int r;

    (void)watch; /* of a ring only */
    if (segments_own(storage)->is_holding)
        return segments_make_holder(segments_own(storage), failure);
    r = storage_make_sink(storage, storage->output, segments_own(storage)->size_bytes,
                          &storage->sink);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    return 0;
}

/* --- The next one. --- */

static void segments_discard_next(struct segments *segments)
{
    segments->next = sink_free(segments->next);
    if (!segments->next_output)
        return;
    output_remove(segments->next_output, NULL);
    segments->next_output = output_free(segments->next_output);
}

static int segments_handle_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct segments *segments = userdata;

    (void)source, (void)usec;
    segments->retry_source = sd_event_source_disable_unref(segments->retry_source);
    segments_advance(segments);
    return 0;
}

/* No record is lost by it: the current one continues. */
static void segments_retry_later(struct segments *segments, int error,
                                 const struct failure *failure)
{
    const struct session *session = segments_session(segments);

    segments->next_error = error;
    segments->next_failure = *failure;
    if (!segments->is_failure_logged)
        log_line(LOG_WARNING, session->name,
                 "Segment %u exceeds its limit: the next one cannot be created. %s",
                 segments->number, failure->text);
    segments->is_failure_logged = true;
    if (!segments->retry_source) /* without a timer: when something else changes */
        (void)sd_event_add_time_relative(session->context->event, &segments->retry_source,
                                         CLOCK_MONOTONIC, RETRY_USEC, TIMER_SLACK_USEC,
                                         segments_handle_retry, segments);
}

static int segments_make_next(struct segments *segments, struct failure *failure)
{
    int r;

    r = storage_make_sink(&segments->storage, segments->next_output, segments->size_bytes,
                          &segments->next);
    if (r >= 0) {
        segments_pass_missing(segments, segments->next);
        return 0;
    }
    segments_discard_next(segments);
    return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
}

static bool segments_may_delete_for(const struct segments *segments, int error)
{
    return error == -ENOSPC && segments->storage.space.on_reserve == ON_RESERVE_ROTATE &&
           segments->nr_files > 0;
}

/* If the session stops meanwhile, finish() takes it back. */
static void segments_handle_next_opened(void *userdata, int error, const struct failure *failure)
{
    struct segments *segments = userdata;
    struct failure reason = *failure;

    if (error >= 0)
        session_note_reserve(segments_session(segments), segments->next_output);
    if (error < 0)
        segments->next_output = output_free(segments->next_output); /* it has left no file */
    else
        error = segments_make_next(segments, &reason);
    segments->needs_space = segments_may_delete_for(segments, error);
    if (error >= 0) {
        segments->next_error = 0;
        segments->is_failure_logged = false;
    } else if (!segments->needs_space && segments_are_running(segments)) {
        segments_retry_later(segments, error, &reason);
        return;
    }
    segments_advance(segments);
    session_continue_end(segments_session(segments)); /* may free the segments */
}

static void segments_open_next(struct segments *segments)
{
    struct output_request request;
    struct failure failure = {0};
    char name[SEGMENT_NAME_MAX];
    int r;

    segment_name(segments_session(segments), segments->number + 1, name);
    request = segments_request(segments, name);
    request.first_aim_bytes = segments_first_grant_bytes(segments);
    request.waits = true; /* a smaller first grant need not be the last */
    r = output_new(segments_session(segments)->worker, &request, segments_handle_next_opened,
                   segments, &segments->next_output);
    if (r >= 0) {
        session_expect_answer(segments_session(segments));
        return;
    }
    (void)failure_set(&failure, r, ERROR_NO_MEMORY, "Out of memory.");
    segments_retry_later(segments, r, &failure);
}

static void segments_prepare_next(struct segments *segments)
{
    uint64_t bytes = segments_first_grant_bytes(segments);

    if (!segments_are_running(segments) || segments->next_output || segments->retry_source ||
        (segments->is_holding && !segments->is_recovered))
        return;
    if (segments->needs_space || segments_exceed_keep_bytes(segments, bytes))
        segments_delete_oldest(segments);
    if (!segments->oldest.is_under_way)
        segments_open_next(segments);
}

/* --- Handing over. --- */

static void segments_offer_next(struct segments *segments)
{
    bool now = segments->due != SEGMENT_IS_WRITTEN;

    if (!segments_are_running(segments) || !segments->next || segments->before ||
        segments->is_name_due)
        return;
    if (segments->is_offered_now || (!now && (segments->is_offered || !segments->size_bytes)))
        return;
    segments->is_offered = true;
    segments->is_offered_now = now;
    collector_send_successor(segments_session(segments)->context->collector, segments->storage.sink,
                             segments->next, now);
}

static void segments_restart_time(const struct segments *segments)
{
    if (!segments->time_source)
        return;
    /* A timer that cannot be set again only makes the segment longer. */
    (void)sd_event_source_set_time_relative(segments->time_source, segments->time_usec);
    (void)sd_event_source_set_enabled(segments->time_source, SD_EVENT_ONESHOT);
}

static int segments_handle_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct segments *segments = userdata;

    (void)source, (void)usec;
    if (is_empty(segments->storage.sink)) {
        segments_restart_time(segments); /* a quiet host must not fill the disk with empty files */
        return 0;
    }
    segments->due = SEGMENT_TIME;
    segments_advance(segments);
    return 0;
}

static void segments_begin(struct storage *storage)
{
    const struct session *session = storage->session;
    struct segments *segments = segments_own(storage);

    if (segments->time_usec &&
        sd_event_add_time_relative(session->context->event, &segments->time_source, CLOCK_BOOTTIME,
                                   segments->time_usec, TIMER_SLACK_USEC, segments_handle_time,
                                   segments) < 0)
        log_line(LOG_ERR, session->name, "Cannot set a timer: segments do not end by time.");
    if (segments->is_holding)
        segments_resume(segments);
    segments_advance(segments);
}

static void segments_name_current(struct segments *segments);

static void segments_stop(struct storage *storage)
{
    struct segments *segments = segments_own(storage);

    segments->is_stopped = true;
    segments_stop_timers(segments);
    segments_stop_holding(segments);
    segments_name_current(segments); /* if it waited for that: the last time */
}

/* --- When it has handed over: the current one's name. --- */

/* Somebody who asked for its end waits for a number that there will never be. */
static void segments_pass_over_number(struct segments *segments)
{
    const struct session *session = segments_session(segments);

    segments->nr_taken++;
    if (segments->due == SEGMENT_ROTATE)
        session->context->segment_finished(session->context->userdata, session, segments->number,
                                           NULL);
    segments->number++;
}

static void segments_fail_name(struct segments *segments, int error)
{
    struct session *session = segments_session(segments);
    char text[sizeof(session->message)];

    (void)snprintf(text, sizeof(text),
                   "Cannot rename the current segment: %s. It is complete, in %s as .%s%s.next.",
                   explain_write(error), session->context->state_dir,
                   segments->storage.output->name,
                   session->settings.is_packed ? TRACE_SUFFIX TRACE_SUFFIX_PACKED : TRACE_SUFFIX);
    if (session->is_aborted)
        log_line(LOG_ERR, session->name, "%s", text);
    else
        (void)snprintf(session->message, sizeof(session->message), "%s", text);
    segments_end_session(segments);
}

static int segments_handle_name_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct segments *segments = userdata;

    (void)source, (void)usec;
    segments->name_source = sd_event_source_disable_unref(segments->name_source);
    segments_name_current(segments);
    return 0;
}

/* No record is lost by it: the segment continues under its hidden name. */
static bool segments_name_later(struct segments *segments, int error)
{
    const struct session *session = segments_session(segments);

    if (!segments_are_running(segments) || segments->name_tries == NAME_TRIES ||
        !(disk_error_may_pass(error) || error == -ENOSPC || error == -EDQUOT) ||
        sd_event_add_time_relative(session->context->event, &segments->name_source, CLOCK_MONOTONIC,
                                   RETRY_USEC, TIMER_SLACK_USEC, segments_handle_name_time,
                                   segments) < 0)
        return false;
    if (segments->name_tries++ == 0)
        log_line(LOG_WARNING, session->name,
                 "Cannot rename segment %u yet: %s. Recording into it continues, and xentraced "
                 "tries again each second, for a minute.",
                 segments->number, explain_write(error));
    return true;
}

/* A file of that number that is not ours is left alone. */
static void segments_handle_named(void *userdata, int error, const struct failure *failure)
{
    struct segments *segments = userdata;

    (void)failure; /* it has no words for it */
    if (error == -EEXIST && segments->nr_taken < MAX_TAKEN_NUMBERS) {
        segments_pass_over_number(segments);
        segments_advance(segments);
        return;
    }
    segments->is_named = error >= 0 || segments->storage.output->figures.is_published;
    if (!segments->is_named && segments_name_later(segments, error))
        return;
    segments->is_name_due = false;
    segments->nr_taken = 0;
    segments->name_tries = 0;
    /* If the directory could not be synced: output_finish() does it again, and reports it. */
    if (!segments->is_named)
        segments_fail_name(segments, error);
    segments_advance(segments);
    session_continue_end(segments_session(segments)); /* may free the segments */
}

static void segments_name_current(struct segments *segments)
{
    struct output *output = segments->storage.output;
    char name[SEGMENT_NAME_MAX];

    if (!segments->is_name_due || segments->name_source || output_is_busy(output, OUTPUT_PUBLISH))
        return;
    if (segments_exceed_keep_files(segments)) {
        segments_delete_oldest(segments);
        return;
    }
    segment_name(segments_session(segments), segments->number, name);
    output_publish(output, name, segments_handle_named);
    session_expect_answer(segments_session(segments));
}

void segments_advance(struct segments *segments)
{
    segments_name_current(segments);
    segments_advance_room(segments);
    segments_advance_eviction(segments);
    segments_prepare_next(segments);
    segments_offer_next(segments);
}

/* The current segment becomes the one before, and the next one the current. */
static void segments_shift(struct segments *segments)
{
    struct storage *storage = &segments->storage;

    segments->before = storage->sink;
    segments->before_output = storage->output;
    segments->before_number = segments->number;
    segments->before_reason = segments->due ? segments->due : SEGMENT_SIZE;
    segments->before_missing = segments->current_missing;
    segments->current_missing = 0;
    storage->sink = TAKE_PTR(segments->next);
    storage->is_sink_closed = false;
    storage->output = TAKE_PTR(segments->next_output);
    segments->due = SEGMENT_IS_WRITTEN;
    segments->is_offered = false;
    segments->is_offered_now = false;
    segments->is_name_due = true;
    segments->is_named = false;
    segments->room_done = NULL; /* it was for the one before, which has all it needs */
}

/* Nothing was recorded into the one before: the new one is given its number. */
static void segments_drop_empty(struct segments *segments)
{
    const struct session *session = segments_session(segments);
    unsigned int number = segments->before_number;

    segments_remove_empty(segments, number, NULL); /* if it stays, the number is passed over */
    segments->before_number = 0;
    session->context->segment_finished(session->context->userdata, session, number, NULL);
}

static void segments_handle_succeeded(struct segments *segments)
{
    struct storage *storage = &segments->storage;
    struct session *session = storage->session;

    space_reset(storage); /* what was asked for was for the one before, which has all it needs */
    segments_shift(segments);
    if (segments->is_holding)
        segments_end_holding(segments);
    else if (is_empty(segments->before))
        segments_drop_empty(segments);
    else
        segments->number++;
    if (session->is_aborted) /* the two messages have crossed */
        collector_send(session->context->collector, MESSAGE_ABORT, storage->sink, true, 0);
    session_handle_handover(session);
    segments_restart_time(segments);
    segments_advance(segments);
}

/* --- The one before. --- */

static void segments_retire_before(struct segments *segments, int error)
{
    struct session *session = segments_session(segments);
    struct output *output = TAKE_PTR(segments->before_output);
    struct sink *sink = TAKE_PTR(segments->before);
    struct segment segment;

    segments_enter_past(segments, sink);
    segments_note_held(segments, sink);
    if (segments->before_number) {
        segments_enter_file(segments, sink, segments->before_number, segments->before_reason,
                            &segment);
        segments_write_sidecar(segments, &segment, sink);
    }
    if (error < 0) {
        session_explain_finish(session, output, error);
        segments_end_session(segments);
    }
    output_free(output);
    sink_free(sink);
    segments_advance(segments);
    session_continue_end(session); /* may free the segments */
}

static void segments_handle_before_finished(void *userdata, int error,
                                            const struct failure *failure)
{
    (void)failure; /* it has no words for it */
    segments_retire_before(userdata, error);
}

static void segments_finish_before(struct segments *segments)
{
    struct sink_totals totals;

    if (!segments->before_number) {
        segments_retire_before(segments, 0);
        return;
    }
    sink_read_totals(segments->before, &totals);
    output_finish(segments->before_output, totals.output_bytes, segments_handle_before_finished);
    session_expect_answer(segments_session(segments));
}

static void segments_handle_message(struct storage *storage, const struct message *message)
{
    struct segments *segments = segments_own(storage);

    if (message->sink == storage->sink) {
        if (message->type == MESSAGE_SUCCEEDED)
            segments_handle_succeeded(segments);
        return;
    }
    assert(message->sink == segments->before);
    if (message->type == MESSAGE_CLOSED)
        segments_finish_before(segments);
    else if (message->type == MESSAGE_FAILED)
        session_handle_failure(storage->session, segments->before_output, (int)message->value);
    /* Else it asks for what it does not need any more, or was given up, and comes back later. */
}

static bool segments_owns_sink(const struct storage *storage, const struct sink *sink)
{
    return sink && segments_of(storage)->before == sink;
}

/* --- The last one. --- */

static void segments_abort(struct storage *storage)
{
    struct segments *segments = segments_own(storage);

    segments_stop(storage);
    if (segments->before && segments->before_output &&
        !output_is_busy(segments->before_output, OUTPUT_FINISH))
        collector_send(storage->session->context->collector, MESSAGE_ABORT, segments->before, true,
                       0);
}

static bool segments_is_quiet(const struct storage *storage)
{
    const struct segments *segments = segments_of(storage);

    return !segments->before && !segments->is_name_due && !segments->oldest.is_under_way &&
           !segments->empty.is_under_way && segments->nr_sidecars == 0 &&
           !segments->is_recovering &&
           !(segments->next_output && output_is_busy(segments->next_output, OUTPUT_OPEN));
}

/* The newest one that is there is shown instead of the last, which was empty. */
static void segments_show_newest(const struct segments *segments)
{
    const struct session *session = segments_session(segments);
    char path[PATH_MAX];

    segment_path(session, &segments->files[segments->nr_files - 1]->segment, path);
    output_set_path(segments->storage.output, path);
}

static void segments_handle_last_removed(struct segments *segments, int error)
{
    struct session *session = segments_session(segments);

    (void)error; /* an empty file stays */
    segments_show_newest(segments);
    session->context->segment_finished(session->context->userdata, session, segments->number, NULL);
    session_handle_finished(session); /* may free the segments */
}

static void segments_handle_last_hidden_removed(void *userdata, int error,
                                                const struct failure *failure)
{
    (void)failure;
    segments_handle_last_removed(userdata, error);
}

/* It ended right after a segment: there is no other. */
static void segments_remove_last(struct segments *segments)
{
    if (segments->is_named)
        segments_remove_empty(segments, segments->number, segments_handle_last_removed);
    else
        output_remove(segments->storage.output, segments_handle_last_hidden_removed);
}

static void segments_handle_last_finished(void *userdata, int error, const struct failure *failure)
{
    struct segments *segments = userdata;
    struct storage *storage = &segments->storage;
    struct segment segment;

    (void)failure; /* it has no words for it */
    segments->is_over = true;
    if (error < 0)
        session_explain_finish(storage->session, storage->output, error);
    segments->before_missing = segments->current_missing;
    if (is_empty(storage->sink) && segments->nr_files > 0) {
        segments->is_last_removed = true;
        segments_remove_last(segments);
        return;
    }
    segments_enter_file(segments, storage->sink, segments->number, SEGMENT_END, &segment);
    session_handle_finished(storage->session); /* may free the segments */
}

static void segments_finish(struct storage *storage)
{
    struct segments *segments = segments_own(storage);
    struct sink_totals totals;

    assert(segments_is_quiet(storage));
    segments_discard_next(segments);
    if (!segments->is_open) {
        session_handle_finished(storage->session); /* may free the segments */
        return;
    }
    if (storage->session->start_failure.name) {
        storage_remove_output(storage); /* may free the segments */
        return;
    }
    sink_read_totals(storage->sink, &totals);
    output_finish(storage->output, totals.output_bytes, segments_handle_last_finished);
    session_expect_answer(storage->session);
}

/* The last one's sidecar shows the ended session. */
static void segments_seal(struct storage *storage)
{
    segments_write_last_sidecar(segments_own(storage));
}

/* --- On request. --- */

int segments_rotate(struct session *session, unsigned int *ret_number, struct failure *failure)
{
    struct segments *segments;

    if (!storage_is_segmented(session->storage))
        return failure_set(failure, -EINVAL, ERROR_NOT_SEGMENTED,
                           "'%s' has no segments, so there is none to close. To record in "
                           "segments: xentracectl start --segment-size SIZE",
                           session->name);
    segments = segments_own(session->storage);
    if (!segments_are_running(segments))
        return failure_set(failure, -EINVAL, ERROR_NO_SESSION,
                           "'%s' is not running, so there is no segment to close. To see all "
                           "sessions: xentracectl list",
                           session->name);
    if (segments->is_holding)
        return failure_set(
            failure, -EAGAIN, ERROR_BUSY,
            "'%s' is continuing after a restart and has no segment yet. Try again in a moment.",
            session->name);
    if (session->storage->space.is_paused)
        return failure_set(failure, -ENOSPC, ERROR_NO_SPACE,
                           "'%s' is paused until there is space on the disk, so its segment cannot "
                           "be closed. Free some space.",
                           session->name);
    if (!segments->next && segments->next_error < 0) {
        *failure = segments->next_failure;
        segments->retry_source = sd_event_source_disable_unref(segments->retry_source);
        segments_advance(segments); /* there may be space by now, for whoever asks again */
        return segments->next_error;
    }
    segments->due = SEGMENT_ROTATE;
    *ret_number = segments->number;
    segments_advance(segments);
    return 0;
}

const struct storage_kind storage_segments = {
    .name = "segments",
    .grant_ahead_bytes = GRANT_AHEAD_BYTES,
    .open = segments_open,
    .make_sink = segments_make_sink,
    .begin = segments_begin,
    .stop = segments_stop,
    .handle_message = segments_handle_message,
    .owns_sink = segments_owns_sink,
    .abort = segments_abort,
    .finish = segments_finish,
    .seal = segments_seal,
    .is_quiet = segments_is_quiet,
    .add_ledger = segments_add_ledger,
    .add_totals = segments_add_totals,
    .make_room = segments_make_room,
    .free = segments_free,
};
