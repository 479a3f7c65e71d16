// SPDX-License-Identifier: GPL-2.0-or-later
/* At most half of the slots are used. A number that did not find its own slot has one after it. */

#include "trace/counts.h"

#include <errno.h>
#include <stdlib.h>

#define BITS_FIRST 10u

int counts_init(struct counts *counts)
{
    *counts = (struct counts){.bits = BITS_FIRST};
    counts->slots = calloc((size_t)1 << BITS_FIRST, sizeof(*counts->slots));
    return counts->slots ? 0 : -ENOMEM;
}

void counts_done(struct counts *counts)
{
    free(counts->slots);
    *counts = (struct counts){0};
}

/* The slot of NUMBER, or the empty one for it. */
static struct count *find_slot(const struct counts *counts, uint32_t number)
{
    uint32_t mask = (UINT32_C(1) << counts->bits) - 1;
    uint32_t i = counts_slot(counts, number);

    while (counts->slots[i].count > 0 && counts->slots[i].number != number)
        i = (i + 1) & mask;
    return &counts->slots[i];
}

static int grow(struct counts *counts)
{
    struct counts more = {.bits = counts->bits + 1, .nr = counts->nr, .ignored = counts->ignored};

    more.slots = calloc((size_t)1 << more.bits, sizeof(*more.slots));
    if (!more.slots)
        return -ENOMEM;
    for (size_t i = 0; i < (size_t)1 << counts->bits; i++)
        if (counts->slots[i].count > 0)
            *find_slot(&more, counts->slots[i].number) = counts->slots[i];
    free(counts->slots);
    *counts = more;
    return 0;
}

struct count *counts_add_slow(struct counts *counts, uint32_t number)
{
    struct count *slot = find_slot(counts, number);

    if (slot->count > 0) {
        slot->count++;
        return slot;
    }
    if (counts->nr == COUNTS_MAX ||
        (counts->nr >= (UINT32_C(1) << counts->bits) / 2 && grow(counts) < 0)) {
        counts->ignored++;
        return NULL;
    }
    slot = find_slot(counts, number);
    *slot = (struct count){
        .count = 1,
        .number = number,
        .index = counts->nr++ & INT32_MAX,
        .is_wanted = 1,
    };
    return slot;
}

const struct count *counts_find(const struct counts *counts, uint32_t number)
{
    const struct count *slot = find_slot(counts, number);

    return slot->count > 0 ? slot : NULL;
}

void counts_add_many(struct counts *counts, uint32_t number, uint64_t many)
{
    struct count *slot = many > 0 ? counts_add(counts, number) : NULL;

    if (slot)
        slot->count += many - 1;
}

uint64_t counts_sum(const struct counts *counts)
{
    uint64_t sum = counts->ignored;

    for (size_t i = 0; i < (size_t)1 << counts->bits; i++)
        sum += counts->slots[i].count;
    return sum;
}

static int compare(const void *a, const void *b)
{
    const struct count *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

struct count *counts_sorted(const struct counts *counts, size_t *ret_count)
{
    struct count *sorted = calloc(counts->nr + 1, sizeof(*sorted));
    size_t nr = 0;

    if (!sorted)
        return NULL;
    for (size_t i = 0; i < (size_t)1 << counts->bits; i++)
        if (counts->slots[i].count > 0)
            sorted[nr++] = counts->slots[i];
    qsort(sorted, nr, sizeof(*sorted), compare);
    *ret_count = nr;
    return sorted;
}
