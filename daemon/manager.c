// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Order of construction: what another consumer would notice comes last, and that is nothing before
 * the first session. VIRQ_TBUF is bound first, which proves that nobody else traces.
 */

#include "daemon/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/pool.h"
#include "collector/ring.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "daemon/base/worker.h"
#include "daemon/host/domain-names.h"
#include "daemon/host/explain.h"
#include "daemon/host/fd-store.h"
#include "daemon/base/log.h"
#include "daemon/base/priority.h"
#include "daemon/session/recorder.h"
#include "daemon/session/segments.h"
#include "daemon/session/snapshot.h"
#include "daemon/host/systemd.h"
#include "daemon/host/tracing.h"
#include "daemon/triggers/triggers.h"

#define EVTCHN_STORE_PREFIX "evtchn-" /* and the port */
#define BIND_PAUSE_MSEC     20u
#define BIND_SURE_MSEC      500u  /* to wait for VIRQ_TBUF, while somebody seems to have it */
#define BIND_MAX_MSEC       5000u /* ... while nobody does: seen under load were 4.5 s */

static size_t count_running(const struct manager *manager)
{
    size_t count = 0;

    for (size_t i = 0; i < manager->nr_sessions; i++)
        count += manager->sessions[i]->state != SESSION_ENDED;
    return count;
}

/* Whether the event loop may end: what still runs is left to the next daemon. */
static bool is_over(const struct manager *manager)
{
    return count_running(manager) == (manager->keeps_recorder ? 1 : 0) &&
           manager->nr_snapshots == 0;
}

static void remove_session(struct manager *manager, size_t index)
{
    session_free(manager->sessions[index]);
    manager->nr_sessions--;
    memmove(&manager->sessions[index], &manager->sessions[index + 1],
            (manager->nr_sessions - index) * sizeof(manager->sessions[0]));
}

/* A session that never ran leaves nothing behind but its error. */
static void forget_failed_start(struct manager *manager, const struct session *session)
{
    for (size_t i = 0; i < manager->nr_sessions; i++)
        if (manager->sessions[i] == session)
            remove_session(manager, i);
}

/* The recorder is asked to run for as long as the daemon does. */
static bool ended_as_asked(const struct session *session)
{
    return end_reason_is_ok(session->reason) ||
           (session->is_recorder && session->reason == END_DAEMON_EXIT);
}

static void log_change(const struct session *session)
{
    if (session->start_failure.name)
        log_line(LOG_ERR, session->name, "Not started. %s", session->start_failure.text);
    else if (session->state == SESSION_RUNNING && session->ring)
        log_line(LOG_INFO, session->name, "%s events %s of CPUs %s in memory.",
                 session->restored ? "Goes on recording" : "Recording", session->events_spec,
                 session->cpus_spec);
    else if (session->state == SESSION_RUNNING)
        log_line(LOG_INFO, session->name, "Recording events %s of CPUs %s to %s.",
                 session->events_spec, session->cpus_spec, session->output.path);
    else
        log_line(ended_as_asked(session) ? LOG_INFO : LOG_WARNING, session->name, "Ended. %s",
                 session->message);
}

/* The service manager has been told everything, or does not listen. */
static void manager_exit(void *userdata)
{
    struct manager *manager = userdata;

    manager->exits = false;
    if (is_over(manager))
        (void)sd_event_exit(manager->event, 0); /* cannot fail: the loop is running */
}

void manager_exit_if_over(struct manager *manager)
{
    if (!manager->shuts_down || manager->exits || !is_over(manager))
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
    recorder->is_kept = is_kept;
    if (!is_kept) {
        log_line(LOG_INFO, recorder->name,
                 "No service manager keeps the ring: it is lost when xentraced ends.");
        return;
    }
    if (manager->keeps_evtchn)
        return;
    (void)snprintf(name, sizeof(name), EVTCHN_STORE_PREFIX "%d", xen_host_virq_port(manager->xen));
    fd_store_keep(manager->systemd, name, xen_host_virq_fd(manager->xen),
                  manager_handle_evtchn_kept, manager);
}

static void keep_recorder(struct manager *manager, struct session *session)
{
    recorder_keep(session, manager_handle_ring_kept, manager);
    if (!ring_is_locked(session->ring))
        log_line(LOG_INFO, session->name,
                 "The ring is not locked in memory: RLIMIT_MEMLOCK (LimitMEMLOCK=) is too small.");
}

