// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A change of runstate closes an interval and opens one; everything else follows from that. Each
 * rule is a sentence of docs/measures.md.
 *
 * Invariant: cpu.running is the vCPU whose runstate is STATE_RUNNING and whose stream that CPU is,
 * or NULL.
 */

#include "trace/state.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

#define TABLE_BITS_FIRST 8u

/* --- Names. --- */

const char *state_runstate_name(enum state_runstate runstate)
{
    static const char *const names[] = {"running", "runnable", "blocked", "offline", "unknown"};

    return names[runstate];
}

const char *state_wait_name(enum state_wait wait)
{
    static const char *const names[] = {"wake", "preempt", "other"};

    return names[wait];
}

/* --- vCPUs. --- */

static unsigned int table_slot(const struct state *state, uint32_t key)
{
    return (key * 0x9e3779b1u) >> (32 - state->table_bits);
}

struct state_vcpu *state_find(const struct state *state, uint32_t key)
{
    unsigned int mask = (1u << state->table_bits) - 1;

    for (unsigned int i = table_slot(state, key); state->table[i]; i = (i + 1) & mask)
        if (state->table[i]->key == key)
            return state->table[i];
    return NULL;
}

static void table_add(struct state *state, struct state_vcpu *vcpu)
{
    unsigned int mask = (1u << state->table_bits) - 1;
    unsigned int i = table_slot(state, vcpu->key);

    while (state->table[i])
        i = (i + 1) & mask;
    state->table[i] = vcpu;
}

static int table_grow(struct state *state)
{
    unsigned int bits = state->table_bits ? state->table_bits + 1 : TABLE_BITS_FIRST;
    unsigned int max = 1u << (bits - 1);
    struct state_vcpu **table, **vcpus;

    vcpus = reallocarray(state->vcpus, max, sizeof(*vcpus));
    if (!vcpus)
        return -ENOMEM;
    state->vcpus = vcpus;
    table = calloc((size_t)1 << bits, sizeof(*table));
    if (!table)
        return -ENOMEM;
    free(state->table);
    state->table = table;
    state->table_bits = bits;
    state->max_vcpus = max; /* half of the table */
    for (unsigned int i = 0; i < state->nr_vcpus; i++)
        table_add(state, vcpus[i]);
    return 0;
}

static struct state_vcpu *state_add(struct state *state, uint32_t key)
{
    struct state_vcpu *vcpu;

    if (state->nr_vcpus == STATE_VCPUS_MAX) {
        state->ignored++;
        return NULL;
    }
    if (state->nr_vcpus == state->max_vcpus && table_grow(state) < 0)
        goto no_memory;
    vcpu = calloc(1, sizeof(*vcpu));
    if (!vcpu)
        goto no_memory;
    vcpu->key = key;
    vcpu->number = state->nr_vcpus;
    vcpu->runstate = STATE_UNKNOWN;
    state->vcpus[state->nr_vcpus++] = vcpu;
    table_add(state, vcpu);
    return vcpu;
no_memory:
    state->error = -ENOMEM;
    return NULL;
}

int state_init(struct state *state, const struct state_observer *observer)
{
    *state = (struct state){.observer = observer};
    return table_grow(state);
}

void state_done(struct state *state)
{
    for (unsigned int i = 0; i < state->nr_vcpus; i++) {
        free(state->vcpus[i]->on_cpus);
        free(state->vcpus[i]);
    }
    free(state->vcpus);
    free(state->table);
    free(state->cpus);
    *state = (struct state){0};
}

int state_grow(struct state *state, unsigned int nr)
{
    struct state_cpu *cpus;

    if (nr <= state->nr_cpus)
        return 0;
    cpus = reallocarray(state->cpus, nr, sizeof(*cpus));
    if (!cpus)
        return -ENOMEM;
    state->cpus = cpus;
    for (; state->nr_cpus < nr; state->nr_cpus++)
        cpus[state->nr_cpus] = (struct state_cpu){0};
    return 0;
}

/* --- Sums. --- */

static struct state_on_cpu *vcpu_add_on_cpu(struct state *state, struct state_vcpu *vcpu,
                                            uint32_t stream)
{
    struct state_on_cpu *more;

    if (vcpu->nr_on_cpus == vcpu->max_on_cpus) {
        unsigned int max = vcpu->max_on_cpus ? vcpu->max_on_cpus * 2 : 4;

        more = reallocarray(vcpu->on_cpus, max, sizeof(*more));
        if (!more) {
            state->error = -ENOMEM;
            return NULL;
        }
        vcpu->on_cpus = more;
        vcpu->max_on_cpus = max;
    }
    vcpu->last_on_cpu = vcpu->nr_on_cpus++;
    vcpu->on_cpus[vcpu->last_on_cpu] = (struct state_on_cpu){.stream = stream};
    return &vcpu->on_cpus[vcpu->last_on_cpu];
}

