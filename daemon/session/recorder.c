// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What survives: the ring, in the service manager's fd store, with a note in it of what is not in
 * the configuration. The configuration is the one of now: another events= or cpus= holds from now
 * on, another memory= means another ring.
 */

#include "daemon/session/recorder.h"

#include <errno.h>
#include <string.h>

#include "collector/pool.h"
#include "collector/ring.h"
#include "collector/watch.h"
#include "collector/xen.h"
#include "common/units.h"
#include "daemon/base/clock-history.h"
#include "daemon/config/config.h"
#include "daemon/base/log.h"
#include "daemon/host/fd-store.h"
#include "daemon/host/tracing.h"
#include "daemon/session/recorder-stop.h"
#include "daemon/session/ring-storage.h"
#include "daemon/session/session.h"

#define STORE_NAME "ring"
#define POLL_USEC                                                                                  \
    USEC_PER_SEC /* nobody waits for its records; half full buffers wake it anyway                 \
                  */

/* In the ring. Part of what RING_VERSION covers. */
struct note {
    struct clock_pair started;
    uint32_t restored;
    uint32_t snapshots;
    uint32_t boot_event_mask;
    uint32_t is_valid;
};

_Static_assert(sizeof(struct note) <= RING_NOTE_BYTES, "what a ring keeps for us");

static void recorder_drop(const struct session_context *context, const char *problem)
{
    log_line(LOG_WARNING, RECORDER_NAME,
             "The ring that was kept over the restart is dropped: %s. Recording begins anew.",
             problem);
    recorder_forget(context);
}

/* Why RING cannot be gone on with; NULL: it can. */
static const char *recorder_find_problem(struct ring *ring, const struct config *config)
{
    const struct note *note = ring_note(ring);

    if (note->is_valid != 1)
        return "it was not in use yet";
    if (ring_bytes(ring) != ring_bytes_of(config->recorder.memory_bytes))
        return "memory= was changed";
    return NULL;
}

/* The ring that was kept, if it can be gone on with; else NULL. */
static struct ring *recorder_take_ring(const struct session_context *context,
                                       const struct config *config, struct fd_store *inherited)
{
    const char *rest, *problem = NULL;
    _cleanup_fd_ int fd = fd_store_take(inherited, STORE_NAME, &rest);
    struct ring *ring = NULL;

    if (fd < 0)
        return NULL;
    if (ring_adopt(fd, xen_host_info(context->xen)->nr_cpus, context->grower, &ring, &problem) <
        0) {
        recorder_drop(context, problem);
        return NULL;
    }
    problem = recorder_find_problem(ring, config);
    if (!problem)
        return ring;
    recorder_drop(context, problem);
    return ring_free(ring);
}

static struct session_options recorder_options(const struct config *config, struct watch_set *watch)
{
    return (struct session_options){
        .events = config->recorder.events,
        .cpus = config->recorder.cpus,
        .poll_usec = POLL_USEC,
        .memory_bytes = config->recorder.memory_bytes,
        .max_age_usec = config->recorder.max_age_usec,
        .is_recorder = true,
        .output_fd = -1,
        .sidecar_fd = -1,
        .watch = watch,
    };
}

static int recorder_start_with(const struct session_context *context, const struct config *config,
                               struct ring *ring, struct watch_set *watch,
                               struct session **ret_session, struct failure *failure)
{
    struct note *note = ring ? ring_note(ring) : NULL;
    struct session_options options = recorder_options(config, watch);
    uint64_t adopted_seq = ring ? ring_newest_seq(ring) : 0;
    struct ring_storage *storage;
    int r;

    options.ring = ring;
    options.since = note ? &note->started : NULL;
    r = session_new(context, RECORDER_NAME, &options, ret_session, failure);
    if (r < 0 || !note)
        return r;
    storage = ring_storage_of(*ret_session);
    storage->restored = note->restored + 1;
    storage->snapshots = note->snapshots;
    storage->adopted_seq = adopted_seq;
    storage->is_kept = true;
    clock_history_adopt(context->clock, note->started);
    tracing_set_boot_event_mask(context->tracing, note->boot_event_mask);
    return 0;
}

