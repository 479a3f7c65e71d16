// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The loop over all records, and what is not a runstate: events, losses, exits by reason, I/O by
 * domain. The rest is the state's (state.c), which reports intervals, waits and exits here.
 */

#include "trace/measures.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "trace/exit-reasons.h"

static void measures_freep(struct measures **measures)
{
    measures_free(*measures);
}

static void note_error(struct measures *measures, int r)
{
    if (r < 0 && measures->error == 0)
        measures->error = r;
}

/* --- What the state observes. --- */

static void on_interval(void *context, const struct state_interval *interval)
{
    struct measures *measures = context;

    if (interval->runstate == STATE_RUNNING && measures->worst)
        note_error(measures, worst_note_running(measures->worst, interval));
}

static void on_wait(void *context, const struct state_wait_end *wait)
{
    struct measures *measures = context;
    struct measures_vcpu *vcpu = wait->vcpu->observed;

    if (!vcpu) {
        vcpu = wait->vcpu->observed = calloc(1, sizeof(*vcpu));
        if (!vcpu) {
            note_error(measures, -ENOMEM);
            return;
        }
    }
    if (wait->to - wait->from > vcpu->longest_cycles) {
        vcpu->longest_from = wait->from;
        vcpu->longest_cycles = wait->to - wait->from;
    }
    if (wait->stream < measures->nr_wait_cycles)
        measures->wait_cycles[wait->stream] += wait->to - wait->from;
    if (measures->parts & MEASURES_WAITS)
        note_error(measures,
                   sample_add(&vcpu->waits[wait->wait], &measures->budget, wait->to - wait->from));
    if (measures->worst)
        note_error(measures, worst_note_wait(measures->worst, wait));
    details_note_wait(&measures->details, wait);
}

/* The sums of REASON; NULL: too many reasons, or no memory. */
static struct measures_exit *exit_of(struct measures *measures, const struct count *reason)
{
    struct measures_exit *more;
    size_t max = measures->max_exits;

    if (!reason)
        return NULL;
    if (reason->index >= max) {
        max = max_u64(max * 2, 64);
        more = reallocarray(measures->exits, max, sizeof(*more));
        if (!more) {
            note_error(measures, -ENOMEM);
            return NULL;
        }
        measures->exits = more;
        measures->max_exits = max;
    }
    if (reason->count == 1)
        measures->exits[reason->index] = (struct measures_exit){.reason = reason->number};
    return &measures->exits[reason->index];
}

/* Those of a vCPU are counted by vCPU and reason, when they end: each of them does. */
static void on_left(void *context, struct state_vcpu *vcpu, uint32_t reason)
{
    struct measures *measures = context;
    struct measures_exit *exit;

    if (vcpu)
        return;
    exit = exit_of(measures, counts_add(&measures->reasons, reason));
    if (!exit)
        return;
    exit->count++;
    exit->unattributed++;
}

static void on_exit_end(void *context, struct state_vcpu *vcpu, uint32_t reason, bool timed,
                        uint64_t cycles)
{
    struct measures *measures = context;

    details_note_exit(&measures->details, vcpu, reason, timed, cycles);
    measures->incomplete_exits += !timed;
}

/* The exits of all vCPUs, by reason. */
static void sum_exits(void *context, const struct tally *tally)
{
    struct measures *measures = context;
    struct count *reason = counts_add(&measures->reasons, (uint32_t)tally->what);
    struct measures_exit *exit = exit_of(measures, reason);

    if (!exit)
        return;
    reason->count += tally->count - 1;
    exit->count += tally->count;
    exit->timed += tally->timed;
    exit->cycles += tally->cycles;
    exit->most_cycles = max_u64(exit->most_cycles, tally->most);
}

static void on_move(void *context, struct state_vcpu *vcpu, uint32_t from, uint32_t to)
{
    struct measures *measures = context;

    details_note_move(&measures->details, vcpu, from, to);
}

static const struct state_observer observer_functions = {
    .interval = on_interval,
    .wait = on_wait,
    .exit = on_exit_end,
    .left = on_left,
    .moved = on_move,
};

/* --- Losses, I/O. --- */

