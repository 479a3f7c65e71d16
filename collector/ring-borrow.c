// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * While a snapshot is written, evicted chunks cannot be reused. To keep the length of its history,
 * the ring borrows memory within the grower's budget, one step at a time, requested before the last
 * free chunk is used. Borrowed chunks are equivalent to the ring's own; they are in the same memfd,
 * and survive with it.
 *
 * When no snapshot is being written, the content of borrowed chunks moves to the ring's own, one
 * chunk after the other, and a step whose chunks are all free is returned.
 *
 * A move: content and counts are copied, then the copy gets the number, then the original loses it.
 * The next daemon finds one of them, or both, which are the same then: ring-adopt.c.
 */

#include <string.h>

#include "collector/extent.h"
#include "collector/grower.h"
#include "collector/pool.h"
#include "collector/ring-state.h"
#include "collector/ring.h"
#include "common/units.h"
#include "common/util.h"

#define STEPS_AHEAD        2u /* so that the second is made while the first is used up */
#define SETTLE_PERIOD_USEC (10 * USEC_PER_MSEC)

uint64_t ring_steps_of(const struct grower *grower, uint64_t chunk_bytes, uint64_t nr_cpus)
{
    struct ring_layout layout = ring_layout_of(0, (uint32_t)chunk_bytes, nr_cpus, 0);

    return grower_budget_bytes(grower) / layout.step_bytes;
}

unsigned int ring_step_of(const struct ring *ring, const struct chunk *chunk)
{
    return (unsigned int)((size_t)(chunk - ring->chunks) - ring->nr_chunks) /
           (unsigned int)ring->layout.step_chunks;
}

static struct chunk *ring_step_chunks(const struct ring *ring, unsigned int step)
{
    return &ring->chunks[ring->nr_chunks + step * ring->layout.step_chunks];
}

void ring_add_step(struct ring *ring, unsigned int step)
{
    struct chunk *chunks = ring_step_chunks(ring, step);

    ring->steps[step] = (struct ring_step){.is_borrowed = true};
    ring->nr_borrowed++;
    for (uint64_t i = ring->layout.step_chunks; i-- > 0;)
        if (ring_state_of(ring, &chunks[i])->seq == 0)
            ring_give(ring, &chunks[i]);
}

/* --- Taking. --- */

static bool ring_has_pins(const struct ring *ring)
{
    for (unsigned int i = 0; i < RING_PINS_MAX; i++)
        if (__atomic_load_n(&ring->pins[i].first, __ATOMIC_ACQUIRE) != RING_UNPINNED)
            return true;
    return false;
}

void ring_ask(struct ring *ring)
{
    uint64_t nr_spare = ring->nr_chunks - ring->max_listed - 1;
    uint64_t early = min_u64(max_u64(nr_spare / 2, ring->layout.step_chunks), nr_spare);
    unsigned int wanted = ring->nr_borrowed;

    if (!ring->extent)
        return;
    /* If the grower comes too late, what is pinned goes: all that is older than the pin. */
    ring->asks = ring->nr_free <= early && ring_has_pins(ring);
    if (ring->asks)
        wanted = (unsigned int)min_u64(wanted + STEPS_AHEAD, ring->nr_steps);
    extent_want(ring->extent, wanted);
}

bool ring_borrow(struct ring *ring)
{
    int step = ring->extent ? extent_take(ring->extent) : -1;

    if (step < 0)
        return false;
    ring_add_step(ring, (unsigned int)step);
    return true;
}

/* --- Giving back. --- */

/* The borrowed chunk in the list that comes first, and the one before that. NULL: there is none. */
static struct chunk *find_borrowed(const struct ring *ring, struct chunk **ret_before)
{
    struct chunk *before = NULL;

    for (struct chunk *chunk = ring->head; chunk; before = chunk, chunk = chunk->next) {
        if (ring_is_home(ring, chunk))
            continue;
        *ret_before = before;
        return chunk;
    }
    return NULL;
}

static void move_content(const struct ring *ring, const struct chunk *from, struct chunk *to)
{
    struct ring_chunk *state = ring_state_of(ring, to);
    struct ring_chunk copy = *ring_state_of(ring, from);

    memcpy(to->data, from->data, from->fill_bytes);
    memcpy(ring_counts_of(ring, to, RING_BEFORE_ROUND),
           ring_counts_of(ring, from, RING_BEFORE_ROUND),
           RING_PARTS * ring->nr_cpus * sizeof(struct ring_count));
    copy.seq = 0;
    *state = copy;
    ring_keep_order();
    state->seq = from->seq;
    ring_keep_order();
    ring_state_of(ring, from)->seq = 0;
    ring_keep_order(); /* before the memory is given back */
}

/*
 * Moves one chunk of the list; no snapshot reads it, nor what points to it. False: there is none,
 * or no room for it.
 */
static bool ring_move_home(struct ring *ring)
{
    struct chunk *before, *from = find_borrowed(ring, &before), *to = ring->free_list;
    uint8_t *data;

    if (!from || !to)
        return false;
    ring->free_list = to->next;
    ring->nr_free--;
    move_content(ring, from, to);
    data = to->data;
    *to = *from;
    to->data = data;
    if (before)
        before->next = to;
    else
        ring->head = to;
    if (ring->tail == from)
        ring->tail = to;
    ring_give(ring, from);
    return true;
}

static void ring_give_step(struct ring *ring, unsigned int step)
{
    struct chunk **link = &ring->borrowed_list;

    while (*link) {
        if (ring_step_of(ring, *link) == step)
            *link = (*link)->next;
        else
            link = &(*link)->next;
    }
    ring->nr_free -= ring->steps[step].nr_free;
    ring->steps[step] = (struct ring_step){0};
    ring->nr_borrowed--;
    extent_give(ring->extent, step);
}

uint64_t ring_settle_usec(const struct ring *ring)
{
    if (!ring->extent || (ring->nr_borrowed == 0 && !ring->asks) || ring_has_pins(ring))
        return 0;
    return max_u64(ring->settle_usec, 1);
}

bool ring_settle(struct ring *ring, uint64_t now_usec)
{
    uint64_t settle_usec = ring_settle_usec(ring);

    if (settle_usec == 0 || now_usec < settle_usec)
        return false;
    ring->settle_usec = now_usec + SETTLE_PERIOD_USEC;
    ring_free_limbo(ring);
    if (ring_move_home(ring))
        return false;
    for (unsigned int i = 0; i < ring->nr_steps; i++)
        if (ring->steps[i].is_borrowed && ring->steps[i].nr_free == ring->layout.step_chunks)
            ring_give_step(ring, i);
    extent_want(ring->extent, ring->nr_borrowed);
    ring->asks = false;
    return ring->filling && !ring_is_home(ring, ring->filling);
}
