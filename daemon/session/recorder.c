// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ring survives in the service manager's fd store, with a note for state that is not in the
 * configuration. The present configuration applies: changed events= or cpus= are used from now on;
 * with a changed memory=, or an older layout, the newest records are carried over into a new ring.
 *
 * The process may be killed at any time during this. The new ring is kept under the other name when
 * it is complete, before anything is recorded into it. Then the old one is retired: its magic is
 * cleared, and the service manager removes it. Until then, either of them can be continued.
 */

#include "daemon/session/recorder.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "collector/pool.h"
#include "collector/ring-carry.h"
#include "collector/ring-v2.h"
#include "collector/ring.h"
#include "collector/watch.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/clock-history.h"
#include "daemon/config/config.h"
#include "daemon/base/log.h"
#include "daemon/host/fd-store.h"
#include "daemon/host/host.h"
#include "daemon/host/systemd.h"
#include "daemon/host/tracing.h"
#include "daemon/session/recorder-stop.h"
#include "daemon/session/ring-storage.h"
#include "daemon/session/session.h"

#define STORE_NAME "ring"
#define POLL_USEC                                                                                  \
    USEC_PER_SEC /* nobody waits for its records; half full buffers wake it anyway                 \
                  */

/*
 * The start timeout requested from systemd while a ring is carried over: 64 MiB/s is a slow copy.
 */
#define EXTEND_USEC          (10 * USEC_PER_SEC)
#define EXTEND_BYTES_PER_SEC (UINT64_C(64) << 20)

/* Begins with STORE_NAME. A ring that takes another's place is kept under the other one. */
static const char *const store_names[] = {STORE_NAME, STORE_NAME "-carried"};

/* In the ring. Part of what RING_VERSION covers; ring_carry() copies it as it is. */
struct note {
    struct clock_pair started;
    uint32_t restored;
    uint32_t snapshots;
    uint32_t boot_event_mask;
    uint32_t is_valid;
};

_Static_assert(sizeof(struct note) <= RING_NOTE_BYTES, "what a ring keeps for us");
_Static_assert(sizeof(struct note) == 32 && offsetof(struct note, is_valid) == 28,
               "rings of version 2 have this one");

static void recorder_drop(const char *problem)
{
    log_line(LOG_WARNING, RECORDER_NAME,
             "The ring that was kept across the restart was discarded: %s. Recording starts with "
             "an empty ring.",
             problem);
    for (size_t i = 0; i < ARRAY_SIZE(store_names); i++)
        fd_store_forget_now(store_names[i]); /* the next one may need its memory */
}

/* --- What the service manager has kept. --- */

struct kept_rings {
    struct {
        int fd;
        unsigned int name; /* index */
    } rings[FD_STORE_INHERITED_MAX];
    unsigned int count;
};

static void recorder_take_kept(struct fd_store *inherited, struct kept_rings *ret_kept)
{
    const char *rest;
    int fd;

    ret_kept->count = 0;
    while ((fd = fd_store_take(inherited, STORE_NAME, &rest)) >= 0) {
        ret_kept->rings[ret_kept->count].fd = fd;
        ret_kept->rings[ret_kept->count++].name = rest[0] != '\0';
    }
}

static void kept_rings_done(struct kept_rings *kept)
{
    for (unsigned int i = 0; i < kept->count; i++)
        fd_close(&kept->rings[i].fd);
}

/* The ring in FD, of this layout or one that can be read, if it was in use. */
static struct ring *recorder_open_ring(const struct session_context *context, int fd,
                                       const char **ret_problem)
{
    unsigned int nr_cpus = xen_host_info(context->xen)->nr_cpus;
    const struct note *note;
    struct ring *ring;
    int r;

    r = ring_adopt(fd, nr_cpus, context->grower, &ring, ret_problem);
    if (r == -EPROTO)
        r = ring_read_v2(fd, nr_cpus, &ring, ret_problem);
    if (r < 0)
        return NULL;
    note = ring_note(ring);
    if (note->is_valid == 1)
        return ring;
    *ret_problem = "it was not yet in use";
    return ring_free(ring);
}

