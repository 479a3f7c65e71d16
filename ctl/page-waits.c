// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The samples stay with the vCPUs, so a percentile of a domain is searched: the least value that as
 * many waits of its vCPUs do not exceed. The bins tell where to search.
 */

#include "ctl/page-waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/doc.h"
#include "ctl/input.h"
#include "trace/measures.h"

#define BINS_OF_OCTAVE 4u /* bin K begins at 2^(K/4) ns */
#define BINS           256u

/* The waits of one kind of a domain's vCPUs. */
struct waits {
    const struct input *input;
    struct state_vcpu *const *vcpus; /* [nr_vcpus]: of the domain */
    unsigned int nr_vcpus;
    enum state_wait kind;
    uint64_t bins[BINS];
    uint64_t count, most;
};

/* 2^63, 2^63.25, 2^63.5, 2^63.75. */
static const uint64_t quarters[BINS_OF_OCTAVE] = {
    UINT64_C(0x8000000000000000),
    UINT64_C(0x9837f0518db8a96f),
    UINT64_C(0xb504f333f9de6484),
    UINT64_C(0xd744fccad69d6af4),
};

static unsigned int bin_of(uint64_t nsec)
{
    unsigned int zeroes, quarter = 0;

    if (nsec == 0)
        return 0;
    zeroes = (unsigned int)__builtin_clzll(nsec);
    while (quarter < BINS_OF_OCTAVE - 1 && nsec << zeroes >= quarters[quarter + 1])
        quarter++;
    return (63 - zeroes) * BINS_OF_OCTAVE + quarter;
}

/* The least value of a bin, roughly. */
static uint64_t ticks_of_bin(const struct waits *waits, unsigned int bin)
{
    uint64_t nsec = quarters[bin % BINS_OF_OCTAVE] >> (63 - bin / BINS_OF_OCTAVE);

    return (uint64_t)((unsigned __int128)nsec * waits->input->tsc_khz / 1000000);
}

static struct sample *sample_of(const struct waits *waits, unsigned int i)
{
    return &measures_of(waits->vcpus[i])->waits[waits->kind];
}

static void add_to_bin(void *context, uint64_t value, uint64_t count)
{
    struct waits *waits = context;

    waits->bins[bin_of(input_nsec(waits->input, value))] += count;
}

static void waits_count(struct waits *waits)
{
    for (unsigned int i = 0; i < waits->nr_vcpus; i++) {
        const struct sample *sample = sample_of(waits, i);

        waits->count += sample->count;
        waits->most = max_u64(waits->most, sample->most);
        sample_each(sample, add_to_bin, waits);
    }
}

/* How many are below LIMIT. */
static uint64_t count_below(const struct waits *waits, uint64_t limit)
{
    uint64_t count = 0;

    for (unsigned int i = 0; i < waits->nr_vcpus; i++)
        count += sample_count_between(sample_of(waits, i), 0, limit);
    return count;
}

/* As sample_percentile(). */
static uint64_t find_percentile(const struct waits *waits, uint64_t part, uint64_t whole)
{
    uint64_t rank = waits->count / whole * part + (waits->count % whole * part + whole - 1) / whole;
    uint64_t seen = 0, low, high;
    unsigned int bin = 0;

    while (bin < BINS - 1 && seen + waits->bins[bin] < rank)
        seen += waits->bins[bin++];
    low = ticks_of_bin(waits, bin > 0 ? bin - 1 : 0);
    high = bin < BINS - 2 ? min_u64(ticks_of_bin(waits, bin + 2), waits->most) : waits->most;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (count_below(waits, middle + 1) >= rank)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void add_kind(struct json_object *doc, const struct waits *waits)
{
    struct json_object *entry = doc_add_object(doc, state_wait_name(waits->kind)), *bins;

    doc_add_number(entry, "count", waits->count);
    doc_add_number(entry, "p50", find_percentile(waits, 1, 2));
    doc_add_number(entry, "p99", find_percentile(waits, 99, 100));
    doc_add_number(entry, "p999", find_percentile(waits, 999, 1000));
    doc_add_number(entry, "max", waits->most);
    bins = doc_add_object(entry, "bins");
    for (unsigned int i = 0; i < BINS; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "%u", i);
        if (waits->bins[i] > 0)
            doc_add_number(bins, key, waits->bins[i]);
    }
}

static void add_domain(struct json_object *doc, const struct input *input,
                       struct state_vcpu *const *vcpus, unsigned int nr)
{
    struct json_object *entry;
    char key[16];

    (void)snprintf(key, sizeof(key), "d%" PRIu32, vcpus[0]->key >> 16);
    entry = doc_add_object(doc, key);
    for (unsigned int kind = 0; kind < STATE_WAITS; kind++) {
        struct waits waits = {.input = input, .vcpus = vcpus, .nr_vcpus = nr, .kind = kind};

        waits_count(&waits);
        if (waits.count > 0)
            add_kind(entry, &waits);
    }
}

static int compare(const void *a, const void *b)
{
    const struct state_vcpu *const *x = a, *const *y = b;

    return ((*x)->key > (*y)->key) - ((*x)->key < (*y)->key);
}

void page_waits_add(struct json_object *doc, const struct input *input,
                    const struct measures *measures)
{
    struct json_object *object = doc_add_object(doc, "waits");
    struct state_vcpu **vcpus = calloc(measures->state.nr_vcpus + 1u, sizeof(struct state_vcpu *));
    unsigned int nr = 0, first = 0;

    if (!vcpus)
        return;
    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++)
        if (measures_of(measures->state.vcpus[i]) &&
            measures_shows_vcpu(measures, measures->state.vcpus[i]))
            vcpus[nr++] = measures->state.vcpus[i];
    qsort(vcpus, nr, sizeof(struct state_vcpu *), compare);
    for (unsigned int i = 0; i < nr; i++) {
        if (i + 1 < nr && vcpus[i + 1]->key >> 16 == vcpus[i]->key >> 16)
            continue;
        add_domain(object, input, vcpus + first, i + 1 - first);
        first = i + 1;
    }
    free(vcpus);
}
