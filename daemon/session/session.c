// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The life of a session as one state machine: session_set_state() is the only writer of `state`.
 * Events that move it: requests (session_new, session_stop), the collector's messages, timers.
 *
 * How it ends, so that the ledger is exact: mute (no event passes, pending losses stay pending),
 * drain, let Xen tell the losses it still holds back (a CPU that lost records tells it with its
 * next record only), disable, drain once more, write, cut the file, close.
 */

#include "daemon/session/session.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/drain.h"
#include "collector/ring.h"
#include "collector/sink.h"
#include "common/protocol.h"
#include "common/record.h"
#include "common/sidecar-path.h"
#include "common/units.h"
#include "collector/xen.h"
#include "daemon/document/document.h"
#include "daemon/host/domain-names.h"
#include "daemon/host/explain.h"
#include "daemon/base/log.h"
#include "daemon/session/segments.h"
#include "daemon/output/sidecar.h"
#include "daemon/session/snapshot.h"
#include "daemon/host/tracing.h"

#define TICK_USEC            (5 * USEC_PER_SEC)
#define RING_TICK_USEC       (60 * USEC_PER_SEC)
#define TICK_SLACK_USEC      USEC_PER_SEC
#define STREAM_PATIENCE_USEC (5 * USEC_PER_SEC) /* with a reader, once the session has ended */

const char *session_state_name(enum session_state state)
{
    switch (state) {
    case SESSION_STARTING:
        return "starting";
    case SESSION_RUNNING:
        return "running";
    case SESSION_DRAINING:
    case SESSION_SETTLING:
    case SESSION_CLOSING:
    case SESSION_WRITING:
        return "stopping";
    case SESSION_ENDED:
        return "ended";
    }
    return "ended";
}

/* The capture is complete without its sidecar: a sidecar that cannot be written is told, no more.
 */
static void update_sidecar(const struct session *session)
{
    int r;

    if (!session->sidecar_path)
        return;
    if (session->segments)
        session->segments->is_changed = false;
    r = sidecar_write(session->context->state_dir_fd, session->name, session->sidecar_fd,
                      document_of_session(session));
    if (session->segments && session->state == SESSION_ENDED)
        segments_write_last_sidecar(session);
    if (r < 0)
        log_line(LOG_ERR, session->name,
                 "The sidecar %s could not be brought up to date: %s. %s is complete without it.",
                 session->sidecar_path, strerror(-r), session->output.path);
}

static void session_set_state(struct session *session, enum session_state state)
{
    assert(state > session->state || state == SESSION_STARTING);
    session->state = state;
    if (state != SESSION_RUNNING && state != SESSION_ENDED)
        return;
    if (!session->start_failure.name)
        update_sidecar(session);
    if (state == SESSION_ENDED)
        fd_close(&session->sidecar_fd);
    session->context->changed(session->context->userdata, session);
}

static void stop_timers(struct session *session)
{
    session->time_source = sd_event_source_disable_unref(session->time_source);
    session->tick_source = sd_event_source_disable_unref(session->tick_source);
    session->abort_source = sd_event_source_disable_unref(session->abort_source);
    space_stop_waiting(session);
    if (session->segments)
        segments_stop_timers(session->segments);
}

/* --- Making. --- */

int session_new(const struct session_context *context, const char *name,
                const struct session_options *options, struct session **ret_session,
                struct failure *failure)
{
    struct session *session;
    int r;

    r = name_check(name, failure);
    if (r < 0)
        return r;
    session = calloc(1, sizeof(*session));
    if (!session)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    session->context = context;
    session->sidecar_fd = -1;
    output_init(&session->output, 0, UINT64_MAX);
    (void)snprintf(session->name, sizeof(session->name), "%s", name);

    r = session_prepare(session, options, failure);
    if (r < 0) {
        session_remove_files(session);
        session_free(session);
        return r;
    }
    session_set_state(session, SESSION_STARTING);
    collector_send(context->collector, MESSAGE_ATTACH, session->sink, false, 0);
    *ret_session = session;
    return 0;
}

struct session *session_free(struct session *session)
{
    if (!session)
        return NULL;
    stop_timers(session);
    snapshot_free(session->final);
    segments_free(session->segments);
    sink_free(session->sink);
    ring_free(session->ring);
    output_done(&session->output);
    fd_close(&session->sidecar_fd);
    domains_done(&session->domains);
    free(session->sidecar_path);
    free(session->events_spec);
    free(session->cpus_spec);
    free(session);
    return NULL;
}

