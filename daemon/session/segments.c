// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How one segment follows the other. What may wait for the disk is done before and after: the next
 * file is created and granted its first space long before it is needed, so that the collector can
 * hand over at any time, and the one before is cut and synced when nothing is written to it any
 * more.
 *
 * Invariant: between the message that hands over and its answer the session does not know which of
 * the two sinks is fed; both are its own, and messages about either are understood.
 */

#include "daemon/session/segments.h"

#include <errno.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/mailbox.h"
#include "collector/pool.h"
#include "common/protocol.h"
#include "common/units.h"
#include "daemon/host/explain.h"
#include "daemon/base/log.h"
#include "daemon/session/session.h"

/* Until the collector asks for more, which it does at once; until that is answered the pool has
 * room. */
#define FIRST_GRANT_BYTES (UINT64_C(8) << 20)
#define RETRY_USEC        USEC_PER_SEC
#define TIMER_SLACK_USEC  USEC_PER_MSEC
#define MAX_TAKEN_NUMBERS 1000u /* by files of somebody else, in a row */

static const char *const reason_names[] = {
    [SEGMENT_IS_WRITTEN] = "",   [SEGMENT_SIZE] = "size", [SEGMENT_TIME] = "time",
    [SEGMENT_ROTATE] = "rotate", [SEGMENT_END] = "end",
};

const char *segment_reason_name(enum segment_reason reason)
{
    return reason_names[reason];
}

/* It may be longer by a round that was longer than those before it. */
uint64_t segments_aim_bytes(const struct segments *segments)
{
    return segments->size_bytes ? segments->size_bytes + UINT64_C(2) * CHUNK_BYTES : 0;
}

static bool is_empty(const struct sink *sink)
{
    struct sink_totals totals;

    sink_read_totals(sink, &totals);
    return totals.windows == 0;
}

/* --- The next one. --- */

void segments_discard_next(struct session *session)
{
    struct segments *segments = session->segments;

    if (segments->next || segments->next_output.fd >= 0)
        output_discard_segment(session->context->state_dir_fd, segments->next_name);
    segments->next = sink_free(segments->next);
    output_done(&segments->next_output);
}

static int create_next(struct session *session, struct failure *failure)
{
    const struct session_context *context = session->context;
    struct segments *segments = session->segments;
    struct output *output = &segments->next_output;
    uint64_t aim_bytes = segments_aim_bytes(segments);

    output_init(output, session->output.reserve_bytes, UINT64_MAX);
    output->aim_bytes = aim_bytes ? min_u64(aim_bytes, FIRST_GRANT_BYTES) : FIRST_GRANT_BYTES;
    output->waits = true; /* a smaller first grant need not be the last */
    return output_prepare_segment(output, context->state_dir_fd, context->state_dir,
                                  segments->next_name, failure);
}

static int prepare_next(struct session *session, struct failure *failure)
{
    struct segments *segments = session->segments;
    uint64_t aim_bytes = segments_aim_bytes(segments);
    int r;

    segment_name(session, segments->number + 1, segments->next_name);
    segments_make_room(session, min_u64(aim_bytes, FIRST_GRANT_BYTES));
    r = create_next(session, failure);
    while (r == -ENOSPC && session->space.on_reserve == ON_RESERVE_ROTATE &&
           segments_delete_oldest(session)) {
        output_done(&segments->next_output);
        r = create_next(session, failure);
    }
    segments->next_output.aim_bytes = aim_bytes;
    if (r >= 0) {
        r = session_make_sink(session, &segments->next_output, NULL, &segments->next);
        if (r < 0)
            (void)failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    }
    if (r < 0)
        segments_discard_next(session);
    return r;
}

static void advance(struct session *session);

static int handle_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct session *session = userdata;

    (void)source;
    (void)usec;
    session->segments->retry_source = sd_event_source_unref(session->segments->retry_source);
    advance(session);
    return 0;
}

