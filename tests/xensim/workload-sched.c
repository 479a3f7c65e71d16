// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `sched`: the vCPUs of some domains taking turns on the physical CPUs.
 *
 * A physical CPU idles for a while, wakes a blocked vCPU, runs it, and idles again when it blocks.
 * Both switches have the records that Xen's scheduler makes, in its order and formats
 * (<xen/trace.h>, checked against traces of a real Xen). Events of all CPUs happen in one order of
 * time, so a vCPU is never seen in two places. Durations are random from a fixed seed.
 */

#include "workload.h"

#include <errno.h>

#include "tbuf.h"

enum runstate { RUNNING, RUNNABLE, BLOCKED };

#define MEAN_NSEC   1000000.0 /* idling and running, unless a rate is asked for */
#define CYCLE_BYTES 280.0     /* of records that one wake and one block make */
#define SLICE_NSEC  10000000u /* credit2's, as traced */

struct vcpu {
    uint32_t domid;
    uint32_t id;
    bool on_cpu;
    uint64_t since; /* nsec */
};

struct pcpu {
    struct vcpu *current; /* NULL: the idle vCPU */
    uint64_t next;        /* when it switches */
    uint64_t since;
};

struct sched_state {
    uint64_t now; /* nsec of simulated time */
    double mean_nsec;
    uint64_t random;
    uint32_t nr_vcpus;
    struct vcpu *vcpus;
    struct pcpu *pcpus;
    uint64_t bytes;
};

static uint64_t next_random(struct sched_state *st)
{
    /* xorshift64: repeatable, and good enough for a schedule */
    st->random ^= st->random << 13;
    st->random ^= st->random >> 7;
    st->random ^= st->random << 17;
    return st->random;
}

/* Between a quarter and 7 quarters of the mean. */
static uint64_t random_nsec(struct sched_state *st)
{
    double fraction = (double)(next_random(st) >> 11) / 9007199254740992.0; /* 2^53 */

    return (uint64_t)(st->mean_nsec * (0.25 + 1.5 * fraction)) + 1;
}

static void sched_stop(void *state)
{
    struct sched_state *st = state;

    if (!st)
        return;
    free(st->vcpus);
    free(st->pcpus);
    free(st);
}

static int make_vcpus(struct sched_state *st, const struct sim_shared *s)
{
    uint32_t total = 0, n = 0;

    for (uint32_t i = 0; i < s->nr_domains; i++)
        total += s->domains[i].vcpus;
    st->vcpus = calloc(total + 1, sizeof(*st->vcpus));
    st->pcpus = calloc(s->nr_cpus, sizeof(*st->pcpus));
    if (!st->vcpus || !st->pcpus)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->nr_domains; i++)
        for (uint32_t v = 0; v < s->domains[i].vcpus; v++)
            st->vcpus[n++] = (struct vcpu){.domid = s->domains[i].domid, .id = v};
    st->nr_vcpus = total;
    return total ? 0 : -EINVAL;
}

static int sched_start(struct sim *sim, const struct workload_options *options, void **ret_state)
{
    struct sched_state *st = calloc(1, sizeof(*st));
    int r;

    if (!st)
        return -ENOMEM;
    st->random = UINT64_C(0x9e3779b97f4a7c15);
    st->mean_nsec = MEAN_NSEC;
    if (options->rate_bytes)
        st->mean_nsec =
            CYCLE_BYTES * 1e9 * sim->shared->nr_cpus / (2 * (double)options->rate_bytes);
    r = make_vcpus(st, sim->shared);
    if (r < 0) {
        sched_stop(st);
        return r;
    }
    for (uint32_t i = 0; i < sim->shared->nr_cpus; i++)
        st->pcpus[i].next = random_nsec(st);
    *ret_state = st;
    return 0;
}

static void emit(struct sim *sim, struct sched_state *st, uint32_t cpu, uint32_t event,
                 uint32_t words, const uint32_t *extra)
{
    const struct tbuf_event e = {
        .event = (uint32_t)(event | TRC_HD_CYCLE_FLAG),
        .extra_words = words,
        .extra = extra,
    };

    (void)tbuf_insert(sim, cpu, &e); /* what is lost is counted there */
    st->bytes += 12 + words * 4;
}

static void emit_runstate(struct sim *sim, struct sched_state *st, uint32_t cpu, uint32_t domid,
                          uint32_t vcpu, enum runstate from, enum runstate to)
{
    const uint32_t extra[] = {domid << 16 | vcpu};

    emit(sim, st, cpu, TRC_SCHED_RUNSTATE_CHANGE | (uint32_t)from << 8 | (uint32_t)to << 4, 1,
         extra);
}

