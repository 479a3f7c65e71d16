// SPDX-License-Identifier: GPL-2.0-or-later
/* How long vCPUs waited for a CPU: all of them as histograms, the longest one by one. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "ctl/table.h"
#include "ctl/views.h"
#include "trace/domains.h"

#define RAN_SHOWN 3u
#define BAR_MAX   40

static const char *const wait_names[STATE_WAITS] = {"After a wake-up", "After a preemption",
                                                    "Other"};

/* --- Histograms. --- */

/* The first TSC difference that is NSEC or more. */
static uint64_t ticks_of(const struct input *input, uint64_t nsec)
{
    return (uint64_t)(((unsigned __int128)nsec * input->tsc_khz + 999999) / 1000000);
}

/* "512us", "1.02ms". */
static void put_bound(char text[static 16], uint64_t nsec)
{
    if (nsec < 1000 * 1000)
        (void)snprintf(text, 16, "%" PRIu64 "us", nsec / 1000);
    else if (nsec < NSEC_PER_SEC)
        (void)snprintf(text, 16, "%.3gms", (double)nsec / 1e6);
    else
        (void)snprintf(text, 16, "%.3gs", (double)nsec / 1e9);
}

/* From 1 us on, in powers of two; shorter ones have one line. */
#define BOUND_FIRST UINT64_C(1000)
#define NR_BUCKETS  40u

static uint64_t bound_nsec(unsigned int bucket)
{
    return bucket == 0 ? 0 : BOUND_FIRST << (bucket - 1);
}

static void print_bucket(const struct view_output *output, unsigned int bucket, uint64_t count,
                         uint64_t most)
{
    char from[16], to[16], bar[BAR_MAX + 1];
    int length = (int)((count * BAR_MAX + most - 1) / most);

    put_bound(from, bound_nsec(bucket));
    put_bound(to, bound_nsec(bucket + 1));
    memset(bar, '@', sizeof(bar));
    bar[length] = '\0';
    (void)fprintf(output->file, "  [%8s, %8s) %9" PRIu64 " |%-*s|\n", from, to, count, BAR_MAX,
                  bar);
}

static void print_histogram(const struct view_output *output, const struct sample *sample)
{
    uint64_t counts[NR_BUCKETS], most = 0;
    unsigned int first = NR_BUCKETS, last = 0;

    for (unsigned int i = 0; i < NR_BUCKETS; i++) {
        counts[i] = sample_count_between(
            sample, ticks_of(output->input, bound_nsec(i)),
            i + 1 < NR_BUCKETS ? ticks_of(output->input, bound_nsec(i + 1)) : UINT64_MAX);
        most = max_u64(most, counts[i]);
        if (counts[i] == 0)
            continue;
        first = first < i ? first : i;
        last = i;
    }
    for (unsigned int i = first; i <= last && most > 0; i++)
        print_bucket(output, i, counts[i], most);
}

static void print_domain(const struct view_output *output, struct domain *domain)
{
    char name[INPUT_TEXT_MAX], p50[INPUT_TEXT_MAX], p99[INPUT_TEXT_MAX], p999[INPUT_TEXT_MAX];
    char most[INPUT_TEXT_MAX];
    struct sample *waits = &domain->waits;

    if (waits->count == 0)
        return;
    (void)fprintf(output->file, "\n%s: %" PRIu64 " waits, p50 %s, p99 %s, p99.9 %s, longest %s%s\n",
                  input_domain(output->input, name, domain->domid, output->measures->last_tsc),
                  waits->count, input_span(output->input, p50, sample_percentile(waits, 1, 2)),
                  input_span(output->input, p99, sample_percentile(waits, 99, 100)),
                  input_span(output->input, p999, sample_percentile(waits, 999, 1000)),
                  input_span(output->input, most, waits->most),
                  sample_is_exact(waits) ? "" : " (within 0.1 %)");
    print_histogram(output, waits);
}

static int compare_domains(const void *a, const void *b)
{
    const struct domain *x = a, *y = b;

    if (x->waits.total != y->waits.total)
        return x->waits.total < y->waits.total ? 1 : -1;
    return (x->domid > y->domid) - (x->domid < y->domid);
}

void view_print_latency(const struct view_output *output)
{
    struct domains *domains = NULL;
    uint64_t count = 0;

    if (domains_new(output->measures, &domains) < 0)
        return;
    qsort(domains->list, domains->nr, sizeof(*domains->list), compare_domains);
    for (size_t i = 0; i < domains->nr; i++) {
        count += domains->list[i].waits.count;
        print_domain(output, &domains->list[i]);
    }
    if (count == 0)
        (void)fputs("\nNo vCPU waited for a CPU.\n", output->file);
    domains_free(domains);
}

