// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "ctl/findings.h"
#include "ctl/table.h"

static const struct view views[] = {
    {"domains", MEASURES_WAITS | DETAILS_EXITS, view_print_domains},
    {"vcpus", MEASURES_WAITS, view_print_vcpus},
    {"cpus", 0, view_print_cpus},
    {"latency", MEASURES_WAITS, view_print_latency},
    {"waits", MEASURES_WORST, view_print_waits},
    {"preemption", DETAILS_PREEMPTIONS, view_print_preemption},
    {"migrations", DETAILS_MIGRATIONS, view_print_migrations},
    {"exits", DETAILS_EXITS | DETAILS_PV, view_print_exits},
    {"mmio", DETAILS_ACCESSES, view_print_mmio},
    {"interrupts", DETAILS_INTERRUPTS, view_print_interrupts},
    {"power", DETAILS_POWER, view_print_power},
    {"scheduler", DETAILS_SCHEDULER, view_print_scheduler},
    {"memory", DETAILS_MEMORY, view_print_memory},
    {"losses", 0, view_print_losses},
    {"findings", MEASURES_REPORT, view_print_findings},
};

const struct view *view_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(views); i++)
        if (strcmp(views[i].name, name) == 0)
            return &views[i];
    return NULL;
}

const struct view *view_at(size_t i)
{
    return i < ARRAY_SIZE(views) ? &views[i] : NULL;
}

void view_print_findings(const struct view_output *output)
{
    struct findings *findings = NULL;

    if (findings_new(output->input, output->measures, &findings) < 0)
        return;
    (void)fputs(findings_count(findings) > 0 ? "\nFindings:\n" : "\n" FINDINGS_NONE "\n",
                output->file);
    for (size_t i = 0; i < findings_count(findings); i++)
        findings_print(findings, i, output->file, (unsigned int)output->width, output->palette);
    findings_free(findings);
}

/* --- Numbers. --- */

double view_share(const struct view_output *output, uint64_t cycles)
{
    return 100.0 * (double)cycles / (double)max_u64(measures_span(output->measures), 1);
}

double view_rate(const struct view_output *output, uint64_t count)
{
    uint64_t nsec = input_nsec(output->input, measures_span(output->measures));

    return nsec > 0 ? (double)count * (double)NSEC_PER_SEC / (double)nsec : 0;
}

uint64_t view_mean(uint64_t cycles, uint64_t count)
{
    return count > 0 ? cycles / count : 0;
}

void view_add_rate(struct table *table, const struct view_output *output, uint64_t count)
{
    double rate = view_rate(output, count);

    table_add(table, rate < 10 ? "%.1f" : "%.0f", rate);
}

void view_add_span(struct table *table, const struct view_output *output, uint64_t cycles)
{
    char text[INPUT_TEXT_MAX];

    table_add(table, "%s", input_span(output->input, text, cycles));
}

void view_add_vcpu(struct table *table, const struct view_output *output, uint32_t key)
{
    char text[INPUT_TEXT_MAX];

    if (key == TALLY_NOBODY)
        table_add(table, "unknown");
    else
        table_add(table, "%s", input_vcpu(output->input, text, key, output->measures->last_tsc));
}

void view_add_domain(struct table *table, const struct view_output *output, uint32_t domid)
{
    char text[INPUT_TEXT_MAX];

    if (domid == TALLY_NOBODY)
        table_add(table, "unknown");
    else
        table_add(table, "%s",
                  input_domain(output->input, text, domid, output->measures->last_tsc));
}

/* --- Lists. --- */

static int compare(const void *a, const void *b)
{
    const struct tally *x = a, *y = b;

    if (x->cycles != y->cycles)
        return x->cycles < y->cycles ? 1 : -1;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    if (x->who != y->who)
        return x->who < y->who ? -1 : 1;
    return (x->what > y->what) - (x->what < y->what);
}

void view_print_tallies(const struct view_output *output, const struct view_list *list,
                        struct tally *tallies, size_t nr)
{
    _cleanup_table_ struct table *table = NULL;

    if (nr == 0 && list->none)
        (void)fprintf(output->file, "\n%s\n", list->none);
    if (nr == 0 || table_new(list->columns, &table) < 0)
        return;
    qsort(tallies, nr, sizeof(*tallies), compare);
    for (size_t i = 0; i < nr && i < VIEW_ROWS_MAX; i++)
        list->add_row(table, output, &tallies[i]);
    (void)fprintf(output->file, list->title ? "\n%s:\n" : "\n", list->title);
    table_print(table, output->file, 0, output->width);
    if (nr > VIEW_ROWS_MAX)
        (void)fprintf(output->file, "%zu more rows are not shown; --json has all of them.\n",
                      nr - VIEW_ROWS_MAX);
}

void view_print_kind(const struct view_output *output, const struct view_list *list,
                     enum tally_kind kind)
{
    size_t nr = 0;
    struct tally *tallies = measures_tallies(output->measures, kind, &nr);

    if (tallies)
        view_print_tallies(output, list, tallies, nr);
    free(tallies);
}

static int compare_who(const void *a, const void *b)
{
    const struct tally *x = a, *y = b;

    if (x->who != y->who)
        return x->who < y->who ? -1 : 1;
    return (x->what > y->what) - (x->what < y->what);
}

struct tally *view_by_domain(const struct view_output *output, enum tally_kind kind,
                             size_t *ret_count)
{
    size_t nr = 0, nr_sums = 0;
    struct tally *tallies = measures_tallies(output->measures, kind, &nr);

    if (!tallies)
        return NULL;
    for (size_t i = 0; i < nr; i++)
        if (tallies[i].who != TALLY_NOBODY)
            tallies[i].who >>= 16;
    qsort(tallies, nr, sizeof(*tallies), compare_who);
    for (size_t i = 0; i < nr; i++) {
        struct tally *sum = nr_sums > 0 ? &tallies[nr_sums - 1] : NULL;

        if (!sum || compare_who(sum, &tallies[i]) != 0) {
            tallies[nr_sums++] = tallies[i];
            continue;
        }
        sum->count += tallies[i].count;
        sum->timed += tallies[i].timed;
        sum->cycles += tallies[i].cycles;
        sum->most = max_u64(sum->most, tallies[i].most);
    }
    *ret_count = nr_sums;
    return tallies;
}