static void follow_recorder(struct manager *manager, struct session *session)
{
    bool runs = session->state == SESSION_RUNNING;

    if (runs)
        keep_recorder(manager, session);
    else
        recorder_forget(&manager->context);
    triggers_set_ring(manager->triggers, runs);
}

static void manager_handle_unit_started(void *userdata, const char *unit, int error)
{
    (void)userdata;
    if (error < 0)
        log_warning("systemd did not start %s: %s. The segment is complete; start it by hand.",
                    unit, strerror(-error));
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

static void handle_segment_finished(void *userdata, const struct session *session,
                                    unsigned int number, const struct segment *segment)
{
    struct manager *manager = userdata;

    if (manager->segment_finished)
        manager->segment_finished(manager->userdata, session, number, segment);
    if (segment) /* an empty one has no file */
        start_segment_unit(manager, session, number);
}

static void handle_session_change(void *userdata, struct session *session)
{
    struct manager *manager = userdata;

    log_change(session);
    if (session->is_recorder)
        follow_recorder(manager, session);
    if (manager->session_changed)
        manager->session_changed(manager->userdata, session);
    if (session->start_failure.name)
        forget_failed_start(manager, session);
    manager_exit_if_over(manager);
}

/* Without its collector the daemon is no use: end, so that it is started anew. */
static void handle_collector_death(struct manager *manager, int error)
{
    log_error("The collector cannot go on: %s. What was written is whole; tracing is disabled.",
              strerror(-error));
    (void)tracing_stop(manager->tracing);
    (void)sd_event_exit(manager->event, error);
}

static void handle_session_message(struct manager *manager, const struct message *message)
{
    for (size_t i = 0; i < manager->nr_sessions; i++) {
        if (session_owns_sink(manager->sessions[i], message->sink)) {
            session_handle_message(manager->sessions[i], message);
            return;
        }
    }
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
        else if (message.type == MESSAGE_PINNED)
            manager_handle_pinned(manager, &message);
        else
            handle_session_message(manager, &message);
    }
    return 0;
}

/* --- Construction. --- */

static int open_state_dir(struct manager *manager, struct failure *failure)
{
    if (mkdir(manager->state_dir, 0750) < 0 && errno != EEXIST)
        return failure_set(
            failure, -errno, ERROR_OUTPUT,
            "Cannot create the state directory %s: %s. Name another with --state-dir.",
            manager->state_dir, strerror(errno));
    manager->state_dir_fd = open(manager->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (manager->state_dir_fd < 0)
        return failure_set(failure, -errno, ERROR_OUTPUT,
                           "Cannot open the state directory %s: %s. Name another with --state-dir.",
                           manager->state_dir, strerror(errno));
    return 0;
}

static int start_collector(struct manager *manager, struct failure *failure)
{
    int r;

    r = pool_new(manager->config.pool_bytes, &manager->pool);
    if (r < 0)
        return failure_set(
            failure, r, ERROR_NO_MEMORY,
            "No memory for the pool of %llu MiB (%s): set a smaller pool= in [daemon].",
            (unsigned long long)(manager->config.pool_bytes >> 20), strerror(-r));
    r = collector_new(manager->xen, manager->pool, &manager->collector);
    if (r == -ENOSYS || r == -EPERM || r == -EACCES)
        return failure_set(failure, r, ERROR_OUTPUT,
                           "io_uring is switched off on this machine (%s): set the sysctl "
                           "kernel.io_uring_disabled=0, or lift the seccomp filter.",
                           strerror(-r));
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
            "RestrictRealtime=yes. On a busy dom0 it may come too late, and Xen may lose records.");
    return 0;
}

/*
 * A daemon that was killed holds VIRQ_TBUF until the kernel has taken down its io_uring, which
 * polls the event channel: that is a moment after its process is gone, or seconds if the host is
 * busy, and we may be its restart. Whoever else has it will not give it up soon.
 */
static int bind_xen(struct manager *manager, enum xen_step *ret_step)
{
    const struct timespec pause = {.tv_nsec = BIND_PAUSE_MSEC * 1000000};
    char who[CONSUMER_TEXT_MAX];
    unsigned int waited_msec = 0;
    int r;

    for (;;) {
        r = xen_host_open(NULL, &manager->xen, ret_step);
        if (r != -EEXIST || *ret_step != XEN_STEP_BIND_VIRQ || waited_msec >= BIND_MAX_MSEC ||
            (waited_msec >= BIND_SURE_MSEC && explain_consumer(who)))
            return r;
        (void)nanosleep(&pause, NULL); /* a signal makes it shorter: no harm */
        waited_msec += BIND_PAUSE_MSEC;
    }
}

