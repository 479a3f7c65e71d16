/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The activity of one vCPU during a time: its intervals in order; for each wait, which vCPUs ran on
 * the CPU on which it ran afterwards; for each run, its VM exits.
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
    struct story_exit *exits; /* of a run, the most first */
    size_t nr_exits;
};

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

/*
 * Reads MERGE, which should begin some time before FROM, so that runstates are known then, and
 * collects what vCPU KEY did from FROM until UNTIL. 0; -ENOMEM, or what reading ended with.
 */
int story_new(struct merge *merge, uint32_t key, uint64_t from, uint64_t until,
              struct story **ret_story);
struct story *story_free(struct story *story);
