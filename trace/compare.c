// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace/compare.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "trace/measures.h"

#define MILLION UINT64_C(1000000)

/* Of two samples of one distribution, a hundredth of the pairs are further apart than 1.63 times
 * the root of (n + m) / (n m) (Smirnov, 1948); its square, in millionths. */
#define CHANCE_SQUARE ((unsigned __int128)UINT64_C(1630000) * UINT64_C(1630000))

/* --- Collecting. --- */

static int waits_add(struct compare_waits *waits, uint64_t nsec, uint64_t count)
{
    if (waits->nr_values == waits->max_values) {
        size_t max = waits->max_values ? waits->max_values * 2 : 64;
        uint64_t *more = reallocarray(waits->values, max, sizeof(*more));

        if (!more)
            return -ENOMEM;
        waits->values = more;
        more = reallocarray(waits->counts, max, sizeof(*more));
        if (!more)
            return -ENOMEM;
        waits->counts = more;
        waits->max_values = max;
    }
    waits->values[waits->nr_values] = nsec;
    waits->counts[waits->nr_values++] = count;
    waits->total += count;
    return 0;
}

static void waits_sift(struct compare_waits *waits, size_t at, size_t nr)
{
    uint64_t value = waits->values[at], count = waits->counts[at];

    for (size_t child = 2 * at + 1; child < nr; child = 2 * at + 1) {
        if (child + 1 < nr && waits->values[child + 1] > waits->values[child])
            child++;
        if (waits->values[child] <= value)
            break;
        waits->values[at] = waits->values[child];
        waits->counts[at] = waits->counts[child];
        at = child;
    }
    waits->values[at] = value;
    waits->counts[at] = count;
}

/* Heapsort: values and their counts are in two arrays, and a trace must not choose the cost. */
static void waits_sort(struct compare_waits *waits)
{
    for (size_t i = waits->nr_values / 2; i > 0; i--)
        waits_sift(waits, i - 1, waits->nr_values);
    for (size_t nr = waits->nr_values; nr > 1; nr--) {
        uint64_t value = waits->values[0], count = waits->counts[0];

        waits->values[0] = waits->values[nr - 1];
        waits->counts[0] = waits->counts[nr - 1];
        waits->values[nr - 1] = value;
        waits->counts[nr - 1] = count;
        waits_sift(waits, 0, nr - 1);
    }
}

static struct compare_domain *side_find(const struct compare_side *side, uint32_t domid)
{
    for (size_t i = 0; i < side->nr_domains; i++)
        if (side->domains[i].domid == domid)
            return &side->domains[i];
    return NULL;
}

const struct compare_domain *compare_find(const struct compare_side *side, uint32_t domid)
{
    return side_find(side, domid);
}

/* The domain, which is added if it is not there; NULL: no memory. */
static struct compare_domain *side_add(struct compare_side *side, uint32_t domid)
{
    struct compare_domain *domain = side_find(side, domid), *more;

    if (domain)
        return domain;
    if (side->nr_domains == side->max_domains) {
        size_t max = side->max_domains ? side->max_domains * 2 : 16;

        more = reallocarray(side->domains, max, sizeof(*more));
        if (!more)
            return NULL;
        side->domains = more;
        side->max_domains = max;
    }
    domain = &side->domains[side->nr_domains++];
    *domain = (struct compare_domain){.domid = domid};
    return domain;
}

/* Where the waits of a sample go. */
struct collect {
    struct compare_waits *waits;
    uint64_t tsc_khz;
    int error;
};

static uint64_t nsec_of(uint64_t cycles, uint64_t tsc_khz)
{
    return (uint64_t)((unsigned __int128)cycles * MILLION / tsc_khz);
}

static void collect_wait(void *context, uint64_t cycles, uint64_t count)
{
    struct collect *collect = context;
    int r = waits_add(collect->waits, nsec_of(cycles, collect->tsc_khz), count);

    if (r < 0)
        collect->error = r;
}

static int side_add_vcpu(struct compare_side *side, const struct state_vcpu *vcpu, uint64_t tsc_khz)
{
    struct compare_domain *domain = side_add(side, vcpu->key >> 16);
    const struct measures_vcpu *measured = measures_of(vcpu);
    struct collect collect = {.tsc_khz = tsc_khz};

    if (!domain)
        return -ENOMEM;
    domain->running += vcpu->cycles[STATE_RUNNING];
    collect.waits = &domain->waits;
    for (unsigned int i = 0; measured && i < STATE_WAITS; i++)
        sample_each(&measured->waits[i], collect_wait, &collect);
    return collect.error;
}