/* Nothing is lost by it: the one that is being written goes on. */
static void retry_later(struct session *session, const struct failure *failure)
{
    struct segments *segments = session->segments;

    if (!segments->is_failure_told)
        log_line(LOG_WARNING, session->name,
                 "Segment %u becomes longer than was asked for: the next one cannot be made. %s",
                 segments->number, failure->text);
    segments->is_failure_told = true;
    if (!segments->retry_source) /* without a timer: at the next occasion */
        (void)sd_event_add_time_relative(session->context->event, &segments->retry_source,
                                         CLOCK_MONOTONIC, RETRY_USEC, TIMER_SLACK_USEC,
                                         handle_retry, session);
}

/* --- Handing over. --- */

static void offer(struct session *session)
{
    struct segments *segments = session->segments;
    bool now = segments->due != SEGMENT_IS_WRITTEN;

    if (segments->is_offered_now || (!now && (segments->is_offered || !segments->size_bytes)))
        return;
    segments->is_offered = true;
    segments->is_offered_now = now;
    collector_send_successor(session->context->collector, session->sink, segments->next, now);
}

/* Does what can be done now; to be called whenever something has changed. */
static void advance(struct session *session)
{
    struct segments *segments = session->segments;
    struct failure failure = {0};

    if (session->state != SESSION_RUNNING)
        return;
    if (!segments->next && prepare_next(session, &failure) < 0) {
        retry_later(session, &failure);
        return;
    }
    segments->is_failure_told = false;
    segments->retry_source = sd_event_source_disable_unref(segments->retry_source);
    if (!segments->before)
        offer(session);
}

static void restart_time(const struct session *session)
{
    const struct segments *segments = session->segments;

    if (!segments->time_source)
        return;
    /* A timer that cannot be set again only makes the segment longer. */
    (void)sd_event_source_set_time_relative(segments->time_source, segments->time_usec);
    (void)sd_event_source_set_enabled(segments->time_source, SD_EVENT_ONESHOT);
}

static int handle_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct session *session = userdata;

    (void)source;
    (void)usec;
    if (is_empty(session->sink)) {
        restart_time(session); /* a quiet host is not to fill the disk with empty files */
        return 0;
    }
    session->segments->due = SEGMENT_TIME;
    advance(session);
    return 0;
}

void segments_begin(struct session *session)
{
    struct segments *segments = session->segments;

    if (segments->time_usec &&
        sd_event_add_time_relative(session->context->event, &segments->time_source, CLOCK_BOOTTIME,
                                   segments->time_usec, TIMER_SLACK_USEC, handle_time, session) < 0)
        log_line(LOG_ERR, session->name, "No timer is left: segments do not end by time.");
    advance(session);
}

void segments_stop_timers(struct segments *segments)
{
    segments->time_source = sd_event_source_disable_unref(segments->time_source);
    segments->retry_source = sd_event_source_disable_unref(segments->retry_source);
}

/* --- When it has handed over. --- */

/* A file of that number that is not ours is left alone: the number is passed over. */
static int publish_next(struct session *session)
{
    const struct session_context *context = session->context;
    struct segments *segments = session->segments;
    unsigned int last = segments->number + MAX_TAKEN_NUMBERS;
    char name[SEGMENT_NAME_MAX];
    int r;

    do {
        segment_name(session, segments->number, name);
        r = output_publish_segment(&session->output, context->state_dir_fd, context->state_dir,
                                   segments->next_name, name);
    } while (r == -EEXIST && ++segments->number <= last);
    return r;
}

static void name_next(struct session *session)
{
    const struct segments *segments = session->segments;
    int r;

    segments_make_place(session);
    r = publish_next(session);
    if (r >= 0)
        return;
    (void)snprintf(session->message, sizeof(session->message),
                   "The segment that is being written cannot get its name: %s. It is in %s as "
                   ".%s.xentrace.next, and complete.",
                   explain_write(r), session->context->state_dir, segments->next_name);
    session_end_output(session, END_OUTPUT_ERROR);
}

