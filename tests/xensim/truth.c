// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Intervals and waits are noted as they end; sums are made as they go. Who ran during a wait is
 * found at the end, from each CPU's intervals. Nothing here is shared with what reads traces.
 */

#include "truth.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/util.h"

#define DOMAIN_IDLE 32767u

static const char *const state_names[TRUTH_STATES] = {"running", "runnable", "blocked", "offline"};

struct interval {
    uint32_t vcpu;
    enum truth_state state;
    uint32_t cpu; /* of a running one */
    uint64_t from, to;
};

struct wait {
    uint32_t vcpu;
    uint32_t cpu;
    const char *kind;
    uint64_t from, to;
};

struct vcpu {
    uint32_t key;
    enum truth_state state;
    uint32_t cpu;     /* where it runs, or ran last */
    bool has_changed; /* only then is anything known about it */
    bool has_run;
    uint64_t since;
    const char *kind; /* of the wait, if it is runnable */
    uint64_t cycles[TRUTH_STATES], intervals[TRUTH_STATES];
    uint64_t switches_in, migrations;
};

struct cpu {
    bool has_record;
    uint64_t busy, idle;
    struct interval *ran; /* in the order of time */
    size_t nr_ran, max_ran;
};

struct truth {
    struct vcpu *vcpus;
    size_t nr_vcpus, max_vcpus;
    struct cpu *cpus;
    size_t nr_cpus, max_cpus;
    struct interval *intervals;
    size_t nr_intervals, max_intervals;
    struct wait *waits;
    size_t nr_waits, max_waits;
    uint64_t first_tsc, last_tsc, records;
    bool no_memory;
};

int truth_new(struct truth **ret_truth)
{
    *ret_truth = calloc(1, sizeof(**ret_truth));
    return *ret_truth ? 0 : -ENOMEM;
}

struct truth *truth_free(struct truth *truth)
{
    if (!truth)
        return NULL;
    for (size_t i = 0; i < truth->nr_cpus; i++)
        free(truth->cpus[i].ran);
    free(truth->cpus);
    free(truth->vcpus);
    free(truth->intervals);
    free(truth->waits);
    free(truth);
    return NULL;
}

/* ITEMS with room for one more of BYTES each; NULL: no memory, and they stay as they are. */
static void *grow(struct truth *truth, void *items, size_t nr, size_t *max, size_t bytes)
{
    size_t more = *max ? *max * 2 : 64;
    void *grown;

    if (nr < *max)
        return items;
    grown = reallocarray(items, more, bytes);
    if (grown)
        *max = more;
    else
        truth->no_memory = true;
    return grown;
}

static struct cpu *cpu_of(struct truth *truth, uint32_t cpu)
{
    while (truth->nr_cpus <= cpu) {
        struct cpu *cpus =
            grow(truth, truth->cpus, truth->nr_cpus, &truth->max_cpus, sizeof(*cpus));

        if (!cpus)
            return NULL;
        truth->cpus = cpus;
        cpus[truth->nr_cpus++] = (struct cpu){0};
    }
    return &truth->cpus[cpu];
}

void truth_add_vcpu(struct truth *truth, uint32_t key, enum truth_state state, uint32_t cpu)
{
    struct vcpu *vcpus;

    if (!truth)
        return;
    vcpus = grow(truth, truth->vcpus, truth->nr_vcpus, &truth->max_vcpus, sizeof(*vcpus));
    if (!vcpus)
        return;
    truth->vcpus = vcpus;
    vcpus[truth->nr_vcpus++] =
        (struct vcpu){.key = key, .state = state, .cpu = cpu, .has_run = state == TRUTH_RUNNING};
}

void truth_note_record(struct truth *truth, uint32_t cpu, uint64_t tsc)
{
    struct cpu *c = truth ? cpu_of(truth, cpu) : NULL;

    if (!c)
        return;
    c->has_record = true;
    if (truth->records++ == 0)
        truth->first_tsc = tsc;
    truth->last_tsc = tsc;
}

static void note_ran(struct truth *truth, const struct interval *interval)
{
    struct cpu *c = cpu_of(truth, interval->cpu);
    bool is_idle = truth->vcpus[interval->vcpu].key >> 16 == DOMAIN_IDLE;
    struct interval *ran;

    if (!c)
        return;
    ran = grow(truth, c->ran, c->nr_ran, &c->max_ran, sizeof(*ran));
    if (!ran)
        return;
    c->ran = ran;
    ran[c->nr_ran++] = *interval;
    *(is_idle ? &c->idle : &c->busy) += interval->to - interval->from;
}