static void note_loss(struct measures *measures, const struct merge_record *record)
{
    struct measures_loss loss = {
        .cpu = record->cpu,
        .from_tsc = record->tsc,
        .count = merge_word(record, 0),
    };
    struct measures_loss *more;

    if (measures->nr_losses == measures->max_losses) {
        size_t max = measures->max_losses ? measures->max_losses * 2 : 16;

        more = reallocarray(measures->losses, max, sizeof(*more));
        if (!more) {
            note_error(measures, -ENOMEM);
            return;
        }
        measures->losses = more;
        measures->max_losses = max;
    }
    measures->losses[measures->nr_losses++] = loss;
    measures->lost += loss.count;
}

/* The loss on that CPU is over: of those that are not, it is the newest. */
static void end_loss(struct measures *measures, const struct merge_record *record)
{
    for (size_t i = measures->nr_losses; i-- > 0;) {
        struct measures_loss *loss = &measures->losses[i];

        if (loss->cpu != record->cpu)
            continue;
        loss->to_tsc = record->tsc;
        return;
    }
}

/* Of a part, there may be some that end after it. */
static void end_open_losses(struct measures *measures)
{
    for (size_t i = 0; i < measures->nr_losses; i++) {
        struct measures_loss *loss = &measures->losses[i];

        if (loss->to_tsc == 0)
            loss->to_tsc = max_u64(loss->from_tsc, measures->last_tsc);
    }
}

static bool is_io(uint32_t event)
{
    uint32_t code = event & ~UINT32_C(0x100);

    return code == 0x82016 || code == 0x82216 || code == 0x82017 || code == 0x82217;
}

static void note_io(struct measures *measures, const struct merge_record *record, uint32_t event)
{
    const struct state_vcpu *vcpu = measures->state.cpus[record->stream].running;
    uint32_t code = event & ~UINT32_C(0x100);
    struct measures_io *io;

    if (!vcpu || !is_io(event))
        return;
    if (!measures->io[vcpu->key >> 16])
        measures->io[vcpu->key >> 16] = calloc(1, sizeof(*io));
    io = measures->io[vcpu->key >> 16];
    if (!io) {
        note_error(measures, -ENOMEM);
        return;
    }
    io->pio_read += code == 0x82016;
    io->pio_write += code == 0x82216;
    io->mmio_read += code == 0x82017;
    io->mmio_write += code == 0x82217;
}

/* --- The loop. --- */

/* Whether there is more to do for records of EVENT than to count them. */
static bool is_wanted(const struct measures *measures, uint32_t event)
{
    return state_wants(event) || is_io(event) || details_want(&measures->details, event);
}

static bool pass_record(void *context, uint32_t header)
{
    struct measures *measures = context;

    measures->event = counts_add(&measures->events, record_event(header));
    return measures->event && !measures->event->is_wanted;
}

static void note_new_cpus(struct measures *measures)
{
    unsigned int nr = merge_streams(measures->merge);
    uint64_t *more = reallocarray(measures->wait_cycles, nr + 1, sizeof(*more));

    if (!more) {
        note_error(measures, -ENOMEM);
        return;
    }
    measures->wait_cycles = more;
    for (; measures->nr_wait_cycles < nr; measures->nr_wait_cycles++)
        more[measures->nr_wait_cycles] = 0;
    note_error(measures, state_grow(&measures->state, nr));
    note_error(measures, details_grow(&measures->details, nr));
}

static int read_record(void *context, const struct merge_record *record)
{
    struct measures *measures = context;
    uint32_t event = record_event(record->header);
    struct count *count = measures->event;

    if (__builtin_expect(record->stream >= measures->state.nr_cpus, 0))
        note_new_cpus(measures);
    if (count && count->count == 1) {
        count->is_wanted = is_wanted(measures, event);
        measures->first_tsc = min_u64(measures->first_tsc, record->tsc);
    }
    if (measures->error < 0)
        return measures->error;
    state_record(&measures->state, record);
    details_record(&measures->details, record, event);
    if ((event & 0xffff000u) == TRC_HVM_HANDLER)
        note_io(measures, record, event);
    else if (__builtin_expect(record_is_lost(record->header), 0))
        end_loss(measures, record);
    return measures->error;
}