/* --- Running. --- */

static int handle_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    (void)source;
    (void)usec;
    session_stop(userdata, END_TIME);
    return 0;
}

/* A buffer that was set aside since the last look is worth a line in the log. */
static void tell_set_aside(struct session *session)
{
    const struct drain *drain = collector_drain(session->context->collector);

    for (unsigned int cpu = 0; cpu < session->nr_cpus; cpu++) {
        struct drain_cpu state;

        drain_read_cpu(drain, cpu, &state);
        if (!state.set_aside || cpu_set_has(&session->set_aside_told, cpu))
            continue;
        cpu_set_add(&session->set_aside_told, cpu);
        log_line(LOG_ERR, session->name,
                 "CPU %u's trace buffer holds impossible values and is set aside: nothing of it is "
                 "recorded any more. Xen may have disabled tracing on all CPUs: see xl dmesg.",
                 cpu);
    }
}

/* A ring may run for ever, and is not to keep an idle host awake. */
static uint64_t tick_usec(const struct session *session)
{
    return session->ring ? RING_TICK_USEC : TICK_USEC;
}

/* What has no hurry and is not on the data path: who is running, the page cache, broken buffers. */
static int handle_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct session *session = userdata;
    struct sink_totals totals;

    (void)usec;
    domain_names_refresh(session->context->names);
    domains_update(&session->domains, session->context->names, clock_pair_now().realtime_ns);
    sink_read_totals(session->sink, &totals);
    if (session->output.fd >= 0)
        output_drop_cache(&session->output, totals.output_bytes);
    tell_set_aside(session);
    if (session->segments && session->segments->is_changed)
        update_sidecar(session);
    /* A timer that cannot be set again only costs these extras. */
    (void)sd_event_source_set_time_relative(source, tick_usec(session));
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

static int start_timers(struct session *session)
{
    sd_event *event = session->context->event;
    int r = 0;

    if (session->time_usec)
        r = sd_event_add_time_relative(event, &session->time_source, CLOCK_BOOTTIME,
                                       session->time_usec, USEC_PER_MSEC, handle_time, session);
    if (r >= 0)
        r = sd_event_add_time_relative(event, &session->tick_source, CLOCK_MONOTONIC,
                                       tick_usec(session), TICK_SLACK_USEC, handle_tick, session);
    return r;
}

/* The collector takes records: now Xen may make them. */
static void begin_running(struct session *session)
{
    const struct session_context *context = session->context;
    int r;

    if (session->state != SESSION_STARTING)
        return; /* stopped before it began */
    r = start_timers(session);
    if (r < 0)
        (void)failure_set(&session->start_failure, r, ERROR_NO_MEMORY, "Cannot set a timer: %s.",
                          strerror(-r));
    else
        r = tracing_start(context->tracing, &session->use, &session->start_failure);
    if (r < 0) {
        session_stop(session, END_XEN_ERROR);
        return;
    }
    session->told_xen = true;
    if (!session->restored)
        session->started = clock_pair_now();
    session_set_state(session, SESSION_RUNNING);
    if (session->segments)
        segments_begin(session);
}

/* Why the output is as long as it may be. */
static enum end_reason limit_reason(const struct session *session)
{
    if (!session->output.ran_out)
        return END_MAX_SIZE;
    return session->output.reserve_bytes ? END_RESERVE : END_DISK_FULL;
}

/* Also while it is stopping: this is why its file ends where it does. */
void session_end_output(struct session *session, enum end_reason reason)
{
    if (session->state > SESSION_RUNNING)
        session->reason = reason;
    session_stop(session, reason);
}

void session_handle_failure(struct session *session, const struct output *output, int error)
{
    enum end_reason reason = end_reason_of_write(error);

    if (reason == END_OUTPUT_ERROR && output->is_stream)
        (void)snprintf(
            session->message, sizeof(session->message),
            "The output could not be written: %s. What did not get through is counted as "
            "dropped.",
            explain_write(error));
    else if (reason == END_OUTPUT_ERROR)
        (void)snprintf(session->message, sizeof(session->message),
                       "%s could not be written: %s. It holds what was written before, in whole "
                       "windows; the rest is counted as dropped.",
                       output->path, explain_write(error));
    session_end_output(session, reason);
}

/* --- Ending. --- */

