// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace/measures-doc.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/doc-make.h"
#include "common/util.h"
#include "trace/exit-reasons.h"
#include "trace/measures.h"

/* A key of a JSON object that is made of numbers. */
struct key {
    char text[32];
};

static struct key vcpu_key(uint32_t vcpu)
{
    struct key key;

    (void)snprintf(key.text, sizeof(key.text), "d%" PRIu32 "v%" PRIu32, vcpu >> 16, vcpu & 0xffff);
    return key;
}

static struct key number_key(uint32_t number)
{
    struct key key;

    (void)snprintf(key.text, sizeof(key.text), "%" PRIu32, number);
    return key;
}

static void add_span(struct json_object *doc, const struct measures *measures)
{
    struct json_object *span = doc_add_object(doc, "span");

    doc_add_number(span, "first_tsc", measures->first_tsc);
    doc_add_number(span, "last_tsc", measures->last_tsc);
    doc_add_number(span, "cycles", measures_span(measures));
}

static void add_events(struct json_object *doc, const struct measures *measures)
{
    struct json_object *events = doc_add_object(doc, "events");
    size_t nr = 0;
    struct count *sorted = counts_sorted(&measures->events, &nr);

    for (size_t i = 0; i < nr; i++) {
        struct key key;

        (void)snprintf(key.text, sizeof(key.text), "0x%08" PRIx32, sorted[i].number);
        doc_add_number(events, key.text, sorted[i].count);
    }
    free(sorted);
}

static void add_losses(struct json_object *doc, const struct measures *measures)
{
    struct json_object *lost = doc_add_object(doc, "lost"), *list;

    doc_add_number(lost, "records", measures->lost);
    doc_add_number(lost, "gaps", measures->nr_losses);
    list = doc_add_array(lost, "list");
    for (size_t i = 0; i < measures->nr_losses; i++) {
        const struct measures_loss *loss = &measures->losses[i];
        struct json_object *entry = doc_append_object(list);

        doc_add_number(entry, "cpu", loss->cpu);
        doc_add_number(entry, "from", loss->from_tsc);
        doc_add_number(entry, "to", loss->to_tsc);
        doc_add_number(entry, "count", loss->count);
    }
}

/* Numbers of streams, in the order of their CPUs. Free it; NULL: out of memory. */
static uint32_t *sorted_streams(const struct measures *measures)
{
    unsigned int nr = merge_streams(measures->merge);
    uint32_t *streams = calloc(nr + 1, sizeof(*streams));

    for (unsigned int i = 0; streams && i < nr; i++) {
        unsigned int at = i;

        for (; at > 0 &&
               merge_cpu_of(measures->merge, streams[at - 1]) > merge_cpu_of(measures->merge, i);
             at--)
            streams[at] = streams[at - 1];
        streams[at] = i;
    }
    return streams;
}

static void add_cpus(struct json_object *doc, const struct measures *measures,
                     const uint32_t *streams)
{
    struct json_object *cpus = doc_add_object(doc, "cpus");

    for (unsigned int i = 0; i < merge_streams(measures->merge); i++) {
        struct state_cpu cpu = {0};
        struct json_object *entry;

        if (streams[i] < measures->state.nr_cpus)
            cpu = measures->state.cpus[streams[i]];
        entry = doc_add_object(cpus, number_key(merge_cpu_of(measures->merge, streams[i])).text);
        doc_add_number(entry, "busy", cpu.busy_cycles);
        doc_add_number(entry, "idle", cpu.idle_cycles);
        doc_add_number(entry, "unknown",
                       measures_span(measures) - cpu.busy_cycles - cpu.idle_cycles);
    }
}

static void add_latency(struct json_object *doc, const struct state_vcpu *vcpu)
{
    struct json_object *latency = doc_add_object(doc, "latency");

    for (unsigned int i = 0; i < STATE_WAITS; i++) {
        struct json_object *entry = doc_add_object(latency, state_wait_name(i));
        struct sample none = {0}, *sample = &none;

        if (measures_of(vcpu))
            sample = &measures_of(vcpu)->waits[i];
        doc_add_number(entry, "count", sample->count);
        doc_add_number(entry, "total", sample->total);
        doc_add_number(entry, "p50", sample_percentile(sample, 1, 2));
        doc_add_number(entry, "p99", sample_percentile(sample, 99, 100));
        doc_add_number(entry, "p999", sample_percentile(sample, 999, 1000));
        doc_add_number(entry, "max", sample->most);
        if (!sample_is_exact(sample))
            doc_add_flag(entry, "exact", false);
    }
}

static void add_on_cpus(struct json_object *doc, const struct measures *measures,
                        const uint32_t *streams, const struct state_vcpu *vcpu)
{
    struct json_object *cycles = doc_add_object(doc, "pcpu_cycles");

    for (unsigned int i = 0; i < merge_streams(measures->merge); i++)
        for (unsigned int j = 0; j < vcpu->nr_on_cpus; j++)
            if (vcpu->on_cpus[j].stream == streams[i])
                doc_add_number(cycles, number_key(merge_cpu_of(measures->merge, streams[i])).text,
                               vcpu->on_cpus[j].cycles);
}

static int compare_vcpus(const void *a, const void *b)
{
    const struct state_vcpu *const *x = a, *const *y = b;

    return ((*x)->key > (*y)->key) - ((*x)->key < (*y)->key);
}

/* Free it; NULL: out of memory. */
static struct state_vcpu **sorted_vcpus(const struct measures *measures)
{
    unsigned int nr = measures->state.nr_vcpus;
    struct state_vcpu **vcpus = calloc(nr + 1, sizeof(struct state_vcpu *));

