// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The life of a session as one state machine: session_set_state() is the only writer of `state`.
 * Events that move it: requests (session_new, session_stop, session_abort), the collector's
 * messages, its storage (session_handle_*), its sidecars, and timers.
 *
 * The order at its end keeps the ledger exact: mute (no event passes, pending losses stay pending),
 * drain, let Xen report the losses that it still holds back (a CPU that lost records reports it
 * with its next record only), disable, drain once more, write, cut the file, close.
 */

#include "daemon/session/session.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <systemd/sd-event.h>

#include <xen/trace.h>

#include "collector/account.h"
#include "collector/collector.h"
#include "collector/drain.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/clock-history.h"
#include "daemon/base/log.h"
#include "daemon/base/log-id.h"
#include "daemon/host/domain-names.h"
#include "daemon/host/explain.h"
#include "daemon/output/output.h"
#include "daemon/session/file-storage.h"
#include "daemon/session/loss-report.h"
#include "daemon/session/persist.h"
#include "daemon/session/ring-storage.h"
#include "daemon/session/segments.h"
#include "daemon/session/session-state.h"
#include "daemon/session/silence.h"
#include "daemon/session/space.h"
#include "daemon/session/storage.h"

#define TICK_USEC            (5 * USEC_PER_SEC)
#define BUSY_TICK_USEC       USEC_PER_SEC /* while the disk has something to answer */
#define RING_TICK_USEC       (60 * USEC_PER_SEC)
#define TICK_SLACK_USEC      USEC_PER_SEC
#define OTHER_CLOCK_TICKS    (UINT64_C(1) << 23) /* 3 ms, about */
#define STREAM_PATIENCE_USEC (5 * USEC_PER_SEC)  /* with a reader, since it read last */

static const char *const state_names[] = {
    [SESSION_OPENING] = "opening",     [SESSION_STARTING] = "starting",
    [SESSION_RUNNING] = "running",     [SESSION_DRAINING] = "draining",
    [SESSION_SETTLING] = "settling",   [SESSION_CLOSING] = "closing",
    [SESSION_FINISHING] = "finishing", [SESSION_SEALING] = "sealing",
    [SESSION_ENDED] = "ended",
};

const char *session_state_name(const struct session *session, bool as_sealed)
{
    switch (session->state) {
    case SESSION_OPENING:
    case SESSION_STARTING:
        return "starting";
    case SESSION_RUNNING:
        return "running";
    case SESSION_DRAINING:
    case SESSION_SETTLING:
    case SESSION_CLOSING:
    case SESSION_FINISHING:
        return "stopping";
    case SESSION_SEALING:
        return as_sealed ? "ended" : "stopping";
    case SESSION_ENDED:
        return "ended";
    }
    return "ended";
}

static uint64_t clock_now_usec(clockid_t clock)
{
    struct timespec ts;

    (void)clock_gettime(clock, &ts); /* cannot fail for these clocks */
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC;
}

static uint64_t monotonic_usec(void)
{
    return clock_now_usec(CLOCK_MONOTONIC);
}

static void session_set_state(struct session *session, enum session_state state)
{
    assert(state > session->state);
    log_debug("%s: %s, was %s.", session->name, state_names[state], state_names[session->state]);
    session->state = state;
    if (state == SESSION_RUNNING || state == SESSION_ENDED)
        session->context->changed(session->context->userdata, session);
}

static void session_stop_timers(struct session *session)
{
    session->start_source = sd_event_source_disable_unref(session->start_source);
    session->time_source = sd_event_source_disable_unref(session->time_source);
    session->tick_source = sd_event_source_disable_unref(session->tick_source);
    session->patience_source = sd_event_source_disable_unref(session->patience_source);
}

/* It has ended, and holds nothing any more: the manager may free it now. */
static void session_release(struct session *session)
{
    if (session->is_released)
        return;
    session->is_released = true;
    session_stop_timers(session);
    if (session->storage->sink)
        sink_release_writer(session->storage->sink); /* the rest is needed as long as it is shown */
    if (session->storage->output)
        output_close(session->storage->output);
    if (session->worker)
        worker_close(session->worker, &session->sidecar.fd);
    session->worker = worker_free(session->worker);
    session->context->released(session->context->userdata, session); /* may free it */
}

/* --- The disk that does not answer. --- */

uint64_t session_waiting_since_usec(const struct session *session)
{
    const struct storage *storage = session->storage;
    uint64_t since_usec = session->worker ? worker_busy_since_usec(session->worker) : 0;
    struct sink_totals totals;

    if (session->is_released)
        return 0;
    if (since_usec && storage->kind->progress_usec)
        since_usec = max_u64(since_usec, storage->kind->progress_usec(storage));
    if (storage->output && !storage->output->figures.is_stream) {
        session_read_totals(session, &totals);
        if (totals.writing_since_usec && (!since_usec || totals.writing_since_usec < since_usec))
            since_usec = totals.writing_since_usec;
    }
    if (!since_usec || monotonic_usec() < since_usec + SESSION_PATIENCE_USEC)
        return 0;
    return since_usec;
}

