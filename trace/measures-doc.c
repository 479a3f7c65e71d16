// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace/measures-doc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/doc-make.h"
#include "common/util.h"
#include "trace/domains.h"
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
        struct json_object *entry;

        if (!subjects_has_cpu(measures->subjects, loss->cpu))
            continue;
        entry = doc_append_object(list);
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

/* The interval that is open when the trace ends. */
static void add_at_end(struct json_object *doc, const struct measures *measures, uint32_t stream)
{
    bool is_idle;
    uint64_t cycles = measures_open_cycles(measures, stream, &is_idle);
    struct json_object *at_end;

    if (cycles == 0)
        return;
    at_end = doc_add_object(doc, "at_end");
    doc_add_text(at_end, "vcpu", vcpu_key(measures->state.cpus[stream].running->key).text);
    doc_add_number(at_end, "cycles", cycles);
}

static void add_cpus(struct json_object *doc, const struct measures *measures,
                     const uint32_t *streams)
{
    struct json_object *cpus = doc_add_object(doc, "cpus");

    for (unsigned int i = 0; i < merge_streams(measures->merge); i++) {
        struct state_cpu cpu = {0};
        struct json_object *entry;

        if (!measures_shows_cpu(measures, merge_cpu_of(measures->merge, streams[i])))
            continue;
        if (streams[i] < measures->state.nr_cpus)
            cpu = measures->state.cpus[streams[i]];
        entry = doc_add_object(cpus, number_key(merge_cpu_of(measures->merge, streams[i])).text);
        doc_add_number(entry, "busy", cpu.busy_cycles);
        doc_add_number(entry, "idle", cpu.idle_cycles);
        doc_add_number(entry, "unknown",
                       measures_span(measures) - cpu.busy_cycles - cpu.idle_cycles);
        if (streams[i] < measures->state.nr_cpus)
            add_at_end(entry, measures, streams[i]);
    }
}

static void add_sample(struct json_object *doc, struct sample *sample)
{
    doc_add_number(doc, "count", sample->count);
    doc_add_number(doc, "total", sample->total);
    doc_add_number(doc, "p50", sample_percentile(sample, 1, 2));
    doc_add_number(doc, "p99", sample_percentile(sample, 99, 100));
    doc_add_number(doc, "p999", sample_percentile(sample, 999, 1000));
    doc_add_number(doc, "max", sample->most);
    if (!sample_is_exact(sample))
        doc_add_flag(doc, "exact", false);
}