    for (unsigned int i = 0; vcpus && i < nr; i++)
        vcpus[i] = measures->state.vcpus[i];
    if (vcpus)
        qsort(vcpus, nr, sizeof(struct state_vcpu *), compare_vcpus);
    return vcpus;
}

static void add_vcpu(struct json_object *doc, const struct measures *measures,
                     const uint32_t *streams, const struct state_vcpu *vcpu)
{
    struct json_object *entry = doc_add_object(doc, vcpu_key(vcpu->key).text);
    struct json_object *cycles = doc_add_object(entry, "cycles");
    struct json_object *intervals = doc_add_object(entry, "intervals");

    for (unsigned int i = 0; i < STATE_RUNSTATES; i++) {
        doc_add_number(cycles, state_runstate_name(i), vcpu->cycles[i]);
        doc_add_number(intervals, state_runstate_name(i), vcpu->intervals[i]);
    }
    doc_add_number(entry, "switches_in", vcpu->switches_in);
    doc_add_number(entry, "migrations", vcpu->migrations);
    add_on_cpus(entry, measures, streams, vcpu);
    add_latency(entry, vcpu);
}

static void add_vcpus(struct json_object *doc, const struct measures *measures,
                      const uint32_t *streams)
{
    struct json_object *vcpus = doc_add_object(doc, "vcpus");
    struct state_vcpu **sorted = sorted_vcpus(measures);

    for (unsigned int i = 0; sorted && i < measures->state.nr_vcpus; i++)
        add_vcpu(vcpus, measures, streams, sorted[i]);
    free(sorted);
}

static void add_worst(struct json_object *doc, const struct measures *measures,
                      enum state_wait kind)
{
    struct json_object *list = doc_add_array(doc, state_wait_name(kind));
    unsigned int nr;
    const struct worst_wait *waits = worst_of(measures->worst, kind, &nr);

    for (unsigned int i = 0; i < nr; i++) {
        struct json_object *entry = doc_append_object(list), *ran;
        uint64_t unknown = waits[i].cycles;

        doc_add_text(entry, "vcpu", vcpu_key(waits[i].key).text);
        doc_add_number(entry, "start", waits[i].from_tsc);
        doc_add_number(entry, "cycles", waits[i].cycles);
        doc_add_number(entry, "cpu", merge_cpu_of(measures->merge, waits[i].stream));
        ran = doc_add_object(entry, "ran");
        for (unsigned int j = 0; j < waits[i].nr_ran; j++) {
            doc_add_number(ran, vcpu_key(waits[i].ran[j].key).text, waits[i].ran[j].cycles);
            unknown -= waits[i].ran[j].cycles;
        }
        doc_add_number(ran, "unknown", unknown);
    }
}

static void add_exits(struct json_object *doc, const struct measures *measures)
{
    struct json_object *exits = doc_add_object(doc, "exits"), *reasons;
    size_t nr = 0;
    struct count *sorted = counts_sorted(&measures->reasons, &nr);

    doc_add_text(exits, "vendor", measures->is_svm ? "svm" : "vmx");
    doc_add_number(exits, "incomplete", measures->incomplete_exits);
    reasons = doc_add_object(exits, "reasons");
    for (size_t i = 0; i < nr; i++) {
        const struct measures_exit *exit = &measures->exits[sorted[i].index];
        char name[EXIT_REASON_TEXT_MAX];
        struct json_object *entry;
        struct key key;

        (void)snprintf(key.text, sizeof(key.text), "0x%" PRIx32, exit->reason);
        entry = doc_add_object(reasons, key.text);
        doc_add_text(entry, "name", exit_reason_name(measures->is_svm, exit->reason, name));
        doc_add_number(entry, "count", exit->count);
        doc_add_number(entry, "timed", exit->timed);
        doc_add_number(entry, "cycles", exit->cycles);
        doc_add_number(entry, "max", exit->most_cycles);
        doc_add_number(entry, "unattributed", exit->unattributed);
    }
    free(sorted);
}

static void add_io(struct json_object *doc, const struct measures *measures)
{
    struct json_object *domains = doc_add_object(doc_add_object(doc, "io"), "domains");

    for (uint32_t i = 0; i < MEASURES_DOMAINS; i++) {
        const struct measures_io *io = measures->io[i];
        struct json_object *entry;
        struct key key;

        if (!io)
            continue;
        (void)snprintf(key.text, sizeof(key.text), "d%" PRIu32, i);
        entry = doc_add_object(domains, key.text);
        doc_add_number(entry, "mmio_read", io->mmio_read);
        doc_add_number(entry, "mmio_write", io->mmio_write);
        doc_add_number(entry, "pio_read", io->pio_read);
        doc_add_number(entry, "pio_write", io->pio_write);
    }
}

void measures_doc_add(struct json_object *doc, const struct measures *measures)
{
    struct json_object *object = doc_add_object(doc, "measures"), *worst;
    uint32_t *streams = sorted_streams(measures);

    if (!streams)
        return;
    add_span(object, measures);
    doc_add_number(object, "records", measures->records);
    add_events(object, measures);
    doc_add_number(object, "mismatches", measures->state.mismatches);
    add_losses(object, measures);
    add_cpus(object, measures, streams);
    add_vcpus(object, measures, streams);
    worst = doc_add_object(object, "worst");
    add_worst(worst, measures, STATE_WAKE);
    add_worst(worst, measures, STATE_PREEMPT);
    add_exits(object, measures);
    add_io(object, measures);
    free(streams);
}
