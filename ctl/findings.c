// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/findings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "ctl/input.h"
#include "ctl/str.h"
#include "trace/exit-reasons.h"
#include "trace/measures.h"

/* From these on something is a finding. docs/measures.md has them, too. */
#define LONG_WAIT_NSEC  (10 * NSEC_PER_SEC / 1000)
#define ASKED_PERCENT   110
#define EXITS_PERCENT   20
#define MANY_INTERRUPTS 5000 /* a second */
#define MANY_YIELDS     1000
#define MANY_MIGRATIONS 1000
#define OF_A_KIND_MAX   3u
#define NUMBER_MAX      32u

struct findings {
    const struct input *input;
    const struct measures *measures;
    struct finding *list;
    size_t nr, max;
    bool no_memory;
};

static void findings_add(struct findings *findings, const char *kind, double weight, char *text)
{
    struct finding *more;

    if (findings->nr == findings->max) {
        size_t max = findings->max ? findings->max * 2 : 8;

        more = reallocarray(findings->list, max, sizeof(*more));
        if (more) {
            findings->list = more;
            findings->max = max;
        }
    }
    if (!text || findings->nr == findings->max) {
        findings->no_memory = true;
        free(text);
        return;
    }
    findings->list[findings->nr++] = (struct finding){.kind = kind, .text = text, .weight = weight};
}

/* The one that was added last is about VCPU, at TSC. */
static void findings_point(struct findings *findings, uint32_t vcpu, uint64_t tsc)
{
    struct finding *finding;

    if (findings->nr == 0)
        return;
    finding = &findings->list[findings->nr - 1];
    finding->has_vcpu = true;
    finding->vcpu = vcpu;
    finding->tsc = tsc;
}

/* "12,000". */
static const char *number(char buffer[static NUMBER_MAX], uint64_t value)
{
    char *p = buffer + NUMBER_MAX - 1;
    unsigned int digits = 0;

    *p = '\0';
    do {
        if (digits > 0 && digits % 3 == 0)
            *--p = ',';
        *--p = (char)('0' + value % 10);
        digits++;
        value /= 10;
    } while (value > 0);
    return p;
}

static uint64_t per_second(const struct findings *findings, uint64_t count)
{
    uint64_t nsec = input_nsec(findings->input, measures_span(findings->measures));

    return nsec > 0 ? (uint64_t)((unsigned __int128)count * NSEC_PER_SEC / nsec) : 0;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static bool is_guest(uint32_t key)
{
    return key >> 16 < STATE_DOMAIN_IDLE;
}

/* --- Losses. --- */

static void find_losses(struct findings *findings)
{
    const struct measures *measures = findings->measures;
    const struct measures_loss *longest = NULL;
    char records[NUMBER_MAX], span[INPUT_TEXT_MAX];

    for (size_t i = 0; i < measures->nr_losses; i++) {
        const struct measures_loss *loss = &measures->losses[i];

        if (!longest || loss->to_tsc - loss->from_tsc > longest->to_tsc - longest->from_tsc)
            longest = loss;
    }
    if (!longest)
        return;
    (void)input_span(findings->input, span, longest->to_tsc - longest->from_tsc);
    findings_add(
        findings, "lost", 0,
        str_format("%s records were lost in %zu gap%s, the longest of %s on CPU %" PRIu32 ".",
                   measures->lost > 0 ? number(records, measures->lost) : "An unknown number of",
                   measures->nr_losses, measures->nr_losses == 1 ? "" : "s", span, longest->cpu));
}

/* --- Waits. --- */

static void find_open_waits(struct findings *findings)
{
    const struct measures *measures = findings->measures;

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++) {
        const struct state_vcpu *vcpu = measures->state.vcpus[i];
        char name[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];
        uint64_t cycles = measures->last_tsc - vcpu->since;

        if (vcpu->runstate != STATE_RUNNABLE || !is_guest(vcpu->key) ||
            input_nsec(findings->input, cycles) < LONG_WAIT_NSEC)
            continue;
        findings_add(findings, "starved", (double)cycles,
                     str_format("%s still waited for a CPU when the trace ended, since %s.",
                                input_vcpu(findings->input, name, vcpu->key, vcpu->since),
                                input_span(findings->input, span, cycles)));
        findings_point(findings, vcpu->key, vcpu->since);
    }
}