static void session_log_waiting(struct session *session)
{
    uint64_t since_usec = session_waiting_since_usec(session);
    const struct output *output = session->storage->output;
    struct log_about about = {.id = LOG_ID_OUTPUT_ANSWERS,
                              .session = session->name,
                              .file = output ? output->figures.path : NULL};
    char since[UNITS_TEXT_MAX];

    if (!since_usec && session->is_wait_logged)
        log_event(LOG_NOTICE, &about, "The disk of %s answers again.",
                  session->storage->output->figures.path);
    if (since_usec && session->state == SESSION_ENDED)
        return; /* whoever aborted it knows */
    about.id = LOG_ID_OUTPUT_WAITING;
    if (since_usec && !session->is_wait_logged)
        log_event(LOG_WARNING, &about,
                  "%s has been waiting for the disk since %s. Records are kept in memory; when it "
                  "is full, they are dropped and counted. To end the capture without the disk: "
                  "xentracectl stop --abort %s",
                  session->storage->output && session->storage->output->figures.path
                      ? session->storage->output->figures.path
                      : "The output",
                  clock_format_usec_ago(since, monotonic_usec() - since_usec), session->name);
    session->is_wait_logged = since_usec;
}

/* --- Sidecars. --- */

static void session_handle_sealed(struct session *session);

/* False: the session was freed meanwhile, and goes with its last answer. */
static bool session_take_answer(struct session *session)
{
    session->nr_sidecars--;
    if (!session->is_freed)
        return true;
    if (session->nr_sidecars == 0)
        free(session);
    return false;
}

/* The capture is complete without its sidecar: one that cannot be written is logged, no more. */
static void session_handle_sidecar(void *userdata, int error)
{
    struct session *session = userdata;

    if (!session_take_answer(session))
        return;
    if (error < 0)
        log_line(LOG_ERR, session->name,
                 "Cannot update the sidecar %s: %s. The capture itself is complete.",
                 session->sidecar.path, strerror(-error));
    session_handle_sealed(session);
}

static void session_send_sidecar(struct session *session)
{
    const struct session_context *context = session->context;

    if (!session->sidecar.path)
        return;
    session->nr_sidecars++;
    session->is_sidecar_due = false;
    session->told_tsc_offset = tsc_offset();
    session->told_clock = clock_history_version(context->clock);
    if (sidecar_write(&session->sidecar, session->worker, context->describe_session(session),
                      session->is_sealed, session_handle_sidecar, session) >= 0)
        return;
    session->nr_sidecars--;
    log_line(LOG_ERR, session->name, "Out of memory: the sidecar %s is not up to date.",
             session->sidecar.path);
}

void session_update_sidecar(struct session *session)
{
    if (session->nr_sidecars > 0 || session->state > SESSION_CLOSING)
        session->is_sidecar_due = true; /* the next one has it all */
    else
        session_send_sidecar(session);
}

/* --- Starting. --- */

/* The requester receives the failure now, independent of later events. */
static void session_fail_start(struct session *session)
{
    session_stop_timers(session);
    session->reason = END_OUTPUT_ERROR;
    session->ended = clock_pair_now();
    session_set_state(session, SESSION_ENDED);
}

/* It failed while it was opened: takes back what there is. */
static void session_undo_start(struct session *session)
{
    if (session->state != SESSION_ENDED)
        session_fail_start(session);
    session->storage->kind->finish(session->storage); /* session_handle_finished() follows */
}

static int session_handle_start_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct session *session = userdata;

    (void)source, (void)usec;
    (void)failure_set(
        &session->start_failure, -ETIMEDOUT, ERROR_WAITING,
        "The disk has not answered for 2 s: '%s' was not started, and records nothing. Its files "
        "are removed when the disk answers. Check the disk, or choose another file with --output.",
        session->name);
    session_fail_start(session);
    return 0;
}

void session_unlimit_start(struct session *session)
{
    session->start_source = sd_event_source_disable_unref(session->start_source);
}

void session_limit_start(struct session *session)
{
    int r;

    if (session->state != SESSION_OPENING)
        return; /* it took too long, and has failed */
    r = sd_event_add_time_relative(session->context->event, &session->start_source, CLOCK_MONOTONIC,
                                   SESSION_PATIENCE_USEC, USEC_PER_MSEC, session_handle_start_time,
                                   session);
    if (r < 0) /* then it waits for as long as the disk does */
        log_line(LOG_WARNING, session->name, "Cannot set a timer: %s.", strerror(-r));
}

/* A CPU without a buffer makes no records: Xen gave it none, as it came online later. */
static void session_note_missing(struct session *session)
{
    const struct drain *drain = collector_drain(session->context->collector);
    bool is_all = strcmp(session->selection.cpus_spec, "all") == 0;

    for (unsigned int cpu = 0; cpu < session->selection.nr_cpus && !is_all; cpu++) {
        struct drain_cpu state;

        if (!cpu_set_has(&session->selection.cpus, cpu))
            continue;
        drain_read_cpu(drain, cpu, &state);
        if (state.has_buffer)
            continue;
        cpu_set_add(&session->missing, cpu);
        log_line(LOG_WARNING, session->name,
                 "CPU %u has no trace buffer and is not recorded: it was offline when the buffers "
                 "were allocated.",
                 cpu);
    }
}