/* The session's sink becomes the one before, and the next one the session's. */
static void shift(struct session *session)
{
    struct segments *segments = session->segments;

    segments->before = session->sink;
    segments->before_output = session->output;
    segments->before_number = segments->number;
    segments->before_reason = segments->due ? segments->due : SEGMENT_SIZE;
    session->sink = segments->next;
    session->output = segments->next_output;
    segments->next = NULL;
    output_init(&segments->next_output, 0, UINT64_MAX);
    segments->due = SEGMENT_IS_WRITTEN;
    segments->is_offered = false;
    segments->is_offered_now = false;
}

/* Nothing was recorded into the one before: the new one gets its number. */
static void drop_empty(struct session *session)
{
    const struct session_context *context = session->context;
    struct segments *segments = session->segments;
    unsigned int number = segments->before_number;

    (void)segments_remove_file(session, number); /* then the number is passed over */
    segments->before_number = 0;
    context->segment_finished(context->userdata, session, number, NULL);
}

void segments_handle_succeeded(struct session *session)
{
    struct segments *segments = session->segments;

    space_stop_waiting(session); /* it was for the one before, which has all it needs */
    shift(session);
    if (is_empty(segments->before))
        drop_empty(session);
    else
        segments->number++;
    session_handle_handover(session);
    name_next(session);
    restart_time(session);
    advance(session);
}

/* --- The one before. --- */

static void finish_before(struct session *session)
{
    struct segments *segments = session->segments;
    struct sink *sink = segments->before;
    struct sink_totals totals;
    int r = 0;

    sink_read_totals(sink, &totals);
    if (segments->before_number)
        r = output_finish(&segments->before_output, totals.output_bytes);
    segments_enter_past(segments, sink);
    segments->before = NULL;
    if (r < 0) {
        session_explain_finish(session, &segments->before_output, r);
        session_end_output(session, END_OUTPUT_ERROR);
    }
    output_done(&segments->before_output);
    if (segments->before_number)
        segments_enter_file(session, sink, segments->before_number, segments->before_reason);
    sink_free(sink);
    advance(session);
    session_continue_end(session);
}

void segments_handle_message(struct session *session, const struct message *message)
{
    const struct output *output = &session->segments->before_output;

    if (message->type == MESSAGE_CLOSED)
        finish_before(session);
    else if (message->type == MESSAGE_FAILED)
        session_handle_failure(session, output, (int)message->value);
    /* Else it asks for what it does not need any more. */
}

void segments_finish_last(struct session *session)
{
    const struct session_context *context = session->context;
    struct segments *segments = session->segments;
    const struct segment_file *newest;
    char *path;

    segments->is_over = true;
    if (!is_empty(session->sink) || segments->nr_files == 0) {
        segments_enter_file(session, session->sink, segments->number, SEGMENT_END);
        return;
    }
    /* It ended right behind a segment: there is no other. */
    (void)segments_remove_file(session, segments->number);
    newest = segments->files[segments->nr_files - 1];
    if (asprintf(&path, "%s/%s.%05u.xentrace", context->state_dir, session->name,
                 newest->segment.number) >= 0) {
        free_charp(&session->output.path);
        session->output.path = path;
    }
    context->segment_finished(context->userdata, session, segments->number, NULL);
}

/* --- On request. --- */

int segments_rotate(struct session *session, unsigned int *ret_number, struct failure *failure)
{
    struct segments *segments = session->segments;
    int r;

    if (!segments)
        return failure_set(failure, -EINVAL, ERROR_NOT_SEGMENTED,
                           "'%s' is not recorded in segments: there is none to close. Segments "
                           "are what `xentracectl start --segment-size` makes.",
                           session->name);
    if (session->state != SESSION_RUNNING)
        return failure_set(failure, -EINVAL, ERROR_NO_SESSION,
                           "'%s' is not being recorded (any more): there is no segment to close. "
                           "`xentracectl list` shows what is.",
                           session->name);
    if (session->space.is_paused)
        return failure_set(failure, -ENOSPC, ERROR_NO_SPACE,
                           "'%s' waits for space on the disk, and its segment cannot be closed "
                           "before there is some. Free some space.",
                           session->name);
    if (!segments->next) {
        r = prepare_next(session, failure);
        if (r < 0)
            return r;
    }
    segments->due = SEGMENT_ROTATE;
    *ret_number = segments->number;
    advance(session);
    return 0;
}
