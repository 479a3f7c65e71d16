// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Order of construction: VIRQ_TBUF is bound first, which proves that nobody else traces. Nothing
 * that another consumer of the buffers would notice is done before the first session.
 */

#include "daemon/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/grower.h"
#include "collector/memory.h"
#include "collector/pool.h"
#include "collector/sink.h"
#include "collector/ring.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/tracer.h"
#include "common/units.h"
#include "daemon/base/clock-history.h"
#include "daemon/base/clock-watch.h"
#include "daemon/base/worker.h"
#include "daemon/document/document.h"
#include "daemon/host/domain-names.h"
#include "daemon/host/explain.h"
#include "daemon/host/fd-store.h"
#include "daemon/base/log.h"
#include "daemon/base/log-id.h"
#include "daemon/base/priority.h"
#include "daemon/session/loss-report.h"
#include "daemon/session/persist.h"
#include "daemon/session/recorder.h"
#include "daemon/session/segments.h"
#include "daemon/output/compression.h"
#include "daemon/output/output.h"
#include "daemon/output/held-files.h"
#include "daemon/output/vacuum.h"
#include "daemon/session/ring-storage.h"
#include "daemon/session/snapshot.h"
#include "daemon/session/user-limits.h"
#include "daemon/host/systemd.h"
#include "daemon/host/tracing.h"
#include "daemon/triggers/triggers.h"

#define EVTCHN_STORE_PREFIX    "evtchn-" /* and the port */
#define BOOT_MASK_FILE         "boot-event-mask"
#define EXTEND_USEC            (30 * USEC_PER_SEC)
#define EXTEND_INTERVAL_USEC   (2 * USEC_PER_SEC)
#define POOL_MAX_DEFAULT_BYTES (UINT64_C(512) << 20)
#define BASE_BYTES             (UINT64_C(64) << 20) /* of the daemon, without pool and rings */

#define BIND_PAUSE_MSEC 20u
#define BIND_SURE_MSEC  500u  /* to wait for VIRQ_TBUF, while somebody seems to have it */
#define BIND_RETRY_SEC  5u    /* as a service, then */
#define BIND_MAX_MSEC   5000u /* ... while nobody does: seen under load were 4.5 s */

/* --- Which session is meant: by its name, or without one if there is no doubt. --- */

static struct session *manager_find_by_name(const struct manager *manager, const char *name)
{
    /* One that could not start has ended for everybody, whatever the disk still has of it. */
    for (size_t i = manager->nr_sessions; i-- > 0;)
        if (strcmp(manager->sessions[i]->name, name) == 0 &&
            !manager->sessions[i]->start_failure.name)
            return manager->sessions[i];
    return NULL;
}

static bool is_capture(const struct session *session)
{
    return !session->settings.is_recorder;
}

/* One that is being opened has no ring yet; one that is ending is no longer recorded into. */
static bool has_ring(const struct session *session)
{
    return ring_storage_of(session) && session->state > SESSION_OPENING &&
           session->state <= SESSION_RUNNING;
}

static bool has_segments(const struct session *session)
{
    return session->storage->kind == &storage_segments;
}

/* The only one that runs, of those of which IS_MEANT holds; several: FAILURE names them. */
static struct session *find_only(const struct manager *manager,
                                 bool (*is_meant)(const struct session *session), const char *verb,
                                 struct failure *failure)
{
    struct session *found = NULL;
    char names[256] = "";
    size_t length = 0, count = 0;

    for (size_t i = 0; i < manager->nr_sessions; i++) {
        struct session *session = manager->sessions[i];

        if (session->state == SESSION_ENDED || !is_meant(session))
            continue;
        found = session;
        if (count++ < 4 && length < sizeof(names))
            length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
                                       count > 1 ? ", " : "", session->name);
    }
    if (count <= 1)
        return found;
    (void)failure_set(failure, -EINVAL, ERROR_INVALID,
                      "Several captures are running: %s%s. Name one: xentracectl %s NAME", names,
                      count > 4 ? ", ..." : "", verb);
    return NULL;
}

/* A user's own capture comes first, as it was asked for: without the prefix of its name. */
static struct session *find_for(const struct manager *manager, const struct requester *who,
                                const char *name)
{
    struct failure failure = {0};
    char own[SESSION_NAME_MAX + 1];
    struct session *session = NULL;

    if (who && requester_is_user(who) && name_of_user(who->uid, name, own, &failure) >= 0)
        session = manager_find_by_name(manager, own);
    return session ? session : manager_find_by_name(manager, name);
}

struct session *manager_find_session(struct manager *manager, const struct requester *who,
                                     const char *name, struct failure *failure)
{
    struct session *session;

    if (!name[0]) {
        session = find_only(manager, is_capture, "stop", failure);
        if (!session && !failure->name)
            (void)failure_set(failure, -ENOENT, ERROR_NO_SESSION,
                              "No capture is running. To see all sessions: xentracectl list");
        return session;
    }
    session = find_for(manager, who, name);
    if (session)
        return session;
    (void)failure_set(failure, -ENOENT, ERROR_NO_SESSION,
                      "There is no capture '%s'. To list captures: xentracectl list", name);
    if (strcmp(name, RECORDER_NAME) == 0)
        manager_explain_no_ring(manager, failure);
    return NULL;
}

void manager_explain_no_ring(const struct manager *manager, struct failure *failure)
{
    bool starts = manager_find_open_recorder(manager) && !manager->stops_recorder;

    if (manager->recorder_stop.is_set && manager->config.recorder.enabled && !starts)
        (void)recorder_stop_explain(&manager->recorder_stop, failure);
}

struct session *manager_find_segmented(struct manager *manager, const struct requester *who,
                                       const char *name, struct failure *failure)
{
    struct session *session;

    if (name[0])
        return manager_find_session(manager, who, name, failure);
    session = find_only(manager, has_segments, "rotate", failure);
    if (!session && !failure->name)
        (void)failure_set(failure, -ENOENT, ERROR_NO_SESSION,
                          "No capture with segments is running. To start one: xentracectl start "
                          "--segment-size SIZE");
    return session;
}

static struct session *manager_find_recorder(const struct manager *manager)
{
    for (size_t i = 0; i < manager->nr_sessions; i++)
        if (manager->sessions[i]->settings.is_recorder &&
            manager->sessions[i]->state == SESSION_RUNNING)
            return manager->sessions[i];
    return NULL;
}

struct session *manager_find_open_recorder(const struct manager *manager)
{
    for (size_t i = 0; i < manager->nr_sessions; i++)
        if (manager->sessions[i]->settings.is_recorder &&
            manager->sessions[i]->state != SESSION_ENDED)
            return manager->sessions[i];
    return NULL;
}

struct session *manager_find_ring(struct manager *manager, const struct requester *who,
                                  const char *name, struct failure *failure)
{
    struct session *session;

    if (!name[0]) {
        session = manager_find_recorder(manager);
        if (!session)
            session = find_only(manager, has_ring, "snapshot --session", failure);
        if (session || failure->name)
            return session;
        (void)failure_set(
            failure, -ENOENT, ERROR_NO_RING,
            "No ring is running: the flight recorder is disabled (enabled= in "
            "[flight-recorder]) or could not be started (see: journalctl -u xentraced), "
            "and there is no capture with --memory.");
        manager_explain_no_ring(manager, failure);
        return NULL;
    }
    session = manager_find_session(manager, who, name, failure);
    if (session && !has_ring(session)) {
        (void)failure_set(failure, -EINVAL, ERROR_NO_RING,
                          "'%s' does not record into memory%s, so there is no ring to take a "
                          "snapshot of. To see all sessions: xentracectl list",
                          name, session->state == SESSION_OPENING ? " yet" : "");
        if (session->settings.is_recorder)
            manager_explain_no_ring(manager, failure);
        return NULL;
    }
    return session;
}

/* --- What sessions report. --- */

/* Those that run, and those that have ended but wait for their disk to give back what they hold. */
static size_t manager_count_unreleased(const struct manager *manager)
{
    size_t count = 0;

    for (size_t i = 0; i < manager->nr_sessions; i++)
        count += !manager->sessions[i]->is_released;
    return count;
}

