// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `numbered`: every CPU gets the same share of the rate, in one batch a tick. A share that is too
 * small for a record is carried over.
 */

#include "workload.h"

#include <errno.h>
#include <string.h>

#include "numbered.h"

#define BATCH_BYTES_MAX_RATE 4096u /* a CPU's turn at --rate max */

struct numbered_state {
    double carried_bytes[SIM_MAX_CPUS];
};

static int numbered_start(struct sim *sim, const struct workload_options *options, void **ret_state)
{
    (void)sim;
    (void)options;
    *ret_state = calloc(1, sizeof(struct numbered_state));
    return *ret_state ? 0 : -ENOMEM;
}

/* At least TARGET bytes for one CPU; returns how many. */
static uint64_t fill_cpu(struct sim *sim, unsigned int cpu, uint64_t target)
{
    pthread_mutex_t *lock = &sim->shared->cpus[cpu].lock;
    uint64_t bytes = 0;

    sim_lock(lock);
    do
        numbered_insert_run(sim, cpu, target, &bytes);
    while (bytes < target && numbered_insert(sim, cpu, &bytes) != TBUF_DISABLED);
    sim_unlock(lock);
    return bytes;
}

static uint64_t numbered_produce(struct sim *sim, const struct workload_options *options,
                                 void *state, uint64_t nsec, bool *ret_finished)
{
    double *carried = ((struct numbered_state *)state)->carried_bytes;
    uint32_t nr_cpus = sim->shared->nr_cpus;
    double share = (double)options->rate_bytes * (double)nsec / 1e9 / nr_cpus;
    uint64_t bytes = 0;

    (void)ret_finished;
    for (uint32_t cpu = 0; cpu < nr_cpus; cpu++) {
        uint64_t made;

        if (!sim->shared->cpus[cpu].online)
            continue;
        carried[cpu] = options->rate_max ? BATCH_BYTES_MAX_RATE : carried[cpu] + share;
        made = carried[cpu] > 0 ? fill_cpu(sim, cpu, (uint64_t)carried[cpu]) : 0;
        carried[cpu] -= (double)made;
        bytes += made;
    }
    return bytes;
}

const struct workload workload_numbered = {
    .name = "numbered",
    .start = numbered_start,
    .produce = numbered_produce,
    .stop = free,
};

const struct workload *workload_find(const char *name)
{
    static const struct workload *const all[] = {
        &workload_numbered,
        &workload_sched,
        &workload_replay,
    };

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}