/* The output is open: Xen's buffers and the sink. */
static int session_make_data_plane(struct session *session, struct failure *failure)
{
    const struct session_context *context = session->context;
    int r;

    r = tracing_prepare(context->tracing, session->settings.buffer_pages,
                        context->default_buffer_pages, failure);
    if (r < 0)
        return r;
    r = session->storage->kind->make_sink(session->storage, session->watch, failure);
    if (r < 0)
        return r;
    session_note_missing(session);
    session->use = (struct tracing_use){
        .event_mask = event_set_xen_mask(&session->selection.events),
        .cpus = session->selection.cpus,
        .enable = !session->settings.start_disabled,
    };
    domain_names_refresh(context->names);
    domains_update(&session->domains, context->names, session->started.realtime_ns);
    return 0;
}

static void session_attach(struct session *session)
{
    enum end_reason stop_reason = session->stop_reason;

    session->start_source = sd_event_source_disable_unref(session->start_source);
    session_set_state(session, SESSION_STARTING);
    session->storage->is_sink_closed = false;
    collector_send(session->context->collector, MESSAGE_ATTACH, session->storage->sink, false, 0);
    if (stop_reason != END_NONE)
        session_stop(session, stop_reason);
}

/* Without its first sidecar a capture does not start: nobody could read it later. */
static void session_handle_first_sidecar(void *userdata, int error)
{
    struct session *session = userdata;

    if (!session_take_answer(session))
        return;
    session->sidecar.is_ours = error >= 0;
    if (error < 0 && session->state == SESSION_OPENING)
        (void)failure_set(&session->start_failure, error, ERROR_OUTPUT, "Cannot write %s: %s.",
                          session->sidecar.path, strerror(-error));
    if (error < 0 || session->state != SESSION_OPENING)
        session_undo_start(session);
    else
        session_attach(session);
}

static int session_send_first_sidecar(struct session *session, struct failure *failure)
{
    int r;

    if (!session->sidecar.path) {
        session_attach(session);
        return 0;
    }
    session->nr_sidecars++;
    r = sidecar_write(&session->sidecar, session->worker,
                      session->context->describe_session(session), false,
                      session_handle_first_sidecar, session);
    if (r >= 0)
        return 0;
    session->nr_sidecars--;
    return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
}

/*
 * Its name was taken by a file, and the worker has found another one. Also of a start that took too
 * long: the sidecar of the new name is taken back then. The one of the old name belongs to the
 * capture that has it.
 */
static int session_rename(struct session *session, const char *name, struct failure *failure)
{
    const struct session_context *context = session->context;
    int r;

    if (session->state == SESSION_OPENING)
        (void)snprintf(session->name, sizeof(session->name), "%s", name);
    r = sidecar_name(&session->sidecar, context->state_dir_fd, context->state_dir, name);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    return 0;
}

/* FAILURE may be set on success, too: by attempts before the one that succeeded. */
static int session_continue_start(struct session *session, const char *name,
                                  struct failure *failure)
{
    int r;

    if (name && strcmp(name, session->name) != 0) {
        r = session_rename(session, name, failure);
        if (r < 0)
            return r;
    }
    if (session->state != SESSION_OPENING)
        return -ETIMEDOUT; /* the one who asked for it knows */
    r = session_make_data_plane(session, failure);
    if (r < 0)
        return r;
    return session_send_first_sidecar(session, failure);
}

void session_note_reserve(struct session *session, const struct output *output)
{
    if (session->settings.reserve_bytes == DISK_RESERVE_AUTO)
        session->settings.reserve_bytes = output->figures.reserve_bytes;
}

void session_handle_opened(struct session *session, const char *name, int error,
                           const struct failure *failure)
{
    struct failure own = {0};

    if (error >= 0) {
        session_note_reserve(session, session->storage->output);
        error = session_continue_start(session, name, &own);
        failure = &own;
    }
    if (error >= 0)
        return;
    if (session->state == SESSION_OPENING)
        session->start_failure = *failure;
    session_undo_start(session);
}

static int session_start_worker(struct session *session, const struct session_options *options,
                                struct failure *failure)
{
    const struct session_context *context = session->context;
    int r;

    if (options->is_recorder)
        return 0;
    r = worker_new(context->workers, session->name, &session->worker);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot start a thread: %s.", strerror(-r));
    if (options->has_output)
        return sidecar_adopt(&session->sidecar, options->sidecar_fd, options->output_path, failure);
    r = sidecar_name(&session->sidecar, context->state_dir_fd, context->state_dir, session->name);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    return 0;
}

/* The storage that OPTIONS ask for; nothing is touched yet. */
static int session_make_storage(struct session *session, const struct session_options *options,
                                struct failure *failure)
{
    bool is_segmented;
    int r;

    r = segments_check_options(options, &is_segmented, failure);
    if (r < 0)
        return r;
    if (is_segmented)
        return segments_new(session, options, &session->storage, failure);
    if (options->memory_bytes)
        return ring_storage_new(session, options, &session->storage, failure);
    return file_storage_new(session, options, &session->storage, failure);
}

static int session_open(struct session *session, const struct session_options *options,
                        struct failure *failure)
{
    int r;