static int handle_abort(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct session *session = userdata;

    (void)source;
    (void)usec;
    collector_send(session->context->collector, MESSAGE_ABORT, session->sink, false, 0);
    return 0;
}

/* Xen not doing what it is told at the end leaves the capture as it is; it is told and logged. */
static void note_xen_error(struct session *session, enum xen_step step, int error)
{
    struct failure failure;

    if (error >= 0)
        return;
    (void)explain_xen(&failure, step, error);
    log_line(LOG_ERR, session->name, "%s", failure.text);
}

/* Takes its wishes back from Xen. With keep_enabled the last session leaves Xen as it is. */
static void withdraw(struct session *session)
{
    struct tracing *tracing = session->context->tracing;

    session->keep_enabled = session->keep_enabled && !tracing_is_used(tracing, &session->use);
    if (session->keep_enabled)
        tracing_leave(tracing, &session->use);
    else
        note_xen_error(session, XEN_STEP_EVENT_MASK, tracing_mute(tracing, &session->use));
}

static void begin_draining(const struct session *session)
{
    collector_send(session->context->collector, MESSAGE_DRAIN, session->sink, session->ends_tracing,
                   0);
}

void session_handle_handover(struct session *session)
{
    if (session->state == SESSION_DRAINING)
        begin_draining(session);
}

void session_stop(struct session *session, enum end_reason reason)
{
    const struct session_context *context = session->context;
    bool waits = session->space.source;

    if (session->state > SESSION_RUNNING)
        return;
    session->reason = reason;
    stop_timers(session);
    if (session->told_xen)
        withdraw(session);
    session->ended = clock_pair_now();
    domain_names_refresh(context->names); /* the names come while it drains */
    if (session->output.is_stream && !session->ring)
        (void)sd_event_add_time_relative(context->event, &session->abort_source, CLOCK_MONOTONIC,
                                         STREAM_PATIENCE_USEC, USEC_PER_MSEC, handle_abort,
                                         session);
    session_set_state(session, SESSION_DRAINING);
    session->ends_tracing = !session->keep_enabled && !tracing_is_used(context->tracing, NULL);
    begin_draining(session);
    if (waits)
        space_extend(session);
}

static void begin_settling(struct session *session)
{
    const struct session_context *context = session->context;

    session_set_state(session, SESSION_SETTLING);
    note_xen_error(session, XEN_STEP_EVENT_MASK,
                   tracing_provoke(context->tracing, sink_unsettled(session->sink)));
    collector_send(context->collector, MESSAGE_SETTLE, session->sink, false, 0);
}

static void begin_closing(struct session *session)
{
    const struct session_context *context = session->context;
    bool last = !tracing_is_used(context->tracing, NULL);

    session->loss_unknown = *sink_unsettled(session->sink);
    session_set_state(session, SESSION_CLOSING);
    if (session->told_xen && !session->keep_enabled)
        note_xen_error(session, XEN_STEP_DISABLE, tracing_stop(context->tracing));
    collector_send(context->collector, MESSAGE_CLOSE, session->sink, last, 0);
}

static void handle_drained(struct session *session, bool any_unsettled)
{
    bool may_settle = session->told_xen && !session->keep_enabled &&
                      tracing_state(session->context->tracing) != TRACING_OFF;

    if (session->state == SESSION_DRAINING && any_unsettled && may_settle)
        begin_settling(session);
    else
        begin_closing(session);
}

static void describe_end(struct session *session)
{
    if (!session->message[0])
        (void)snprintf(session->message, sizeof(session->message), "%s",
                       end_reason_sentence(session->reason));
}

void session_explain_finish(struct session *session, const struct output *output, int error)
{
    (void)snprintf(session->message, sizeof(session->message),
                   "%s could not be finished: %s. Check it with `xentracectl info`.", output->path,
                   explain_write(error));
}

static void finish_file(struct session *session)
{
    struct sink_totals totals;
    int r;

    sink_read_totals(session->sink, &totals);
    r = output_finish(&session->output, totals.output_bytes);
    if (r < 0) {
        session->reason = END_OUTPUT_ERROR;
        session_explain_finish(session, &session->output, r);
    }
    if (session->segments)
        segments_finish_last(session);
}