/* Whether the event loop may end: what still runs is left to the next daemon. */
static bool manager_is_over(const struct manager *manager)
{
    bool keeps = manager->keeps_recorder && manager_find_recorder(manager); /* it may have ended */

    return !manager->asks_systemd && manager_count_unreleased(manager) == (keeps ? 1 : 0) &&
           manager->nr_snapshots == 0;
}

static void manager_remove_session(struct manager *manager, const struct session *session)
{
    const struct session *same;
    char name[SESSION_NAME_MAX + 1];
    size_t i = 0;

    (void)snprintf(name, sizeof(name), "%s", session->name);
    while (manager->sessions[i] != session)
        i++;
    session_free(manager->sessions[i]);
    manager->nr_sessions--;
    memmove(&manager->sessions[i], &manager->sessions[i + 1],
            (manager->nr_sessions - i) * sizeof(manager->sessions[0]));
    same = manager_find_by_name(manager, name);
    log_set_owner(name, same ? &same->requester : NULL);
}

/* The recorder is asked to run for as long as the daemon does. */
static bool ended_as_asked(const struct session *session)
{
    return end_reason_is_ok(session->reason) ||
           (session->settings.is_recorder && session->reason == END_DAEMON_EXIT);
}

static void log_end(const struct session *session)
{
    const struct output *output = session->storage->output;
    const struct log_about stopped = {.id = LOG_ID_RECORDER_STOPPED, .session = session->name};
    const struct log_about early = {.id = LOG_ID_SESSION_ENDED_EARLY,
                                    .session = session->name,
                                    .file = output ? output->figures.path : NULL};

    if (!ended_as_asked(session))
        log_event(LOG_WARNING, &early, "Ended. %s", session->message);
    else if (session->settings.is_recorder && session->reason == END_STOP)
        log_event(LOG_NOTICE, &stopped, "Ended. %s", session->message);
    else
        log_line(LOG_INFO, session->name, "Ended. %s", session->message);
}

static void log_change(const struct session *session)
{
    const struct log_about not_started = {.id = LOG_ID_SESSION_NOT_STARTED,
                                          .session = session->name};

    if (session->start_failure.name)
        log_event(LOG_ERR, &not_started, "Not started. %s", session->start_failure.text);
    else if (session->state == SESSION_RUNNING && ring_storage_of(session))
        log_line(LOG_INFO, session->name, "%s events %s of CPUs %s in memory.",
                 session->is_resumed ? "Continues to record" : "Recording",
                 session->selection.events_spec, session->selection.cpus_spec);
    else if (session->state == SESSION_RUNNING && !session->storage->output)
        log_line(LOG_INFO, session->name,
                 "Recording events %s of CPUs %s; its next segment follows.",
                 session->selection.events_spec, session->selection.cpus_spec);
    else if (session->state == SESSION_RUNNING)
        log_line(LOG_INFO, session->name, "Recording events %s of CPUs %s to %s.",
                 session->selection.events_spec, session->selection.cpus_spec,
                 session->storage->output->figures.path);
    else
        log_end(session);
}

/* Everything was reported to the service manager, or it does not listen. */
static void manager_exit(void *userdata)
{
    struct manager *manager = userdata;

    manager->exits = false;
    if (manager_is_over(manager))
        (void)sd_event_exit(manager->event, 0); /* cannot fail: the loop is running */
}

static void manager_hand_over(struct manager *manager);

static void manager_exit_if_over(struct manager *manager)
{
    manager_hand_over(manager);
    if (!manager->shuts_down || manager->exits || !manager_is_over(manager))
        return;
    manager->exits = true;
    systemd_flush(manager->systemd, manager_exit, manager);
}

static void manager_handle_evtchn_kept(void *userdata, bool is_kept)
{
    struct manager *manager = userdata;

    manager->keeps_evtchn = is_kept;
}

/* The event channel goes with the ring: as long as a copy of it is open, Xen binds no other. */
static void manager_handle_ring_kept(void *userdata, bool is_kept)
{
    struct manager *manager = userdata;
    struct session *recorder = manager_find_recorder(manager);
    char name[32];

    if (!recorder)
        return; /* it has ended meanwhile */
    ring_storage_of(recorder)->is_kept = is_kept;
    if (!is_kept) {
        log_line(LOG_INFO, recorder->name,
                 "The service manager does not keep the ring: its records are lost when xentraced "
                 "ends.");
        return;
    }
    if (manager->keeps_evtchn)
        return;
    (void)snprintf(name, sizeof(name), EVTCHN_STORE_PREFIX "%d", xen_host_virq_port(manager->xen));
    fd_store_keep(manager->systemd, name, xen_host_virq_fd(manager->xen),
                  manager_handle_evtchn_kept, manager);
}

static void manager_handle_stop_known(void *userdata)
{
    struct manager *manager = userdata;

    manager->stops_recorder = false;
    if (manager->recorder_stopped)
        manager->recorder_stopped(manager->userdata);
}

static void keep_recorder(struct manager *manager, struct session *session)
{
    /* First, so that a daemon that is killed in between leaves a recorder that is to run. */
    if (manager->recorder_stop.is_set)
        recorder_stop_forget(manager->systemd);
    manager->recorder_stop = (struct recorder_stop){0};
    recorder_keep(session, manager_handle_ring_kept, manager);
}

static void follow_recorder(struct manager *manager, struct session *session)
{
    bool runs = session->state == SESSION_RUNNING;

    if (runs)
        keep_recorder(manager, session);
    else
        recorder_forget(&manager->context);
    triggers_set_ring(manager->triggers, runs);
    if (!runs && manager->stops_recorder)
        systemd_flush(manager->systemd, manager_handle_stop_known, manager);
}

static void manager_handle_unit_started(void *userdata, const char *unit, int error)
{
    (void)userdata;
    if (error < 0)
        log_warning(
            "systemd did not start %s: %s. The segment is complete; start the unit by hand.", unit,
            strerror(-error));
}

/* compress@.service of segment a.00001 is compress@a.00001.service. */
static void start_segment_unit(struct manager *manager, const struct session *session,
                               unsigned int number)
{
    const char *template = manager->config.segment_unit;
    const char *at = strchr(template, '@');
    char unit[CONFIG_LIST_MAX + SEGMENT_NAME_MAX];

    if (!at)
        return;
    (void)snprintf(unit, sizeof(unit), "%.*s%s.%05u%s", (int)(at + 1 - template), template,
                   session->name, number, at + 1);
    systemd_start_unit(manager->systemd, unit, manager_handle_unit_started, manager);
}

static void manager_handle_report_started(void *userdata, const char *unit, int error)
{
    (void)userdata;
    if (error < 0)
        log_warning("systemd did not start %s: %s. The snapshot is complete, but has no report.",
                    unit, strerror(-error));
}

/* It reads the snapshot, which may take long; nobody waits for it. */
static void start_report_unit(struct manager *manager, const struct snapshot *snapshot)
{
    char unit[sizeof("xentraced-report@.service") + SESSION_NAME_MAX];

    if (!snapshot->trigger || !snapshot->trigger->config.report || snapshot->failure.name)
        return;
    (void)snprintf(unit, sizeof(unit), "xentraced-report@%s.service", snapshot->name);
    systemd_start_unit(manager->systemd, unit, manager_handle_report_started, manager);
}

/* The state that the next daemon continues if this one is killed now. */
static bool manager_may_persist(const struct session *session)
{
    return session->settings.is_persistent && session->state == SESSION_RUNNING &&
           !segments_of(session->storage)->is_holding;
}

static void handle_segment_finished(void *userdata, const struct session *session,
                                    unsigned int number, const struct segment *segment)
{
    struct manager *manager = userdata;

    vacuum_poke(manager->vacuum);
    if (manager->segment_finished)
        manager->segment_finished(manager->userdata, session, number, segment);
    if (segment) /* an empty one has no file */
        start_segment_unit(manager, session, number);
    if (manager_may_persist(session))
        persist_save(manager_find_by_name(manager, session->name));
}

static void handle_session_change(void *userdata, struct session *session)
{
    struct manager *manager = userdata;

    if (session->state == SESSION_ENDED && !session->start_failure.name)
        loss_report_finish(session);
    log_change(session);
    if (session->state == SESSION_RUNNING)
        clock_watch_start(manager->clock_watch);
    if (session->settings.is_recorder)
        follow_recorder(manager, session);
    if (session->settings.is_persistent && session->start_failure.name)
        persist_remove(manager->runtime_dir_fd, session->name); /* its worker is about to end */
    if (manager->session_changed)
        manager->session_changed(manager->userdata, session);
}

