// SPDX-License-Identifier: GPL-2.0-or-later
/* What the scheduler did: preemptions, migrations, its own events. */

#include <inttypes.h>
#include <stdlib.h>

#include "common/record.h"
#include "common/util.h"
#include "ctl/table.h"
#include "ctl/views.h"
#include "trace/events.h"

/* --- Preemptions. --- */

static void add_preemption(struct table *table, const struct view_output *output,
                           const struct tally *tally)
{
    view_add_vcpu(table, output, tally->who);
    view_add_vcpu(table, output, (uint32_t)tally->what);
    table_add_count(table, tally->count);
    view_add_rate(table, output, tally->count);
    view_add_span(table, output, tally->cycles);
    view_add_span(table, output, view_mean(tally->cycles, tally->count));
    view_add_span(table, output, tally->most);
}

void view_print_preemption(const struct view_output *output)
{
    static const struct view_list list = {
        .none = "No vCPU was preempted.",
        .columns = "~VCPU ~PREEMPTED-BY >TIMES >PER-SECOND >WAITED >MEAN >MAX",
        .add_row = add_preemption,
    };

    view_print_kind(output, &list, TALLY_PREEMPTED);
}

/* --- Migrations. --- */

static void add_migration(struct table *table, const struct view_output *output,
                          const struct tally *tally)
{
    view_add_vcpu(table, output, tally->who);
    table_add(table, "%" PRIu32, (uint32_t)(tally->what >> 32));
    table_add(table, "%" PRIu32, (uint32_t)tally->what);
    table_add_count(table, tally->count);
    view_add_rate(table, output, tally->count);
}

void view_print_migrations(const struct view_output *output)
{
    static const struct view_list list = {
        .none = "No vCPU was migrated.",
        .columns = "~VCPU >FROM-CPU >TO-CPU >TIMES >PER-SECOND",
        .add_row = add_migration,
    };

    view_print_kind(output, &list, TALLY_MIGRATION);
}

/* --- Events. --- */

/* Columns of the table of vCPUs; an event that some schedulers call otherwise has two codes. */
static const uint32_t shown_events[][2] = {
    {0x28004, 0},       /* wake-ups */
    {0x28006, 0},       /* blocks */
    {0x28005, 0},       /* yields */
    {0x28003, 0},       /* sleeps */
    {0x22205, 0x2220d}, /* checks whom to tickle, and new ones */
    {0x22207, 0},       /* resets of the credit */
    {0x22216, 0x2200a}, /* limits of the rate */
    {0x2220f, 0x22004}, /* moved to another run queue, stolen */
};

struct vcpu_events {
    uint32_t key;
    uint64_t counts[ARRAY_SIZE(shown_events)];
    uint64_t sum;
};

static int compare_sums(const void *a, const void *b)
{
    const struct vcpu_events *x = a, *y = b;

    if (x->sum != y->sum)
        return x->sum < y->sum ? 1 : -1;
    return (x->key > y->key) - (x->key < y->key);
}

/* TALLIES are sorted by vCPU. Free it; NULL: no memory. */
static struct vcpu_events *sum_events(const struct tally *tallies, size_t nr, size_t *ret_count)
{
    struct vcpu_events *list = calloc(nr + 1, sizeof(*list));
    size_t used = 0;

    for (size_t i = 0; list && i < nr; i++) {
        if (used == 0 || list[used - 1].key != tallies[i].who)
            list[used++].key = tallies[i].who;
        list[used - 1].sum += tallies[i].count;
        for (size_t j = 0; j < ARRAY_SIZE(shown_events); j++)
            if (tallies[i].what == shown_events[j][0] || tallies[i].what == shown_events[j][1])
                list[used - 1].counts[j] += tallies[i].count;
    }
    *ret_count = used;
    return list;
}

static void print_vcpus(const struct view_output *output)
{
    size_t nr = 0, nr_vcpus = 0;
    struct tally *tallies = measures_tallies(output->measures, TALLY_SCHED, &nr);
    struct vcpu_events *list = tallies ? sum_events(tallies, nr, &nr_vcpus) : NULL;
    _cleanup_table_ struct table *table = NULL;

    free(tallies);
    if (!list || nr_vcpus == 0 ||
        table_new("~VCPU >WAKE-UPS >BLOCKS >YIELDS ?>SLEEPS >TICKLES ?>RESETS >LIMITED ?>MOVES",
                  &table) < 0) {
        free(list);
        return;
    }
    qsort(list, nr_vcpus, sizeof(*list), compare_sums);
    for (size_t i = 0; i < nr_vcpus && i < VIEW_ROWS_MAX; i++) {
        view_add_vcpu(table, output, list[i].key);
        for (size_t j = 0; j < ARRAY_SIZE(shown_events); j++)
            table_add_count(table, list[i].counts[j]);
    }
    (void)fputs("\nBy vCPU:\n", output->file);
    table_print(table, output->file, 0, output->width);
    free(list);
}

static void add_event(struct table *table, const struct view_output *output,
                      const struct tally *tally)
{
    const struct event_info *info = event_info_find((uint32_t)tally->what, 0, 0);

    table_add(table, "%s", info ? info->name : "unknown");
    table_add(table, "0x%08" PRIx64, tally->what);
    table_add_count(table, tally->count);
    view_add_rate(table, output, tally->count);
}

/* Events of the class, without the changes of runstates. */
static bool is_decision(uint32_t event)
{
    return event >> 16 == TRC_SCHED >> 16 && (event & 0xf000u) != (TRC_SCHED_MIN & 0xf000u);
}

void view_print_scheduler(const struct view_output *output)
{
    static const struct view_list list = {
        .title = "Decisions",
        .none = "The trace has no events of a scheduler but runstates.",
        .columns = "EVENT CODE >COUNT >PER-SECOND",
        .add_row = add_event,
    };
    size_t nr = 0, nr_events = 0;
    struct count *counts = counts_sorted(&output->measures->events, &nr);
    struct tally *events = calloc(nr + 1, sizeof(*events));

    /* They are of the whole trace, and what is selected has its own below. */
    for (size_t i = 0; counts && events && !output->measures->subjects && i < nr; i++)
        if (is_decision(counts[i].number))
            events[nr_events++] =
                (struct tally){.count = counts[i].count, .what = counts[i].number};
    if (events && !output->measures->subjects)
        view_print_tallies(output, &list, events, nr_events);
    free(counts);
    free(events);
    print_vcpus(output);
}
