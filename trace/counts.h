/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A count for each of some 32-bit numbers that a trace names: events, reasons. Open addressing;
 * what is inline here is done for every record.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTS_MAX (UINT32_C(1) << 18) /* different numbers; no sound trace has a thousand */

struct count {
    uint64_t count; /* 0: the slot is empty */
    uint32_t number;
    uint32_t index : 31;    /* in the order in which they came */
    uint32_t is_wanted : 1; /* the user's; true at first */
};

struct counts {
    struct count *slots;
    unsigned int bits;
    uint32_t nr;
    uint64_t ignored; /* of numbers beyond COUNTS_MAX, or without memory */
};

int counts_init(struct counts *counts); /* 0 or -ENOMEM */
void counts_done(struct counts *counts);

/* Of all numbers, ignored ones too. */
uint64_t counts_sum(const struct counts *counts);

/* NULL: none was added. */
const struct count *counts_find(const struct counts *counts, uint32_t number);
void counts_add_many(struct counts *counts, uint32_t number, uint64_t many);

/* Ascending numbers, *RET_COUNT of them; free it. NULL: out of memory. */
struct count *counts_sorted(const struct counts *counts, size_t *ret_count);

struct count *counts_add_slow(struct counts *counts, uint32_t number);

static inline uint32_t counts_slot(const struct counts *counts, uint32_t number)
{
    return (number * 0x9e3779b1u) >> (32 - counts->bits);
}

/* Adds one. NULL: ignored. */
static inline struct count *counts_add(struct counts *counts, uint32_t number)
{
    struct count *slot = &counts->slots[counts_slot(counts, number)];

    if (__builtin_expect(slot->number == number && slot->count > 0, 1)) {
        slot->count++;
        return slot;
    }
    return counts_add_slow(counts, number);
}
