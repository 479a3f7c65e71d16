/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the producer makes. It calls produce() once a tick, with how many nanoseconds of the CPUs'
 * time have passed (never more than two ticks), while tracing is on.
 */

#include "sim.h"

enum workload_tsc {
    WORKLOAD_TSC_MOVED, /* replay: the file's, moved to now and on with each loop */
    WORKLOAD_TSC_EXACT, /* replay: the file's in the first loop */
    WORKLOAD_TSC_NOW,   /* the clock's, when inserted */
};

struct workload_options {
    uint64_t rate_bytes; /* a second, over all CPUs; 0: the workload's own speed */
    bool rate_max;
    const char *replay_file;
    double replay_speed;
    uint64_t replay_loops; /* 0: for ever */
    enum workload_tsc tsc;
    uint64_t seed;          /* of what is random */
    const char *truth_file; /* sched: what happened; NULL: is not kept */
};

struct workload {
    const char *name;
    /* *RET_STATE is the workload's. A sentence on stderr comes with an error. */
    int (*start)(struct sim *sim, const struct workload_options *options, void **ret_state);
    /* Returns bytes made (before masks); sets *RET_FINISHED when nothing will ever come again. */
    uint64_t (*produce)(struct sim *sim, const struct workload_options *options, void *state,
                        uint64_t nsec, bool *ret_finished);
    /* Nothing will be produced any more. 0, or a negative errno and a sentence on stderr. May be
     * NULL. */
    int (*finish)(const struct workload_options *options, void *state);
    void (*stop)(void *state);
};

extern const struct workload workload_numbered;
extern const struct workload workload_sched;
extern const struct workload workload_replay;

/* The workload called NAME; NULL: none, which includes the name "none". */
const struct workload *workload_find(const char *name);
