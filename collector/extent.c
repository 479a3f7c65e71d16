// SPDX-License-Identifier: GPL-2.0-or-later

#include "collector/extent.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "collector/extent-state.h"

int extent_new(void *base, uint64_t step_bytes, unsigned int nr_steps, bool shared,
               struct extent **ret_extent)
{
    struct extent *extent = calloc(1, sizeof(*extent) + nr_steps * sizeof(extent->steps[0]));

    if (!extent)
        return -ENOMEM;
    extent->base = base;
    extent->step_bytes = step_bytes;
    extent->nr_steps = nr_steps;
    extent->is_shared = shared;
    *ret_extent = extent;
    return 0;
}

struct extent *extent_free(struct extent *extent)
{
    assert(!extent || !extent->grower);
    free(extent);
    return NULL;
}

void extent_adopt(struct extent *extent, unsigned int step)
{
    extent_set_step(extent, step, EXTENT_IN_USE);
    extent->wanted++;
}

void extent_want(struct extent *extent, unsigned int nr_steps)
{
    if (__atomic_load_n(&extent->wanted, __ATOMIC_RELAXED) == nr_steps)
        return;
    __atomic_store_n(&extent->is_refused, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&extent->wanted, nr_steps, __ATOMIC_RELEASE);
    if (extent->grower)
        grower_wake(extent->grower);
}

int extent_take(struct extent *extent)
{
    for (unsigned int i = 0; i < extent->nr_steps; i++) {
        /* The grower may be about to take an offer back: only one of us has it. */
        uint32_t offered = EXTENT_OFFERED;

        if (__atomic_compare_exchange_n(&extent->steps[i], &offered, EXTENT_IN_USE, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return (int)i;
    }
    return -1;
}

void extent_give(struct extent *extent, unsigned int step)
{
    extent_set_step(extent, step, EXTENT_RELEASED);
    if (extent->grower)
        grower_wake(extent->grower);
}

bool extent_is_refused(const struct extent *extent)
{
    return __atomic_load_n(&extent->is_refused, __ATOMIC_RELAXED);
}

bool extent_is_served(const struct extent *extent)
{
    return extent->grower;
}

uint64_t extent_bytes(const struct extent *extent)
{
    uint64_t bytes = 0;

    for (unsigned int i = 0; i < extent->nr_steps; i++)
        if (extent_step_state(extent, i) != EXTENT_ABSENT)
            bytes += extent->step_bytes;
    return bytes;
}
