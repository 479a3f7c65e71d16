/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What Xen has been told about tracing: buffers, masks, enabled or not. Xen cannot be asked whether
 * tracing is enabled or which CPU mask is in force, so this remembers. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/cpu-set.h"
#include "daemon/failure.h"

struct collector;
struct tracing;
struct xen_host;

enum tracing_state {
    TRACING_UNKNOWN, /* nobody told us yet: a boot parameter or another tool may have enabled it */
    TRACING_ON,
    TRACING_OFF,
};

int tracing_new(struct xen_host *host, struct collector *collector, struct tracing **ret_tracing);
struct tracing *tracing_free(struct tracing *tracing);

/*
 * Sees to it that there are trace buffers and that the collector knows them. WANTED_PAGES 0: any
 * size, DEFAULT_PAGES if they have to be allocated. Traces nothing. Fails with ERROR_BUFFER_SIZE if
 * another size is in force, ERROR_XEN.
 */
int tracing_prepare(struct tracing *tracing, uint32_t wanted_pages, uint32_t default_pages,
                    struct failure *failure);

/* Sets the masks, and enables if ENABLE. On failure masks and state are as before. */
int tracing_start(struct tracing *tracing, uint32_t event_mask, const struct cpu_set *cpus,
                  bool enable, struct failure *failure);

/* Lets no event pass: losses not told yet stay pending, unlike after tracing_stop(). */
int tracing_mute(struct tracing *tracing);

/* Lets every event of CPUS pass, so that Xen has an occasion to tell what it lost. */
int tracing_provoke(struct tracing *tracing, const struct cpu_set *cpus);

/* Disables, and sets the masks back to what they were before the daemon's first session. */
int tracing_stop(struct tracing *tracing);

enum tracing_state tracing_state(const struct tracing *tracing);
uint32_t tracing_event_mask(const struct tracing *tracing);   /* in force */
uint32_t tracing_buffer_pages(const struct tracing *tracing); /* 0: not allocated, or not mapped */