    r = session_take_options(session, options, failure);
    if (r < 0)
        return r;
    r = session_start_worker(session, options, failure);
    if (r < 0)
        return r;
    r = session_make_storage(session, options, failure);
    if (r < 0)
        return r;
    if (options->persist) {
        r = persist_map_account(session, !options->resume, failure);
        if (r < 0)
            return r;
    }
    session->continued = options->resume ? options->resume->continued + 1 : 0;
    session->started = options->since ? *options->since : clock_pair_now();
    session->is_resumed = options->since;
    r = session->storage->kind->open(session->storage, options, failure);
    if (r < 0)
        return r;
    if (r > 0) {
        session->sidecar.is_ours = options->resume; /* an earlier daemon wrote it for this one */
        r = session_make_data_plane(session, failure);
        if (r < 0)
            return r;
        if (session->is_resumed)
            loss_report_begin(session);
        session_attach(session);
        return 0;
    }
    if (!options->is_recorder) /* it waits for memory, not for a disk */
        session_limit_start(session);
    return 0;
}

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
    sidecar_init(&session->sidecar);
    (void)snprintf(session->name, sizeof(session->name), "%s", name);
    r = session_open(session, options, failure);
    if (r < 0) {
        session_free(session);
        return r;
    }
    *ret_session = session;
    return 0;
}

struct session *session_free(struct session *session)
{
    if (!session)
        return NULL;
    session_stop_timers(session);
    if (session->storage)
        session->storage->kind->free(session->storage);
    sidecar_done(&session->sidecar, session->worker);
    worker_free(session->worker);
    domains_done(&session->domains);
    silence_done(&session->silence);
    loss_report_done(&session->losses);
    free(session->selection.events_spec);
    free(session->selection.cpus_spec);
    account_free(session->account);
    session->is_freed = true;
    if (session->nr_sidecars == 0)
        free(session);
    return NULL;
}

/* --- Running. --- */

static int session_handle_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    (void)source, (void)usec;
    session_stop(userdata, END_TIME);
    return 0;
}

/* A buffer that was set aside since the last look is worth a line in the log. */
static void session_log_set_aside(struct session *session)
{
    const struct drain *drain = collector_drain(session->context->collector);

    for (unsigned int cpu = 0; cpu < session->selection.nr_cpus; cpu++) {
        struct drain_cpu state;
        char number[16];

        drain_read_cpu(drain, cpu, &state);
        if (!state.set_aside || cpu_set_has(&session->set_aside_logged, cpu))
            continue;
        cpu_set_add(&session->set_aside_logged, cpu);
        (void)snprintf(number, sizeof(number), "%u", cpu);
        log_event(
            LOG_ERR,
            &(struct log_about){
                .id = LOG_ID_BUFFER_SET_ASIDE, .session = session->name, .cpus = number},
            "The trace buffer of CPU %u contains impossible values and is set aside: this CPU is "
            "no longer recorded. Xen may have disabled tracing on all CPUs: see xl dmesg.",
            cpu);
    }
}

/* Whether CPUs make records, and those are fetched. */
static bool session_is_traced(const struct session *session)
{
    return tracing_state(session->context->tracing) == TRACING_ON &&
           event_set_has(&session->selection.events, TRC_SCHED_RUNSTATE_CHANGE) &&
           !session->storage->space.source; /* it is not paused */
}

/* Those silent CPUs that were not BEFORE, or the other way round. */
static void session_log_silence(const struct session *session, const struct cpu_set *before,
                                bool silent)
{
    const struct cpu_set *from = silent ? before : &session->silent;
    const struct cpu_set *to = silent ? &session->silent : before;
    _cleanup_free_ char *text = NULL;
    struct cpu_set cpus = {0};

    for (size_t i = 0; i < ARRAY_SIZE(cpus.bits); i++)
        cpus.bits[i] = to->bits[i] & ~from->bits[i];
    if (cpu_set_count(&cpus) == 0 || cpu_set_format(&cpus, &text) < 0)
        return;
    if (silent)
        log_event(
            LOG_WARNING,
            &(struct log_about){.id = LOG_ID_CPUS_SILENT, .session = session->name, .cpus = text},
            "CPUs %s are in use, but Xen has not recorded them for a minute. A CPU that was "
            "offline is not traced until the host is rebooted. If no CPU is recorded, another tool "
            "has disabled tracing, or Xen has because of a damaged buffer: see xl dmesg, and "
            "start the capture again.",
            text);
    else
        log_line(LOG_NOTICE, session->name, "CPUs %s are recorded again, or no longer in use.",
                 text);
}

static void session_look_for_silence(struct session *session)
{
    const struct session_context *context = session->context;
    struct silence *silence = &session->silence;
    struct cpu_set before = session->silent;

    if (!session_is_traced(session)) {
        silence_reset(silence);
        session->silent = (struct cpu_set){0};
        return;
    }
    if (xen_host_read_idle(context->xen, silence->idle_ns, silence->nr_cpus) < 0)
        return; /* it cannot be told */
    for (unsigned int cpu = 0; cpu < silence->nr_cpus; cpu++) {
        struct silence_sample sample = {.idle_ns = silence->idle_ns[cpu]};
        struct drain_cpu state;

        drain_read_cpu(collector_drain(context->collector), cpu, &state);
        sample.is_expected = cpu_set_has(&session->selection.cpus, cpu) && !state.set_aside &&
                             !cpu_set_has(&session->missing, cpu);
        sample.has_waiting = state.fill_percent > 0;
        sample.drained_bytes = state.drained_bytes;
        cpu_set_remove(&session->silent, cpu);
        if (silence_look(silence, cpu, &sample, monotonic_usec()))
            cpu_set_add(&session->silent, cpu);
    }
    session_log_silence(session, &before, true);
    session_log_silence(session, &before, false);
}

