/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger: accounts for every record that Xen produced for a session, per CPU.
 *
 * Written by the collector thread alone; the main thread may read a line at any time, figure by
 * figure (relaxed atomics).
 */

#include <stdint.h>

/* One CPU's line. produced = delivered + lost + dropped + evicted, to the record. */
struct ledger {
    uint64_t produced;  /* by Xen, for this session: kept by the filter, or lost */
    uint64_t delivered; /* in the output, or queued for it; in the ring */
    uint64_t lost;      /* dropped by Xen, as its lost_records records report */
    uint64_t dropped;   /* by xentraced: no chunk was free, or a chunk could not be written */
    uint64_t evicted;   /* overwritten in a ring */
    uint64_t first_tsc;
    uint64_t last_tsc;
};

/* A figure that another thread may read concurrently. */
static inline void ledger_publish(uint64_t *figure, uint64_t value)
{
    __atomic_store_n(figure, value, __ATOMIC_RELAXED);
}

static inline void ledger_add(uint64_t *figure, uint64_t n)
{
    ledger_publish(figure, *figure + n);
}

static inline uint64_t ledger_observe(const uint64_t *figure)
{
    return __atomic_load_n(figure, __ATOMIC_RELAXED);
}
