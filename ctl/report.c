// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "ctl/findings.h"
#include "ctl/input.h"
#include "ctl/table.h"
#include "trace/measures.h"
#include "trace/sidecar.h"
#include "trace/source.h"

#define CPUS_SHOWN 8u

/* --- Quality. --- */

static void print_quality(FILE *file, const struct input *input, const struct measures *measures)
{
    struct source_damage damage = source_damage(input->source);
    char span[INPUT_TEXT_MAX], from[INPUT_TEXT_MAX];

    (void)fprintf(file, "%s: %s from %s, %u CPUs, %" PRIu64 " records", input_name(input),
                  input_span(input, span, measures_span(measures)),
                  input_when(input, from, measures->first_tsc, measures->first_tsc),
                  merge_streams(&input->merge), measures->records);
    if (measures->nr_losses > 0)
        (void)fprintf(file, "; %" PRIu64 " lost in %zu gaps", measures->lost, measures->nr_losses);
    (void)fputs(".\n", file);
    if (measures->nr_losses > 0)
        (void)fputs("  Records are missing: waits and runs that a gap cut are not counted.\n",
                    file);
    if (measures->state.mismatches > 0)
        (void)fprintf(file, "  %" PRIu64 " runstate records contradict those before them.\n",
                      measures->state.mismatches);
    if (input->khz_is_assumed)
        (void)fprintf(file,
                      "  The TSC frequency is unknown and is assumed to be %" PRIu64
                      " MHz. All times depend on it.\n",
                      input->tsc_khz / 1000);
    if (damage.is_damaged)
        (void)fprintf(file,
                      "  The file is damaged at offset %" PRIu64
                      ": later records are not in this report.\n",
                      damage.offset);
}

/* --- Domains. --- */

struct domain {
    uint32_t domid;
    unsigned int nr_vcpus;
    uint64_t running, runnable, switches, migrations, wakes;
    struct sample waits; /* of all its vCPUs, but for wakes and preemption not apart */
};

static struct domain *find_domain(struct domain *domains, size_t *nr, uint32_t domid)
{
    for (size_t i = 0; i < *nr; i++)
        if (domains[i].domid == domid)
            return &domains[i];
    domains[*nr] = (struct domain){.domid = domid};
    return &domains[(*nr)++];
}

static void domain_add(struct domain *domain, const struct state_vcpu *vcpu,
                       struct sample_budget *budget)
{
    struct measures_vcpu *measured = measures_of(vcpu);

    domain->nr_vcpus++;
    domain->running += vcpu->cycles[STATE_RUNNING];
    domain->runnable += vcpu->cycles[STATE_RUNNABLE];
    domain->switches += vcpu->switches_in;
    domain->migrations += vcpu->migrations;
    if (!measured)
        return;
    domain->wakes += measured->waits[STATE_WAKE].count;
    for (unsigned int i = 0; i < STATE_WAITS; i++)
        for (size_t j = 0; j < measured->waits[i].nr_values; j++)
            (void)sample_add(&domain->waits, budget, measured->waits[i].values[j]);
}

static int compare_domains(const void *a, const void *b)
{
    const struct domain *x = a, *y = b;

    if (x->running != y->running)
        return x->running < y->running ? 1 : -1;
    return (x->domid > y->domid) - (x->domid < y->domid);
}

static void print_domain(struct table *table, const struct input *input,
                         const struct measures *measures, struct domain *domain)
{
    uint64_t span = max_u64(measures_span(measures), 1);
    char text[INPUT_TEXT_MAX];

    table_add(table, "%s", input_domain(input, text, domain->domid, measures->last_tsc));
    table_add(table, "%u", domain->nr_vcpus);
    table_add(table, "%.1f%%", 100.0 * (double)domain->running / (double)span);
    table_add(table, "%.1f%%", 100.0 * (double)domain->runnable / (double)span);
    table_add(table, "%s", input_span(input, text, sample_percentile(&domain->waits, 1, 2)));
    table_add(table, "%s", input_span(input, text, sample_percentile(&domain->waits, 99, 100)));
    table_add(table, "%s", input_span(input, text, domain->waits.most));
    table_add(table, "%" PRIu64, domain->wakes);
    table_add(table, "%" PRIu64, domain->migrations);
}

static void print_domains(FILE *file, const struct input *input, struct measures *measures)
{
    struct sample_budget budget = {.left = SAMPLE_VALUES};
    unsigned int nr_vcpus = measures->state.nr_vcpus;
    struct domain *domains = calloc(nr_vcpus + 1, sizeof(*domains));
    _cleanup_table_ struct table *table = NULL;
    size_t nr = 0;

    if (!domains ||
        table_new("DOMAIN >VCPUS >RUNNING >WAITING >P50 >P99 >MAX >WAKE-UPS >MIGRATIONS", &table) <
            0) {
        free(domains);
        return;
    }
    for (unsigned int i = 0; i < nr_vcpus; i++) {
        const struct state_vcpu *vcpu = measures->state.vcpus[i];

        if (vcpu->key >> 16 < STATE_DOMAIN_IDLE)
            domain_add(find_domain(domains, &nr, vcpu->key >> 16), vcpu, &budget);
    }
    qsort(domains, nr, sizeof(*domains), compare_domains);
    for (size_t i = 0; i < nr; i++)
        print_domain(table, input, measures, &domains[i]);
    (void)fputc('\n', file);
    table_print(table, file, 0, 0);
    for (size_t i = 0; i < nr; i++)
        sample_done(&domains[i].waits);
    free(domains);
}

/* --- CPUs. --- */

static void print_cpus(FILE *file, const struct measures *measures)
{
    unsigned int nr = measures->state.nr_cpus;
    uint64_t span = max_u64(measures_span(measures), 1), before = UINT64_MAX;
    unsigned int shown = 0;

    (void)fputs("\nBusiest CPUs:", file);
    while (shown < nr && shown < CPUS_SHOWN) {
        uint64_t most = 0;

        for (unsigned int i = 0; i < nr; i++)
            if (measures->state.cpus[i].busy_cycles < before)
                most = max_u64(most, measures->state.cpus[i].busy_cycles);
        for (unsigned int i = 0; i < nr && shown < CPUS_SHOWN; i++)
            if (measures->state.cpus[i].busy_cycles == most && ++shown)
                (void)fprintf(file, "%s %" PRIu32 " %.0f%%", shown > 1 ? "," : "",
                              merge_cpu_of(measures->merge, i),
                              100.0 * (double)most / (double)span);
        if (most == 0)
            break;
        before = most;
    }
    (void)fputc('\n', file);
}

static void print_findings(FILE *file, const struct findings *findings)
{
    size_t count = findings_count(findings);

    (void)fputs(count > 0 ? "\nFindings:\n" : "\nNothing stands out.\n", file);
    for (size_t i = 0; i < count; i++)
        (void)fprintf(file, "  %s\n", findings_at(findings, i)->text);
}

void report_print(FILE *file, const struct input *input, struct measures *measures,
                  const struct findings *findings)
{
    print_quality(file, input, measures);
    print_domains(file, input, measures);
    print_cpus(file, measures);
    print_findings(file, findings);
}