/* It holds nothing any more. One that never ran leaves nothing but its error. */
static void handle_session_released(void *userdata, struct session *session)
{
    struct manager *manager = userdata;

    if (session->start_failure.name)
        manager_remove_session(manager, session);
    manager_exit_if_over(manager);
}

/* Without its collector the daemon is no use: end, so that it is started anew. */
static void handle_collector_death(struct manager *manager, int error)
{
    int r = tracing_force_stop(manager->tracing);

    manager->has_failed = true;
    log_event(LOG_ERR, &(struct log_about){.id = LOG_ID_COLLECTOR_FAILED},
              "The collector has failed: %s. The files written so far are readable. %s%s.",
              strerror(-error), r < 0 ? "Tracing could not be disabled: " : "Tracing is disabled",
              r < 0 ? strerror(-r) : "");
    (void)sd_event_exit(manager->event, error);
}

static void manager_handle_pinned(struct manager *manager, const struct message *message)
{
    for (size_t i = 0; i < manager->nr_snapshots; i++) {
        struct snapshot *snapshot = manager->snapshots[i];

        if (snapshot->state == SNAPSHOT_PINNING && snapshot->pin == message->value &&
            snapshot->session->storage->sink == message->sink) {
            snapshot_handle_pinned(snapshot);
            return;
        }
    }
}

/* Snapshots that wait for the collector to pin the ring pin it themselves now. */
static void manager_handle_sink_closed(struct manager *manager, const struct session *session)
{
    for (size_t i = manager->nr_snapshots; i-- > 0;)
        if (manager->snapshots[i]->state < SNAPSHOT_ENDED &&
            manager->snapshots[i]->session == session)
            snapshot_handle_sink_closed(manager->snapshots[i]); /* may be the end of it */
}

static void manager_handle_session_message(struct manager *manager, const struct message *message)
{
    for (size_t i = 0; i < manager->nr_sessions; i++) {
        struct session *session = manager->sessions[i];

        if (!session_owns_sink(session, message->sink))
            continue;
        session_note_snapshot(session, true); /* so that it is there for those that follow */
        session_handle_message(session, message);
        if (message->type == MESSAGE_CLOSED)
            manager_handle_sink_closed(manager, session);
        session_note_snapshot(session, false);
        return;
    }
}

/* Of which sessions, their ledgers tell. */
static void manager_report_losses(const struct manager *manager)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    for (size_t i = 0; i < manager->nr_sessions; i++)
        loss_report_look(manager->sessions[i], (uint64_t)now.tv_sec * USEC_PER_SEC +
                                                   (uint64_t)now.tv_nsec / NSEC_PER_USEC);
}

/* Once a minute at most. */
static void manager_report_refusal(const struct manager *manager)
{
    char now[UNITS_TEXT_MAX], max[UNITS_TEXT_MAX];
    uint64_t step_bytes = POOL_STEP_BYTES;
    bool is_used =
        grower_used_bytes(manager->grower) + step_bytes > grower_budget_bytes(manager->grower);

    log_event(LOG_WARNING, &(struct log_about){.id = LOG_ID_POOL_REFUSED},
              "The pool of %s cannot grow (pool-max=%s): %s. While a disk is slow, captures may "
              "drop records.",
              size_format(now, pool_bytes(manager->pool)),
              size_format(max, manager->config.pool_bytes + grower_budget_bytes(manager->grower)),
              is_used ? "rings have borrowed the rest; set a larger pool-max= in [daemon]"
                      : "dom0 has no free memory");
}

static int handle_collector(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct manager *manager = userdata;
    struct message message;

    (void)source;
    (void)fd;
    (void)revents;
    while (collector_receive(manager->collector, &message)) {
        if (message.type == MESSAGE_DIED) {
            handle_collector_death(manager, (int)message.value);
            return 0;
        }
        if (message.type == MESSAGE_WATCHED)
            triggers_handle_watch(manager->triggers);
        else if (message.type == MESSAGE_LOST)
            manager_report_losses(manager);
        else if (message.type == MESSAGE_POOL_REFUSED)
            manager_report_refusal(manager);
        else if (message.type == MESSAGE_PINNED)
            manager_handle_pinned(manager, &message);
        else
            manager_handle_session_message(manager, &message);
    }
    continuation_check(&manager->continuation, manager->sessions, manager->nr_sessions);
    return 0;
}

/* --- Snapshots. --- */

static int refuse_shutting_down(struct failure *failure)
{
    return failure_set(failure, -ESHUTDOWN, ERROR_SHUTTING_DOWN,
                       "xentraced is stopping and accepts no new captures.");
}

/* The newest documents are kept for `status`. */
static void remember_snapshot(struct manager *manager, const struct snapshot *snapshot)
{
    struct json_object *document = document_of_snapshot_summary(snapshot);

    if (manager->nr_history == MANAGER_SNAPSHOTS_MAX)
        json_object_put(manager->history[--manager->nr_history]);
    memmove(&manager->history[1], &manager->history[0],
            manager->nr_history * sizeof(manager->history[0]));
    manager->history[0] = document;
    manager->nr_history++;
}

static void forget_snapshot(struct manager *manager, const struct snapshot *snapshot)
{
    for (size_t i = 0; i < manager->nr_snapshots; i++)
        if (manager->snapshots[i] == snapshot)
            manager->snapshots[i] = manager->snapshots[--manager->nr_snapshots];
}

static void handle_snapshot_released(void *userdata, struct snapshot *snapshot)
{
    struct manager *manager = userdata;

    user_limits_end(manager->limits, snapshot);
    forget_snapshot(manager, snapshot);
    snapshot_free(snapshot);
    vacuum_poke(manager->vacuum);
    manager_exit_if_over(manager);
}

/* Live views are for the moment. */
static void note_snapshot(struct manager *manager, const struct snapshot *snapshot)
{
    const struct session *session = snapshot->session;
    struct log_about about = {
        .id = LOG_ID_SNAPSHOT, .session = session->name, .who = &snapshot->requester};

    if (snapshot->limits.is_live)
        return;
    if (snapshot->trigger)
        about.trigger = snapshot->label; /* its name */
    if (snapshot->failure.name) {
        about.id = LOG_ID_SNAPSHOT_FAILED;
        log_event(LOG_WARNING, &about, "No snapshot (%s%s%s). %s",
                  snapshot_cause_name(snapshot->cause), snapshot->trigger ? " " : "",
                  snapshot->trigger ? snapshot->label : "", snapshot->failure.text);
    } else {
        ring_storage_of(session)->snapshots++;
        about.file = snapshot_path(snapshot);
        log_event(LOG_INFO, &about, "Snapshot %s (%s%s%s). %s", snapshot_path(snapshot),
                  snapshot_cause_name(snapshot->cause), snapshot->label[0] ? " " : "",
                  snapshot->label, snapshot->message);
        remember_snapshot(manager, snapshot);
    }
}

static void handle_snapshot_ended(void *userdata, struct snapshot *snapshot)
{
    struct manager *manager = userdata;
    struct session *session = snapshot->session;
    struct ring_storage *ring = ring_storage_of(session);

    note_snapshot(manager, snapshot);
    if (session->settings.is_recorder && ring->ring)
        recorder_note(session);
    if (manager->snapshot_ended)
        manager->snapshot_ended(manager->userdata, snapshot);
    start_report_unit(manager, snapshot);
    if (snapshot->trigger)
        triggers_snapshot_done(manager->triggers, snapshot->trigger,
                               snapshot->failure.name ? NULL : snapshot_path(snapshot),
                               snapshot->failure.text);
    snapshot->trigger = NULL; /* one that a reload has taken away is gone now */
    session_note_snapshot(session, false);
}

int manager_start_snapshot(struct manager *manager, const char *session_name,
                           const struct snapshot_options *options, struct snapshot **ret_snapshot,
                           struct failure *failure)
{
    struct snapshot_options admitted = *options;
    char name[SESSION_NAME_MAX + 1];
    struct session *session;
    int r;

