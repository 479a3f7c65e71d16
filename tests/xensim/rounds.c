// SPDX-License-Identifier: GPL-2.0-or-later
#include "rounds.h"

/* These CPUs had their turn, and had nothing. */
static void pass(struct rounds *r, uint32_t from, uint32_t end)
{
    for (uint32_t cpu = from; cpu < end; cpu++)
        r->not_before[cpu] = r->highest_tsc;
}

static void end_round(struct rounds *r)
{
    if (r->in_round)
        pass(r, r->last_cpu + 1, SIM_MAX_CPUS);
    r->in_round = false;
}

void rounds_begin_file(struct rounds *rounds)
{
    end_round(rounds);
}

void rounds_enter_window(struct rounds *rounds, uint32_t cpu)
{
    if (rounds->in_round && cpu <= rounds->last_cpu)
        end_round(rounds);
    pass(rounds, rounds->in_round ? rounds->last_cpu + 1 : 0, cpu);
    rounds->count += !rounds->in_round;
    rounds->in_round = true;
    rounds->last_cpu = cpu;
}

void rounds_leave_window(struct rounds *rounds, uint64_t highest_tsc)
{
    rounds->highest_tsc = max_u64(rounds->highest_tsc, highest_tsc);
}