/* As it is; else it is carried over. */
static bool recorder_can_continue(const struct ring *ring, const struct config *config)
{
    return ring_memfd(ring) >= 0 &&
           ring_bytes(ring) == ring_bytes_of(config->recorder.memory_bytes);
}

/* Of several, which a daemon has left that was killed while it carried one over: the one to
 * continue as it is, if there is one. */
static struct ring *recorder_choose_ring(const struct session_context *context,
                                         const struct config *config, const struct kept_rings *kept,
                                         unsigned int *ret_chosen, const char **ret_problem)
{
    struct ring *chosen = NULL;

    for (unsigned int i = 0; i < kept->count; i++) {
        struct ring *ring = recorder_open_ring(context, kept->rings[i].fd, ret_problem);

        if (!ring)
            continue;
        if (chosen && !recorder_can_continue(ring, config)) {
            ring_free(ring);
            continue;
        }
        ring_free(chosen);
        chosen = ring;
        *ret_chosen = i;
        if (recorder_can_continue(chosen, config))
            break;
    }
    return chosen;
}

/* All but number CHOSEN. The name SKIP_NAME is still in use. */
static void recorder_retire(const struct session_context *context, const struct kept_rings *kept,
                            unsigned int chosen, unsigned int skip_name)
{
    for (unsigned int i = 0; i < kept->count; i++) {
        if (i == chosen)
            continue;
        (void)ring_retire(kept->rings[i].fd); /* what cannot be written to is no ring of ours */
        if (kept->rings[i].name != skip_name)
            fd_store_forget(context->systemd, store_names[kept->rings[i].name]);
    }
}

/* --- Carrying over. --- */

static void log_carried(const struct session_context *context, const struct ring *from,
                        const struct ring *to, const struct ring_carried *carried)
{
    uint64_t khz = max_u64(xen_host_info(context->xen)->tsc_khz, 1);
    const char *version = ring_memfd(from) < 0 ? " of an earlier version of xentraced" : "";
    char size[UNITS_TEXT_MAX], length[UNITS_TEXT_MAX], since[UNITS_TEXT_MAX];
    uint64_t now_tsc = tsc_now(), age_tsc;
    struct ring_stats stats;

    ring_read_stats(to, &stats);
    (void)size_format(size, ring_bytes(from));
    if (carried->records == 0) {
        log_line(LOG_INFO, RECORDER_NAME, "No records were carried over from a ring of %s%s: %s.",
                 size, version,
                 carried->is_all        ? "it was empty"
                 : carried->was_damaged ? "its newest records are damaged"
                                        : "no whole round of records fits");
        return;
    }
    age_tsc = now_tsc > stats.oldest_tsc ? now_tsc - stats.oldest_tsc : 0;
    (void)duration_format(length, (stats.newest_tsc - stats.oldest_tsc) / khz * USEC_PER_MSEC);
    if (carried->is_all)
        log_line(LOG_INFO, RECORDER_NAME, "History of %s carried over from a ring of %s%s.", length,
                 size, version);
    else
        log_line(LOG_INFO, RECORDER_NAME,
                 "History of %s carried over from a ring of %s%s; records older than %s %s.",
                 length, size, version, clock_format_usec_ago(since, age_tsc / khz * USEC_PER_MSEC),
                 carried->was_damaged ? "were damaged" : "did not fit");
}

/* Systemd ends a service that takes too long to start. */
static void recorder_extend_start(const struct session_context *context, uint64_t bytes)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%llu",
                   (unsigned long long)(EXTEND_USEC + bytes / EXTEND_BYTES_PER_SEC * USEC_PER_SEC));
    systemd_notify(context->systemd, text);
}

static void ring_freep(struct ring **ring)
{
    ring_free(*ring);
}