static struct state_on_cpu *vcpu_on_cpu(struct state *state, struct state_vcpu *vcpu,
                                        uint32_t stream)
{
    if (vcpu->nr_on_cpus > 0 && vcpu->on_cpus[vcpu->last_on_cpu].stream == stream)
        return &vcpu->on_cpus[vcpu->last_on_cpu];
    for (unsigned int i = 0; i < vcpu->nr_on_cpus; i++) {
        if (vcpu->on_cpus[i].stream != stream)
            continue;
        vcpu->last_on_cpu = i;
        return &vcpu->on_cpus[i];
    }
    return vcpu_add_on_cpu(state, vcpu, stream);
}

static void count_running(struct state *state, struct state_vcpu *vcpu, uint64_t cycles)
{
    struct state_on_cpu *on_cpu = vcpu_on_cpu(state, vcpu, vcpu->stream);
    struct state_cpu *cpu = &state->cpus[vcpu->stream];

    if (on_cpu)
        on_cpu->cycles += cycles;
    if (vcpu->key >> 16 == STATE_DOMAIN_IDLE)
        cpu->idle_cycles += cycles;
    else
        cpu->busy_cycles += cycles;
    vcpu->exit_run_cycles += cycles;
}

/* Counts the open interval, which ends at TO; the vCPU is NEXT then, or unknown: in a loss. */
static void count_interval(struct state *state, struct state_vcpu *vcpu, uint64_t to,
                           enum state_runstate next)
{
    enum state_runstate runstate = vcpu->runstate;

    vcpu->cycles[runstate] += to - vcpu->since;
    vcpu->intervals[runstate]++;
    if (runstate == STATE_RUNNING)
        count_running(state, vcpu, to - vcpu->since);
    if (state->observer->interval) {
        const struct state_interval interval = {
            .vcpu = vcpu,
            .runstate = runstate,
            .wait = vcpu->wait,
            .stream = vcpu->stream,
            .changer = vcpu->changer,
            .from = vcpu->since,
            .to = to,
            .next = next,
            .ends_in_loss = next == STATE_UNKNOWN,
        };

        state->observer->interval(state->observer->context, &interval);
    }
}

/* --- Exits. --- */

static void end_exit(struct state *state, struct state_vcpu *vcpu, bool timed, uint64_t cycles)
{
    vcpu->has_left = false;
    if (state->observer->exit)
        state->observer->exit(state->observer->context, vcpu, vcpu->exit_reason, timed, cycles);
}

/* Its state is lost, or it left once more: how long the exit took is not known. */
static void drop_exit(struct state *state, struct state_vcpu *vcpu)
{
    if (vcpu->has_left)
        end_exit(state, vcpu, false, 0);
}

void state_hvm(struct state *state, const struct merge_record *record, uint32_t event)
{
    struct state_vcpu *vcpu = state->cpus[record->stream].running;

    if (state_is_exit(event) && merge_words(record) > 0) {
        uint32_t reason = merge_word(record, 0);

        if (state->observer->left)
            state->observer->left(state->observer->context, vcpu, reason);
        if (!vcpu)
            return;
        drop_exit(state, vcpu);
        vcpu->has_left = true;
        vcpu->exit_reason = reason;
        vcpu->exit_stream = record->stream;
        vcpu->exit_since = record->tsc;
        vcpu->exit_run_cycles = 0;
        vcpu->exit_lead_cycles = record->tsc - vcpu->since;
    } else if (state_is_entry(event) && vcpu && vcpu->has_left) {
        end_exit(state, vcpu, true,
                 vcpu->exit_run_cycles + (record->tsc - vcpu->since) - vcpu->exit_lead_cycles);
    }
}

/* --- Runstates. --- */

static void leave_cpu(struct state *state, const struct state_vcpu *vcpu)
{
    if (vcpu->runstate == STATE_RUNNING)
        state->cpus[vcpu->stream].running = NULL;
}

static void forget_runstate(struct state *state, struct state_vcpu *vcpu)
{
    leave_cpu(state, vcpu);
    vcpu->runstate = STATE_UNKNOWN;
    drop_exit(state, vcpu);
}