    if (manager->shuts_down)
        return refuse_shutting_down(failure);
    session = manager_find_ring(manager, &options->requester, session_name, failure);
    if (!session)
        return -ENOENT;
    if (manager->nr_snapshots == MANAGER_SNAPSHOTS_MAX)
        return failure_set(failure, -EBUSY, ERROR_BUSY,
                           "%u snapshots are being written already. Wait for one of them.",
                           MANAGER_SNAPSHOTS_MAX);
    r = user_limits_admit(manager->limits, &admitted, name, failure);
    if (r < 0)
        return r;
    r = snapshot_new(session, &admitted, handle_snapshot_ended, handle_snapshot_released, manager,
                     ret_snapshot, failure);
    user_limits_begin(manager->limits, &admitted, r < 0 ? NULL : *ret_snapshot);
    if (r < 0)
        return r;
    manager->snapshots[manager->nr_snapshots++] = *ret_snapshot;
    session_note_snapshot(session, true);
    return 0;
}

/* One that every user may fire must not use up what the others need. */
static uint64_t manager_trigger_reserve(const struct manager *manager,
                                        const struct trigger *trigger)
{
    uint64_t reserve_bytes = disk_snapshot_reserve_bytes(manager->config.reserve_bytes);

    return trigger->config.condition == TRIGGER_MANUAL
               ? reserve_bytes + user_limits_keep_bytes(manager->limits)
               : reserve_bytes;
}

/*
 * An attempt of the trigger LABEL waits for its disk: another one would do the same. It has failed
 * already for the trigger, which may be gone; so it is found by the name.
 */
static int manager_check_attempt(const struct manager *manager, const char *label,
                                 struct failure *failure)
{
    for (size_t i = 0; i < manager->nr_snapshots; i++)
        if (manager->snapshots[i]->cause == SNAPSHOT_TRIGGER &&
            strcmp(manager->snapshots[i]->label, label) == 0)
            return failure_set(failure, -EBUSY, ERROR_WAITING,
                               "The disk of %s has not answered since the last attempt.",
                               manager->state_dir);
    return 0;
}

static void manager_handle_trigger(void *userdata, struct trigger *trigger, const char *label,
                                   uint64_t last_usec)
{
    struct manager *manager = userdata;
    const struct snapshot_options options = {
        .cause = SNAPSHOT_TRIGGER,
        .trigger = trigger,
        .requester = trigger->requester,
        .label = label,
        .span.last_usec = last_usec,
        .reserve_bytes = manager_trigger_reserve(manager, trigger),
        .output_fd = -1,
        .sidecar_fd = -1,
        .compress = compression_name(manager->config.recorder.compress),
    };
    struct failure failure = {0};
    struct snapshot *snapshot;

    if (manager_check_attempt(manager, label, &failure) >= 0 &&
        manager_start_snapshot(manager, RECORDER_NAME, &options, &snapshot, &failure) >= 0)
        return;
    log_event(LOG_WARNING,
              &(struct log_about){
                  .id = LOG_ID_SNAPSHOT_FAILED, .session = RECORDER_NAME, .trigger = label},
              "No snapshot (trigger %s). %s", label, failure.text);
    triggers_snapshot_done(manager->triggers, trigger, NULL, failure.text);
}

/* --- Construction. --- */

/* mkdir(2) waits where the file system is frozen, also if the directory is there: open it first. */
static int open_state_dir(struct manager *manager, struct failure *failure)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

    manager->state_dir_fd = open(manager->state_dir, flags);
    if (manager->state_dir_fd < 0 && errno == ENOENT && mkdir(manager->state_dir, 0750) < 0)
        return failure_set(
            failure, -errno, ERROR_OUTPUT,
            "Cannot create the state directory %s: %s. Choose another with --state-dir.",
            manager->state_dir, strerror(errno));
    if (manager->state_dir_fd < 0)
        manager->state_dir_fd = open(manager->state_dir, flags);
    if (manager->state_dir_fd < 0)
        return failure_set(
            failure, -errno, ERROR_OUTPUT,
            "Cannot open the state directory %s: %s. Choose another with --state-dir.",
            manager->state_dir, strerror(errno));
    return 0;
}

/*
 * The budget of pool and rings beyond their base: pool-max= is the limit of the pool. Where control
 * groups allow less, the kernel would kill the daemon, and all captures with it.
 */
static uint64_t budget_bytes(const struct config *config)
{
    uint64_t total_bytes = host_total_bytes(), max_bytes = config->pool_max_bytes;
    uint64_t other_bytes =
        BASE_BYTES + (config->recorder.enabled ? config->recorder.memory_bytes : 0);
    char wanted[UNITS_TEXT_MAX], total[UNITS_TEXT_MAX];

    if (max_bytes == 0)
        max_bytes = min_u64(POOL_MAX_DEFAULT_BYTES, total_bytes / 8);
    if (total_bytes && total_bytes < max_bytes + other_bytes) {
        log_warning(
            "The pool cannot grow to %s (pool-max=): all memory that xentraced may use is %s "
            "(MemoryMax= of the unit or its slices, or dom0's memory). While a disk is slow, "
            "captures may drop records. Set a larger MemoryMax=, or a smaller pool-max= or "
            "memory=.",
            size_format(wanted, max_bytes), size_format(total, total_bytes));
        max_bytes = total_bytes > other_bytes ? total_bytes - other_bytes : 0;
    }
    return max_bytes > config->pool_bytes ? max_bytes - config->pool_bytes : 0;
}

static int make_pool(struct manager *manager)
{
    unsigned int nr_notes = sink_notes(xen_host_info(manager->xen)->nr_cpus);
    int r;

    if (!host_can_spare(manager->config.pool_bytes, 100))
        return -ENOMEM; /* taking it would end in the kernel's killing this process */
    r = pool_new_growing(manager->config.pool_bytes, manager->grower, nr_notes, &manager->pool);
    if (r < 0)
        return r;
    return pool_reserve_notes(manager->pool, nr_notes); /* now, not with the first capture */
}

static int start_collector(struct manager *manager, struct failure *failure)
{
    int r;

    r = grower_new(budget_bytes(&manager->config), &manager->grower);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot start a thread: %s.", strerror(-r));
    r = make_pool(manager);
    if (r < 0)
        return failure_set(
            failure, r, ERROR_NO_MEMORY,
            "No memory for the pool of %llu MiB (%s): set a smaller pool= in [daemon].",
            (unsigned long long)(manager->config.pool_bytes >> 20), strerror(-r));
    r = collector_new(manager->xen, manager->pool, &manager->collector);
    if (r == -ENOSYS || r == -EPERM || r == -EACCES)
        return failure_set(failure, r, ERROR_OUTPUT,
                           "io_uring is disabled on this host (%s): set the sysctl "
                           "kernel.io_uring_disabled=0, or lift the seccomp filter.",
                           strerror(-r));
    if (r == -ENOMEM)
        return failure_set(failure, r, ERROR_NO_MEMORY,
                           "Cannot start the collector: the kernel has no memory for its io_uring, "
                           "or RLIMIT_MEMLOCK is too small: set LimitMEMLOCK= of the unit to "
                           "pool-max= plus memory= plus 64M.");
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot start the collector: %s.",
                           strerror(-r));
    if (!collector_pool_is_registered(manager->collector))
        log_info(
            "The pool is not registered with io_uring: RLIMIT_MEMLOCK (LimitMEMLOCK=) is smaller "
            "than the pool. Writing takes a little more CPU.");
    if (!collector_is_real_time(manager->collector))
        log_info(
            "The collector has no real-time priority: RLIMIT_RTPRIO (LimitRTPRIO=) is 0, or "
            "RestrictRealtime=yes. On a busy dom0 it may run too late, and Xen may lose records.");
    return 0;
}

/*
 * A killed daemon holds VIRQ_TBUF until the kernel has destroyed its io_uring, which polls the
 * event channel. This takes a moment after the end of the process, or seconds on a busy host, and
 * this process may be its restart. Any other holder will not release it soon.
 */
static int bind_xen(struct manager *manager, enum xen_step *ret_step)
{
    const struct timespec pause = {.tv_nsec = BIND_PAUSE_MSEC * 1000000};
    char who[TRACER_TEXT_MAX];
    unsigned int waited_msec = 0;
    int r;

    for (;;) {
        r = xen_host_open(NULL, &manager->xen, ret_step);
        if (r != -EEXIST || *ret_step != XEN_STEP_BIND_VIRQ || waited_msec >= BIND_MAX_MSEC ||
            (waited_msec >= BIND_SURE_MSEC && tracer_find(false, who)))
            return r;
        (void)nanosleep(&pause, NULL); /* a signal makes it shorter: no harm */
        waited_msec += BIND_PAUSE_MSEC;
    }
}