static void end(struct session *session)
{
    stop_timers(session);
    if (session->segments)
        segments_discard_next(session);
    if (session->start_failure.name) {
        session_remove_files(session);
    } else {
        describe_end(session);
        domains_update(&session->domains, session->context->names, session->ended.realtime_ns);
        fd_close(&session->output.fd);
    }
    if (session->ring) {
        /* Its figures stay; its memory is wanted elsewhere. */
        sink_release_ring(session->sink);
        session->ring = ring_free(session->ring);
    }
    session_set_state(session, SESSION_ENDED);
}

/* The ring is in the file, or as much of it as got there. An empty one is no failure. */
static void handle_final(void *userdata, struct snapshot *snapshot)
{
    struct session *session = userdata;

    session->final = NULL;
    session->output = snapshot->output;
    output_init(&snapshot->output, 0, UINT64_MAX);
    session->final_bytes = snapshot->plan.bytes;
    if (snapshot->failure.name && strcmp(snapshot->failure.name, ERROR_EMPTY) != 0) {
        session->reason = END_OUTPUT_ERROR;
        (void)snprintf(session->message, sizeof(session->message), "%s", snapshot->failure.text);
    }
    snapshot_free(snapshot);
    end(session);
}

static void begin_writing(struct session *session)
{
    struct snapshot_options options = {
        .name = session->name,
        .cause = SNAPSHOT_END,
        .output = &session->output,
    };
    struct failure failure = {0};

    session_set_state(session, SESSION_WRITING);
    if (snapshot_new(session, &options, handle_final, session, &session->final, &failure) >= 0)
        return;
    session->reason = END_OUTPUT_ERROR;
    (void)snprintf(session->message, sizeof(session->message), "%s", failure.text);
    end(session);
}

/* The sink is ours again, and nobody reads its ring any more. */
static void handle_closed(struct session *session)
{
    session->is_closed = true;
    if (session->active_snapshots > 0 || (session->segments && session->segments->before))
        return;
    if (session->start_failure.name || session->is_recorder) {
        end(session);
    } else if (session->ring) {
        begin_writing(session);
    } else {
        finish_file(session);
        end(session);
    }
}

void session_note_snapshot(struct session *session, bool begins)
{
    session->active_snapshots += begins ? 1 : -1u;
    if (!begins)
        session_continue_end(session);
}

void session_continue_end(struct session *session)
{
    if (session->is_closed && session->state == SESSION_CLOSING)
        handle_closed(session);
}

/* --- The collector's messages. --- */

bool session_owns_sink(const struct session *session, const struct sink *sink)
{
    return session->sink == sink || (session->segments && session->segments->before == sink);
}

void session_read_ledger(const struct session *session, unsigned int cpu, struct ledger *ret_ledger)
{
    sink_read_ledger(session->sink, cpu, ret_ledger);
    if (session->segments)
        segments_add_ledger(session->segments, cpu, ret_ledger);
}

void session_read_totals(const struct session *session, struct sink_totals *ret_totals)
{
    sink_read_totals(session->sink, ret_totals);
    if (session->segments)
        segments_add_totals(session->segments, ret_totals);
}

void session_handle_message(struct session *session, const struct message *message)
{
    if (message->sink != session->sink) {
        segments_handle_message(session, message);
        return;
    }
    switch (message->type) {
    case MESSAGE_ATTACHED:
        begin_running(session);
        break;
    case MESSAGE_DRAINED:
        handle_drained(session, message->value > 0);
        break;
    case MESSAGE_GRANT_WANTED:
        space_extend(session);
        break;
    case MESSAGE_LIMIT:
        session_end_output(session, limit_reason(session));
        break;
    case MESSAGE_FAILED:
        session_handle_failure(session, &session->output, (int)message->value);
        break;
    case MESSAGE_ABANDONED: /* CLOSED follows; DRAINED does not come any more */
        if (session->state == SESSION_DRAINING || session->state == SESSION_SETTLING)
            begin_closing(session);
        break;
    case MESSAGE_CLOSED:
        handle_closed(session);
        break;
    case MESSAGE_SUCCEEDED:
        segments_handle_succeeded(session);
        break;
    case MESSAGE_PINNED:
    case MESSAGE_WATCHED:
    case MESSAGE_ATTACH:
    case MESSAGE_PIN:
    case MESSAGE_SUCCEED:
    case MESSAGE_DRAIN:
    case MESSAGE_SETTLE:
    case MESSAGE_CLOSE:
    case MESSAGE_GRANT:
    case MESSAGE_ABORT:
    case MESSAGE_QUIT:
    case MESSAGE_DIED:
        assert(false); /* those are not about a session */
    }
}
