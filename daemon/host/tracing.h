/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state of tracing in Xen: buffers, masks (the union of what the sessions want), enabled or
 * not. Xen cannot be asked whether tracing is enabled or which CPU mask is in force, so this module
 * remembers what it set. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/cpu-set.h"
#include "daemon/base/failure.h"

struct collector;
struct tracing;
struct xen_host;

enum tracing_state {
    TRACING_UNKNOWN, /* we have not set it: a boot parameter or another tool may have enabled it */
    TRACING_ON,
    TRACING_OFF,
};

/*
 * The event mask that Xen was booted with is what tracing_stop() restores. Xen cannot be asked for
 * it once a daemon has set another one, and that daemon may have been killed: the first daemon
 * after the boot notes it, when it first sets another, in the file BOOT_MASK_PATH, whose name is
 * lent. That is on a file system in memory, which the boot empties (/run): reading and writing it
 * does not wait. Returns 0 or a negative errno of Xen's.
 */
int tracing_new(struct xen_host *host, struct collector *collector, const char *boot_mask_path,
                struct tracing **ret_tracing);
struct tracing *tracing_free(struct tracing *tracing);

/*
 * Sees to it that there are trace buffers and that the collector knows them. WANTED_PAGES 0: any
 * size; DEFAULT_PAGES if they have to be allocated, or what suits the host, if that is 0 too.
 * Traces nothing. Fails with ERROR_BUFFER_SIZE if another size is in force, ERROR_XEN.
 */
int tracing_prepare(struct tracing *tracing, uint32_t wanted_pages, uint32_t default_pages,
                    struct failure *failure);

/*
 * What one session wants traced; Xen traces the union of all. Embedded in the session, which fills
 * it before tracing_start(); from then on until tracing_mute() or tracing_leave() it is in the
 * union and must stay where it is.
 */
struct tracing_use {
    uint32_t event_mask;
    struct cpu_set cpus;
    bool enable; /* false: it does not ask for tracing to be enabled */

    bool active; /* tracing.c's own */
    struct tracing_use *next;
};

/* Adds USE to the union, and enables if it asks for it. On failure all is as before. */
int tracing_start(struct tracing *tracing, struct tracing_use *use, struct failure *failure);

/*
 * Takes USE out of the union. After the last one no event passes, but tracing stays enabled: losses
 * that Xen has not reported stay pending, unlike after tracing_stop(). Nothing if it is not in it.
 */
int tracing_mute(struct tracing *tracing, struct tracing_use *use);

/* The same, but leaves Xen as it is: it continues to trace. */
void tracing_leave(struct tracing *tracing, struct tracing_use *use);

/* Whether anybody but OTHER_THAN (NULL: anybody at all) is in the union. */
bool tracing_is_used(const struct tracing *tracing, const struct tracing_use *other_than);

/*
 * Lets every event of CPUS pass, so that Xen has an occasion to report what it lost. While somebody
 * is in the union, whose records are occasion enough: nothing.
 */
int tracing_provoke(struct tracing *tracing, const struct cpu_set *cpus);

/*
 * Disables, and sets the masks back to what they were before the daemon's first session. While
 * somebody is in the union: nothing.
 */
int tracing_stop(struct tracing *tracing);

/* The same whoever is in the union: for when their records cannot be taken any more. */
int tracing_force_stop(struct tracing *tracing);

/*
 * The event mask that Xen was booted with; and: an earlier daemon knew that it was MASK.
 */
uint32_t tracing_boot_event_mask(const struct tracing *tracing);
void tracing_set_boot_event_mask(struct tracing *tracing, uint32_t mask);

enum tracing_state tracing_state(const struct tracing *tracing);
uint32_t tracing_event_mask(const struct tracing *tracing);   /* in force */
uint32_t tracing_buffer_pages(const struct tracing *tracing); /* 0: not allocated, or not mapped */
