/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The activity of one vCPU during a time: its intervals in order; for each wait, which vCPUs ran on
 * the CPU on which it ran afterwards, and what credit2 decided there; for each run, its VM exits
 * and yields (docs/measures.md, "why").
 *
 * One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/merge.h"
#include "trace/state.h"

struct story_ran {
    uint32_t key;
    uint64_t cycles;
};

struct story_exit {
    uint32_t reason;
    uint64_t count;
};

/* What credit2's events say about a wait; 0: nothing. */
struct story_credit2 {
    uint32_t decisions;  /* for another vCPU, on the CPU on which it ran afterwards */
    uint32_t other_key;  /* the last of these */
    int32_t other_credit;
    uint32_t ratelimits; /* there: the vCPU that ran had not run for long enough */
    bool has_credit;     /* of the vCPU that waited, at that decision */
    int32_t credit;
};

/* While a vCPU that did not yield is preempted, others of its domain yield or PAUSE this often. */
#define STORY_SPINS 3u

struct story_part {
    enum state_runstate runstate;
    enum state_wait wait;  /* if it was runnable */
    uint64_t from, to;     /* within the story's time */
    uint32_t cpu;          /* where it ran; of a wait: where it ran afterwards */
    bool has_cpu;          /* of a wait: it ran afterwards */
    uint32_t changer;      /* the CPU that logged its beginning */
    bool is_open;          /* it had not ended when the trace did */
    struct story_ran *ran; /* of a wait, the longest first */
    size_t nr_ran;
    uint64_t idle_elsewhere; /* of a wait: the time, summed up, in which other CPUs were idle */
    struct story_exit *exits; /* of a run, the most first */
    size_t nr_exits;
    uint64_t yields; /* of a run */
    /* Of a run with yields or PAUSE exits: another vCPU of the domain was preempted meanwhile. */
    bool has_holder;
    uint32_t holder;
    bool has_yielded; /* of a wait: the vCPU yielded in the run before it */
    uint64_t spins;   /* of a wait: yields and PAUSE exits of other vCPUs of its domain */
    struct story_credit2 credit2;
};

/* Whether the vCPU held, probably, a lock that others of its domain wanted while it waited. */
static inline bool story_is_lock_holder(const struct story_part *part)
{
    return part->runstate == STATE_RUNNABLE && part->wait == STATE_PREEMPT && !part->has_yielded &&
           part->spins >= STORY_SPINS;
}

struct story {
    uint32_t key;
    uint64_t from, until; /* asked for, as far as the trace reaches */
    struct story_part *parts;
    size_t nr_parts;
    uint64_t yields;
    bool is_svm;
    bool is_cut; /* it has more parts than STORY_PARTS_MAX */
};

#define STORY_PARTS_MAX 100000u

struct story_options {
    uint32_t key;
    uint64_t from, until;
    bool is_svm; /* whether the trace is of AMD's, as measures_new() found */
};

/*
 * Reads MERGE, which should begin some time before FROM, so that runstates are known then, and
 * collects what vCPU KEY did from FROM until UNTIL. 0; -ENOMEM, or what reading ended with.
 */
int story_new(struct merge *merge, const struct story_options *options, struct story **ret_story);
struct story *story_free(struct story *story);

/* A runstate record. */
struct story_change {
    bool is_known;
    uint64_t tsc;
    uint32_t cpu;
    enum state_runstate from, to;
};

/*
 * Reads MERGE for the last runstate record of vCPU KEY before TSC, and the first from then on.
 * Returns what reading ended with.
 */
int story_find_changes(struct merge *merge, uint32_t key, uint64_t tsc,
                       struct story_change *ret_before, struct story_change *ret_after);