static void end_interval(struct truth *truth, uint32_t number, uint64_t tsc)
{
    struct vcpu *v = &truth->vcpus[number];
    const struct interval interval = {number, v->state, v->cpu, v->since, tsc};
    struct interval *intervals = grow(truth, truth->intervals, truth->nr_intervals,
                                      &truth->max_intervals, sizeof(*intervals));

    v->cycles[v->state] += tsc - v->since;
    v->intervals[v->state]++;
    if (v->state == TRUTH_RUNNING)
        note_ran(truth, &interval);
    if (!intervals)
        return;
    truth->intervals = intervals;
    intervals[truth->nr_intervals++] = interval;
}

static void end_wait(struct truth *truth, uint32_t number, uint32_t cpu, uint64_t tsc)
{
    const struct vcpu *v = &truth->vcpus[number];
    struct wait *waits;

    if (v->key >> 16 == DOMAIN_IDLE)
        return;
    waits = grow(truth, truth->waits, truth->nr_waits, &truth->max_waits, sizeof(*waits));
    if (!waits)
        return;
    truth->waits = waits;
    waits[truth->nr_waits++] = (struct wait){number, cpu, v->kind, v->since, tsc};
}

static const char *kind_after(enum truth_state state)
{
    return state == TRUTH_RUNNING ? "preempt" : state == TRUTH_BLOCKED ? "wake" : "other";
}

void truth_change(struct truth *truth, uint32_t vcpu, enum truth_state state, uint32_t cpu,
                  uint64_t tsc)
{
    struct vcpu *v;
    bool runs = state == TRUTH_RUNNING;

    if (!truth || vcpu >= truth->nr_vcpus)
        return;
    v = &truth->vcpus[vcpu];
    if (v->has_changed) {
        end_interval(truth, vcpu, tsc);
        if (runs && v->state == TRUTH_RUNNABLE)
            end_wait(truth, vcpu, cpu, tsc);
    }
    if (runs) {
        v->switches_in += v->state != TRUTH_RUNNING;
        v->migrations += v->has_run && v->cpu != cpu;
        v->has_run = true;
        v->cpu = cpu;
    }
    v->kind = kind_after(v->state);
    v->state = state;
    v->since = tsc;
    v->has_changed = true;
}

/* --- The document. --- */

static void print_vcpu(FILE *f, const struct vcpu *v)
{
    (void)fprintf(f, "\"d%" PRIu32 "v%" PRIu32 "\"", v->key >> 16, v->key & 0xffff);
}

static void write_numbers(FILE *f, const char *key, const uint64_t numbers[static TRUTH_STATES])
{
    (void)fprintf(f, "\"%s\":{", key);
    for (unsigned int i = 0; i < TRUTH_STATES; i++)
        (void)fprintf(f, "%s\"%s\":%" PRIu64, i ? "," : "", state_names[i], numbers[i]);
    (void)fprintf(f, "},");
}

static void write_cpus(FILE *f, const struct truth *truth)
{
    const char *separator = "";

    (void)fprintf(f, "\"cpus\":{");
    for (size_t i = 0; i < truth->nr_cpus; i++) {
        const struct cpu *c = &truth->cpus[i];

        if (!c->has_record)
            continue;
        (void)fprintf(f, "%s\n\"%zu\":{\"busy\":%" PRIu64 ",\"idle\":%" PRIu64 "}", separator, i,
                      c->busy, c->idle);
        separator = ",";
    }
    (void)fprintf(f, "},\n");
}

/* What a vCPU ran on each CPU. */
static void write_on_cpus(FILE *f, const struct truth *truth, size_t vcpu)
{
    const char *separator = "";

    (void)fprintf(f, "\"pcpu_cycles\":{");
    for (size_t i = 0; i < truth->nr_cpus; i++) {
        const struct cpu *c = &truth->cpus[i];
        uint64_t cycles = 0;

        for (size_t j = 0; j < c->nr_ran; j++)
            if (c->ran[j].vcpu == vcpu)
                cycles += c->ran[j].to - c->ran[j].from;
        if (cycles == 0)
            continue;
        (void)fprintf(f, "%s\"%zu\":%" PRIu64, separator, i, cycles);
        separator = ",";
    }
    (void)fprintf(f, "}}");
}

static void write_vcpus(FILE *f, const struct truth *truth)
{
    const char *separator = "";

    (void)fprintf(f, "\"vcpus\":{");
    for (size_t i = 0; i < truth->nr_vcpus; i++) {
        const struct vcpu *v = &truth->vcpus[i];

        if (!v->has_changed)
            continue;
        (void)fprintf(f, "%s\n", separator);
        print_vcpu(f, v);
        (void)fprintf(f, ":{");
        write_numbers(f, "cycles", v->cycles);
        write_numbers(f, "intervals", v->intervals);
        (void)fprintf(f, "\"switches_in\":%" PRIu64 ",\"migrations\":%" PRIu64 ",", v->switches_in,
                      v->migrations);
        write_on_cpus(f, truth, i);
        separator = ",";
    }
    (void)fprintf(f, "},\n");
}

