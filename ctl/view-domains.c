// SPDX-License-Identifier: GPL-2.0-or-later
/* Who ran: domains, vCPUs, CPUs. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/util.h"
#include "ctl/table.h"
#include "ctl/views.h"
#include "ctl/wrap.h"
#include "trace/domains.h"

#define ON_CPU_SHOWN  4u
#define KNOWN_PERCENT 90.0 /* from there on nobody needs to know */
#define PARTLY_SHOWN  4u
#define CPUS_LEGEND                                                                                \
    "DEMAND: BUSY, and the waits of vCPUs that then ran there. AT-END: from its last change, at "  \
    "that time, to the end; idle may mean offline. UNKNOWN: records are missing, or it was "       \
    "offline."
#define DOMAINS_LEGEND                                                                             \
    "RUNNING, WAITING: 100% is one CPU, all the time. P50, P99, MAX: of its waits."

static void add_waits(struct table *table, const struct view_output *output, struct sample *waits)
{
    view_add_span(table, output, sample_percentile(waits, 1, 2));
    view_add_span(table, output, sample_percentile(waits, 99, 100));
    view_add_span(table, output, waits->most);
}

/* --- Domains. --- */

static int compare_domains(const void *a, const void *b)
{
    const struct domain *x = a, *y = b;

    if (x->cycles[STATE_RUNNING] != y->cycles[STATE_RUNNING])
        return x->cycles[STATE_RUNNING] < y->cycles[STATE_RUNNING] ? 1 : -1;
    return (x->domid > y->domid) - (x->domid < y->domid);
}

static void add_domain(struct table *table, const struct view_output *output, struct domain *domain,
                       bool with_exits)
{
    view_add_domain(table, output, domain->domid);
    table_add(table, "%u", domain->nr_vcpus);
    table_add(table, "%.1f%%", view_share(output, domain->cycles[STATE_RUNNING]));
    table_add(table, "%.1f%%", view_share(output, domain->cycles[STATE_RUNNABLE]));
    add_waits(table, output, &domain->waits);
    table_add_count(table, domain->wakes);
    table_add_count(table, domain->migrations);
    if (with_exits)
        table_add_count(table, domain->exits);
}

/* The part of the trace in which the states of its vCPUs are known. */
static double known_percent(const struct view_output *output, const struct domain *domain)
{
    uint64_t cycles = 0;

    for (unsigned int i = 0; i < STATE_RUNSTATES; i++)
        cycles += domain->cycles[i];
    return view_share(output, cycles) / domain->nr_vcpus;
}

/* Those of the NR domains of which so little is known that their percentages mislead. */
static void print_partly_known(const struct view_output *output, const struct domains *domains,
                               size_t nr)
{
    _cleanup_free_ char *text = NULL;
    char name[INPUT_TEXT_MAX];
    unsigned int count = 0;
    size_t bytes;
    FILE *line = open_memstream(&text, &bytes);

    if (!line)
        return;
    for (size_t i = 0; i < nr; i++) {
        const struct domain *domain = &domains->list[i];
        double known = domain->nr_vcpus > 0 ? known_percent(output, domain) : 100.0;

        if (known >= KNOWN_PERCENT || ++count > PARTLY_SHOWN)
            continue;
        (void)fprintf(
            line, "%s %s %.0f%%", count == 1 ? "Known for a part of the trace only:" : ",",
            input_domain(output->input, name, domain->domid, output->measures->last_tsc), known);
    }
    if (count > PARTLY_SHOWN)
        (void)fprintf(line, ", %u more", count - PARTLY_SHOWN);
    if (fclose(line) == 0 && count > 0)
        (void)wrap_print(output->file, text, (unsigned int)output->width, 0, 0);
}