/* With the event channel of the daemon before us, if it was kept. */
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
        log_warning("The event channel that was kept over the restart is of no use (%s): "
                    "VIRQ_TBUF is bound anew.",
                    strerror(-r));
        (void)snprintf(name, sizeof(name), EVTCHN_STORE_PREFIX "%s", port);
        fd_store_forget(manager->systemd, name);
        fd_close(&fd);
    }
    return bind_xen(manager, ret_step);
}

/* Names become known when xenstore tells them: they are wanted where they are shown. */
static void manager_handle_names(void *userdata)
{
    struct manager *manager = userdata;
    uint64_t now_ns = clock_pair_now().realtime_ns;

    for (size_t i = 0; i < manager->nr_sessions; i++)
        if (manager->sessions[i]->state != SESSION_ENDED)
            domains_update(&manager->sessions[i]->domains, manager->names, now_ns);
}

static int start_workers(struct manager *manager, struct failure *failure)
{
    int r;

    r = workers_new(manager->event, &manager->workers);
    if (r >= 0)
        r = systemd_new(manager->event, manager->workers, &manager->systemd);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot start a thread: %s.", strerror(-r));
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
    r = learn_names(manager, failure);
    if (r < 0)
        return r;
    r = open_state_dir(manager, failure);
    if (r >= 0)
        r = start_collector(manager, failure);
    if (r < 0)
        return r;
    r = tracing_new(manager->xen, manager->collector, &manager->tracing);
    if (r < 0)
        return explain_xen(failure, XEN_STEP_TRACE_INFO, r);
    r = sd_event_add_io(manager->event, &manager->collector_source,
                        collector_fd(manager->collector), EPOLLIN, handle_collector, manager);
    if (r >= 0)
        r = sd_event_source_set_priority(manager->collector_source, PRIORITY_COLLECTOR);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot listen to the collector: %s.",
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

/* Captures on request are possible without it. */
static void start_recorder(struct manager *manager, struct fd_store *inherited)
{
    struct watch_set *watch = triggers_watch_set(manager->triggers);
    struct failure failure = {0};
    struct session *session;

    if (!manager->config.recorder.enabled) {
        recorder_leave(&manager->context, inherited);
        return;
    }
    if (recorder_start(&manager->context, &manager->config, inherited, watch, &session, &failure) >=
        0)
        manager->sessions[manager->nr_sessions++] = session;
    else
        log_line(LOG_ERR, RECORDER_NAME, "Not started. %s", failure.text);
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
    manager->started_ns = clock_pair_now().realtime_ns;
    host_read(&manager->host);

    r = set_up(manager, inherited, failure);
    if (r < 0) {
        manager_free(manager);
        return r;
    }
    manager->context = (struct session_context){
        .event = event,
        .xen = manager->xen,
        .names = manager->names,
        .systemd = manager->systemd,
        .host = &manager->host,
        .tracing = manager->tracing,
        .collector = manager->collector,
        .pool = manager->pool,
        .state_dir_fd = manager->state_dir_fd,
        .state_dir = manager->state_dir,
        .default_buffer_pages = manager->config.buffer_pages,
        .memory_share_percent = manager->config.memory_share_percent,
        .changed = handle_session_change,
        .segment_finished = handle_segment_finished,
        .userdata = manager,
    };
    r = start_triggers(manager, failure);
    if (r < 0) {
        manager_free(manager);
        return r;
    }
    start_recorder(manager, inherited);
    output_sweep(manager->state_dir_fd);
    *ret_manager = manager;
    return 0;
}

struct manager *manager_free(struct manager *manager)
{
    if (!manager)
        return NULL;
    manager->collector_source = sd_event_source_disable_unref(manager->collector_source);
    collector_free(manager->collector);
    manager_free_snapshots(manager);
    while (manager->nr_sessions > 0)
        remove_session(manager, manager->nr_sessions - 1);
    triggers_free(manager->triggers);
    domain_names_free(manager->names);
    systemd_free(manager->systemd);
    tracing_free(manager->tracing);
    pool_free(manager->pool);
    xen_host_free(manager->xen);
    fd_close(&manager->state_dir_fd);
    workers_free(manager->workers);
    sd_event_unref(manager->event);
    free(manager);
    return NULL;
}

/* --- Sessions. --- */

static bool name_is_taken(const void *userdata, const char *name)
{
    const struct manager *manager = userdata;
    char file[SESSION_NAME_MAX + 16];

    (void)snprintf(file, sizeof(file), "%s.xentrace", name);
    return manager_find_by_name(manager, name) ||
           faccessat(manager->state_dir_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int check_start(const struct manager *manager, const char *name, struct failure *failure)
{
    const struct session *same = manager_find_by_name(manager, name);

    if (manager->shuts_down)
        return failure_set(failure, -ESHUTDOWN, ERROR_SHUTTING_DOWN,
                           "xentraced is being stopped and starts nothing new.");
    if (same && same->state != SESSION_ENDED)
        return failure_set(failure, -EEXIST, ERROR_NAME_IN_USE,
                           "'%s' is being recorded already. `xentracectl stop %s` ends it.", name,
                           name);
    if (strcmp(name, RECORDER_NAME) == 0)
        return failure_set(failure, -EINVAL, ERROR_NAME_IN_USE,
                           "'%s' is the recorder that [flight-recorder] of the configuration "
                           "describes. Choose another name.",
                           name);
    if (count_running(manager) >= MANAGER_RUNNING_MAX)
        return failure_set(failure, -EBUSY, ERROR_BUSY,
                           "%u sessions are being recorded, which is as many as there can be. "
                           "`xentracectl list` shows them, `xentracectl stop NAME` ends one.",
                           MANAGER_RUNNING_MAX);
    return 0;
}

/* Makes room for one more: the oldest that has ended goes. */
static void forget_oldest(struct manager *manager)
{
    size_t ended = manager->nr_sessions - count_running(manager);

    for (size_t i = 0; ended >= MANAGER_ENDED_MAX && i < manager->nr_sessions; i++) {
        if (manager->sessions[i]->state != SESSION_ENDED)
            continue;
        remove_session(manager, i);
        return;
    }
}

int manager_start_session(struct manager *manager, const char *name,
                          const struct session_options *options, struct session **ret_session,
                          struct failure *failure)
{
    char made_up[SESSION_NAME_MAX + 1];
    struct session *session;
    int r;

    r = check_start(manager, name, failure);
    if (r < 0)
        return r;
    if (name[0] == '\0') {
        name_make_up("capture", name_is_taken, manager, made_up);
        name = made_up;
    }
    r = session_new(&manager->context, name, options, &session, failure);
    if (r < 0)
        return r;
    forget_oldest(manager);
    manager->sessions[manager->nr_sessions++] = session;
    *ret_session = session;
    return 0;
}

/* --- The end. --- */

/* Whether the next daemon is to go on with the recorder. */
static bool may_keep(const struct manager *manager, const struct session *recorder)
{
    return recorder && recorder->is_kept && manager->keeps_evtchn &&
           manager->config.recorder.keep_enabled;
}

/* Systemd is stopping us FOR_GOOD, and drops what it keeps for us; or it starts us again. */
static void manager_handle_stop_answer(void *userdata, bool for_good)
{
    struct manager *manager = userdata;
    struct session *recorder = manager_find_recorder(manager);

    manager->asks_systemd = false;
    manager->keeps_recorder = !for_good && may_keep(manager, recorder);
    if (recorder && !manager->keeps_recorder)
        session_stop(recorder, END_DAEMON_EXIT);
    manager_exit_if_over(manager);
}

void manager_shut_down(struct manager *manager)
{
    struct session *recorder = manager_find_recorder(manager);

    manager->shuts_down = true;
    if (!manager->asks_systemd && may_keep(manager, recorder)) {
        manager->asks_systemd = true;
        systemd_ask_stop(manager->systemd, manager_handle_stop_answer, manager);
    }
    for (size_t i = manager->nr_sessions; i-- > 0;)
        if (!manager->asks_systemd || manager->sessions[i] != recorder)
            session_stop(manager->sessions[i], END_DAEMON_EXIT);
    for (size_t i = 0; i < manager->nr_snapshots; i++)
        snapshot_limit_patience(manager->snapshots[i]);
    manager_exit_if_over(manager);
}
