/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* An extent from inside: private to extent.c, the collector's half, and grower.c. */

#include <stdbool.h>
#include <stdint.h>

enum extent_step {
    EXTENT_ABSENT,
    EXTENT_OFFERED,
    EXTENT_IN_USE,
    EXTENT_RELEASED,
};

struct extent {
    uint8_t *base;
    uint64_t step_bytes;
    bool is_shared;
    struct grower *grower; /* NULL: nobody serves it */
    struct extent *next;   /* of the grower's; under its lock */

    /* Atomic. */
    uint32_t wanted;     /* collector thread; steps in all */
    uint32_t is_refused; /* grower */
    unsigned int nr_steps;
    uint32_t steps[]; /* enum extent_step */
};

static inline uint32_t extent_step_state(const struct extent *extent, unsigned int step)
{
    return __atomic_load_n(&extent->steps[step], __ATOMIC_ACQUIRE);
}

static inline void extent_set_step(struct extent *extent, unsigned int step, enum extent_step state)
{
    __atomic_store_n(&extent->steps[step], (uint32_t)state, __ATOMIC_RELEASE);
}

/* Wakes the thread. Any thread. grower.c. */
void grower_wake(struct grower *grower);
