// SPDX-License-Identifier: GPL-2.0-or-later
/* What guests made Xen do: exits, hypercalls and traps, accesses to ports and memory, memory. */

#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "ctl/table.h"
#include "ctl/views.h"
#include "trace/events.h"
#include "trace/exit-reasons.h"

/* --- Exits. --- */

static void add_exit(struct table *table, const struct view_output *output,
                     const struct tally *tally)
{
    char name[EXIT_REASON_TEXT_MAX];
    uint64_t running = measures_running_cycles(output->measures, tally->who);

    view_add_domain(table, output, tally->who);
    table_add(table, "%s", exit_reason_name(output->measures->is_svm, (uint32_t)tally->what, name));
    table_add_count(table, tally->count);
    view_add_rate(table, output, tally->count);
    table_add(table, "%.1f%%", 100.0 * (double)tally->cycles / (double)max_u64(running, 1));
    view_add_span(table, output, view_mean(tally->cycles, tally->timed));
    view_add_span(table, output, tally->most);
}

static void add_hypercall(struct table *table, const struct view_output *output,
                          const struct tally *tally)
{
    const char *name = event_hypercall_name(tally->what);

    view_add_domain(table, output, tally->who);
    if (name)
        table_add(table, "%s", name);
    else
        table_add(table, "%" PRIu64, tally->what);
    table_add_count(table, tally->count);
    view_add_rate(table, output, tally->count);
}

static void add_entry(struct table *table, const struct view_output *output,
                      const struct tally *tally)
{
    const struct event_info *info = event_info_find((uint32_t)tally->what, 0, 0);

    view_add_domain(table, output, tally->who);
    if (info)
        table_add(table, "%s", info->name);
    else
        table_add(table, "0x%08" PRIx64, tally->what);
    table_add_count(table, tally->count);
    view_add_rate(table, output, tally->count);
}

static size_t print_by_domain(const struct view_output *output, const struct view_list *list,
                              enum tally_kind kind)
{
    size_t nr = 0;
    struct tally *sums = view_by_domain(output, kind, &nr);

    if (sums)
        view_print_tallies(output, list, sums, nr);
    free(sums);
    return nr;
}

void view_print_exits(const struct view_output *output)
{
    static const struct view_list exits = {
        .title = "Exits of HVM and PVH guests",
        .columns = "~DOMAIN REASON >COUNT >PER-SECOND >OF-RUNNING >MEAN >MAX",
        .add_row = add_exit,
    };
    static const struct view_list entries = {
        .title = "Entries of PV guests into Xen",
        .columns = "~DOMAIN EVENT >COUNT >PER-SECOND",
        .add_row = add_entry,
    };
    static const struct view_list hypercalls = {
        .title = "Hypercalls of PV guests",
        .columns = "~DOMAIN HYPERCALL >COUNT >PER-SECOND",
        .add_row = add_hypercall,
    };
    static const struct view_list subcalls = {
        .title = "Hypercalls inside of multicalls",
        .columns = "~DOMAIN HYPERCALL >COUNT >PER-SECOND",
        .add_row = add_hypercall,
    };
    size_t nr = print_by_domain(output, &exits, TALLY_EXIT);

    nr += print_by_domain(output, &entries, TALLY_PV);
    (void)print_by_domain(output, &hypercalls, TALLY_HYPERCALL);
    (void)print_by_domain(output, &subcalls, TALLY_SUBCALL);
    if (nr == 0)
        (void)fputs("\nThe trace has neither exits nor hypercalls.\n", output->file);
}

/* --- Accesses. --- */

static const char *access_name(enum tally_kind kind)
{
    switch (kind) {
    case TALLY_PIO_READ:
        return "port read";
    case TALLY_PIO_WRITE:
        return "port write";
    case TALLY_MMIO_READ:
        return "memory read";
    default:
        return "memory write";
    }
}

static void add_access(struct table *table, const struct view_output *output,
                       const struct tally *tally)
{
    view_add_domain(table, output, tally->who);
    table_add(table, "%s", access_name(tally->kind));
    table_add(table, "0x%" PRIx64, tally->what);
    table_add_count(table, tally->count);
    view_add_rate(table, output, tally->count);
    view_add_span(table, output, view_mean(tally->cycles, tally->timed));
    view_add_span(table, output, tally->most);
}

void view_print_mmio(const struct view_output *output)
{
    static const struct view_list list = {
        .none = "No guest accessed an emulated port or address.",
        .columns = "~DOMAIN ACCESS >ADDRESS >COUNT >PER-SECOND >MEAN >MAX",
        .add_row = add_access,
    };
    struct tally *all = NULL, *more, *of;
    size_t nr_all = 0, nr;

    for (unsigned int kind = TALLY_PIO_READ; kind <= TALLY_MMIO_WRITE; kind++) {
        of = measures_tallies(output->measures, kind, &nr);
        more = of ? reallocarray(all, nr_all + nr + 1, sizeof(*all)) : NULL;
        if (!more) {
            free(of);
            free(all);
            return;
        }
        all = more;
        for (size_t i = 0; i < nr; i++)
            all[nr_all++] = of[i];
        free(of);
    }
    view_print_tallies(output, &list, all, nr_all);
    free(all);
}

/* --- Memory. --- */

static void add_memory(struct table *table, const struct view_output *output,
                       const struct tally *tally)
{
    const struct event_info *info = event_info_find((uint32_t)(tally->what >> 32), 0, 0);

    view_add_domain(table, output, tally->who);
    table_add(table, "%s", info ? info->name : "unknown");
    view_add_domain(table, output, (uint32_t)tally->what);
    table_add_count(table, tally->count);
    view_add_rate(table, output, tally->count);
}

void view_print_memory(const struct view_output *output)
{
    static const struct view_list list = {
        .none = "The trace has no events of memory (class mem).",
        .columns = "~DOMAIN EVENT BY >COUNT >PER-SECOND",
        .add_row = add_memory,
    };

    view_print_kind(output, &list, TALLY_MEMORY);
}