struct collect_exits {
    const struct measures *measures;
    struct compare_side *side;
    int error;
};

/* The exits of that reason; NULL: no memory. */
static struct compare_exit *domain_exit(struct compare_domain *domain, uint32_t reason)
{
    struct compare_exit *more;

    for (size_t i = 0; i < domain->nr_exits; i++)
        if (domain->exits[i].reason == reason)
            return &domain->exits[i];
    if (domain->nr_exits == domain->max_exits) {
        size_t max = domain->max_exits ? domain->max_exits * 2 : 16;

        more = reallocarray(domain->exits, max, sizeof(*more));
        if (!more)
            return NULL;
        domain->exits = more;
        domain->max_exits = max;
    }
    domain->exits[domain->nr_exits] = (struct compare_exit){.reason = reason};
    return &domain->exits[domain->nr_exits++];
}

static void collect_exit(void *context, const struct tally *tally)
{
    struct collect_exits *collect = context;
    struct compare_domain *domain = side_find(collect->side, tally->who >> 16);
    uint32_t reason = (uint32_t)tally->what;
    struct compare_exit *exit;

    if (!domain || !measures_shows_tally(collect->measures, tally))
        return;
    exit = domain->nr_exits < COMPARE_REASONS_MAX ? domain_exit(domain, reason) : NULL;
    if (exit)
        exit->count += tally->count;
    else if (domain->nr_exits < COMPARE_REASONS_MAX)
        collect->error = -ENOMEM;
}

static int compare_reasons(const void *a, const void *b)
{
    const struct compare_exit *x = a, *y = b;

    return (x->reason > y->reason) - (x->reason < y->reason);
}

static int compare_domids(const void *a, const void *b)
{
    const struct compare_domain *x = a, *y = b;

    return (x->domid > y->domid) - (x->domid < y->domid);
}

static void side_finish(struct compare_side *side)
{
    for (size_t i = 0; i < side->nr_domains; i++) {
        struct compare_domain *domain = &side->domains[i];

        if (side->span_cycles > 0)
            domain->run_ppm =
                (uint64_t)((unsigned __int128)domain->running * MILLION / side->span_cycles);
        for (size_t j = 0; j < domain->nr_exits && side->span_nsec > 0; j++)
            domain->exits[j].rate = (uint64_t)((unsigned __int128)domain->exits[j].count * MILLION *
                                               MILLION / side->span_nsec);
        if (domain->nr_exits > 0)
            qsort(domain->exits, domain->nr_exits, sizeof(*domain->exits), compare_reasons);
        waits_sort(&domain->waits);
    }
    if (side->nr_domains > 0)
        qsort(side->domains, side->nr_domains, sizeof(*side->domains), compare_domids);
}

static int side_fill(struct compare_side *side, const struct measures *measures, uint64_t tsc_khz)
{
    struct collect_exits collect = {.measures = measures, .side = side};

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++) {
        const struct state_vcpu *vcpu = measures->state.vcpus[i];
        int r = 0;

        if (vcpu->key >> 16 < STATE_DOMAIN_IDLE && measures_shows_vcpu(measures, vcpu))
            r = side_add_vcpu(side, vcpu, tsc_khz);

        if (r < 0)
            return r;
    }
    tallies_each(&measures->details.tallies, TALLY_EXIT, collect_exit, &collect);
    side_finish(side);
    return collect.error;
}

int compare_side_new(const struct measures *measures, uint64_t span_cycles, uint64_t tsc_khz,
                     struct compare_side **ret_side)
{
    struct compare_side *side = calloc(1, sizeof(*side));
    int r;

    if (!side)
        return -ENOMEM;
    side->span_cycles = span_cycles;
    side->span_nsec = nsec_of(span_cycles, tsc_khz);
    side->is_svm = measures->is_svm;
    r = side_fill(side, measures, tsc_khz);
    if (r < 0) {
        (void)compare_side_free(side);
        return r;
    }
    *ret_side = side;
    return 0;
}

struct compare_side *compare_side_free(struct compare_side *side)
{
    if (!side)
        return NULL;
    for (size_t i = 0; i < side->nr_domains; i++) {
        free(side->domains[i].waits.values);
        free(side->domains[i].waits.counts);
        free(side->domains[i].exits);
    }
    free(side->domains);
    free(side);
    return NULL;
}

/* --- Comparing. --- */

