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
 * tracing_stop() restores the event mask of the boot. Xen does not report it after a daemon has set
 * another mask, and that daemon may have been killed. Therefore, the first daemon after the boot
 * saves it in the file BOOT_MASK_PATH (borrowed) before it sets another mask, with whether Xen was
 * changed for sessions. The file is in /run, a file system in memory that is empty after a boot, so
 * accessing it does not block. Returns 0 or
 * a negative errno from Xen.
 */
int tracing_new(struct xen_host *host, struct collector *collector, const char *boot_mask_path,
                struct tracing **ret_tracing);
struct tracing *tracing_free(struct tracing *tracing);

/*
 * Ensures that trace buffers are allocated and known to the collector. WANTED_PAGES 0: any size; if
 * they must be allocated, DEFAULT_PAGES, or a size that suits the host if that is 0. Does not
 * enable tracing. Fails with ERROR_BUFFER_SIZE if another size is in force, ERROR_XEN.
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

/*
 * The same, but leaves Xen as it is: it continues to trace. IS_KEPT: for good, as its user asked;
 * otherwise the next daemon continues the session, or restores Xen.
 */
void tracing_leave(struct tracing *tracing, struct tracing_use *use, bool is_kept);

/*
 * Whether Xen traces for sessions of an earlier daemon, which did not end them, and for none of
 * this one.
 */
bool tracing_is_left_on(const struct tracing *tracing);

/* Whether anybody but OTHER_THAN (NULL: anybody at all) is in the union. */
bool tracing_is_used(const struct tracing *tracing, const struct tracing_use *other_than);

/*
 * Enables all events of CPUS, because Xen reports losses only with a later record. No effect while
 * a session is in the union, because its records have the same effect.
 */
int tracing_provoke(struct tracing *tracing, const struct cpu_set *cpus);

/*
 * Disables tracing, and restores the masks from before the daemon's first session. No effect while
 * a session is in the union.
 */
int tracing_stop(struct tracing *tracing);

/* The same even if sessions are in the union: for use when their records can no longer be read. */
int tracing_force_stop(struct tracing *tracing);

/*
 * The event mask that Xen was booted with; and: an earlier daemon knew that it was MASK.
 */
uint32_t tracing_boot_event_mask(const struct tracing *tracing);
void tracing_set_boot_event_mask(struct tracing *tracing, uint32_t mask);

enum tracing_state tracing_state(const struct tracing *tracing);
uint32_t tracing_event_mask(const struct tracing *tracing);   /* in force */
uint32_t tracing_buffer_pages(const struct tracing *tracing); /* 0: not allocated, or not mapped */