/* By powers of two: "14" has those from 2^14 on and below 2^15. */
static void add_histogram(struct json_object *doc, const struct sample *sample)
{
    for (uint32_t power = 0; power < 64; power++) {
        uint64_t least = power > 0 ? UINT64_C(1) << power : 0;
        uint64_t limit = power < 63 ? UINT64_C(2) << power : UINT64_MAX;
        uint64_t count = sample->most >= least ? sample_count_between(sample, least, limit) : 0;

        if (count > 0)
            doc_add_number(doc, number_key(power).text, count);
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
        add_sample(entry, sample);
        add_histogram(doc_add_object(entry, "log2"), sample);
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

static uint64_t vcpu_weight(const struct state_vcpu *vcpu)
{
    return vcpu->cycles[STATE_RUNNING] + vcpu->cycles[STATE_RUNNABLE];
}

static int compare_weights(const void *a, const void *b)
{
    const struct state_vcpu *const *x = a, *const *y = b;
    uint64_t of_x = vcpu_weight(*x), of_y = vcpu_weight(*y);

    return of_x != of_y ? (of_x < of_y) - (of_x > of_y) : compare_vcpus(a, b);
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
    if (measures->parts & MEASURES_WAITS)
        add_latency(entry, vcpu);
}

static size_t add_vcpus(struct json_object *doc, const struct measures *measures,
                        const uint32_t *streams, size_t most)
{
    struct json_object *vcpus = doc_add_object(doc, "vcpus");
    struct state_vcpu **shown = calloc(measures->state.nr_vcpus + 1u, sizeof(struct state_vcpu *));
    size_t nr = 0;

    if (!shown)
        return 0;
    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++)
        if (measures_shows_vcpu(measures, measures->state.vcpus[i]))
            shown[nr++] = measures->state.vcpus[i];
    if (nr > most)
        qsort(shown, nr, sizeof(struct state_vcpu *), compare_weights);
    qsort(shown, min_u64(nr, most), sizeof(struct state_vcpu *), compare_vcpus);
    for (size_t i = 0; i < nr && i < most; i++)
        add_vcpu(vcpus, measures, streams, shown[i]);
    free(shown);
    return nr;
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

/* --- Details: objects of objects of numbers. --- */

/* The object at KEY of DOC, which is made if it is not there. */
static struct json_object *object_at(struct json_object *doc, const char *key)
{
    struct json_object *object = NULL;

    if (doc && json_object_object_get_ex(doc, key, &object))
        return object;
    return doc_add_object(doc, key);
}

static struct key who_key(uint32_t who)
{
    struct key key = {"unknown"};

    return who == TALLY_NOBODY ? key : vcpu_key(who);
}

static struct key domain_key(uint32_t domid)
{
    struct key key = {"unknown"};

    if (domid != TALLY_NOBODY)
        (void)snprintf(key.text, sizeof(key.text), "d%" PRIu32, domid);
    return key;
}

static struct key hex_key(uint64_t number)
{
    struct key key;

    (void)snprintf(key.text, sizeof(key.text), "0x%" PRIx64, number);
    return key;
}

static struct key event_key(uint32_t event)
{
    struct key key;

    (void)snprintf(key.text, sizeof(key.text), "0x%08" PRIx32, event);
    return key;
}

static void add_times(struct json_object *doc, const char *key, const struct tally *tally)
{
    struct json_object *entry = doc_add_object(doc, key);

    doc_add_number(entry, "count", tally->count);
    doc_add_number(entry, "cycles", tally->cycles);
    doc_add_number(entry, "max", tally->most);
}

static void add_exits_of_vcpu(struct json_object *doc, const struct tally *tally)
{
    add_times(object_at(doc, vcpu_key(tally->who).text), hex_key(tally->what).text, tally);
}

static void add_cpu_numbers(struct json_object *doc, const struct tally *tally)
{
    add_times(object_at(doc, number_key(tally->who).text), number_key((uint32_t)tally->what).text,
              tally);
}

static void add_vcpu_numbers(struct json_object *doc, const struct tally *tally)
{
    doc_add_number(object_at(doc, who_key(tally->who).text), number_key((uint32_t)tally->what).text,
                   tally->count);
}

static void add_vcpu_events(struct json_object *doc, const struct tally *tally)
{
    doc_add_number(object_at(doc, who_key(tally->who).text), event_key((uint32_t)tally->what).text,
                   tally->count);
}

static void add_addresses(struct json_object *doc, const struct tally *tally)
{
    add_times(object_at(doc, domain_key(tally->who).text), hex_key(tally->what).text, tally);
}

static void add_moves(struct json_object *doc, const struct tally *tally)
{
    struct json_object *vcpu = object_at(doc, vcpu_key(tally->who).text);

    doc_add_number(object_at(vcpu, number_key((uint32_t)(tally->what >> 32)).text),
                   number_key((uint32_t)tally->what).text, tally->count);
}

static void add_preemptions(struct json_object *doc, const struct tally *tally)
{
    add_times(object_at(doc, vcpu_key(tally->who).text), who_key((uint32_t)tally->what).text,
              tally);
}

static void add_memory(struct json_object *doc, const struct tally *tally)
{
    struct json_object *domain = object_at(doc, domain_key(tally->who).text);

    doc_add_number(object_at(domain, event_key((uint32_t)(tally->what >> 32)).text),
                   domain_key((uint32_t)tally->what).text, tally->count);
}

static void add_tallies(struct json_object *doc, const char *key, const struct measures *measures,
                        enum tally_kind kind,
                        void (*add)(struct json_object *, const struct tally *))
{
    struct json_object *object = doc_add_object(doc, key);
    size_t nr = 0;
    struct tally *sorted = measures_tallies(measures, kind, &nr);

    for (size_t i = 0; sorted && i < nr; i++)
        add(object, &sorted[i]);
    free(sorted);
}

/* --- Exits. --- */

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
    if (measures->parts & DETAILS_EXITS)
        add_tallies(exits, "vcpus", measures, TALLY_EXIT, add_exits_of_vcpu);
}

static void add_io(struct json_object *doc, const struct measures *measures)
{
    struct json_object *domains = doc_add_object(doc_add_object(doc, "io"), "domains");

    for (uint32_t i = 0; i < MEASURES_DOMAINS; i++) {
        const struct measures_io *io = measures->io[i];
        struct json_object *entry;
        struct key key;

        if (!io || !measures_shows_domain(measures, i))
            continue;
        (void)snprintf(key.text, sizeof(key.text), "d%" PRIu32, i);
        entry = doc_add_object(domains, key.text);
        doc_add_number(entry, "mmio_read", io->mmio_read);
        doc_add_number(entry, "mmio_write", io->mmio_write);
        doc_add_number(entry, "pio_read", io->pio_read);
        doc_add_number(entry, "pio_write", io->pio_write);
    }
}

static void add_incomplete(struct json_object *doc, const struct measures *measures,
                           const uint32_t *streams)
{
    struct json_object *incomplete = doc_add_object(doc, "incomplete");

    for (unsigned int i = 0; i < merge_streams(measures->merge); i++)
        if (streams[i] < measures->details.nr_cpus &&
            measures_shows_cpu(measures, merge_cpu_of(measures->merge, streams[i])) &&
            measures->details.cpus[streams[i]].incomplete > 0)
            doc_add_number(incomplete, number_key(merge_cpu_of(measures->merge, streams[i])).text,
                           measures->details.cpus[streams[i]].incomplete);
}

static void add_details(struct json_object *doc, const struct measures *measures,
                        const uint32_t *streams)
{
    struct json_object *object;

    if (measures->parts & DETAILS_ACCESSES) {
        object = doc_add_object(doc, "addresses");
        add_tallies(object, "pio_read", measures, TALLY_PIO_READ, add_addresses);
        add_tallies(object, "pio_write", measures, TALLY_PIO_WRITE, add_addresses);
        add_tallies(object, "mmio_read", measures, TALLY_MMIO_READ, add_addresses);
        add_tallies(object, "mmio_write", measures, TALLY_MMIO_WRITE, add_addresses);
    }
    if (measures->parts & DETAILS_PV) {
        object = doc_add_object(doc, "pv");
        add_tallies(object, "events", measures, TALLY_PV, add_vcpu_events);
        add_tallies(object, "hypercalls", measures, TALLY_HYPERCALL, add_vcpu_numbers);
        add_tallies(object, "subcalls", measures, TALLY_SUBCALL, add_vcpu_numbers);
    }
    if (measures->parts & DETAILS_INTERRUPTS) {
        object = doc_add_object(doc, "interrupts");
        add_tallies(object, "cpus", measures, TALLY_INTERRUPT, add_cpu_numbers);
        add_tallies(object, "injected", measures, TALLY_INJECTED, add_vcpu_numbers);
        add_tallies(object, "external", measures, TALLY_EXTERNAL, add_vcpu_numbers);
    }
    if (measures->parts & DETAILS_POWER) {
        object = doc_add_object(doc, "power");
        add_tallies(object, "c_states", measures, TALLY_C_STATE, add_cpu_numbers);
        add_tallies(object, "frequencies", measures, TALLY_FREQUENCY, add_cpu_numbers);
        add_incomplete(object, measures, streams);
    }
    if (measures->parts & DETAILS_SCHEDULER)
        add_tallies(doc, "scheduler", measures, TALLY_SCHED, add_vcpu_events);
    if (measures->parts & DETAILS_MIGRATIONS)
        add_tallies(doc, "migrations", measures, TALLY_MIGRATION, add_moves);
    if (measures->parts & DETAILS_PREEMPTIONS)
        add_tallies(doc, "preemptions", measures, TALLY_PREEMPTED, add_preemptions);
    if (measures->parts & DETAILS_MEMORY)
        add_tallies(doc, "memory", measures, TALLY_MEMORY, add_memory);
}

static int compare_domids(const void *a, const void *b)
{
    const struct domain *x = a, *y = b;

    return (x->domid > y->domid) - (x->domid < y->domid);
}

static int compare_domain_weights(const void *a, const void *b)
{
    const struct domain *x = a, *y = b;
    uint64_t of_x = x->cycles[STATE_RUNNING] + x->cycles[STATE_RUNNABLE];
    uint64_t of_y = y->cycles[STATE_RUNNING] + y->cycles[STATE_RUNNABLE];

    return of_x != of_y ? (of_x < of_y) - (of_x > of_y) : compare_domids(a, b);
}

/* Takes the samples from the vCPUs. */
static size_t add_domains(struct json_object *doc, struct measures *measures, size_t most)
{
    struct json_object *object = doc_add_object(doc, "domains");
    struct domains *domains;
    size_t nr;

    if (domains_new(measures, &domains) < 0)
        return 0;
    nr = domains->nr;
    if (nr > most) {
        qsort(domains->list, nr, sizeof(*domains->list), compare_domain_weights);
        qsort(domains->list, most, sizeof(*domains->list), compare_domids);
    }
    for (size_t i = 0; i < nr && i < most; i++) {
        struct domain *domain = &domains->list[i];
        struct json_object *entry = doc_add_object(object, domain_key(domain->domid).text);
        struct json_object *cycles = doc_add_object(entry, "cycles");

        doc_add_number(entry, "vcpus", domain->nr_vcpus);
        for (unsigned int j = 0; j < STATE_RUNSTATES; j++)
            doc_add_number(cycles, state_runstate_name(j), domain->cycles[j]);
        doc_add_number(entry, "switches_in", domain->switches_in);
        doc_add_number(entry, "migrations", domain->migrations);
        if (measures->parts & MEASURES_WAITS) {
            doc_add_number(entry, "wakes", domain->wakes);
            add_sample(doc_add_object(entry, "latency"), &domain->waits);
        }
        if (measures->parts & DETAILS_EXITS)
            doc_add_number(entry, "exits", domain->exits);
    }
    domains_free(domains);
    return nr;
}

void measures_doc_add_most(struct json_object *doc, struct measures *measures,
                           struct measures_doc_limit *limit)
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
    limit->nr_vcpus = add_vcpus(object, measures, streams, limit->most);
    if (measures->parts & MEASURES_WORST) {
        worst = doc_add_object(object, "worst");
        for (unsigned int i = 0; i < STATE_WAITS; i++)
            add_worst(worst, measures, (enum state_wait)i);
    }
    add_exits(object, measures);
    add_io(object, measures);
    add_details(object, measures, streams);
    limit->nr_domains = add_domains(object, measures, limit->most);
    free(streams);
}

void measures_doc_add(struct json_object *doc, struct measures *measures)
{
    struct measures_doc_limit limit = {.most = MEASURES_DOC_MOST};
    struct json_object *object, *trimmed;

    measures_doc_add_most(doc, measures, &limit);
    if ((limit.nr_vcpus <= limit.most && limit.nr_domains <= limit.most) ||
        !json_object_object_get_ex(doc, "measures", &object))
        return;
    trimmed = doc_add_object(object, "trimmed");
    doc_add_number(trimmed, "vcpus", limit.nr_vcpus);
    doc_add_number(trimmed, "domains", limit.nr_domains);
}