/* VCPU runs on the CPU from now on; another one that was known to does not. */
static void enter_cpu(struct state *state, struct state_vcpu *vcpu, uint32_t stream)
{
    struct state_vcpu *other = state->cpus[stream].running;

    vcpu->stream = stream;
    if (other) {
        state->mismatches++;
        forget_runstate(state, other);
    }
    state->cpus[stream].running = vcpu;
}

/* It was shown running on that CPU. */
static void note_shown(struct state *state, struct state_vcpu *vcpu, uint32_t stream)
{
    uint32_t before = vcpu->shown_stream;

    if (before == stream + 1)
        return;
    vcpu->shown_stream = stream + 1;
    if (before == 0)
        return;
    vcpu->migrations++;
    if (state->observer->moved)
        state->observer->moved(state->observer->context, vcpu, before - 1, stream);
}

static enum state_wait wait_after(enum state_runstate old)
{
    switch (old) {
    case STATE_RUNNING:
        return STATE_PREEMPT;
    case STATE_BLOCKED:
        return STATE_WAKE;
    case STATE_RUNNABLE:
    case STATE_OFFLINE:
    case STATE_UNKNOWN:
        break;
    }
    return STATE_OTHER;
}

static bool may_wait(const struct state_vcpu *vcpu)
{
    return vcpu->key >> 16 != STATE_DOMAIN_IDLE && vcpu->key >> 16 != STATE_DOMAIN_DEFAULT;
}

static void change(struct state *state, struct state_vcpu *vcpu, const struct merge_record *record,
                   enum state_runstate old, enum state_runstate new)
{
    struct state_wait_end wait = {
        .vcpu = vcpu,
        .wait = vcpu->wait,
        .stream = record->stream,
        .from = vcpu->since,
        .to = record->tsc,
    };
    bool waited = false;

    if (vcpu->runstate == old && (old != STATE_RUNNING || vcpu->stream == record->stream)) {
        count_interval(state, vcpu, record->tsc, new);
        waited = old == STATE_RUNNABLE && new == STATE_RUNNING &&may_wait(vcpu);
    } else if (vcpu->runstate != STATE_UNKNOWN) {
        state->mismatches++;
        drop_exit(state, vcpu);
    }
    leave_cpu(state, vcpu);
    vcpu->runstate = new;
    vcpu->since = record->tsc;
    vcpu->changer = record->stream;
    vcpu->wait = wait_after(old);
    if (new == STATE_RUNNING)
        enter_cpu(state, vcpu, record->stream);
    else if (state->nr_blind > 0) /* what came after it may be missing */
        forget_runstate(state, vcpu);
    if (old == STATE_RUNNING || new == STATE_RUNNING)
        note_shown(state, vcpu, record->stream);
    if (waited && state->observer->wait)
        state->observer->wait(state->observer->context, &wait);
}

void state_sched(struct state *state, const struct merge_record *record, uint32_t event)
{
    enum state_runstate old = STATE_RUNNING, new = STATE_RUNNING;
    struct state_vcpu *vcpu = state->cpus[record->stream].running;
    bool continues = event == TRC_SCHED_CONTINUE_RUNNING;
    uint32_t key;

    if (merge_words(record) == 0 || (!continues && !state_is_runstate(event)))
        return;
    if (!continues) {
        old = event >> 8 & 3;
        new = event >> 4 & 3;
    }
    key = merge_word(record, 0);
    if (!vcpu || vcpu->key != key)
        vcpu = state_find(state, key);
    if (!vcpu)
        vcpu = state_add(state, key);
    if (!vcpu)
        return;
    vcpu->switches_in += new == STATE_RUNNING && !continues;
    change(state, vcpu, record, old, new);
}

/* --- Losses. --- */

void state_begin_blind(struct state *state, const struct merge_record *record)
{
    struct state_cpu *cpu = &state->cpus[record->stream];

    for (unsigned int i = 0; i < state->nr_vcpus; i++) {
        struct state_vcpu *vcpu = state->vcpus[i];

        if (vcpu->runstate == STATE_UNKNOWN ||
            (vcpu->runstate == STATE_RUNNING && vcpu->stream != record->stream))
            continue;
        count_interval(state, vcpu, record->tsc, STATE_UNKNOWN);
        forget_runstate(state, vcpu);
    }
    state->nr_blind += !cpu->is_blind;
    cpu->is_blind = true;
}

void state_end_blind(struct state *state, const struct merge_record *record)
{
    struct state_cpu *cpu = &state->cpus[record->stream];

    state->nr_blind -= cpu->is_blind;
    cpu->is_blind = false;
}

void state_end(struct state *state)
{
    for (unsigned int i = 0; i < state->nr_vcpus; i++)
        drop_exit(state, state->vcpus[i]);
}
