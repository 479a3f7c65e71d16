/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Runs the triggers of the configuration: watches the records (collector/watch.h) and the domains
 * (domain-watch.h), handles their timers, and requests snapshots. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/failure.h"
#include "daemon/triggers/trigger.h"

struct domain_names;
struct sd_event;
struct triggers;
struct watch_set;
struct xen_host;

struct triggers_context {
    struct sd_event *event;
    struct xen_host *xen;        /* borrowed */
    struct domain_names *names;  /* borrowed */
    const struct config *config; /* its triggers are copied */
    uint32_t tsc_khz;

    /*
     * Write a snapshot of the flight recorder, LABEL (the trigger's name) in its name, the last
     * LAST_USEC of it (0: everything). Its cause is trigger->last_reason; who asked for it, if
     * somebody did, trigger->requester. To be answered with
     * triggers_snapshot_done(), once, now or later.
     */
    void (*snapshot)(void *userdata, struct trigger *trigger, const char *label,
                     uint64_t last_usec);
    void *userdata;
};

/*
 * All triggers are off until triggers_set_ring(). CONTEXT is copied. With no trigger in the
 * configuration nothing wakes but a domain that comes or goes. -ENOMEM, or an error of the event
 * loop's.
 */
int triggers_new(const struct triggers_context *context, struct triggers **ret_triggers);
/*
 * CONFIG's triggers from here on. One whose name stays keeps its counts and its state, and
 * continues to watch unless some trigger watches for something else now; one whose name goes still
 * ends the snapshot that it is writing, but does not try again if that fails. Returns 0, or -ENOMEM
 * or an error of the event loop's: then no trigger has come or gone.
 */
int triggers_reload(struct triggers *triggers, const struct config *config);
/* The collector must have given back the watch set. */
struct triggers *triggers_free(struct triggers *triggers);

/*
 * What the collector is to look for in the flight recorder's records, to be lent to it with the
 * recorder's sink; the same set for as long as the triggers live.
 */
struct watch_set *triggers_watch_set(const struct triggers *triggers);

/* Domains have come, or their names have become known. */
void triggers_update_domains(struct triggers *triggers);

/* The flight recorder has begun to record, or has ended. */
void triggers_set_ring(struct triggers *triggers, bool has_ring);

/* The collector has reported that watch_end_round() returned true. */
void triggers_handle_watch(struct triggers *triggers);

/*
 * WHO asks for the trigger NAME, which must have condition=manual. Returns 0 with the trigger
 * in *RET_TRIGGER, fired or suppressed, as its document says; or a negative errno and FAILURE:
 * ERROR_NO_TRIGGER, ERROR_INVALID (another condition), ERROR_NO_RING.
 */
int triggers_fire_manual(struct triggers *triggers, const char *name, const struct requester *who,
                         const struct trigger **ret_trigger, struct failure *failure);

/* The snapshot that TRIGGER asked for is in the file PATH; or PATH is NULL, and ERROR says why. */
void triggers_snapshot_done(struct triggers *triggers, struct trigger *trigger, const char *path,
                            const char *error);

/* All triggers, in the order of the configuration; INDEX is less than their number. */
size_t triggers_count(const struct triggers *triggers);
const struct trigger *triggers_get(const struct triggers *triggers, size_t index);