/* A ring as in CONFIG, with what FROM holds, kept under the name NAME. NULL: FAILURE. */
static struct ring *recorder_carry(const struct session_context *context,
                                   const struct config *config, struct ring *from,
                                   unsigned int name, struct failure *failure)
{
    uint64_t bytes = config->recorder.memory_bytes;
    _cleanup_(ring_freep) struct ring *to = NULL;
    struct ring_carried carried;
    char wanted[UNITS_TEXT_MAX];
    int r;

    (void)size_format(wanted, bytes);
    if (!host_can_spare(bytes, context->memory_share_percent)) {
        (void)failure_set(failure, -ENOMEM, ERROR_NO_MEMORY,
                          "its records cannot be carried over, as dom0 cannot spare %s beside it "
                          "(memory-share=)",
                          wanted);
        return NULL;
    }
    recorder_extend_start(context, bytes + ring_bytes(from));
    ring_unlock(from); /* RLIMIT_MEMLOCK need not do for both */
    r = ring_new(bytes, xen_host_info(context->xen)->nr_cpus, true, context->grower, &to);
    if (r < 0) {
        (void)failure_set(failure, r, ERROR_NO_MEMORY,
                          "its records cannot be carried over, as there is no memory for one of "
                          "%s beside it: %s",
                          wanted, strerror(-r));
        return NULL;
    }
    if (ring_carry(to, from, &carried) < 0) {
        (void)failure_set(failure, -EBADMSG, ERROR_NO_MEMORY,
                          "its records cannot be carried over: they are not what its ledger says");
        return NULL;
    }
    if (!fd_store_keep_now(store_names[name], ring_memfd(to))) {
        (void)failure_set(failure, -EIO, ERROR_NO_MEMORY,
                          "the service manager does not keep the new ring");
        return NULL;
    }
    log_carried(context, from, to, &carried);
    return TAKE_PTR(to);
}

/*
 * The ring with which to continue: a new one with the carried-over records, or the kept one. NULL:
 * none; if one was kept, the log gives the reason.
 */
static struct ring *recorder_take_ring(const struct session_context *context,
                                       const struct config *config, struct fd_store *inherited)
{
    _cleanup_(kept_rings_done) struct kept_rings kept;
    struct failure failure = {0};
    const char *problem = "it is not a ring";
    struct ring *ring, *carried;
    char size[UNITS_TEXT_MAX];
    unsigned int chosen, name;

    recorder_take_kept(inherited, &kept);
    if (kept.count == 0)
        return NULL;
    ring = recorder_choose_ring(context, config, &kept, &chosen, &problem);
    if (!ring) {
        kept_rings_done(&kept);
        recorder_drop(problem);
        return NULL;
    }
    name = kept.rings[chosen].name;
    if (recorder_can_continue(ring, config)) {
        recorder_retire(context, &kept, chosen, name);
        return ring;
    }
    carried = recorder_carry(context, config, ring, !name, &failure);
    if (carried) {
        ring_free(ring);
        recorder_retire(context, &kept, UINT_MAX, !name);
        return carried;
    }
    if (ring_memfd(ring) >= 0) { /* better than none of its history */
        log_line(LOG_WARNING, RECORDER_NAME, "The ring keeps its size of %s: %s.",
                 size_format(size, ring_bytes(ring)), failure.text);
        ring_lock(ring);
        recorder_retire(context, &kept, chosen, name);
        return ring;
    }
    ring_free(ring);
    kept_rings_done(&kept);
    recorder_drop(failure.text);
    return NULL;
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
    if (!recorder_can_continue(ring, config)) /* it has kept its size */
        storage->memory_bytes = ring_bytes(ring);
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
        ring_free(ring);
        recorder_drop(failure->text);
        *failure = (struct failure){0};
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
                   "Stopped by %s. To start it: xentracectl start %s",
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
    _cleanup_(kept_rings_done) struct kept_rings kept;
    const char *problem;
    int r;

    recorder_take_kept(inherited, &kept);
    if (kept.count == 0)
        return;
    for (unsigned int i = 0; i < kept.count; i++) {
        struct ring *ring = recorder_open_ring(context, kept.rings[i].fd, &problem);

        if (!ring)
            continue;
        tracing_set_boot_event_mask(context->tracing,
                                    ((const struct note *)ring_note(ring))->boot_event_mask);
        ring_free(ring);
    }
    recorder_forget(context);
    r = tracing_stop(context->tracing);
    if (r < 0)
        log_line(LOG_WARNING, RECORDER_NAME,
                 "The flight recorder is disabled, but Xen did not disable tracing: %s.",
                 strerror(-r));
}

void recorder_forget(const struct session_context *context)
{
    for (size_t i = 0; i < ARRAY_SIZE(store_names); i++)
        fd_store_forget(context->systemd, store_names[i]);
}