/* Who ran for most of it; NULL: nobody is known. */
static const struct worst_ran *find_most(const struct worst_wait *wait)
{
    const struct worst_ran *most = NULL;

    for (unsigned int i = 0; i < wait->nr_ran; i++)
        if (!most || wait->ran[i].cycles > most->cycles)
            most = &wait->ran[i];
    return most;
}

static char *describe_wait(const struct findings *findings, const struct worst_wait *wait)
{
    const struct input *input = findings->input;
    char name[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX], when[INPUT_TEXT_MAX];
    char who[INPUT_TEXT_MAX], ran[INPUT_TEXT_MAX];
    const struct worst_ran *most = find_most(wait);
    uint32_t cpu = merge_cpu_of(&input->merge, wait->stream);

    (void)input_vcpu(input, name, wait->key, wait->from_tsc);
    (void)input_span(input, span, wait->cycles);
    (void)input_when(input, when, wait->from_tsc, findings->measures->first_tsc);
    if (!most)
        return str_format("%s waited %s at %s for CPU %" PRIu32 ".", name, span, when, cpu);
    (void)input_span(input, ran, most->cycles);
    if (most->key >> 16 == STATE_DOMAIN_IDLE)
        return str_format("%s waited %s at %s for CPU %" PRIu32 ", which was idle for %s of it.",
                          name, span, when, cpu, ran);
    return str_format("%s waited %s at %s for CPU %" PRIu32 "; %s ran %s of it.", name, span, when,
                      cpu, input_vcpu(input, who, most->key, wait->from_tsc), ran);
}

/* Whether the vCPU has no longer wait, of whatever kind; of equal ones the first is it. */
static bool is_longest(const struct worst *worst, const struct worst_wait *wait)
{
    for (unsigned int kind = 0; kind < STATE_WAITS; kind++) {
        unsigned int nr;
        const struct worst_wait *waits = worst_of(worst, kind, &nr);

        for (unsigned int i = 0; i < nr; i++)
            if (waits[i].key == wait->key &&
                (waits[i].cycles > wait->cycles ||
                 (waits[i].cycles == wait->cycles && waits[i].from_tsc < wait->from_tsc)))
                return false;
    }
    return true;
}

static void find_waits(struct findings *findings)
{
    const struct worst *worst = findings->measures->worst;

    for (unsigned int kind = 0; kind < STATE_WAITS; kind++) {
        unsigned int nr;
        const struct worst_wait *waits = worst_of(worst, kind, &nr);

        for (unsigned int i = 0; i < nr; i++) {
            const struct worst_wait *wait = &waits[i];

            if (input_nsec(findings->input, wait->cycles) < LONG_WAIT_NSEC ||
                !is_longest(worst, wait))
                continue;
            findings_add(findings, "wait", (double)wait->cycles, describe_wait(findings, wait));
            findings_point(findings, wait->key, wait->from_tsc);
        }
    }
}

/* --- CPUs. --- */

static unsigned int count_guests_on(const struct measures *measures, uint32_t stream)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++) {
        const struct state_vcpu *vcpu = measures->state.vcpus[i];

        for (unsigned int j = 0; j < vcpu->nr_on_cpus && is_guest(vcpu->key); j++)
            count += vcpu->on_cpus[j].stream == stream;
    }
    return count;
}

static void find_overcommitted(struct findings *findings)
{
    const struct measures *measures = findings->measures;

    for (uint32_t i = 0; i < measures->state.nr_cpus && i < measures->nr_wait_cycles; i++) {
        double asked = percent(measures->state.cpus[i].busy_cycles + measures->wait_cycles[i],
                               measures_span(measures));
        unsigned int vcpus;

        if (asked < ASKED_PERCENT)
            continue;
        vcpus = count_guests_on(measures, i);
        findings_add(findings, "overcommitted", asked,
                     str_format("CPU %" PRIu32 " is overcommitted: %u vCPUs, %.0f%% asked.",
                                merge_cpu_of(measures->merge, i), vcpus, asked));
    }
}

