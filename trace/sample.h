/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Computes percentiles of many values: exactly while all of them fit into memory, and then to
 * within 0.1 %. Percentile P of N values is the ceil(P N)-th smallest.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sample_buckets;

/* All samples together keep so many values; see SAMPLE_VALUES. */
struct sample_budget {
    uint64_t left;
};

#define SAMPLE_VALUES (UINT64_C(4) << 20)

/* Begins with zeroes. */
struct sample {
    uint64_t count;
    uint64_t total;
    uint64_t most;
    uint64_t *values;
    size_t nr_values, max_values;
    struct sample_buckets *buckets; /* NULL: all values are there */
};

/* 0 or -ENOMEM. */
int sample_add(struct sample *sample, struct sample_budget *budget, uint64_t value);
/* Adds the values of FROM, which is empty afterwards. 0; -ENOMEM: FROM is as it was. */
int sample_move(struct sample *sample, struct sample_budget *budget, struct sample *from);
/* The value at PART of WHOLE: 99, 100. Puts the values in another order. 0 if there is none. */
uint64_t sample_percentile(struct sample *sample, unsigned int part, unsigned int whole);
bool sample_is_exact(const struct sample *sample);
void sample_done(struct sample *sample);

/* Calls FN for each value, in any order, or for the middle of each bucket; COUNT is how many it has. */
void sample_each(const struct sample *sample,
                 void (*fn)(void *context, uint64_t value, uint64_t count), void *context);

/* How many values are from LEAST on and below LIMIT, by buckets of 0.1 % if it is not exact. */
uint64_t sample_count_between(const struct sample *sample, uint64_t least, uint64_t limit);
