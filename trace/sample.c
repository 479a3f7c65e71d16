// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sample that has many values when the budget is used up becomes a histogram: a bucket has the
 * same leading bits, 1024 of them for each power of two. Buckets come in pages, of which only those
 * exist that have a value.
 */

#include "trace/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define FINE_BITS    10u
#define PAGE_BUCKETS 128u
/* Below 2^11 each value is a bucket; then there are 2^10 for each further power of two. */
#define NR_BUCKETS ((64u - FINE_BITS) << FINE_BITS)
#define NR_PAGES   (NR_BUCKETS / PAGE_BUCKETS)

#define VALUES_FIRST 16u
#define VALUES_MANY  4096u /* a histogram is smaller then */

struct sample_buckets {
    uint64_t *pages[NR_PAGES]; /* [PAGE_BUCKETS] each; NULL: nothing is in them */
};

static unsigned int bucket_of(uint64_t value)
{
    unsigned int power;

    if (value < UINT64_C(2) << FINE_BITS)
        return (unsigned int)value;
    power = 63 - (unsigned int)__builtin_clzll(value);
    return (power - FINE_BITS + 1) * (1u << FINE_BITS) +
           (unsigned int)(value >> (power - FINE_BITS)) - (1u << FINE_BITS);
}

/* The middle of a bucket. */
static uint64_t value_of(unsigned int bucket)
{
    unsigned int shift;
    uint64_t least;

    if (bucket < 2u << FINE_BITS)
        return bucket;
    shift = (bucket >> FINE_BITS) - 1;
    least = (uint64_t)((bucket & ((1u << FINE_BITS) - 1)) + (1u << FINE_BITS)) << shift;
    return least + ((UINT64_C(1) << shift) - 1) / 2;
}

static int buckets_add(struct sample_buckets *buckets, uint64_t value)
{
    unsigned int bucket = bucket_of(value);
    uint64_t **page = &buckets->pages[bucket / PAGE_BUCKETS];

    if (!*page)
        *page = calloc(PAGE_BUCKETS, sizeof(**page));
    if (!*page)
        return -ENOMEM;
    (*page)[bucket % PAGE_BUCKETS]++;
    return 0;
}

static void buckets_free(struct sample_buckets *buckets)
{
    for (unsigned int i = 0; buckets && i < NR_PAGES; i++)
        free(buckets->pages[i]);
    free(buckets);
}

void sample_done(struct sample *sample)
{
    buckets_free(sample->buckets);
    free(sample->values);
    *sample = (struct sample){0};
}

static int make_buckets(struct sample *sample, struct sample_budget *budget)
{
    struct sample_buckets *buckets = calloc(1, sizeof(*buckets));
    int r = buckets ? 0 : -ENOMEM;

    for (size_t i = 0; i < sample->nr_values && r == 0; i++)
        r = buckets_add(buckets, sample->values[i]);
    if (r < 0) {
        buckets_free(buckets);
        return r;
    }
    budget->left += sample->max_values;
    free(sample->values);
    sample->values = NULL;
    sample->nr_values = sample->max_values = 0;
    sample->buckets = buckets;
    return 0;
}

/* Room for one more. */
static int grow_values(struct sample *sample, struct sample_budget *budget)
{
    size_t max = sample->max_values ? sample->max_values * 2 : VALUES_FIRST;
    uint64_t more = max - sample->max_values;
    uint64_t *values;

    if (more > budget->left && sample->nr_values >= VALUES_MANY)
        return make_buckets(sample, budget);
    values = reallocarray(sample->values, max, sizeof(*values));
    if (!values)
        return -ENOMEM;
    budget->left -= min_u64(more, budget->left);
    sample->values = values;
    sample->max_values = max;
    return 0;
}

int sample_add(struct sample *sample, struct sample_budget *budget, uint64_t value)
{
    int r;

    if (!sample->buckets && sample->nr_values == sample->max_values) {
        r = grow_values(sample, budget);
        if (r < 0)
            return r;
    }
    if (sample->buckets) {
        r = buckets_add(sample->buckets, value);
        if (r < 0)
            return r;
    } else {
        sample->values[sample->nr_values++] = value;
    }
    sample->count++;
    sample->total += value;
    sample->most = max_u64(sample->most, value);
    return 0;
}

static int buckets_add_all(struct sample_buckets *buckets, const struct sample *from)
{
    int r = 0;

    for (size_t i = 0; i < from->nr_values && r == 0; i++)
        r = buckets_add(buckets, from->values[i]);
    for (unsigned int i = 0; from->buckets && i < NR_PAGES; i++) {
        const uint64_t *page = from->buckets->pages[i];

        if (!page)
            continue;
        if (!buckets->pages[i])
            buckets->pages[i] = calloc(PAGE_BUCKETS, sizeof(*page));
        if (!buckets->pages[i])
            return -ENOMEM;
        for (unsigned int j = 0; j < PAGE_BUCKETS; j++)
            buckets->pages[i][j] += page[j];
    }
    return r;
}