/* A ring may run for ever, and must not keep an idle host awake. */
static uint64_t session_tick_usec(const struct session *session)
{
    struct sink_totals totals;

    if (session->worker && worker_busy_since_usec(session->worker))
        return BUSY_TICK_USEC;
    sink_read_totals(session->storage->sink, &totals);
    if (totals.writing_since_usec)
        return BUSY_TICK_USEC;
    return session->worker && session->storage->output ? TICK_USEC : RING_TICK_USEC;
}

static void session_restart_tick(struct session *session, uint64_t usec)
{
    /* A timer that cannot be set again only costs these extras. */
    (void)sd_event_source_set_time_relative(session->tick_source, usec);
    (void)sd_event_source_set_enabled(session->tick_source, SD_EVENT_ONESHOT);
}

/* Since its last sidecar, by which the records would be dated if the daemon died. */
static bool session_has_other_clock(const struct session *session)
{
    uint64_t offset = tsc_offset(), told = session->told_tsc_offset;

    return clock_history_version(session->context->clock) != session->told_clock ||
           (offset > told ? offset - told : told - offset) > OTHER_CLOCK_TICKS;
}

/* Work that is not urgent and not on the data path: who is running, the page cache, broken buffers.
 */
static int session_handle_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct session *session = userdata;
    struct sink_totals totals;

    (void)source, (void)usec;
    session_log_waiting(session);
    if (session->state == SESSION_RUNNING) {
        domain_names_refresh(session->context->names);
        domains_update(&session->domains, session->context->names, clock_pair_now().realtime_ns);
        sink_read_totals(session->storage->sink, &totals);
        if (session->storage->output)
            output_drop_cache(session->storage->output, totals.output_bytes);
        session_log_set_aside(session);
        session_look_for_silence(session);
        if (session->is_sidecar_due || session_has_other_clock(session))
            session_update_sidecar(session);
    }
    session_restart_tick(session, session_tick_usec(session));
    return 0;
}

void session_expect_answer(struct session *session)
{
    uint64_t now_usec = monotonic_usec(), tick_usec;

    /* Only earlier, or a busy session would never come to it. */
    if (session->tick_source && !session->is_wait_logged &&
        sd_event_source_get_time(session->tick_source, &tick_usec) >= 0 &&
        tick_usec > now_usec + SESSION_PATIENCE_USEC)
        session_restart_tick(session, SESSION_PATIENCE_USEC);
}

/* The requested time continues across a restart. */
static uint64_t session_time_left_usec(const struct session *session)
{
    uint32_t khz = xen_host_info(session->context->xen)->tsc_khz;
    uint64_t passed_usec =
        session->is_resumed ? clock_usec_between(session->started, clock_pair_now(), khz) : 0;

    return session->settings.time_usec - min_u64(passed_usec, session->settings.time_usec);
}

static int session_start_timers(struct session *session)
{
    sd_event *event = session->context->event;
    int r;

    r = sd_event_add_time_relative(event, &session->tick_source, CLOCK_MONOTONIC, TICK_USEC,
                                   TICK_SLACK_USEC, session_handle_tick, session);
    if (r < 0 || !session->settings.time_usec)
        return r;
    return sd_event_add_time_relative(event, &session->time_source, CLOCK_BOOTTIME,
                                      session_time_left_usec(session), USEC_PER_MSEC,
                                      session_handle_time, session);
}

static int session_start_tracing(struct session *session, struct failure *failure)
{
    int r;

    r = session_start_timers(session);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot set a timer: %s.", strerror(-r));
    if (session->settings.is_persistent && session->storage->output) {
        r = persist_save_now(session, failure); /* before start is answered */
        if (r < 0)
            return r;
    }
    return tracing_start(session->context->tracing, &session->use, failure);
}

/* The collector takes records: now Xen may make them. */
static void session_begin_running(struct session *session)
{
    if (session->state != SESSION_STARTING || session->is_aborted)
        return; /* stopped before it began */
    if (session_start_tracing(session, &session->start_failure) < 0) {
        session_stop(session, END_XEN_ERROR);
        return;
    }
    session->told_xen = true;
    if (!session->is_resumed)
        session->started = clock_pair_now();
    if (session->time_source) /* counts from here: this turn of the event loop began earlier */
        (void)sd_event_source_set_time(session->time_source, clock_now_usec(CLOCK_BOOTTIME) +
                                                                 session_time_left_usec(session));
    session_set_state(session, SESSION_RUNNING);
    if (session->storage->output)
        session_update_sidecar(session);
    else
        session->is_sidecar_due = true; /* records wait for what the worker has to do first */
    if (session->storage->kind->begin)
        session->storage->kind->begin(session->storage);
}

