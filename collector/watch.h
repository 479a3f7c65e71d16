/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Watches detect the conditions of triggers in the records. All watches of a set examine each
 * window in one pass, after it was filtered for their sink.
 *
 * Ownership and threads: the main thread creates a set, lends it to the collector thread with its
 * sink, and frees it after it received the sink back. watch_window(), watch_end_round() and
 * watch_reset() are the collector thread's; they do not allocate, lock or make system calls.
 * watch_take() and watch_arm() are the main thread's, at any time.
 *
 * A watch is initially armed. When its condition is met, it stores the hit and is disarmed: nothing
 * more is reported until the main thread arms it again.
 *
 * A watch by domain fires only for the wanted domains, which the main thread may change at any
 * time. An event belongs to the domain that was running on its CPU, according to the runstate
 * changes among the records.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event-set.h"

struct watch_set;

#define WATCH_MAX       16u
#define WATCH_COUNT_MAX 1000u

enum watch_kind {
    WATCH_EVENT,    /* COUNT events of EVENTS within WITHIN_TSC */
    WATCH_RUNNABLE, /* a vCPU ran that had been runnable for LATENCY_TSC (runnable.h) */
    WATCH_LOST,     /* a lost_records record */
};

struct watch_config {
    enum watch_kind kind;
    struct event_set events; /* lost_records and wrap_buffer are never meant */
    uint32_t count;          /* 1: each of them; at most WATCH_COUNT_MAX */
    uint64_t within_tsc;     /* between the first and the last of them; for COUNT > 1 */
    uint64_t latency_tsc;    /* at least 1 */
    bool by_domain;          /* only for those that are wanted; else for any */
    bool wants_all;          /* all domains are wanted at first; else none is */
};

/* What a watch saw. */
struct watch_hit {
    unsigned int cpu;    /* in whose trace buffer; WATCH_RUNNABLE: where the vCPU ran then */
    uint64_t tsc;        /* of the record, or of the last one before it that has one */
    uint32_t event;      /* WATCH_EVENT: its number */
    uint16_t domid;      /* who; WATCH_EVENT: of a watch by domain */
    uint16_t vcpu;       /* WATCH_RUNNABLE */
    uint64_t waited_tsc; /* ... and how long; the longest wait of those reported together */
    uint32_t lost;       /* WATCH_LOST: records that did not fit */
};

/* CONFIGS is copied; COUNT at most WATCH_MAX; 0: nothing, which costs nothing. -ENOMEM, -EINVAL. */
int watch_set_new(const struct watch_config *configs, size_t count, struct watch_set **ret_set);
struct watch_set *watch_set_free(struct watch_set *set);

/* --- Collector thread. --- */

/* Whether it looks for anything; SET may be NULL. */
bool watch_is_active(struct watch_set *set);

/*
 * Looks at the BYTES of a window, whole records of CPU as they were filtered into the chunk. For
 * each CPU in ascending order, in each round.
 */
void watch_window(struct watch_set *set, unsigned int cpu, const uint8_t *records, uint32_t bytes);

/*
 * A round over the CPUs has ended, also one in which there were no windows. COMPLETE: no buffer
 * holds anything that was in it when the round came to it (no window was cut, none was left for
 * want of a chunk). Returns whether a watch has come true since the last call: then that
 * is to be reported to the main thread, once.
 */
bool watch_end_round(struct watch_set *set, bool complete);

/*
 * Later records do not continue the earlier ones, because the sink has dropped some. Also called on
 * the main thread, before the set is lent with another sink.
 */
void watch_reset(struct watch_set *set);

/* --- Main thread. --- */

/* Whether watch INDEX of the configs has come true and was not armed again; what it saw. */
bool watch_take(const struct watch_set *set, size_t index, struct watch_hit *ret_hit);

/* Lets it come true again, for what is seen from now on. */
void watch_arm(struct watch_set *set, size_t index);

/* Of a watch by domain: whether it comes true for DOMID, in records that are seen from now on. */
void watch_want_domain(struct watch_set *set, size_t index, uint32_t domid, bool is_wanted);
/*
 * Replaces the watches by CONFIGS, at any time, also while SET is lent; indices refer to CONFIGS
 * from now on. The collector uses them from its next window on: all are armed, and bursts and waits
 * begin then. Hits that were not taken are discarded. Returns 0; -ENOMEM or -EINVAL, and nothing
 * has changed.
 */
int watch_set_replace(struct watch_set *set, const struct watch_config *configs, size_t count);
