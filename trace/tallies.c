// SPDX-License-Identifier: GPL-2.0-or-later
/* At most half of the slots are used. */

#include "trace/tallies.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

#define BITS_FIRST 8u

int tallies_init(struct tallies *tallies)
{
    *tallies = (struct tallies){.bits = BITS_FIRST};
    tallies->slots = calloc((size_t)1 << BITS_FIRST, sizeof(*tallies->slots));
    return tallies->slots ? 0 : -ENOMEM;
}

void tallies_done(struct tallies *tallies)
{
    free(tallies->slots);
    *tallies = (struct tallies){0};
}

static struct tally *find_slot(const struct tallies *tallies, enum tally_kind kind, uint32_t who,
                               uint64_t what)
{
    uint64_t hash =
        (what ^ what >> 32) * UINT64_C(0xc2b2ae3d27d4eb4f) + ((uint64_t)who << 8 | kind);
    size_t mask = ((size_t)1 << tallies->bits) - 1;
    size_t i = (hash * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - tallies->bits);

    for (;; i = (i + 1) & mask) {
        struct tally *slot = &tallies->slots[i];

        if (slot->count == 0 || (slot->kind == kind && slot->who == who && slot->what == what))
            return slot;
    }
}

static int grow(struct tallies *tallies)
{
    struct tallies more = *tallies;

    more.bits++;
    more.slots = calloc((size_t)1 << more.bits, sizeof(*more.slots));
    if (!more.slots)
        return -ENOMEM;
    for (size_t i = 0; i < (size_t)1 << tallies->bits; i++) {
        const struct tally *tally = &tallies->slots[i];

        if (tally->count > 0)
            *find_slot(&more, tally->kind, tally->who, tally->what) = *tally;
    }
    free(tallies->slots);
    *tallies = more;
    return 0;
}

void tallies_add(struct tallies *tallies, enum tally_kind kind, uint32_t who, uint64_t what,
                 uint64_t count, uint64_t cycles)
{
    struct tally *slot = find_slot(tallies, kind, who, what);

    if (slot->count == 0) {
        if (count == 0)
            return;
        if (tallies->nr == TALLIES_MAX ||
            (tallies->nr >= (UINT32_C(1) << tallies->bits) / 2 && grow(tallies) < 0)) {
            tallies->ignored += count;
            return;
        }
        slot = find_slot(tallies, kind, who, what);
        *slot = (struct tally){.kind = kind, .who = who, .what = what};
        tallies->nr++;
    }
    slot->count += count;
    slot->timed += count == 0 || cycles > 0;
    slot->cycles += cycles;
    slot->most = max_u64(slot->most, cycles);
}

void tallies_each(const struct tallies *tallies, enum tally_kind kind,
                  void (*fn)(void *context, const struct tally *tally), void *context)
{
    for (size_t i = 0; i < (size_t)1 << tallies->bits; i++)
        if (tallies->slots[i].count > 0 && tallies->slots[i].kind == kind)
            fn(context, &tallies->slots[i]);
}

static int compare(const void *a, const void *b)
{
    const struct tally *x = a, *y = b;

    if (x->who != y->who)
        return x->who < y->who ? -1 : 1;
    return (x->what > y->what) - (x->what < y->what);
}

struct tally *tallies_sorted(const struct tallies *tallies, enum tally_kind kind, size_t *ret_count)
{
    struct tally *sorted;
    size_t nr = 0;

    for (size_t i = 0; i < (size_t)1 << tallies->bits; i++)
        nr += tallies->slots[i].count > 0 && tallies->slots[i].kind == kind;
    sorted = calloc(nr + 1, sizeof(*sorted));
    if (!sorted)
        return NULL;
    nr = 0;
    for (size_t i = 0; i < (size_t)1 << tallies->bits; i++)
        if (tallies->slots[i].count > 0 && tallies->slots[i].kind == kind)
            sorted[nr++] = tallies->slots[i];
    qsort(sorted, nr, sizeof(*sorted), compare);
    *ret_count = nr;
    return sorted;
}
