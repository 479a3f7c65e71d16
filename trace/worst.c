// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A CPU's memory is a ring of the intervals in which somebody ran there. It grows only if its
 * oldest interval may still be needed: somebody has been waiting since before its end.
 */

#include "trace/worst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define RING_FIRST  256u
#define ENTRIES_MAX (UINT64_C(1) << 20) /* of all CPUs: 24 MiB */

struct ran {
    uint64_t from, to;
    uint32_t key;
};

struct ring {
    struct ran *entries;
    size_t size; /* a power of two, or 0 */
    uint64_t nr; /* ever; the last `size` of them are there */
    bool has_dropped;
    uint64_t dropped_to; /* the end of the last one that is not */
};

struct worst {
    const struct state *state;
    struct ring *rings; /* by stream */
    unsigned int nr_rings;
    uint64_t nr_entries;
    uint64_t waiting_since; /* nobody waits since before that */
    struct worst_wait waits[STATE_WAITS][WORST_MAX];
    unsigned int nr_waits[STATE_WAITS];
};

int worst_new(const struct state *state, struct worst **ret_worst)
{
    struct worst *worst = calloc(1, sizeof(*worst));

    if (!worst)
        return -ENOMEM;
    worst->state = state;
    *ret_worst = worst;
    return 0;
}

struct worst *worst_free(struct worst *worst)
{
    if (!worst)
        return NULL;
    for (unsigned int i = 0; i < STATE_WAITS; i++)
        for (unsigned int j = 0; j < worst->nr_waits[i]; j++)
            free(worst->waits[i][j].ran);
    for (unsigned int i = 0; i < worst->nr_rings; i++)
        free(worst->rings[i].entries);
    free(worst->rings);
    free(worst);
    return NULL;
}

/* --- What ran. --- */

static int worst_grow_rings(struct worst *worst)
{
    unsigned int nr = worst->state->nr_cpus;
    struct ring *rings = reallocarray(worst->rings, nr, sizeof(*rings));

    if (!rings)
        return -ENOMEM;
    memset(rings + worst->nr_rings, 0, (nr - worst->nr_rings) * sizeof(*rings));
    worst->rings = rings;
    worst->nr_rings = nr;
    return 0;
}

/*
 * Whether a vCPU has been waiting since before TO. Later waits begin later, so runs that are not
 * needed now are never needed.
 */
static bool is_needed(struct worst *worst, uint64_t to, uint64_t now)
{
    uint64_t since = now;

    if (to <= worst->waiting_since)
        return false;
    for (unsigned int i = 0; i < worst->state->nr_vcpus; i++) {
        const struct state_vcpu *vcpu = worst->state->vcpus[i];

        if (vcpu->runstate == STATE_RUNNABLE && vcpu->since < since)
            since = vcpu->since;
    }
    worst->waiting_since = since;
    return to > since;
}

static int ring_grow(struct worst *worst, struct ring *ring)
{
    size_t size = ring->size ? ring->size * 2 : RING_FIRST;
    struct ran *entries = calloc(size, sizeof(*entries));

    if (!entries)
        return -ENOMEM;
    for (uint64_t i = ring->nr - ring->size; i < ring->nr; i++)
        entries[i & (size - 1)] = ring->entries[i & (ring->size - 1)];
    worst->nr_entries += size - ring->size;
    free(ring->entries);
    ring->entries = entries;
    ring->size = size;
    return 0;
}

static bool ring_must_grow(struct worst *worst, const struct ring *ring, uint64_t now)
{
    uint64_t oldest;

    if (ring->size == 0)
        return true;
    oldest = ring->entries[ring->nr & (ring->size - 1)].to;
    return worst->nr_entries < ENTRIES_MAX && is_needed(worst, oldest, now);
}

