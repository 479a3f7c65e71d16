/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What vCPUs did in a short trace, for live views: less than trace/measures.h, in half of the time.
 * Its numbers are those of docs/measures.md, and equal to those of measures.h.
 *
 * One thread.
 */

#include <stdint.h>

#include "trace/merge.h"
#include "trace/sample.h"
#include "trace/state.h"

/* Of a vCPU that waited or exited; its sums are in struct state_vcpu, whose `observed` this is. */
struct activity_vcpu {
    struct sample waits; /* of all kinds */
    uint64_t wakes;      /* waits that began with a wake-up */
    uint64_t exits;
};

/* Everything is to be read only. Times are effective times, in ticks of the TSC. */
struct activity {
    uint64_t first_tsc, last_tsc;
    uint64_t records;
    uint64_t gaps; /* losses, and the records that are missing in them */
    uint64_t lost;
    struct state state;
    struct state_observer observer;
    struct merge *merge;
    struct sample_budget budget;
    int error;
};

/* Reads all of MERGE, which is borrowed as long as the activity is used. 0; -ENOMEM, or what
 * reading ended with. */
int activity_new(struct merge *merge, struct activity **ret_activity);
/* Takes NULL; returns NULL. */
struct activity *activity_free(struct activity *activity);

static inline void activity_freep(struct activity **activity)
{
    *activity = activity_free(*activity);
}

#define _cleanup_activity_ _cleanup_(activity_freep)

/* NULL: it neither waited nor exited. */
static inline struct activity_vcpu *activity_of(const struct state_vcpu *vcpu)
{
    return vcpu->observed;
}