static int read_blind(void *context, const struct merge_record *record)
{
    struct measures *measures = context;

    if (record->stream >= measures->state.nr_cpus)
        note_new_cpus(measures);
    if (measures->error < 0)
        return measures->error;
    state_begin_blind(&measures->state, record);
    details_begin_blind(&measures->details, record);
    note_loss(measures, record);
    return measures->error;
}

static const struct merge_reader reader = {
    .pass = pass_record,
    .record = read_record,
    .blind = read_blind,
};

static int measures_read(struct measures *measures)
{
    note_new_cpus(measures);
    measures->first_tsc = UINT64_MAX;
    if (measures->error == 0)
        (void)merge_read_all(measures->merge, reader, measures);
    measures->records = counts_sum(&measures->events);
    if (measures->records == 0)
        measures->first_tsc = 0;
    measures->last_tsc = measures->merge->last_tsc;
    state_end(&measures->state);
    tallies_each(&measures->details.tallies, TALLY_EXIT, sum_exits, measures);
    end_open_losses(measures);
    note_error(measures, measures->state.error);
    note_error(measures, measures->details.error);
    note_error(measures, measures->merge->error);
    measures->records += merge_wraps(measures->merge);
    return measures->error;
}

static void find_vendor(struct measures *measures)
{
    const struct counts *events = &measures->events;

    for (size_t i = 0; i < (size_t)1 << events->bits; i++)
        measures->is_svm = measures->is_svm || (events->slots[i].count > 0 &&
                                                exit_event_is_svm(events->slots[i].number));
    for (uint32_t i = 0; i < measures->reasons.nr && i < measures->max_exits; i++)
        measures->is_svm = measures->is_svm || exit_reason_is_svm(measures->exits[i].reason);
}

int measures_new(struct merge *merge, bool is_svm, struct measures **ret_measures)
{
    return measures_new_of(merge, is_svm, MEASURES_REPORT, ret_measures);
}

int measures_new_of(struct merge *merge, bool is_svm, unsigned int parts,
                    struct measures **ret_measures)
{
    _cleanup_(measures_freep) struct measures *measures = calloc(1, sizeof(*measures));
    int r;

    if (!measures)
        return -ENOMEM;
    measures->merge = merge;
    measures->is_svm = is_svm;
    measures->parts = parts | DETAILS_EXITS;
    measures->budget.left = SAMPLE_VALUES;
    measures->observer = observer_functions;
    measures->observer.context = measures;
    measures->io = calloc(MEASURES_DOMAINS, sizeof(*measures->io));
    if (!measures->io || counts_init(&measures->events) < 0 ||
        counts_init(&measures->reasons) < 0 ||
        details_init(&measures->details, measures->parts & DETAILS_ALL, merge, &measures->state) <
            0)
        return -ENOMEM;
    r = state_init(&measures->state, &measures->observer);
    if (r < 0)
        return r;
    if (parts & MEASURES_WORST)
        r = worst_new(&measures->state, &measures->worst);
    if (r < 0)
        return r;
    r = measures_read(measures);
    if (r < 0)
        return r;
    counts_add_many(&measures->events, TRC_TRACE_WRAP_BUFFER, merge_wraps(merge));
    find_vendor(measures);
    *ret_measures = TAKE_PTR(measures);
    return 0;
}

struct measures *measures_free(struct measures *measures)
{
    if (!measures)
        return NULL;
    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++) {
        struct measures_vcpu *vcpu = measures->state.vcpus[i]->observed;

        for (unsigned int j = 0; vcpu && j < STATE_WAITS; j++)
            sample_done(&vcpu->waits[j]);
        free(vcpu);
    }
    state_done(&measures->state);
    worst_free(measures->worst);
    counts_done(&measures->events);
    counts_done(&measures->reasons);
    details_done(&measures->details);
    free(measures->wait_cycles);
    for (unsigned int i = 0; measures->io && i < MEASURES_DOMAINS; i++)
        free(measures->io[i]);
    free(measures->io);
    free(measures->losses);
    free(measures->exits);
    free(measures);
    return NULL;
}