/*
 * Somebody else traces, and may do so for hours. Without a service manager that is an error. As a
 * service, xentraced waits: if it ended, the manager would start it again every 100 ms, as it has
 * to after a crash, and fill the journal with it. The unit counts as started, so that neither the
 * boot nor `systemctl start` waits, and has the reason as its status. SIGTERM ends the process.
 */
static int wait_for_xen(struct manager *manager, enum xen_step *ret_step)
{
    struct failure failure = {0};
    char status[sizeof(failure.text) + 64];
    int r = bind_xen(manager, ret_step);

    if ((r != -EEXIST && r != -EBUSY) || *ret_step != XEN_STEP_BIND_VIRQ ||
        !getenv("NOTIFY_SOCKET"))
        return r;
    (void)explain_xen(&failure, *ret_step, r);
    log_warning("Waiting. %s xentraced starts within %u s of that.", failure.text, BIND_RETRY_SEC);
    (void)snprintf(status, sizeof(status), "READY=1\nSTATUS=Waiting. %s", failure.text);
    systemd_notify(manager->systemd, status);
    while ((r == -EEXIST || r == -EBUSY) && *ret_step == XEN_STEP_BIND_VIRQ) {
        (void)sleep(BIND_RETRY_SEC);
        systemd_notify(manager->systemd, "WATCHDOG=1");
        r = xen_host_open(NULL, &manager->xen, ret_step);
    }
    if (r >= 0)
        log_info("Nobody else traces this host any more: starting.");
    return r;
}

/* With the event channel of the previous daemon, if it was kept. */
static int open_xen(struct manager *manager, struct fd_store *inherited, enum xen_step *ret_step)
{
    const char *port;
    _cleanup_fd_ int fd = fd_store_take(inherited, EVTCHN_STORE_PREFIX, &port);
    struct xen_virq virq = {.fd = fd};
    char name[32];
    int r;

    if (fd >= 0) {
        virq.port = (int)strtol(port, NULL, 10); /* what is no number is no port of it either */
        r = xen_host_open(&virq, &manager->xen, ret_step);
        manager->keeps_evtchn = r >= 0;
        if (r >= 0 || *ret_step != XEN_STEP_ADOPT_VIRQ)
            return r;
        log_warning("The event channel that was kept across the restart is unusable (%s): binding "
                    "VIRQ_TBUF again.",
                    strerror(-r));
        (void)snprintf(name, sizeof(name), EVTCHN_STORE_PREFIX "%s", port);
        fd_store_forget(manager->systemd, name);
        fd_close(&fd);
    }
    return wait_for_xen(manager, ret_step);
}

/* Names become known later than domains: sessions that run take them over. */
static void manager_handle_names(void *userdata)
{
    struct manager *manager = userdata;
    uint64_t now_ns = clock_pair_now().realtime_ns;

    for (size_t i = 0; i < manager->nr_sessions; i++)
        if (manager->sessions[i]->state != SESSION_ENDED)
            domains_update(&manager->sessions[i]->domains, manager->names, now_ns);
    if (manager->triggers) /* they are made later, and then ask */
        triggers_update_domains(manager->triggers);
}

static int start_workers(struct manager *manager, struct failure *failure)
{
    int r;

    r = held_files_new(&manager->held);
    if (r >= 0)
        r = workers_new(manager->event, &manager->workers);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot start a thread: %s.", strerror(-r));
    r = systemd_new(manager->event, manager->workers, &manager->systemd);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot start a thread: %s.", strerror(-r));
    return 0;
}

/*
 * Dates are asked for of what is in a ring, and of all sessions that `status` shows. An hour more
 * is for snapshots that are still being written.
 */
static uint64_t oldest_date_tsc(const struct session *session)
{
    const struct ring_storage *storage = ring_storage_of(session);
    uint64_t hour_tsc = xen_host_info(session->context->xen)->tsc_khz * UINT64_C(3600000);
    struct ring_stats stats = {0};
    uint64_t tsc;

    if (!storage || !storage->ring || session->state == SESSION_ENDED)
        return session->started.tsc;
    ring_read_stats(storage->ring, &stats);
    tsc = stats.oldest_tsc ? stats.oldest_tsc : tsc_now();
    /* Of records from before dom0 was there, ours is negative. */
    tsc = tsc > tsc_offset() ? tsc - tsc_offset() : 0;
    /* The ring of an earlier daemon: the offset is not known at once. */
    if (session->is_resumed)
        tsc = min_u64(tsc, session->started.tsc);
    return tsc > hour_tsc ? tsc - hour_tsc : 0;
}

static struct clock_need manager_need_clock(void *userdata)
{
    const struct manager *manager = userdata;
    struct clock_need need = {.oldest_tsc = UINT64_MAX};

    for (size_t i = 0; i < manager->nr_sessions; i++) {
        const struct session *session = manager->sessions[i];

        need.is_recording = need.is_recording || session->state != SESSION_ENDED;
        need.oldest_tsc = min_u64(need.oldest_tsc, oldest_date_tsc(session));
    }
    return need;
}

static int start_clock(struct manager *manager, struct failure *failure)
{
    int r;

    r = clock_history_new(xen_host_info(manager->xen)->tsc_khz, clock_pair_now(), &manager->clock);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    r = clock_watch_new(manager->event, manager->clock, manager_need_clock, manager,
                        &manager->clock_watch);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot set a timer: %s.", strerror(-r));
    return 0;
}

static int learn_names(struct manager *manager, struct failure *failure)
{
    int r = domain_names_new(manager->event, manager->workers, manager->xen, &manager->names);

    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot start a thread: %s.", strerror(-r));
    domain_names_listen(manager->names, manager_handle_names, manager);
    domain_names_refresh(manager->names);
    return 0;
}

static int manager_listen_to_collector(struct manager *manager)
{
    int r = sd_event_add_io(manager->event, &manager->collector_source,
                            collector_fd(manager->collector), EPOLLIN, handle_collector, manager);

    if (r < 0)
        return r;
    return sd_event_source_set_priority(manager->collector_source, PRIORITY_COLLECTOR);
}

/* In memory, as that of the boot's mask: it does not wait. */
static int open_runtime_dir(struct manager *manager, struct failure *failure)
{
    const char *slash = strrchr(manager->socket_path, '/');
    _cleanup_free_ char *path = NULL;

    if (asprintf(&path, "%.*s", slash ? (int)(slash + 1 - manager->socket_path) : 1,
                 slash ? manager->socket_path : ".") < 0)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    manager->runtime_dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (manager->runtime_dir_fd < 0)
        return failure_set(
            failure, -errno, ERROR_OUTPUT,
            "Cannot open the runtime directory %s: %s. Choose another with --socket.", path,
            strerror(errno));
    return 0;
}

static int set_up(struct manager *manager, struct fd_store *inherited, struct failure *failure)
{
    enum xen_step step;
    int r;

    r = start_workers(manager, failure);
    if (r < 0)
        return r;
    r = open_xen(manager, inherited, &step);
    if (r < 0)
        return explain_xen(failure, step, r);
    r = start_clock(manager, failure);
    if (r < 0)
        return r;
    r = learn_names(manager, failure);
    if (r < 0)
        return r;
    r = open_state_dir(manager, failure);
    if (r >= 0)
        r = open_runtime_dir(manager, failure);
    if (r < 0)
        return r;
    r = start_collector(manager, failure);
    if (r < 0)
        return r;
    r = tracing_new(manager->xen, manager->collector, manager->boot_mask_path, &manager->tracing);
    if (r < 0)
        return explain_xen(failure, XEN_STEP_TRACE_INFO, r);
    r = manager_listen_to_collector(manager);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY,
                           "Cannot receive messages from the collector: %s.", strerror(-r));
    return 0;
}

static int start_limits(struct manager *manager, struct failure *failure)
{
    int r = user_limits_new(manager->event, manager->workers, manager->state_dir_fd,
                            &manager->config, manager->grower, &manager->limits);

    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot set up the limits of users: %s.",
                           strerror(-r));
    return 0;
}