void view_print_domains(const struct view_output *output)
{
    static const char columns[] =
        "~DOMAIN >VCPUS >RUNNING >WAITING >P50 >P99 >MAX >WAKE-UPS ?>MIGRATIONS";
    static const char with_exits[] =
        "~DOMAIN ?>VCPUS >RUNNING >WAITING >P50 >P99 >MAX >WAKE-UPS ?>MIGRATIONS >EXITS";
    bool has_exits = output->measures->reasons.nr > 0;
    _cleanup_table_ struct table *table = NULL;
    struct domains *domains = NULL;
    size_t shown;

    if (table_new(has_exits ? with_exits : columns, &table) < 0 ||
        domains_new(output->measures, &domains) < 0)
        return;
    qsort(domains->list, domains->nr, sizeof(*domains->list), compare_domains);
    shown = output->rows > 0 && domains->nr > output->rows ? output->rows : domains->nr;
    for (size_t i = 0; i < shown; i++)
        add_domain(table, output, &domains->list[i], has_exits);
    (void)fputc('\n', output->file);
    table_print(table, output->file, 0, output->width);
    if (shown < domains->nr)
        (void)fprintf(output->file, "%zu more: --view domains\n", domains->nr - shown);
    (void)wrap_print(output->file, DOMAINS_LEGEND, (unsigned int)output->width, 0, 0);
    print_partly_known(output, domains, shown);
    domains_free(domains);
}

/* --- vCPUs. --- */

static int compare_vcpus(const void *a, const void *b)
{
    const struct state_vcpu *const *x = a, *const *y = b;

    if ((*x)->cycles[STATE_RUNNING] != (*y)->cycles[STATE_RUNNING])
        return (*x)->cycles[STATE_RUNNING] < (*y)->cycles[STATE_RUNNING] ? 1 : -1;
    return ((*x)->key > (*y)->key) - ((*x)->key < (*y)->key);
}

/* All waits of a vCPU become one sample: its kinds are not apart here. */
static void add_waits_of(struct table *table, const struct view_output *output,
                         const struct state_vcpu *vcpu)
{
    struct sample_budget *budget = &output->measures->budget;
    struct measures_vcpu *measured = measures_of(vcpu);
    struct sample none = {0};

    for (unsigned int i = 1; measured && i < STATE_WAITS; i++)
        (void)sample_move(&measured->waits[0], budget, &measured->waits[i]);
    add_waits(table, output, measured ? &measured->waits[0] : &none);
}

static void add_vcpu(struct table *table, const struct view_output *output,
                     const struct state_vcpu *vcpu)
{
    view_add_vcpu(table, output, vcpu->key);
    for (unsigned int i = 0; i < STATE_RUNSTATES; i++)
        table_add(table, "%.1f%%", view_share(output, vcpu->cycles[i]));
    add_waits_of(table, output, vcpu);
    table_add_count(table, vcpu->switches_in);
    table_add_count(table, vcpu->migrations);
}

void view_print_vcpus(const struct view_output *output)
{
    unsigned int nr = output->measures->state.nr_vcpus;
    struct state_vcpu **vcpus = calloc(nr + 1, sizeof(struct state_vcpu *));
    _cleanup_table_ struct table *table = NULL;

    if (!vcpus || table_new("~VCPU >RUNNING >WAITING >BLOCKED ?>OFFLINE >P50 >P99 >MAX "
                            ">SWITCHES ?>MIGRATIONS",
                            &table) < 0) {
        free(vcpus);
        return;
    }
    for (unsigned int i = 0; i < nr; i++)
        vcpus[i] = output->measures->state.vcpus[i];
    qsort(vcpus, nr, sizeof(struct state_vcpu *), compare_vcpus);
    for (unsigned int i = 0; i < nr; i++)
        if (vcpus[i]->key >> 16 < STATE_DOMAIN_IDLE &&
            measures_shows_vcpu(output->measures, vcpus[i]))
            add_vcpu(table, output, vcpus[i]);
    (void)fputc('\n', output->file);
    table_print(table, output->file, 0, output->width);
    free(vcpus);
}

/* --- CPUs. --- */

struct on_cpu {
    uint32_t key;
    uint64_t cycles;
};