/* Why the output is as long as it may be. */
static enum end_reason session_limit_reason(const struct session *session)
{
    if (!session->storage->output->figures.ran_out)
        return END_MAX_SIZE;
    return session->settings.reserve_bytes ? END_RESERVE : END_DISK_FULL;
}

/* Also while it is stopping: this is why its file ends where it does. */
void session_end_output(struct session *session, enum end_reason reason)
{
    if (session->is_aborted)
        return; /* the reason is known */
    if (session->state > SESSION_RUNNING && session->state < SESSION_ENDED)
        session->reason = reason;
    session_stop(session, reason);
}

void session_handle_failure(struct session *session, const struct output *output, int error)
{
    enum end_reason reason = end_reason_of_write(error);

    if (session->is_aborted)
        return; /* the reason is known */
    if (reason == END_OUTPUT_ERROR && output->figures.is_stream)
        (void)snprintf(
            session->message, sizeof(session->message),
            "Cannot write the output: %s. Records that were not written are counted as dropped.",
            explain_write(error));
    else if (reason == END_OUTPUT_ERROR)
        (void)snprintf(session->message, sizeof(session->message),
                       "Cannot write %s: %s. The windows written before are readable; the "
                       "remaining records are counted as dropped.",
                       output->figures.path, explain_write(error));
    session_end_output(session, reason);
}

/* --- Ending. --- */