static int start_triggers(struct manager *manager, struct failure *failure)
{
    const struct triggers_context context = {
        .event = manager->event,
        .xen = manager->xen,
        .names = manager->names,
        .config = &manager->config,
        .tsc_khz = xen_host_info(manager->xen)->tsc_khz,
        .snapshot = manager_handle_trigger,
        .userdata = manager,
    };
    int r = triggers_new(&context, &manager->triggers);

    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot set up the triggers: %s.",
                           strerror(-r));
    return 0;
}

/* --- The state directory. --- */

static size_t manager_list_running(void *userdata, char (*names)[SESSION_NAME_MAX + 1], size_t room)
{
    const struct manager *manager = userdata;
    size_t count = 0;

    for (size_t i = 0; i < manager->nr_sessions && count < room; i++)
        if (!manager->sessions[i]->is_released && is_capture(manager->sessions[i]))
            (void)strcpy(names[count++], manager->sessions[i]->name); /* of the same length */
    return count;
}

static void manager_evict(void *userdata, const char *session_name, unsigned int count)
{
    struct manager *manager = userdata;
    struct session *session = manager_find_by_name(manager, session_name);

    if (session && has_segments(session))
        segments_evict(session, count);
}

static int start_vacuum(struct manager *manager, struct failure *failure)
{
    const struct vacuum_context context = {
        .event = manager->event,
        .workers = manager->workers,
        .state_dir_fd = manager->state_dir_fd,
        .state_dir = manager->state_dir,
        .held = manager->held,
        .limits = manager->config.disk,
        .list_running = manager_list_running,
        .evict = manager_evict,
        .userdata = manager,
    };
    int r = vacuum_new(&context, &manager->vacuum);

    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot start a thread: %s.", strerror(-r));
    return 0;
}

/* Those that need the context of sessions. */
static int start_modules(struct manager *manager, struct failure *failure)
{
    int r;

    r = start_limits(manager, failure);
    if (r < 0)
        return r;
    r = start_triggers(manager, failure);
    if (r < 0)
        return r;
    return start_vacuum(manager, failure);
}

static int check_count(const struct manager *manager, struct failure *failure)
{
    if (manager_count_unreleased(manager) >= MANAGER_RUNNING_MAX)
        return failure_set(failure, -EBUSY, ERROR_BUSY,
                           "%u sessions are running or waiting for their disk, which is the limit. "
                           "To see them: xentracectl list. To end one: xentracectl stop NAME",
                           MANAGER_RUNNING_MAX);
    return 0;
}

/* --- Captures that continue, or start with the daemon. --- */

static void manager_add_capture(void *userdata, const char *name,
                                const struct session_options *options)
{
    struct manager *manager = userdata;
    struct failure failure = {0};
    struct session *session;

    if (check_count(manager, &failure) >= 0 &&
        session_new(&manager->context, name, options, &session, &failure) >= 0) {
        manager->sessions[manager->nr_sessions++] = session;
        return;
    }
    log_line(LOG_ERR, name, "%s. %s", options->resume ? "Not continued" : "Not started",
             failure.text);
    persist_remove(manager->runtime_dir_fd, name);
}

/* Captures on request are possible without it. */
static void start_recorder(struct manager *manager, struct fd_store *inherited)
{
    struct watch_set *watch = triggers_watch_set(manager->triggers);
    struct failure failure = {0};
    struct session *session;
    char who[RECORDER_STOP_TEXT_MAX];

    recorder_stop_take(inherited, &manager->recorder_stop);
    if (manager->recorder_stop.is_set && manager->config.recorder.enabled)
        log_line(LOG_INFO, RECORDER_NAME,
                 "Not started, because it was stopped by %s. To start it: xentracectl start %s",
                 recorder_stop_describe(who, &manager->recorder_stop), RECORDER_NAME);
    if (manager->recorder_stop.is_set || !manager->config.recorder.enabled) {
        recorder_leave(&manager->context, inherited);
        return;
    }
    if (recorder_start(&manager->context, &manager->config, inherited, watch, &session, &failure) >=
        0)
        manager->sessions[manager->nr_sessions++] = session;
    else
        log_event(LOG_ERR,
                  &(struct log_about){.id = LOG_ID_SESSION_NOT_STARTED, .session = RECORDER_NAME},
                  "Not started. %s", failure.text);
}

/* All that an earlier daemon has left, and what the configuration asks for. */
static void start_sessions(struct manager *manager, struct fd_store *inherited)
{
    bool was_traced;

    manager->continuation = (struct continuation){
        .event = manager->event,
        .collector = manager->collector,
    };
    continuation_begin(&manager->continuation);
    was_traced = continuation_start_captures(manager->runtime_dir_fd, &manager->config.captures,
                                             manager_add_capture, manager);
    start_recorder(manager, inherited);
    continuation_limit(&manager->continuation, manager->sessions, manager->nr_sessions);
    if (manager->nr_sessions > 0)
        return;
    if (tracing_is_left_on(manager->tracing))
        log_line(LOG_NOTICE, NULL,
                 "An earlier xentraced ended without disabling Xen's tracing. Nothing continues "
                 "its sessions: tracing is disabled, and the event mask is that of the boot.");
    if (was_traced || tracing_is_left_on(manager->tracing))
        (void)tracing_stop(manager->tracing);
}

/* Removes the unfinished files of an earlier daemon. Nobody waits for it: it may outlive us. */
struct sweep {
    struct job job;
    int directory_fd;
};

static void sweep_run(struct job *job)
{
    struct sweep *sweep = job_container(job, struct sweep, job);

    output_file_sweep(sweep->directory_fd);
    fd_close(&sweep->directory_fd);
}

static void sweep_done(struct job *job)
{
    free(job_container(job, struct sweep, job));
}

static int manager_send_sweep(const struct manager *manager)
{
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    struct worker *worker;
    int r;

    if (!sweep)
        return -ENOMEM;
    sweep->job = (struct job){.run = sweep_run, .done = sweep_done};
    sweep->directory_fd = fcntl(manager->state_dir_fd, F_DUPFD_CLOEXEC, 3);
    r = sweep->directory_fd < 0 ? -errno : worker_new(manager->workers, "sweep", &worker);
    if (r < 0) {
        fd_close(&sweep->directory_fd);
        free(sweep);
        return r;
    }
    worker_send(worker, &sweep->job);
    worker_free(worker); /* it ends with its job */
    return 0;
}

static void manager_sweep(const struct manager *manager)
{
    int r = manager_send_sweep(manager);

    if (r < 0)
        log_warning("Cannot start a thread: %s. Unfinished files of an earlier daemon stay in %s.",
                    strerror(-r), manager->state_dir);
}

/* Beside the socket: in the runtime directory, which a boot empties. */
static char *boot_mask_path_of(const char *socket_path)
{
    const char *slash = strrchr(socket_path, '/');
    char *path;

    if (asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - socket_path) : 0, socket_path,
                 BOOT_MASK_FILE) < 0)
        return NULL;
    return path;
}

/* The context of sessions. */
static void lend_context(struct manager *manager)
{
    manager->context = (struct session_context){
        .event = manager->event,
        .workers = manager->workers,
        .xen = manager->xen,
        .names = manager->names,
        .clock = manager->clock,
        .systemd = manager->systemd,
        .host = &manager->host,
        .tracing = manager->tracing,
        .collector = manager->collector,
        .pool = manager->pool,
        .grower = manager->grower,
        .state_dir_fd = manager->state_dir_fd,
        .state_dir = manager->state_dir,
        .held = manager->held,
        .runtime_dir_fd = manager->runtime_dir_fd,
        .default_buffer_pages = manager->config.buffer_pages,
        .memory_share_percent = manager->config.memory_share_percent,
        .ring_share = &manager->ring_share,
        .keep_free = manager->config.disk.keep_free,
        .describe_session = document_for_sidecar,
        .describe_segment = document_of_segment_file,
        .describe_snapshot = document_of_snapshot,
        .changed = handle_session_change,
        .released = handle_session_released,
        .segment_finished = handle_segment_finished,
        .userdata = manager,
    };
}

int manager_new(struct sd_event *event, const struct config *config, const char *socket_path,
                const char *state_dir, struct fd_store *inherited, struct manager **ret_manager,
                struct failure *failure)
{
    struct manager *manager;
    int r;

