// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The times are kept sorted. A new time usually belongs at the end, or before the times that other
 * CPUs added in the same round. Only the runs of COUNT times that contain the new one are checked,
 * which is a single run if it is the newest.
 */

#include "collector/burst.h"
#include "collector/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY (2 * BURST_REMEMBERED)

struct burst {
    uint32_t count;
    uint64_t within_tsc;
    uint32_t used;
    uint64_t tscs[CAPACITY]; /* ascending, modulo 2^64 */
};

int burst_new(uint32_t count, uint64_t within_tsc, struct burst **ret_burst)
{
    struct burst *burst;

    if (count == 0 || count > BURST_COUNT_MAX)
        return -EINVAL;
    burst = memory_alloc(1, sizeof(*burst));
    if (!burst)
        return -ENOMEM;
    memset(burst, 0xff, sizeof(*burst)); /* so that the collector finds its pages present */
    burst->count = count;
    burst->within_tsc = within_tsc;
    burst->used = 0;
    *ret_burst = burst;
    return 0;
}

struct burst *burst_free(struct burst *burst)
{
    free(burst);
    return NULL;
}

/* Puts TSC in its place; false if that is before all that are remembered. */
static bool insert(struct burst *burst, uint64_t tsc, uint32_t *ret_index)
{
    uint32_t i;

    if (burst->used == CAPACITY) { /* not one by one: all the rest has to be moved */
        burst->used = BURST_REMEMBERED;
        memmove(burst->tscs, burst->tscs + CAPACITY - BURST_REMEMBERED,
                BURST_REMEMBERED * sizeof(tsc));
    }
    for (i = burst->used; i > 0 && (int64_t)(burst->tscs[i - 1] - tsc) > 0; i--)
        ;
    if (i == 0 && burst->used >= BURST_REMEMBERED)
        return false;
    memmove(burst->tscs + i + 1, burst->tscs + i, (burst->used - i) * sizeof(tsc));
    burst->tscs[i] = tsc;
    burst->used++;
    *ret_index = i;
    return true;
}

bool burst_note(struct burst *burst, uint64_t tsc)
{
    uint32_t count = burst->count;
    uint32_t i, first;

    if (!insert(burst, tsc, &i) || burst->used < count)
        return false;
    first = i + 1 > count ? i + 1 - count : 0;
    for (; first <= i && first + count <= burst->used; first++)
        if (burst->tscs[first + count - 1] - burst->tscs[first] <= burst->within_tsc)
            return true;
    return false;
}

void burst_reset(struct burst *burst)
{
    burst->used = 0;
}