/* The first interval on C that ends after TSC. */
static size_t find_ran(const struct cpu *c, uint64_t tsc)
{
    size_t low = 0, high = c->nr_ran;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (c->ran[middle].to <= tsc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* CYCLES: [nr_vcpus] of zeroes, and is that afterwards. */
static void write_ran(FILE *f, const struct truth *truth, const struct wait *wait, uint64_t *cycles)
{
    const struct cpu *c = &truth->cpus[wait->cpu];
    size_t first = find_ran(c, wait->from);
    uint64_t unknown = wait->to - wait->from;

    for (size_t i = first; i < c->nr_ran && c->ran[i].from < wait->to; i++) {
        uint64_t ran = min_u64(c->ran[i].to, wait->to) - max_u64(c->ran[i].from, wait->from);

        cycles[c->ran[i].vcpu] += ran;
        unknown -= ran;
    }
    (void)fprintf(f, "\"ran\":{");
    for (size_t i = first; i < c->nr_ran && c->ran[i].from < wait->to; i++) {
        uint32_t vcpu = c->ran[i].vcpu;

        if (cycles[vcpu] == 0)
            continue;
        print_vcpu(f, &truth->vcpus[vcpu]);
        (void)fprintf(f, ":%" PRIu64 ",", cycles[vcpu]);
        cycles[vcpu] = 0;
    }
    (void)fprintf(f, "\"unknown\":%" PRIu64 "}", unknown);
}

static void write_waits(FILE *f, const struct truth *truth, uint64_t *cycles)
{
    (void)fprintf(f, "\"waits\":[");
    for (size_t i = 0; i < truth->nr_waits; i++) {
        const struct wait *wait = &truth->waits[i];

        (void)fprintf(f, "%s\n{\"vcpu\":", i ? "," : "");
        print_vcpu(f, &truth->vcpus[wait->vcpu]);
        (void)fprintf(
            f, ",\"kind\":\"%s\",\"start\":%" PRIu64 ",\"cycles\":%" PRIu64 ",\"cpu\":%" PRIu32 ",",
            wait->kind, wait->from, wait->to - wait->from, wait->cpu);
        write_ran(f, truth, wait, cycles);
        (void)fprintf(f, "}");
    }
    (void)fprintf(f, "],\n");
}

static void write_interval(FILE *f, const struct truth *truth, const struct interval *interval)
{
    (void)fprintf(f, "[");
    print_vcpu(f, &truth->vcpus[interval->vcpu]);
    (void)fprintf(f, ",\"%s\",", state_names[interval->state]);
    if (interval->state == TRUTH_RUNNING)
        (void)fprintf(f, "%" PRIu32, interval->cpu);
    else
        (void)fprintf(f, "null");
    (void)fprintf(f, ",%" PRIu64 ",", interval->from);
    if (interval->to == UINT64_MAX)
        (void)fprintf(f, "null]");
    else
        (void)fprintf(f, "%" PRIu64 "]", interval->to);
}

/* What is open at the end comes last, without an end. */
static void write_intervals(FILE *f, const struct truth *truth)
{
    const char *separator = "";

    (void)fprintf(f, "\"intervals\":[");
    for (size_t i = 0; i < truth->nr_intervals; i++) {
        (void)fprintf(f, "%s\n", separator);
        write_interval(f, truth, &truth->intervals[i]);
        separator = ",";
    }
    for (size_t i = 0; i < truth->nr_vcpus; i++) {
        const struct vcpu *v = &truth->vcpus[i];
        const struct interval open = {(uint32_t)i, v->state, v->cpu, v->since, UINT64_MAX};

        if (!v->has_changed)
            continue;
        (void)fprintf(f, "%s\n", separator);
        write_interval(f, truth, &open);
        separator = ",";
    }
    (void)fprintf(f, "]}\n");
}

static void write_all(FILE *f, const struct truth *truth, uint64_t *cycles)
{
    (void)fprintf(f,
                  "{\"span\":{\"first_tsc\":%" PRIu64 ",\"last_tsc\":%" PRIu64
                  ",\"cycles\":%" PRIu64 "},\n\"records\":%" PRIu64 ",\n",
                  truth->first_tsc, truth->last_tsc, truth->last_tsc - truth->first_tsc,
                  truth->records);
    write_cpus(f, truth);
    write_vcpus(f, truth);
    write_waits(f, truth, cycles);
    write_intervals(f, truth);
}

int truth_write(const struct truth *truth, const char *file)
{
    uint64_t *cycles;
    bool is_bad;
    FILE *f;

    if (!truth)
        return 0;
    if (truth->no_memory)
        return -ENOMEM;
    f = fopen(file, "we");
    if (!f)
        return -errno;
    cycles = calloc(truth->nr_vcpus + 1, sizeof(*cycles));
    if (cycles)
        write_all(f, truth, cycles);
    is_bad = ferror(f);
    is_bad = fclose(f) != 0 || is_bad;
    free(cycles);
    return !cycles ? -ENOMEM : is_bad ? -EIO : 0;
}