    manager = calloc(1, sizeof(*manager));
    if (!manager)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    manager->event = sd_event_ref(event);
    manager->config = *config;
    manager->socket_path = socket_path;
    manager->state_dir = state_dir;
    manager->state_dir_fd = -1;
    manager->runtime_dir_fd = -1;
    manager->started_ns = clock_pair_now().realtime_ns;
    manager->ring_share.percent = manager->config.memory_share_percent;
    host_read(&manager->host);

    manager->boot_mask_path = boot_mask_path_of(socket_path);
    if (manager->boot_mask_path)
        r = set_up(manager, inherited, failure);
    else
        r = failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    if (r < 0) {
        manager_free(manager);
        return r;
    }
    lend_context(manager);
    r = start_modules(manager, failure);
    if (r < 0) {
        manager_free(manager);
        return r;
    }
    start_sessions(manager, inherited);
    if (!memory_is_locked())
        log_warning("Not all memory is locked: RLIMIT_MEMLOCK (LimitMEMLOCK=) is smaller than "
                    "pool-max= plus memory= plus 64M. Under memory pressure records may be lost.");
    manager_sweep(manager);
    *ret_manager = manager;
    return 0;
}

int manager_reconfigure(struct manager *manager, const struct config *config)
{
    int r = triggers_reload(manager->triggers, config);

    if (r < 0)
        return r;
    manager->config = *config;
    manager->context.default_buffer_pages = config->buffer_pages;
    manager->context.memory_share_percent = config->memory_share_percent;
    manager->context.keep_free = config->disk.keep_free;
    manager->ring_share.percent = config->memory_share_percent;
    user_limits_set_config(manager->limits, config);
    vacuum_set_limits(manager->vacuum, &config->disk);
    log_set_level(config->log_level);
    return 0;
}

struct manager *manager_free(struct manager *manager)
{
    if (!manager)
        return NULL;
    /* Workers that are busy, or stuck, still read rings and write files: all of that stays until
     * the process ends, which is next. They are not waited for. */
    if (manager->has_failed && !workers_are_idle(manager->workers)) {
        collector_free(manager->collector);
        return NULL;
    }
    manager->collector_source = sd_event_source_disable_unref(manager->collector_source);
    collector_free(manager->collector);
    for (size_t i = 0; i < manager->nr_snapshots; i++)
        snapshot_free(manager->snapshots[i]);
    for (size_t i = 0; i < manager->nr_history; i++)
        json_object_put(manager->history[i]);
    while (manager->nr_sessions > 0)
        manager_remove_session(manager, manager->sessions[manager->nr_sessions - 1]);
    continuation_done(&manager->continuation);
    manager->extend_source = sd_event_source_disable_unref(manager->extend_source);
    vacuum_free(manager->vacuum);
    triggers_free(manager->triggers);
    user_limits_free(manager->limits);
    domain_names_free(manager->names);
    systemd_free(manager->systemd);
    tracing_free(manager->tracing);
    clock_watch_free(manager->clock_watch);
    clock_history_free(manager->clock);
    pool_free(manager->pool);
    grower_free(manager->grower);
    xen_host_free(manager->xen);
    fd_close(&manager->state_dir_fd);
    fd_close(&manager->runtime_dir_fd);
    free(manager->boot_mask_path);
    workers_free(manager->workers);
    held_files_unref(manager->held);
    sd_event_unref(manager->event);
    free(manager);
    return NULL;
}

/* --- Sessions. --- */

/* Files are looked at by the session's worker. */
static bool name_is_taken(const void *userdata, const char *name)
{
    return manager_find_by_name(userdata, name);
}

/* Each has a part of the pool: what is left for root's captures depends on their number. */
static int check_user(const struct manager *manager, const struct requester *requester,
                      struct failure *failure)
{
    size_t of_users = 0, of_user = 0;

    if (!requester_is_user(requester))
        return 0;
    for (size_t i = 0; i < manager->nr_sessions; i++) {
        const struct session *session = manager->sessions[i];

        if (session->is_released || !requester_is_user(&session->requester))
            continue;
        of_users++;
        of_user += session->requester.person == requester->person;
    }
    if (of_user < MANAGER_OF_USER_MAX && of_users < MANAGER_OF_USERS_MAX)
        return 0;
    return failure_set(
        failure, -EBUSY, ERROR_BUSY,
        "The limit is %u running captures per user, and %u for all users except root. To see them: "
        "xentracectl list. To end one of yours: xentracectl stop NAME",
        MANAGER_OF_USER_MAX, MANAGER_OF_USERS_MAX);
}

static int check_start(const struct manager *manager, const char *name, struct failure *failure)
{
    const struct session *same = manager_find_by_name(manager, name);

    if (manager->shuts_down)
        return refuse_shutting_down(failure);
    if (same && same->state != SESSION_ENDED)
        return failure_set(failure, -EEXIST, ERROR_NAME_IN_USE,
                           "A capture named '%s' is already running. Choose another name, or omit "
                           "the name. To see that capture: xentracectl status %s",
                           name, name);
    return check_count(manager, failure);
}

/* Makes room for one more: the oldest that has ended goes. */
static void forget_oldest(struct manager *manager)
{
    size_t ended = manager->nr_sessions - manager_count_unreleased(manager);

    for (size_t i = 0; ended >= MANAGER_ENDED_MAX && i < manager->nr_sessions; i++) {
        if (!manager->sessions[i]->is_released)
            continue;
        manager_remove_session(manager, manager->sessions[i]);
        return;
    }
}

/*
 * The name of a capture that WHO asked for as NAME, "" for any. Those of users have a prefix, which
 * root's and the configuration's have not.
 */
static int take_name(const struct manager *manager, const struct requester *who, const char *name,
                     char ret_name[static SESSION_NAME_MAX + 1], bool *ret_is_made_up,
                     struct failure *failure)
{
    char stem[SESSION_NAME_MAX + 1] = "capture";
    int r = 0;

    if (requester_is_user(who))
        r = name_of_user(who->uid, name, name[0] ? ret_name : stem, failure);
    else if (name_is_of_user(name))
        r = failure_set(failure, -EINVAL, ERROR_INVALID,
                        "'%s' is not a valid name for a capture of root: names that begin with "
                        "'uid' and a number are of captures of other users. Choose another name.",
                        name);
    else if (name[0])
        r = name_check(name, failure);
    if (r < 0)
        return r;
    if (!requester_is_user(who))
        (void)snprintf(ret_name, SESSION_NAME_MAX + 1, "%.*s", (int)SESSION_NAME_MAX, name);
    *ret_is_made_up = !name[0];
    if (!name[0])
        name_make_up(stem, name_is_taken, manager, ret_name);
    return 0;
}

int manager_start_session(struct manager *manager, const char *name,
                          const struct session_options *options, struct session **ret_session,
                          struct failure *failure)
{
    struct session_options renamed = *options;
    char taken[SESSION_NAME_MAX + 1];
    struct session *session;
    int r;

    r = take_name(manager, &options->requester, name, taken, &renamed.may_rename, failure);
    if (r < 0)
        return r;
    name = taken;
    r = check_start(manager, name, failure);
    if (r < 0)
        return r;
    r = check_user(manager, &options->requester, failure);
    if (r < 0)
        return r;
    manager->ring_share.recorder_bytes =
        manager->config.recorder.enabled && !manager_find_open_recorder(manager)
            ? manager->config.recorder.memory_bytes
            : 0;
    r = session_new(&manager->context, name, &renamed, &session, failure);
    if (r < 0 && options->persist)
        persist_remove(manager->runtime_dir_fd, name);
    if (r < 0)
        return r;
    forget_oldest(manager);
    log_set_owner(session->name, &session->requester);
    manager->sessions[manager->nr_sessions++] = session;
    *ret_session = session;
    return 0;
}

/* --- The flight recorder, on request. --- */

int manager_start_recorder(struct manager *manager, struct session **ret_session,
                           struct failure *failure)
{
    struct session *session = manager_find_open_recorder(manager);
    int r;

    if (manager->shuts_down)
        return refuse_shutting_down(failure);
    if (!manager->config.recorder.enabled)
        return failure_set(failure, -ENODATA, ERROR_NO_RING,
                           "The flight recorder is disabled. To enable it, set enabled=yes in "
                           "[flight-recorder], then: systemctl restart xentraced");
    if (manager->stops_recorder || (session && session->state > SESSION_RUNNING))
        return failure_set(failure, -EBUSY, ERROR_BUSY,
                           "The flight recorder is being stopped. Try again when it has ended; see "
                           "xentracectl status");
    if (session) {
        *ret_session = session;
        return 0;
    }
    r = check_count(manager, failure);
    if (r < 0)
        return r;
    r = recorder_start_anew(&manager->context, &manager->config,
                            triggers_watch_set(manager->triggers), &session, failure);
    if (r < 0)
        return r;
    forget_oldest(manager);
    manager->sessions[manager->nr_sessions++] = session;
    *ret_session = session;
    return 0;
}

