/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Rounds, for `xensim verify` and `xensim rules`. CPUs ascend within a round; a window whose CPU is
 * not above the one before begins the next. That alone cannot tell a round that was split, or one
 * CPU's windows in a row while the others' records wait: time can. A CPU is drained at its turn. If
 * it has no window there it had no record, so what it has later is not older than anything in front
 * of that turn. (A CPU that has a window may have had more than fitted into it: nothing follows.)
 *
 * Exact where one thread makes all records in the order of time, as in xensim.
 */

#include "sim.h"

struct rounds {
    bool in_round;
    uint32_t last_cpu;
    uint64_t highest_tsc; /* of all windows so far */
    uint64_t count;
    uint64_t not_before[SIM_MAX_CPUS]; /* TSC that the CPU's next window cannot begin before */
};

/* The next window is the first of a file: it begins a round. */
void rounds_begin_file(struct rounds *rounds);

/* A window of CPU, which is below SIM_MAX_CPUS; not_before[CPU] tells about it. */
void rounds_enter_window(struct rounds *rounds, uint32_t cpu);

/* The window's highest TSC, once it was read; 0: none. */
void rounds_leave_window(struct rounds *rounds, uint64_t highest_tsc);
