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
#include "collector/xen.h"
#include "common/units.h"
#include "daemon/config/config.h"
#include "daemon/host/fd-store.h"
#include "daemon/base/log.h"
#include "daemon/session/session.h"
#include "daemon/host/tracing.h"

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

static void tell_dropped(const struct session_context *context, const char *problem)
{
    log_line(LOG_WARNING, RECORDER_NAME,
             "The ring that was kept over the restart is dropped: %s. Recording begins anew.",
             problem);
    fd_store_forget(context->systemd, STORE_NAME);
}

/* The ring that was kept, if it can be gone on with; else NULL. */
static struct ring *take_ring(const struct session_context *context, const struct config *config,
                              struct fd_store *inherited)
{
    const char *rest, *problem = NULL;
    _cleanup_fd_ int fd = fd_store_take(inherited, STORE_NAME, &rest);
    struct ring *ring = NULL;

    if (fd < 0)
        return NULL;
    if (ring_adopt(fd, xen_host_info(context->xen)->nr_cpus, &ring, &problem) < 0) {
        tell_dropped(context, problem);
        return NULL;
    }
    if (((const struct note *)ring_note(ring))->is_valid != 1)
        problem = "it was not in use yet";
    else if (ring_bytes(ring) != ring_bytes_of(config->recorder.memory_bytes))
        problem = "memory= was changed";
    if (!problem)
        return ring;
    tell_dropped(context, problem);
    return ring_free(ring);
}

static int start(const struct session_context *context, const struct config *config,
                 struct ring *ring, struct watch_set *watch, struct session **ret_session,
                 struct failure *failure)
{
    struct note *note = ring ? ring_note(ring) : NULL;
    struct session_options options = {
        .events = config->recorder.events,
        .cpus = config->recorder.cpus,
        .poll_usec = POLL_USEC,
        .memory_bytes = config->recorder.memory_bytes,
        .max_age_usec = config->recorder.max_age_usec,
        .is_recorder = true,
        .output_fd = -1,
        .sidecar_fd = -1,
        .ring = ring,
        .watch = watch,
        .since = note ? &note->started : NULL,
    };
    uint64_t adopted_seq = ring ? ring_newest_seq(ring) : 0;
    int r;

    r = session_new(context, RECORDER_NAME, &options, ret_session, failure);
    if (r < 0 || !note)
        return r;
    (*ret_session)->restored = note->restored + 1;
    (*ret_session)->snapshots = note->snapshots;
    (*ret_session)->adopted_seq = adopted_seq;
    (*ret_session)->is_kept = true;
    tracing_set_boot_event_mask(context->tracing, note->boot_event_mask);
    return 0;
}

int recorder_start(const struct session_context *context, const struct config *config,
                   struct fd_store *inherited, struct watch_set *watch,
                   struct session **ret_session, struct failure *failure)
{
    struct ring *ring = take_ring(context, config, inherited);

    if (ring) {
        if (start(context, config, ring, watch, ret_session, failure) >= 0)
            return 0;
        tell_dropped(context, failure->text);
        *failure = (struct failure){0};
        ring_free(ring);
    }
    return start(context, config, NULL, watch, ret_session, failure);
}

void recorder_note(struct session *session)
{
    struct note *note = ring_note(session->ring);

    *note = (struct note){
        .started = session->started,
        .restored = session->restored,
        .snapshots = session->snapshots,
        .boot_event_mask = tracing_boot_event_mask(session->context->tracing),
        .is_valid = 1,
    };
}

void recorder_keep(struct session *session, void (*kept)(void *userdata, bool is_kept),
                   void *userdata)
{
    recorder_note(session);
    /* A ring that was taken over is there already: the manager knows the file. */
    if (session->is_kept)
        kept(userdata, true);
    else
        fd_store_keep(session->context->systemd, STORE_NAME, ring_memfd(session->ring), kept,
                      userdata);
}

void recorder_leave(const struct session_context *context, struct fd_store *inherited)
{
    const char *rest, *problem;
    _cleanup_fd_ int fd = fd_store_take(inherited, STORE_NAME, &rest);
    struct ring *ring = NULL;
    int r;

    if (fd < 0)
        return;
    if (ring_adopt(fd, xen_host_info(context->xen)->nr_cpus, &ring, &problem) >= 0) {
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