static void manager_handle_stop_kept(void *userdata, bool is_kept)
{
    struct manager *manager = userdata;

    if (!manager->recorder_stop.is_set)
        return; /* it was started again meanwhile */
    manager->recorder_stop.is_kept = is_kept;
    if (!is_kept)
        log_line(LOG_INFO, RECORDER_NAME,
                 "The service manager does not record that it was stopped: the next xentraced "
                 "starts it again.");
}

int manager_stop_recorder(struct manager *manager, const struct recorder_stop *stop,
                          struct failure *failure)
{
    struct session *session = manager_find_open_recorder(manager);

    if (manager->shuts_down)
        return refuse_shutting_down(failure);
    if (!manager->config.recorder.enabled)
        return failure_set(failure, -ENODATA, ERROR_NO_RING,
                           "The flight recorder is disabled (enabled=no in [flight-recorder]) and "
                           "is not running.");
    if (manager->stops_recorder)
        return 0;
    if (manager->recorder_stop.is_set && !session)
        return 1;
    if (manager->recorder_stop.is_set) /* it was just being started again */
        recorder_stop_forget(manager->systemd);
    manager->recorder_stop = *stop;
    manager->recorder_stop.is_set = true;
    manager->stops_recorder = true;
    triggers_set_ring(manager->triggers, false);
    /* Before the ring is forgotten: if we are killed in between, the next daemon drops that. */
    recorder_stop_keep(manager->systemd, stop, manager_handle_stop_kept, manager);
    if (session)
        recorder_stop(session, stop);
    else
        systemd_flush(manager->systemd, manager_handle_stop_known, manager);
    return 0;
}

int manager_check_stop(const struct session *session, struct failure *failure)
{
    char history[UNITS_TEXT_MAX];

    if (!session->settings.is_recorder || session->state == SESSION_ENDED)
        return 0;
    (void)recorder_history(history, session);
    return failure_set(failure, -EPERM, ERROR_RECORDER,
                       "Stopping the flight recorder discards its history%s%s, so it cannot be "
                       "stopped by its name. To write the history to a file: xentracectl snapshot. "
                       "To stop the recorder, see xentracectl(1).",
                       history[0] ? " of " : "", history);
}

/* --- The end. --- */

/* Whether the next daemon can continue the recorder. */
static bool may_keep(const struct manager *manager, const struct session *recorder)
{
    return recorder && ring_storage_of(recorder)->is_kept && manager->keeps_evtchn &&
           manager->config.recorder.keep_enabled;
}

/* Systemd is stopping us FOR_GOOD, and drops what it keeps for us; or it starts us again. */
static void manager_handle_stop_answer(void *userdata, bool for_good)
{
    struct manager *manager = userdata;
    struct session *recorder = manager_find_recorder(manager);

    manager->asks_systemd = false;
    manager->keeps_recorder = !for_good && may_keep(manager, recorder);
    manager->hands_over = !for_good;
    for (size_t i = manager->nr_sessions; i-- > 0 && for_good;)
        if (manager->sessions[i]->settings.is_persistent)
            session_stop(manager->sessions[i], END_DAEMON_EXIT);
    if (recorder && !manager->keeps_recorder)
        session_stop(recorder, END_DAEMON_EXIT);
    manager_exit_if_over(manager);
}

/*
 * The others have ended: from here on, records are left to the next daemon. The recorder and the
 * persistent captures stop at the same moment, so that both continue with the same record.
 */
static void manager_hand_over(struct manager *manager)
{
    size_t others = 0;

    if (!manager->hands_over || manager->has_handed_over || manager->nr_snapshots > 0)
        return;
    for (size_t i = 0; i < manager->nr_sessions; i++)
        others += !manager->sessions[i]->is_released &&
                  !manager->sessions[i]->settings.is_persistent &&
                  !(manager->keeps_recorder && manager->sessions[i]->settings.is_recorder);
    if (others > 0)
        return;
    manager->has_handed_over = true;
    continuation_hand_over(&manager->continuation);
    for (size_t i = manager->nr_sessions; i-- > 0;)
        if (manager->sessions[i]->settings.is_persistent)
            session_hand_over(manager->sessions[i]);
}

/* Whether one is running that the next daemon may continue. */
static bool manager_has_persistent(const struct manager *manager)
{
    for (size_t i = 0; i < manager->nr_sessions; i++)
        if (manager->sessions[i]->settings.is_persistent &&
            manager->sessions[i]->state == SESSION_RUNNING)
            return getenv("NOTIFY_SOCKET"); /* else nobody starts us again */
    return false;
}

/* One that waits for its disk, or NULL. */
static const char *manager_find_waiting(const struct manager *manager)
{
    for (size_t i = 0; i < manager->nr_sessions; i++)
        if (session_waiting_since_usec(manager->sessions[i]))
            return manager->sessions[i]->name;
    for (size_t i = 0; i < manager->nr_snapshots; i++)
        if (snapshot_waiting_since_usec(manager->snapshots[i]))
            return manager->snapshots[i]->name;
    return NULL;
}

/* One that is still to be completed, or NULL. */
static const char *manager_find_unfinished(const struct manager *manager)
{
    for (size_t i = 0; i < manager->nr_sessions; i++)
        if (!manager->sessions[i]->is_released && is_capture(manager->sessions[i]))
            return manager->sessions[i]->name;
    return manager->nr_snapshots > 0 ? manager->snapshots[0]->name : NULL;
}

/* For a session that waits for its disk before it comes to that; unless one is to leave it on. */
static void manager_disable_tracing(struct manager *manager)
{
    for (size_t i = 0; i < manager->nr_sessions; i++)
        if (manager->sessions[i]->keeps_enabled)
            return;
    if (!manager->keeps_recorder && !manager->asks_systemd)
        (void)tracing_stop(manager->tracing); /* nothing while somebody is traced for */
}

/*
 * Systemd kills a service that takes too long to stop, and with it the records in memory that are
 * on their way to the disk.
 */
static int manager_handle_extend_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct manager *manager = userdata;
    const char *waiting = manager_find_waiting(manager);
    const char *unfinished = waiting ? waiting : manager_find_unfinished(manager);
    char text[256];

    (void)usec;
    if (unfinished) {
        (void)snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%llu\nSTATUS=Stopping: %s is %s.",
                       (unsigned long long)EXTEND_USEC, unfinished,
                       waiting ? "waiting for the disk" : "being completed");
        systemd_notify(manager->systemd, text);
    }
    if (waiting)
        manager_disable_tracing(manager);
    /* Neither can fail for a source that exists, in this process. */
    (void)sd_event_source_set_time_relative(source, EXTEND_INTERVAL_USEC);
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

static void manager_watch_end(struct manager *manager)
{
    int r;

    if (manager->extend_source)
        return;
    r = sd_event_add_time_relative(manager->event, &manager->extend_source, CLOCK_MONOTONIC, 0,
                                   USEC_PER_MSEC, manager_handle_extend_time, manager);
    if (r < 0)
        log_warning("Cannot set a timer: %s. If the disk does not answer, systemd kills xentraced "
                    "after TimeoutStopSec=.",
                    strerror(-r));
}

void manager_shut_down(struct manager *manager)
{
    struct session *recorder = manager_find_recorder(manager);

    manager->shuts_down = true;
    if (!manager->asks_systemd &&
        (may_keep(manager, recorder) || manager_has_persistent(manager))) {
        manager->asks_systemd = true;
        systemd_ask_stop(manager->systemd, manager_handle_stop_answer, manager);
    }
    for (size_t i = manager->nr_sessions; i-- > 0;)
        if (!manager->asks_systemd ||
            (manager->sessions[i] != recorder && !manager->sessions[i]->settings.is_persistent))
            session_stop(manager->sessions[i], END_DAEMON_EXIT);
    manager_watch_end(manager);
    manager_exit_if_over(manager);
}