/* The vCPUs that ran on it the longest, in that order; the number of all that ran there. */
static unsigned int find_on_cpu(const struct measures *measures, uint32_t stream,
                                struct on_cpu most[static ON_CPU_SHOWN])
{
    unsigned int nr = 0;

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++) {
        const struct state_vcpu *vcpu = measures->state.vcpus[i];

        for (unsigned int j = 0; j < vcpu->nr_on_cpus; j++) {
            struct on_cpu on = {vcpu->key, vcpu->on_cpus[j].cycles};

            if (vcpu->on_cpus[j].stream != stream || vcpu->key >> 16 >= STATE_DOMAIN_IDLE)
                continue;
            nr++;
            for (unsigned int k = 0; k < ON_CPU_SHOWN; k++) {
                struct on_cpu other = most[k];

                if (on.cycles <= other.cycles)
                    continue;
                most[k] = on;
                on = other;
            }
        }
    }
    return nr;
}

static void add_cpu(struct table *table, const struct view_output *output, uint32_t stream)
{
    const struct measures *measures = output->measures;
    const struct state_cpu *cpu = &measures->state.cpus[stream];
    struct on_cpu most[ON_CPU_SHOWN] = {0};
    unsigned int nr = find_on_cpu(measures, stream, most);
    uint64_t waited = stream < measures->nr_wait_cycles ? measures->wait_cycles[stream] : 0;
    char list[ON_CPU_SHOWN * (INPUT_TEXT_MAX + 8)] = "";
    char when[INPUT_TEXT_MAX];
    bool is_idle;
    uint64_t open = measures_open_cycles(measures, stream, &is_idle);
    size_t length = 0;

    table_add(table, "%" PRIu32, merge_cpu_of(measures->merge, stream));
    table_add(table, "%.1f%%", view_share(output, cpu->busy_cycles));
    table_add(table, "%.1f%%", view_share(output, cpu->idle_cycles));
    if (open > 0)
        table_add(table, "%s %.1f%% %s", is_idle ? "idle" : "busy", view_share(output, open),
                  input_when(output->input, when, measures->last_tsc - open, measures->first_tsc));
    else
        table_add(table, "-");
    table_add(
        table, "%.1f%%",
        view_share(output, measures_span(measures) - cpu->busy_cycles - cpu->idle_cycles - open));
    table_add(table, "%.1f%%", view_share(output, cpu->busy_cycles + waited));
    table_add(table, "%u", nr);
    for (unsigned int i = 0; i < ON_CPU_SHOWN && most[i].cycles > 0; i++) {
        char name[INPUT_TEXT_MAX];

        length +=
            (size_t)snprintf(list + length, sizeof(list) - length, "%s%s %.0f%%", i > 0 ? ", " : "",
                             input_vcpu(output->input, name, most[i].key, measures->last_tsc),
                             view_share(output, most[i].cycles));
    }
    table_add(table, "%s", list);
}

void view_print_cpus(const struct view_output *output)
{
    const struct measures *measures = output->measures;
    unsigned int nr = measures->state.nr_cpus;
    _cleanup_table_ struct table *table = NULL;
    uint32_t before = 0;

    if (table_new(">CPU >BUSY >IDLE >AT-END >UNKNOWN >DEMAND >VCPUS ~RUNNING-MOST", &table) < 0)
        return;
    /* By their numbers: streams are in another order. */
    for (unsigned int done = 0; done < nr; done++) {
        uint32_t next = UINT32_MAX, stream = 0;

        for (unsigned int i = 0; i < nr; i++) {
            uint32_t cpu = merge_cpu_of(measures->merge, i);

            if (cpu < next && (done == 0 || cpu > before)) {
                next = cpu;
                stream = i;
            }
        }
        before = next;
        if (measures_shows_cpu(measures, next))
            add_cpu(table, output, stream);
    }
    (void)fputc('\n', output->file);
    table_print(table, output->file, 0, output->width);
    (void)wrap_print(output->file, CPUS_LEGEND, (unsigned int)output->width, 0, 0);
}