/* --- The longest. --- */

static int compare_ran(const void *a, const void *b)
{
    const struct worst_ran *x = a, *y = b;

    if (x->cycles != y->cycles)
        return x->cycles < y->cycles ? 1 : -1;
    return (x->key > y->key) - (x->key < y->key);
}

/* "db v1 41ms, idle v3 2.1ms, unknown 12us". */
static void add_ran(struct table *table, const struct view_output *output,
                    const struct worst_wait *wait)
{
    char text[RAN_SHOWN * 2 * INPUT_TEXT_MAX] = "", name[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];
    struct worst_ran *ran = calloc(wait->nr_ran + 1, sizeof(*ran));
    size_t length = 0;

    for (unsigned int i = 0; ran && i < wait->nr_ran; i++)
        ran[i] = wait->ran[i];
    if (ran)
        qsort(ran, wait->nr_ran, sizeof(*ran), compare_ran);
    for (unsigned int i = 0; ran && i < wait->nr_ran && i < RAN_SHOWN; i++)
        length +=
            (size_t)snprintf(text + length, sizeof(text) - length, "%s%s %s", i > 0 ? ", " : "",
                             input_vcpu(output->input, name, ran[i].key, wait->from_tsc),
                             input_span(output->input, span, ran[i].cycles));
    if (wait->nr_ran > RAN_SHOWN)
        (void)snprintf(text + length, sizeof(text) - length, ", %u more", wait->nr_ran - RAN_SHOWN);
    table_add(table, "%s", length > 0 ? text : "nobody known");
    free(ran);
}

#define WAIT_COLUMNS "SINCE VCPU >WAITED >CPU RAN-MEANWHILE"

static void add_wait(struct table *table, const struct view_output *output,
                     const struct worst_wait *wait)
{
    char when[INPUT_TEXT_MAX];

    table_add(table, "%s",
              input_when(output->input, when, wait->from_tsc, output->measures->first_tsc));
    view_add_vcpu(table, output, wait->key);
    view_add_span(table, output, wait->cycles);
    table_add(table, "%" PRIu32, merge_cpu_of(output->measures->merge, wait->stream));
    add_ran(table, output, wait);
}

void view_print_longest(const struct view_output *output, unsigned int count)
{
    unsigned int nr[STATE_WAITS], next[STATE_WAITS] = {0};
    const struct worst_wait *of[STATE_WAITS];
    _cleanup_table_ struct table *table = NULL;
    bool is_empty = true;

    if (table_new(WAIT_COLUMNS, &table) < 0)
        return;
    for (unsigned int i = 0; i < STATE_WAITS; i++)
        of[i] = worst_of(output->measures->worst, i, &nr[i]);
    for (; count > 0; count--) {
        unsigned int longest = STATE_WAITS;

        for (unsigned int i = 0; i < STATE_WAITS; i++)
            if (next[i] < nr[i] && (longest == STATE_WAITS ||
                                    of[i][next[i]].cycles > of[longest][next[longest]].cycles))
                longest = i;
        if (longest == STATE_WAITS)
            break;
        add_wait(table, output, &of[longest][next[longest]++]);
        is_empty = false;
    }
    if (is_empty)
        return;
    (void)fputs("\nLongest waits:\n", output->file);
    table_print(table, output->file, 2, output->width);
}

static bool print_worst(const struct view_output *output, enum state_wait kind)
{
    _cleanup_table_ struct table *table = NULL;
    unsigned int nr;
    const struct worst_wait *waits = worst_of(output->measures->worst, kind, &nr);

    if (nr == 0 || table_new(WAIT_COLUMNS, &table) < 0)
        return false;
    for (unsigned int i = 0; i < nr; i++)
        add_wait(table, output, &waits[i]);
    (void)fprintf(output->file, "\n%s:\n", wait_names[kind]);
    table_print(table, output->file, 0, output->width);
    return true;
}

void view_print_waits(const struct view_output *output)
{
    bool has_waits = false;

    for (unsigned int i = 0; i < STATE_WAITS; i++)
        has_waits = print_worst(output, i) || has_waits;
    if (!has_waits)
        (void)fputs("\nNo vCPU waited for a CPU.\n", output->file);
}