/* All are values and stay: those of FROM are appended. */
static int append_values(struct sample *sample, struct sample_budget *budget,
                         const struct sample *from)
{
    size_t nr = sample->nr_values + from->nr_values;
    uint64_t *values;

    if (nr > sample->max_values) {
        values = reallocarray(sample->values, nr, sizeof(*values));
        if (!values)
            return -ENOMEM;
        budget->left -= min_u64(nr - sample->max_values, budget->left);
        sample->values = values;
        sample->max_values = nr;
    }
    memcpy(sample->values + sample->nr_values, from->values,
           from->nr_values * sizeof(*from->values));
    sample->nr_values = nr;
    return 0;
}

int sample_move(struct sample *sample, struct sample_budget *budget, struct sample *from)
{
    int r = 0;

    if (from->count == 0)
        return 0;
    if (sample->count == 0) {
        sample_done(sample);
        *sample = *from;
        *from = (struct sample){0};
        return 0;
    }
    if (!sample->buckets && from->buckets)
        r = make_buckets(sample, budget);
    if (r == 0)
        r = sample->buckets ? buckets_add_all(sample->buckets, from)
                            : append_values(sample, budget, from);
    if (r < 0)
        return r;
    sample->count += from->count;
    sample->total += from->total;
    sample->most = max_u64(sample->most, from->most);
    budget->left += from->max_values;
    sample_done(from);
    return 0;
}

bool sample_is_exact(const struct sample *sample)
{
    return !sample->buckets;
}

static void swap(uint64_t *a, uint64_t *b)
{
    uint64_t value = *a;

    *a = *b;
    *b = value;
}

static uint64_t middle(uint64_t a, uint64_t b, uint64_t c)
{
    if (a < b)
        return b < c ? b : max_u64(a, c);
    return a < c ? a : max_u64(b, c);
}

/* The value of that index if VALUES were sorted (Hoare's selection). */
static uint64_t select_value(uint64_t *values, size_t count, size_t index)
{
    size_t low = 0, high = count - 1;

    while (low < high) {
        uint64_t pivot = middle(values[low], values[low + (high - low) / 2], values[high]);
        size_t i = low, j = high;

        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i > j)
                break;
            swap(&values[i++], &values[j]);
            if (j == 0)
                break;
            j--;
        }
        if (index <= j)
            high = j;
        else if (index >= i)
            low = i;
        else
            break;
    }
    return values[index];
}

static uint64_t select_bucket(const struct sample_buckets *buckets, uint64_t index)
{
    for (unsigned int i = 0; i < NR_PAGES; i++) {
        if (!buckets->pages[i])
            continue;
        for (unsigned int j = 0; j < PAGE_BUCKETS; j++) {
            if (index < buckets->pages[i][j])
                return value_of(i * PAGE_BUCKETS + j);
            index -= buckets->pages[i][j];
        }
    }
    return 0;
}

uint64_t sample_percentile(struct sample *sample, unsigned int part, unsigned int whole)
{
    uint64_t index;

    if (sample->count == 0)
        return 0;
    index = (uint64_t)(((unsigned __int128)sample->count * part + whole - 1) / whole);
    index -= index > 0;
    if (sample->buckets)
        return min_u64(select_bucket(sample->buckets, index), sample->most);
    return select_value(sample->values, sample->nr_values, index);
}

uint64_t sample_count_between(const struct sample *sample, uint64_t least, uint64_t limit)
{
    uint64_t count = 0;

    for (size_t i = 0; i < sample->nr_values; i++)
        count += sample->values[i] >= least && sample->values[i] < limit;
    if (!sample->buckets)
        return count;
    for (unsigned int i = 0; i < NR_BUCKETS; i++) {
        const uint64_t *page = sample->buckets->pages[i / PAGE_BUCKETS];

        if (page && value_of(i) >= least && value_of(i) < limit)
            count += page[i % PAGE_BUCKETS];
    }
    return count;
}

void sample_each(const struct sample *sample,
                 void (*fn)(void *context, uint64_t value, uint64_t count), void *context)
{
    for (size_t i = 0; i < sample->nr_values; i++)
        fn(context, sample->values[i], 1);
    if (!sample->buckets)
        return;
    for (unsigned int i = 0; i < NR_BUCKETS; i++) {
        const uint64_t *page = sample->buckets->pages[i / PAGE_BUCKETS];

        if (page && page[i % PAGE_BUCKETS] > 0)
            fn(context, min_u64(value_of(i), sample->most), page[i % PAGE_BUCKETS]);
    }
}