int recorder_start(const struct session_context *context, const struct config *config,
                   struct fd_store *inherited, struct watch_set *watch,
                   struct session **ret_session, struct failure *failure)
{
    struct ring *ring = recorder_take_ring(context, config, inherited);

    if (ring) {
        if (recorder_start_with(context, config, ring, watch, ret_session, failure) >= 0)
            return 0;
        recorder_drop(context, failure->text);
        *failure = (struct failure){0};
        ring_free(ring);
    }
    return recorder_start_with(context, config, NULL, watch, ret_session, failure);
}

int recorder_start_anew(const struct session_context *context, const struct config *config,
                        struct watch_set *watch, struct session **ret_session,
                        struct failure *failure)
{
    struct session_options options = recorder_options(config, watch);

    options.makes_ring_later = true;
    /* A vCPU that was waiting when the recorder was stopped has not waited since then. */
    if (watch)
        watch_reset(watch);
    return session_new(context, RECORDER_NAME, &options, ret_session, failure);
}

void recorder_stop(struct session *session, const struct recorder_stop *stop)
{
    char who[RECORDER_STOP_TEXT_MAX];

    (void)snprintf(session->message, sizeof(session->message),
                   "Stopped by %s. `xentracectl start %s` starts it again.",
                   recorder_stop_describe(who, stop), RECORDER_NAME);
    session_stop(session, END_STOP);
}

const char *recorder_history(char *text, const struct session *session)
{
    const struct ring_storage *storage = ring_storage_of(session);
    uint32_t khz = xen_host_info(session->context->xen)->tsc_khz;
    uint64_t now_tsc = tsc_now();
    struct ring_stats stats = {0};

    text[0] = '\0';
    if (storage->ring)
        ring_read_stats(storage->ring, &stats);
    if (stats.oldest_tsc && khz && now_tsc > stats.oldest_tsc)
        (void)duration_format(text, clock_nsec_of_tsc(now_tsc - stats.oldest_tsc, khz) / 1000);
    return text;
}

void recorder_keep(struct session *session, void (*done)(void *userdata, bool is_kept),
                   void *userdata)
{
    struct ring_storage *storage = ring_storage_of(session);

    recorder_note(session);
    /* A ring that was taken over is there already: the service manager knows the file. */
    if (storage->is_kept)
        done(userdata, true);
    else
        fd_store_keep(session->context->systemd, STORE_NAME, ring_memfd(storage->ring), done,
                      userdata);
}

void recorder_note(struct session *session)
{
    const struct ring_storage *storage = ring_storage_of(session);
    struct note *note = ring_note(storage->ring);

    *note = (struct note){
        .started = session->started,
        .restored = storage->restored,
        .snapshots = storage->snapshots,
        .boot_event_mask = tracing_boot_event_mask(session->context->tracing),
        .is_valid = 1,
    };
}

void recorder_leave(const struct session_context *context, struct fd_store *inherited)
{
    const char *rest, *problem;
    _cleanup_fd_ int fd = fd_store_take(inherited, STORE_NAME, &rest);
    struct ring *ring = NULL;
    int r;

    if (fd < 0)
        return;
    if (ring_adopt(fd, xen_host_info(context->xen)->nr_cpus, NULL, &ring, &problem) >= 0) {
        const struct note *note = ring_note(ring);

        if (note->is_valid == 1)
            tracing_set_boot_event_mask(context->tracing, note->boot_event_mask);
        ring_free(ring);
    }
    recorder_forget(context);
    r = tracing_stop(context->tracing);
    if (r < 0)
        log_line(LOG_WARNING, RECORDER_NAME,
                 "It is switched off, but Xen did not disable tracing: %s.", strerror(-r));
}

void recorder_forget(const struct session_context *context)
{
    fd_store_forget(context->systemd, STORE_NAME);
}