/* --- Exits, interrupts, yields. --- */

struct exits {
    uint32_t domain, reason;
    uint64_t count, cycles;
};

struct exits_list {
    struct exits *list;
    size_t nr, max;
};

static void collect_exits(void *context, const struct tally *tally)
{
    struct exits_list *exits = context;

    for (size_t i = 0; i < exits->nr; i++) {
        if (exits->list[i].domain != tally->who >> 16 ||
            exits->list[i].reason != (uint32_t)tally->what)
            continue;
        exits->list[i].count += tally->count;
        exits->list[i].cycles += tally->cycles;
        return;
    }
    if (exits->nr == exits->max)
        return; /* no sound trace has as many */
    exits->list[exits->nr++] =
        (struct exits){tally->who >> 16, (uint32_t)tally->what, tally->count, tally->cycles};
}

static uint64_t running_cycles(const struct measures *measures, uint32_t domain)
{
    uint64_t cycles = 0;

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++)
        if (measures->state.vcpus[i]->key >> 16 == domain)
            cycles += measures->state.vcpus[i]->cycles[STATE_RUNNING];
    return cycles;
}

static void find_exits(struct findings *findings)
{
    const struct measures *measures = findings->measures;
    struct exits list[256];
    struct exits_list exits = {.list = list, .max = ARRAY_SIZE(list)};

    tallies_each(&measures->details.tallies, TALLY_EXIT, collect_exits, &exits);
    for (size_t i = 0; i < exits.nr; i++) {
        char name[INPUT_TEXT_MAX], count[NUMBER_MAX], reason[EXIT_REASON_TEXT_MAX];
        double part = percent(list[i].cycles, running_cycles(measures, list[i].domain));

        if (part < EXITS_PERCENT)
            continue;
        findings_add(
            findings, "exits", part,
            str_format("%s spent %.0f%% of its running time in %s %s exits.",
                       input_domain(findings->input, name, list[i].domain, measures->last_tsc),
                       part, number(count, list[i].count),
                       exit_reason_name(measures->is_svm, list[i].reason, reason)));
    }
}

static void add_interrupt(void *context, const struct tally *tally)
{
    struct findings *findings = context;
    uint64_t rate = per_second(findings, tally->count);
    char count[NUMBER_MAX];

    if (rate >= MANY_INTERRUPTS)
        findings_add(findings, "interrupts", (double)rate,
                     str_format("CPU %" PRIu32 " handled %s interrupts a second of IRQ %" PRIu64
                                ".",
                                tally->who, number(count, rate), tally->what));
}

static void add_injected(void *context, const struct tally *tally)
{
    struct findings *findings = context;
    uint64_t rate = per_second(findings, tally->count);
    char name[INPUT_TEXT_MAX], count[NUMBER_MAX];

    if (rate >= MANY_INTERRUPTS)
        findings_add(
            findings, "interrupts", (double)rate,
            str_format("%s received %s interrupts a second with vector 0x%" PRIx64 ".",
                       input_vcpu(findings->input, name, tally->who, findings->measures->last_tsc),
                       number(count, rate), tally->what));
}

static void add_yields(void *context, const struct tally *tally)
{
    struct findings *findings = context;
    uint64_t rate = per_second(findings, tally->count);
    char name[INPUT_TEXT_MAX], count[NUMBER_MAX];

    if (rate >= MANY_YIELDS)
        findings_add(
            findings, "yields", (double)rate,
            str_format("%s yielded %s times a second: it may wait for a lock that a "
                       "preempted vCPU holds.",
                       input_vcpu(findings->input, name, tally->who, findings->measures->last_tsc),
                       number(count, rate)));
}

