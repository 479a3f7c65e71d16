/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The longest waits, and which vCPUs ran in the meantime. For this, the recent vCPUs of each CPU
 * are remembered, back to the begin of the oldest wait, within a limit.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "trace/state.h"

#define WORST_MAX 10u

struct worst;

/* Who ran during a wait, on the CPU on which the vCPU ran afterwards. */
struct worst_ran {
    uint32_t key;
    uint64_t cycles;
};

struct worst_wait {
    uint32_t key;
    uint32_t stream;
    uint64_t from_tsc;
    uint64_t cycles;
    struct worst_ran *ran; /* by key */
    unsigned int nr_ran;
    bool is_cut; /* it began before what is remembered of that CPU */
};

int worst_new(const struct state *state, struct worst **ret_worst); /* STATE is borrowed; -ENOMEM */
struct worst *worst_free(struct worst *worst);

/* A counted running interval; a wait. 0 or -ENOMEM. */
int worst_note_running(struct worst *worst, const struct state_interval *interval);
int worst_note_wait(struct worst *worst, const struct state_wait_end *wait);

/* The longest first; of waits that are as long, the first. Until worst_free(). */
const struct worst_wait *worst_of(const struct worst *worst, enum state_wait wait,
                                  unsigned int *ret_count);