/* Patience with a reader ends some time after it has read last. */
static int session_handle_patience(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct session *session = userdata;
    uint64_t now_usec = monotonic_usec(), end_usec;
    struct sink_totals totals;

    (void)usec;
    sink_read_totals(session->storage->sink, &totals);
    end_usec = max_u64(session->patient_since_usec, totals.progress_usec) + STREAM_PATIENCE_USEC;
    if (now_usec >= end_usec) {
        collector_send(session->context->collector, MESSAGE_ABORT, session->storage->sink, false,
                       0);
        return 0;
    }
    /* Neither can fail for a source that exists, in this process. */
    (void)sd_event_source_set_time_relative(source, end_usec - now_usec);
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

static void session_limit_patience(struct session *session)
{
    if (!session->storage->output || !session->storage->output->figures.is_stream)
        return;
    session->patient_since_usec = monotonic_usec();
    (void)sd_event_add_time_relative(session->context->event, &session->patience_source,
                                     CLOCK_MONOTONIC, STREAM_PATIENCE_USEC, USEC_PER_MSEC,
                                     session_handle_patience, session);
}

/* If Xen refuses at the end, the capture stays as it is; the log reports it. */
static void session_note_xen_error(struct session *session, enum xen_step step, int error)
{
    struct failure failure;

    if (error >= 0)
        return;
    (void)explain_xen(&failure, step, error);
    log_line(LOG_ERR, session->name, "%s", failure.text);
}

/* Removes its events and CPUs from Xen's masks. With keep_enabled the last session leaves Xen as it
 * is. */
static void session_withdraw(struct session *session)
{
    struct tracing *tracing = session->context->tracing;

    session->keeps_enabled =
        session->settings.keep_enabled && !tracing_is_used(tracing, &session->use);
    if (session->keeps_enabled)
        tracing_leave(tracing, &session->use, true);
    else
        session_note_xen_error(session, XEN_STEP_EVENT_MASK, tracing_mute(tracing, &session->use));
}

static void session_disable_tracing(struct session *session)
{
    if (session->told_xen && !session->keeps_enabled)
        session_note_xen_error(session, XEN_STEP_DISABLE, tracing_stop(session->context->tracing));
}

static void session_send_drain(const struct session *session)
{
    collector_send(session->context->collector, MESSAGE_DRAIN, session->storage->sink,
                   session->ends_tracing, 0);
}

void session_handle_handover(struct session *session)
{
    if (session->state == SESSION_DRAINING)
        session_send_drain(session);
    else if (session->state == SESSION_CLOSING && session->is_handed_over)
        collector_send(session->context->collector, MESSAGE_CLOSE, session->storage->sink, false,
                       0);
}

/* Steps common to every end of a session. */
static void session_begin_end(struct session *session, enum end_reason reason)
{
    session->reason = reason;
    session->time_source = sd_event_source_disable_unref(session->time_source);
    if (session->told_xen)
        session_withdraw(session);
    session->ended = clock_pair_now();
    domain_names_refresh(session->context->names); /* the names come while it drains */
    if (session->storage->kind->stop)
        session->storage->kind->stop(session->storage);
}

/* Nothing runs yet: what is being opened is given up. */
static void session_cancel_start(struct session *session)
{
    (void)failure_set(&session->start_failure, -ECANCELED, ERROR_SHUTTING_DOWN,
                      "'%s' was aborted before it began: nothing was recorded.", session->name);
    session_fail_start(session);
    session->reason = END_ABORT;
}

void session_stop(struct session *session, enum end_reason reason)
{
    bool waits = session->storage->space.source;

    if (session->state > SESSION_RUNNING || session->is_aborted)
        return;
    if (session->state == SESSION_OPENING) {
        if (session->stop_reason == END_NONE)
            session->stop_reason = reason; /* when it is open, or has taken too long */
        return;
    }
    space_stop_waiting(session->storage);
    session_begin_end(session, reason);
    session_limit_patience(session);
    session_set_state(session, SESSION_DRAINING);
    session->ends_tracing =
        !session->keeps_enabled && !tracing_is_used(session->context->tracing, NULL);
    session_send_drain(session);
    if (waits)
        space_extend(session->storage);
}

void session_hand_over(struct session *session)
{
    const struct session_context *context = session->context;

    if (session->state != SESSION_RUNNING || session->is_aborted) {
        session_stop(session, END_DAEMON_EXIT);
        return;
    }
    session->is_handed_over = true;
    space_stop_waiting(session->storage);
    session->reason = END_DAEMON_EXIT;
    session->time_source = sd_event_source_disable_unref(session->time_source);
    if (session->told_xen)
        tracing_leave(context->tracing, &session->use, false);
    session->keeps_enabled = true;
    session->ended = clock_pair_now();
    if (session->storage->kind->stop)
        session->storage->kind->stop(session->storage);
    session_set_state(session, SESSION_CLOSING);
    collector_send(context->collector, MESSAGE_CLOSE, session->storage->sink, false, 0);
}

static void session_begin_settling(struct session *session)
{
    const struct session_context *context = session->context;
    const struct sink *sink = session->storage->sink;

    session_set_state(session, SESSION_SETTLING);
    session_note_xen_error(session, XEN_STEP_EVENT_MASK,
                           tracing_provoke(context->tracing, sink_unsettled(sink)));
    collector_send(context->collector, MESSAGE_SETTLE, session->storage->sink, false, 0);
}

static void session_begin_closing(struct session *session)
{
    const struct session_context *context = session->context;
    bool is_last = !tracing_is_used(context->tracing, NULL);

    session->loss_unknown = *sink_unsettled(session->storage->sink);
    session_set_state(session, SESSION_CLOSING);
    session_disable_tracing(session);
    collector_send(context->collector, MESSAGE_CLOSE, session->storage->sink, is_last, 0);
}

static void session_handle_drained(struct session *session, bool any_unsettled)
{
    bool may_settle = session->told_xen && !session->keeps_enabled &&
                      tracing_state(session->context->tracing) != TRACING_OFF;

    if (session->is_aborted)
        return; /* it crossed with MESSAGE_ABORT */
    if (session->state == SESSION_DRAINING && any_unsettled && may_settle)
        session_begin_settling(session);
    else if (session->state == SESSION_DRAINING || session->state == SESSION_SETTLING)
        session_begin_closing(session);
}

void session_explain_finish(struct session *session, const struct output *output, int error)
{
    if (session->is_aborted)
        return;
    session->reason = END_OUTPUT_ERROR;
    (void)snprintf(session->message, sizeof(session->message),
                   "Cannot finish %s: %s. To check the file: xentracectl info",
                   output->figures.path, explain_write(error));
}

static void session_describe_end(struct session *session)
{
    if (!session->message[0])
        (void)snprintf(session->message, sizeof(session->message), "%s",
                       end_reason_sentence(session->reason));
}

/* Nobody reads or writes the storage any more but the session. */
static bool session_is_quiet(const struct session *session)
{
    const struct storage *storage = session->storage;

    return storage->is_sink_closed && session->nr_snapshots == 0 &&
           (!storage->kind->is_quiet || storage->kind->is_quiet(storage));
}

void session_continue_end(struct session *session)
{
    bool is_ending = session->state == SESSION_CLOSING ||
                     (session->state == SESSION_ENDED && session->is_aborted);

    if (!is_ending || session->is_finishing || !session_is_quiet(session))
        return;
    session->is_finishing = true;
    if (session->state == SESSION_CLOSING)
        session_set_state(session, SESSION_FINISHING);
    session->storage->kind->finish(session->storage); /* session_handle_finished() follows */
}

void session_handle_finished(struct session *session)
{
    if (session->start_failure.name) {
        if (session->state != SESSION_ENDED)
            session_fail_start(session);
        session_release(session);
        return;
    }
    if (session->state != SESSION_ENDED) {
        session_describe_end(session);
        domains_update(&session->domains, session->context->names, session->ended.realtime_ns);
        session_set_state(session, SESSION_SEALING);
    }
    session->is_sealed = true;
    if (session->settings.is_persistent)
        persist_end(session);            /* before the sidecars, which are waited for */
    session_note_sidecar(session, true); /* until all are under way */
    session_send_sidecar(session);
    if (session->storage->kind->seal)
        session->storage->kind->seal(session->storage);
    session_note_sidecar(session, false);
}

/* The last sidecars are written. */
static void session_handle_sealed(struct session *session)
{
    if (!session->is_sealed || session->nr_sidecars > 0)
        return;
    session_log_waiting(session); /* no tick comes any more that could report its end */
    if (session->state != SESSION_ENDED)
        session_set_state(session, SESSION_ENDED);
    session_release(session);
}

void session_note_snapshot(struct session *session, bool begins)
{
    if (begins) {
        session->nr_snapshots++;
        return;
    }
    session->nr_snapshots--;
    session_continue_end(session);
}

void session_note_sidecar(struct session *session, bool begins)
{
    if (begins) {
        session->nr_sidecars++;
        return;
    }
    session->nr_sidecars--;
    session_handle_sealed(session);
}

/* --- Aborting. --- */

static void session_end_aborted(struct session *session)
{
    char held[UNITS_TEXT_MAX];
    uint64_t held_bytes = session_held_bytes(session);

    if (session->state == SESSION_ENDED)
        return;
    (void)snprintf(
        session->message, sizeof(session->message),
        "Aborted on request. Records that were not written are counted as dropped.%s%s%s",
        held_bytes ? " The file is completed, and " : "",
        held_bytes ? size_format(held, held_bytes) : "",
        held_bytes ? " of memory is freed, when the disk answers." : "");
    session_set_state(session, SESSION_ENDED);
}

uint64_t session_held_bytes(const struct session *session)
{
    struct sink_totals totals;

    if (!session->is_aborted || session->is_released)
        return 0;
    session_read_totals(session, &totals);
    return totals.held_bytes;
}

void session_abort(struct session *session)
{
    struct storage *storage = session->storage;
    bool has_sink = session->state < SESSION_FINISHING && !storage->is_sink_closed;

    if (session->state == SESSION_ENDED || session->is_aborted)
        return;
    if (session->state == SESSION_OPENING) {
        session_cancel_start(session);
        return;
    }
    if (session->state <= SESSION_RUNNING) {
        space_stop_waiting(storage);
        session_begin_end(session, END_ABORT);
    }
    session->reason = END_ABORT;
    session->message[0] = '\0';
    session->is_aborted = true;
    /* Its worker may never come to it, and writes no state without the account. */
    if (session->settings.is_persistent && !session->is_handed_over)
        persist_remove(session->context->runtime_dir_fd, session->name);
    session_disable_tracing(session);
    if (storage->kind->abort)
        storage->kind->abort(storage);
    if (has_sink) { /* MESSAGE_ABANDONED follows, at once */
        collector_send(session->context->collector, MESSAGE_ABORT, storage->sink, true, 0);
        return;
    }
    session_end_aborted(session);
    session_continue_end(session); /* may free the session */
}

/* --- The collector's messages. --- */

bool session_owns_sink(const struct session *session, const struct sink *sink)
{
    const struct storage *storage = session->storage;

    return storage->sink == sink ||
           (storage->kind->owns_sink && storage->kind->owns_sink(storage, sink));
}

void session_read_ledger(const struct session *session, unsigned int cpu, struct ledger *ret_ledger)
{
    const struct storage *storage = session->storage;

    *ret_ledger = (struct ledger){0};
    if (storage->sink)
        sink_read_ledger(storage->sink, cpu, ret_ledger);
    if (storage->kind->add_ledger)
        storage->kind->add_ledger(storage, cpu, ret_ledger);
}

void session_read_totals(const struct session *session, struct sink_totals *ret_totals)
{
    const struct storage *storage = session->storage;

    *ret_totals = (struct sink_totals){0};
    if (storage->sink)
        sink_read_totals(storage->sink, ret_totals);
    if (storage->kind->add_totals)
        storage->kind->add_totals(storage, ret_totals);
}

/* CLOSED follows when the kernel has given back what it holds; DRAINED does not come any more. */
static void session_handle_abandoned(struct session *session)
{
    if (session->is_aborted) {
        session->loss_unknown = *sink_unsettled(session->storage->sink);
        session_end_aborted(session);
    } else if (session->state == SESSION_DRAINING || session->state == SESSION_SETTLING) {
        session_begin_closing(session);
    }
}

static void session_handle_closed(struct session *session)
{
    session->storage->is_sink_closed = true;
    session->patience_source = sd_event_source_disable_unref(session->patience_source);
    if (session->is_aborted)
        session_end_aborted(session);
    session_continue_end(session); /* may free the session */
}

void session_handle_message(struct session *session, const struct message *message)
{
    struct storage *storage = session->storage;

    if (message->sink != storage->sink || message->type == MESSAGE_SUCCEEDED) {
        storage->kind->handle_message(storage, message);
        return;
    }
    switch (message->type) {
    case MESSAGE_ATTACHED:
        session_begin_running(session);
        break;
    case MESSAGE_DRAINED:
        session_handle_drained(session, message->value > 0);
        break;
    case MESSAGE_GRANT_WANTED:
        if (!session->is_aborted)
            space_extend(storage);
        break;
    case MESSAGE_LIMIT:
        if (storage->output) /* else it holds, and is ending */
            session_end_output(session, session_limit_reason(session));
        break;
    case MESSAGE_FAILED:
        session_handle_failure(session, storage->output, (int)message->value);
        break;
    case MESSAGE_ABANDONED:
        session_handle_abandoned(session);
        break;
    case MESSAGE_CLOSED:
        session_handle_closed(session);
        break;
    case MESSAGE_SUCCEEDED:
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
    case MESSAGE_HOLD:
    case MESSAGE_QUIT:
    case MESSAGE_LOST:
    case MESSAGE_POOL_REFUSED:
    case MESSAGE_DIED:
        assert(false); /* those are not about a session */
    }
}
