/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Xen's clock, which gives the time of records, and this domain's TSC. In a PV dom0, they are the
 * same. In a PVH dom0, Xen offsets the TSC so that it is 0 at the creation of the domain: records
 * are ahead by a constant of seconds to minutes, which no call returns. The offset is therefore
 * learned from the records: Xen's clock is never less than the newest TSC just drained.
 *
 * The collector thread learns the offset; any thread may read it. Each process learns it again.
 * Values that are stored (clock pairs) are therefore readings of xen_read_tsc(), and the offset is
 * added when they are compared with records or shown.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/xen.h"

#define TSC_SPANS 8u /* of time, of which each has a best guess of its own */

/* Within one span of time, the two best lower bounds of the offset, and the best upper one. */
struct tsc_span {
    uint64_t begin_tsc;
    uint32_t samples;
    int64_t best;
    int64_t second;
    int64_t limit; /* INT64_MAX: none */
};

/* Zero-initialized by its owner, the collector. */
struct tsc_learner {
    struct tsc_span spans[TSC_SPANS];
    unsigned int current;
    uint64_t emptied_tsc; /* the buffers were empty after that; 0: unknown */
};

/* One round over Xen's buffers. */
struct tsc_round {
    uint64_t begin_tsc;  /* xen_read_tsc() before it... */
    uint64_t end_tsc;    /* ... and after it */
    uint64_t newest_tsc; /* of the records that it has drained; 0: none had a TSC */
    bool is_even;        /* it left nothing in the buffers that was there when it began */
};

/* Publishes what is known after ROUND. Collector thread; a few comparisons. */
void tsc_learn(struct tsc_learner *learner, const struct tsc_round *round);

/* Nothing is known: for a new collector. */
void tsc_forget(void);

/* Ticks by which records are ahead of xen_read_tsc(), as far as known; 0 in a PV dom0. */
uint64_t tsc_offset(void);

/* By how many ticks tsc_offset() may be wrong; 0 if it is 0. */
uint64_t tsc_offset_uncertainty(void);

/* Xen's clock, as in records. */
static inline uint64_t tsc_now(void)
{
    return xen_read_tsc() + tsc_offset();
}