static void find_migrations(struct findings *findings)
{
    const struct measures *measures = findings->measures;

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++) {
        const struct state_vcpu *vcpu = measures->state.vcpus[i];
        uint64_t rate = per_second(findings, vcpu->migrations);
        char name[INPUT_TEXT_MAX], count[NUMBER_MAX];

        if (rate >= MANY_MIGRATIONS && is_guest(vcpu->key))
            findings_add(
                findings, "migrations", (double)rate,
                str_format("%s moved to another CPU %s times a second.",
                           input_vcpu(findings->input, name, vcpu->key, measures->last_tsc),
                           number(count, rate)));
    }
}

/* --- All. --- */

static int compare(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;

    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return strcmp(x->text, y->text);
}

/* Of what was added since FIRST, all of a kind, the heaviest stay. */
static void keep_heaviest(struct findings *findings, size_t first)
{
    if (findings->nr == first)
        return;
    qsort(findings->list + first, findings->nr - first, sizeof(*findings->list), compare);
    while (findings->nr > first + OF_A_KIND_MAX)
        free(findings->list[--findings->nr].text);
}

static void find_interrupts(struct findings *findings)
{
    tallies_each(&findings->measures->details.tallies, TALLY_INTERRUPT, add_interrupt, findings);
    tallies_each(&findings->measures->details.tallies, TALLY_INJECTED, add_injected, findings);
}

static void find_yields(struct findings *findings)
{
    tallies_each(&findings->measures->details.tallies, TALLY_YIELD, add_yields, findings);
}

int findings_new(const struct input *input, const struct measures *measures,
                 struct findings **ret_findings)
{
    static void (*const finders[])(struct findings *) = {
        find_losses, find_open_waits, find_waits,  find_overcommitted,
        find_exits,  find_interrupts, find_yields, find_migrations,
    };
    struct findings *findings = calloc(1, sizeof(*findings));

    if (!findings)
        return -ENOMEM;
    findings->input = input;
    findings->measures = measures;
    for (size_t i = 0; i < ARRAY_SIZE(finders); i++) {
        size_t first = findings->nr;

        finders[i](findings);
        keep_heaviest(findings, first);
    }
    if (findings->no_memory) {
        findings_free(findings);
        return -ENOMEM;
    }
    *ret_findings = findings;
    return 0;
}

struct findings *findings_free(struct findings *findings)
{
    if (!findings)
        return NULL;
    for (size_t i = 0; i < findings->nr; i++)
        free(findings->list[i].text);
    free(findings->list);
    free(findings);
    return NULL;
}

size_t findings_count(const struct findings *findings)
{
    return findings->nr;
}

const struct finding *findings_at(const struct findings *findings, size_t i)
{
    return &findings->list[i];
}

/* The view that has the numbers of a kind of findings. */
static const char *view_of(const char *kind)
{
    static const struct {
        const char *kind, *view;
    } views[] = {
        {"lost", "losses"},           {"overcommitted", "cpus"}, {"exits", "exits"},
        {"interrupts", "interrupts"}, {"yields", "scheduler"},   {"migrations", "migrations"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(views); i++)
        if (strcmp(views[i].kind, kind) == 0)
            return views[i].view;
    return "vcpus";
}

char *findings_command(const struct findings *findings, size_t i)
{
    const struct finding *finding = &findings->list[i];
    const struct input *input = findings->input;
    uint64_t first_tsc = findings->measures->first_tsc;
    uint64_t msec = input_nsec(input, finding->tsc - first_tsc) / (NSEC_PER_SEC / 1000);
    char *path = strcmp(input->path, "-") == 0 ? NULL : str_shell_quote(input->path);
    char *command = NULL;

    if (path && finding->has_vcpu && finding->tsc >= first_tsc)
        command = str_format("xentracectl why --at +%" PRIu64 ".%03us d%" PRIu32 "v%" PRIu32 " %s",
                             msec / 1000, (unsigned int)(msec % 1000), finding->vcpu >> 16,
                             finding->vcpu & 0xffff, path);
    else if (path)
        command = str_format("xentracectl report --view %s %s", view_of(finding->kind), path);
    free(path);
    return command;
}