/* The idle domain's vCPU of a CPU has the CPU's number. */
static void emit_switch(struct sim *sim, struct sched_state *st, uint32_t cpu,
                        const struct vcpu *prev, const struct vcpu *next)
{
    uint32_t prev_domid = prev ? prev->domid : DOMID_IDLE, prev_id = prev ? prev->id : cpu;
    uint32_t next_domid = next ? next->domid : DOMID_IDLE, next_id = next ? next->id : cpu;
    uint32_t ran = (uint32_t)(st->now - st->pcpus[cpu].since);
    const uint32_t infprev[] = {prev_domid, prev_id, ran};
    const uint32_t infnext[] = {next_domid, next_id, next ? (uint32_t)(st->now - next->since) : ran,
                                next ? SLICE_NSEC : UINT32_MAX};
    const uint32_t both[] = {prev_domid, prev_id, next_domid, next_id};

    emit(sim, st, cpu, TRC_SCHED_SWITCH_INFPREV, 3, infprev);
    emit(sim, st, cpu, TRC_SCHED_SWITCH_INFNEXT, 4, infnext);
    emit(sim, st, cpu, TRC_SCHED_SWITCH, 4, both);
    emit_runstate(sim, st, cpu, prev_domid, prev_id, RUNNING, prev ? BLOCKED : RUNNABLE);
    emit_runstate(sim, st, cpu, next_domid, next_id, RUNNABLE, RUNNING);
}

static struct vcpu *find_blocked(struct sched_state *st)
{
    uint32_t from = (uint32_t)(next_random(st) % st->nr_vcpus);

    for (uint32_t i = 0; i < st->nr_vcpus; i++) {
        struct vcpu *v = &st->vcpus[(from + i) % st->nr_vcpus];

        if (!v->on_cpu)
            return v;
    }
    return NULL;
}

static void wake_one(struct sim *sim, struct sched_state *st, uint32_t cpu)
{
    struct vcpu *v = find_blocked(st);
    const uint32_t extra[] = {v ? v->domid : 0, v ? v->id : 0};

    if (!v)
        return;
    emit(sim, st, cpu, TRC_SCHED_WAKE, 2, extra);
    emit_runstate(sim, st, cpu, v->domid, v->id, BLOCKED, RUNNABLE);
    v->since = st->now;
    v->on_cpu = true;
    emit_switch(sim, st, cpu, NULL, v);
    st->pcpus[cpu].current = v;
    st->pcpus[cpu].since = st->now;
}

static void block_current(struct sim *sim, struct sched_state *st, uint32_t cpu)
{
    struct vcpu *v = st->pcpus[cpu].current;
    const uint32_t extra[] = {v->domid, v->id};

    emit(sim, st, cpu, TRC_SCHED_BLOCK, 2, extra);
    emit_switch(sim, st, cpu, v, NULL);
    v->on_cpu = false;
    st->pcpus[cpu].current = NULL;
    st->pcpus[cpu].since = st->now;
}

static uint32_t find_earliest(const struct sched_state *st, uint32_t nr_cpus)
{
    uint32_t earliest = 0;

    for (uint32_t i = 1; i < nr_cpus; i++)
        if (st->pcpus[i].next < st->pcpus[earliest].next)
            earliest = i;
    return earliest;
}

static uint64_t sched_produce(struct sim *sim, const struct workload_options *options, void *state,
                              uint64_t nsec, bool *ret_finished)
{
    struct sched_state *st = state;
    uint64_t until = st->now + nsec;
    uint32_t cpu;

    (void)options;
    (void)ret_finished;
    st->bytes = 0;
    while (st->pcpus[cpu = find_earliest(st, sim->shared->nr_cpus)].next <= until) {
        struct pcpu *p = &st->pcpus[cpu];

        st->now = p->next;
        sim_lock(&sim->shared->cpus[cpu].lock);
        if (p->current)
            block_current(sim, st, cpu);
        else
            wake_one(sim, st, cpu);
        sim_unlock(&sim->shared->cpus[cpu].lock);
        p->next = st->now + random_nsec(st);
    }
    st->now = until;
    return st->bytes;
}

const struct workload workload_sched = {
    .name = "sched",
    .start = sched_start,
    .produce = sched_produce,
    .stop = sched_stop,
};