int worst_note_running(struct worst *worst, const struct state_interval *interval)
{
    struct ring *ring;
    struct ran *oldest;
    int r;

    if (interval->stream >= worst->nr_rings) {
        r = worst_grow_rings(worst);
        if (r < 0)
            return r;
    }
    ring = &worst->rings[interval->stream];
    if (ring->nr >= ring->size && ring_must_grow(worst, ring, interval->to)) {
        r = ring_grow(worst, ring);
        if (r < 0)
            return r;
    }
    oldest = &ring->entries[ring->nr & (ring->size - 1)];
    if (ring->nr >= ring->size) {
        ring->has_dropped = true;
        ring->dropped_to = oldest->to;
    }
    *oldest = (struct ran){interval->from, interval->to, interval->vcpu->key};
    ring->nr++;
    return 0;
}

/* --- Waits. --- */

/* Whether A comes before B. */
static bool is_worse(const struct worst_wait *a, const struct worst_wait *b)
{
    if (a->cycles != b->cycles)
        return a->cycles > b->cycles;
    return a->from_tsc != b->from_tsc ? a->from_tsc < b->from_tsc : a->key < b->key;
}

static int add_ran(struct worst_wait *wait, uint32_t key, uint64_t cycles)
{
    struct worst_ran *more;
    unsigned int i;

    for (i = 0; i < wait->nr_ran && wait->ran[i].key < key; i++)
        ;
    if (i < wait->nr_ran && wait->ran[i].key == key) {
        wait->ran[i].cycles += cycles;
        return 0;
    }
    more = reallocarray(wait->ran, wait->nr_ran + 1, sizeof(*more));
    if (!more)
        return -ENOMEM;
    memmove(more + i + 1, more + i, (wait->nr_ran - i) * sizeof(*more));
    more[i] = (struct worst_ran){key, cycles};
    wait->ran = more;
    wait->nr_ran++;
    return 0;
}

static int find_ran(const struct worst *worst, struct worst_wait *wait)
{
    uint64_t to = wait->from_tsc + wait->cycles;
    const struct ring *ring;
    uint64_t first;
    int r;

    if (wait->stream >= worst->nr_rings)
        return 0;
    ring = &worst->rings[wait->stream];
    first = ring->nr > ring->size ? ring->nr - ring->size : 0;
    for (uint64_t i = ring->nr; i-- > first;) {
        const struct ran *ran = &ring->entries[i & (ring->size - 1)];
        uint64_t from = max_u64(ran->from, wait->from_tsc), until = min_u64(ran->to, to);

        if (ran->to <= wait->from_tsc)
            return 0;
        if (until <= from)
            continue;
        r = add_ran(wait, ran->key, until - from);
        if (r < 0)
            return r;
    }
    wait->is_cut = ring->has_dropped && ring->dropped_to > wait->from_tsc;
    return 0;
}

int worst_note_wait(struct worst *worst, const struct state_wait_end *end)
{
    struct worst_wait *waits = worst->waits[end->wait];
    unsigned int *nr = &worst->nr_waits[end->wait];
    struct worst_wait wait = {
        .key = end->vcpu->key,
        .stream = end->stream,
        .from_tsc = end->from,
        .cycles = end->to - end->from,
    };
    unsigned int at;
    int r;

    if (*nr == WORST_MAX && !is_worse(&wait, &waits[WORST_MAX - 1]))
        return 0;
    r = find_ran(worst, &wait);
    if (r < 0) {
        free(wait.ran);
        return r;
    }
    if (*nr == WORST_MAX)
        free(waits[WORST_MAX - 1].ran);
    else
        ++*nr;
    for (at = *nr - 1; at > 0 && is_worse(&wait, &waits[at - 1]); at--)
        waits[at] = waits[at - 1];
    waits[at] = wait;
    return 0;
}

const struct worst_wait *worst_of(const struct worst *worst, enum state_wait wait,
                                  unsigned int *ret_count)
{
    *ret_count = worst->nr_waits[wait];
    return worst->waits[wait];
}