uint64_t compare_percentile(const struct compare_waits *waits, unsigned int part,
                            unsigned int whole)
{
    uint64_t rank = (uint64_t)(((unsigned __int128)waits->total * part + whole - 1) / whole),
             before = 0;

    for (size_t i = 0; i < waits->nr_values; i++) {
        before += waits->counts[i];
        if (before >= rank && rank > 0)
            return waits->values[i];
    }
    return 0;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* The larger one of the distances between halves that are known. */
static void value_add_noise(struct compare_value *value, uint64_t noise)
{
    value->noise = value->has_noise ? max_u64(value->noise, noise) : noise;
    value->has_noise = true;
}

/* Of a quantity that is a number: of the trace and its halves, 0 where the domain is missing. */
static void value_compare(struct compare_value *value, const struct compare_pair *pair,
                          const uint64_t a[3], const uint64_t b[3])
{
    *value = (struct compare_value){.a = a[0], .b = b[0]};
    if (!pair->a[0] || !pair->b[0])
        return;
    value->has_distance = true;
    value->distance = difference(a[0], b[0]);
    value_add_noise(value, difference(a[1], a[2]));
    value_add_noise(value, difference(b[1], b[2]));
    value->is_larger = value->distance > value->noise;
}

void compare_by_run(const struct compare_pair *pair, struct compare_value *ret_value)
{
    uint64_t a[3], b[3];

    for (unsigned int i = 0; i < 3; i++) {
        a[i] = pair->a[i] ? pair->a[i]->run_ppm : 0;
        b[i] = pair->b[i] ? pair->b[i]->run_ppm : 0;
    }
    value_compare(ret_value, pair, a, b);
}

static uint64_t rate_of(const struct compare_domain *domain, uint32_t reason)
{
    for (size_t i = 0; domain && i < domain->nr_exits; i++)
        if (domain->exits[i].reason == reason)
            return domain->exits[i].rate;
    return 0;
}

void compare_by_exits(const struct compare_pair *pair, uint32_t reason,
                      struct compare_value *ret_value)
{
    uint64_t a[3], b[3];

    for (unsigned int i = 0; i < 3; i++) {
        a[i] = rate_of(pair->a[i], reason);
        b[i] = rate_of(pair->b[i], reason);
    }
    value_compare(ret_value, pair, a, b);
}

/* How many of WAITS are VALUE or less: from *I on, which moves on. */
static uint64_t take_up_to(const struct compare_waits *waits, size_t *i, uint64_t value)
{
    uint64_t count = 0;

    for (; *i < waits->nr_values && waits->values[*i] <= value; (*i)++)
        count += waits->counts[*i];
    return count;
}

/* The largest difference between the shares of waits that are as long as something or less. False:
 * one has none. */
static bool waits_distance(const struct compare_domain *x, const struct compare_domain *y,
                           uint64_t *ret_ppm)
{
    unsigned __int128 most = 0;
    uint64_t below_x = 0, below_y = 0;
    size_t i = 0, j = 0;

    if (!x || !y || x->waits.total == 0 || y->waits.total == 0)
        return false;
    while (i < x->waits.nr_values && j < y->waits.nr_values) {
        uint64_t value = min_u64(x->waits.values[i], y->waits.values[j]);
        unsigned __int128 p, q;

        below_x += take_up_to(&x->waits, &i, value);
        below_y += take_up_to(&y->waits, &j, value);
        p = (unsigned __int128)below_x * y->waits.total;
        q = (unsigned __int128)below_y * x->waits.total;
        if ((p > q ? p - q : q - p) > most)
            most = p > q ? p - q : q - p;
    }
    *ret_ppm = (uint64_t)(most * MILLION / x->waits.total / y->waits.total);
    return true;
}

/* Whether that distance is larger than chance would have it. */
static bool is_beyond_chance(uint64_t ppm, uint64_t n, uint64_t m)
{
    return (unsigned __int128)ppm * ppm * n / (n + m) * m > CHANCE_SQUARE;
}

void compare_by_waits(const struct compare_pair *pair, struct compare_value *ret_value)
{
    struct compare_value value = {
        .a = pair->a[0] ? pair->a[0]->waits.total : 0,
        .b = pair->b[0] ? pair->b[0]->waits.total : 0,
    };
    uint64_t noise;

    value.has_distance = waits_distance(pair->a[0], pair->b[0], &value.distance);
    if (waits_distance(pair->a[1], pair->a[2], &noise))
        value_add_noise(&value, noise);
    if (waits_distance(pair->b[1], pair->b[2], &noise))
        value_add_noise(&value, noise);
    value.is_larger = value.has_distance && value.has_noise && value.distance > value.noise &&
                      is_beyond_chance(value.distance, value.a, value.b);
    *ret_value = value;
}
