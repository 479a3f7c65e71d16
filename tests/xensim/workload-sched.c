// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `sched`: a scheduler, in small. Each CPU has a queue, a current vCPU and a time slice; vCPUs run,
 * block, are woken, preempted, stolen by CPUs that have nothing to do, and paused.
 *
 * Everything that happens is one event at a time, in the order of the model's own clock: the end of
 * a slice or a burst, an interrupt that wakes somebody, a CPU that is asked to look at its queue, a
 * pause. So no vCPU is ever in two places. Records are those that Xen's scheduler makes, in its
 * order and formats (vcpu_wake(), vcpu_sleep_nosync(), schedule() in xen/common/sched/core.c;
 * <xen/trace.h>; checked against traces of a real Xen): a wake is logged by the CPU that it happens
 * on, and some time later the CPU that is to run the vCPU switches to it.
 *
 * The model's clock decides what comes next, from --seed alone; the TSC decides when it was. Each
 * record's is read just before it is inserted, and never equal to that of the one before, so the
 * order of the records is that of the model on all CPUs.
 */

#include "workload.h"

#include <errno.h>
#include <string.h>

#include "tbuf.h"
#include "truth.h"

#define USEC UINT64_C(1000)

#define BURST_NSEC     (1600 * USEC) /* how long a vCPU runs until it blocks, on average */
#define SLICE_NSEC     (2000 * USEC)
#define PAUSE_NSEC     (3000 * USEC)  /* how long one lasts */
#define PAUSES_NSEC    (20000 * USEC) /* from one to the next, for a vCPU */
#define IPI_NSEC       (2 * USEC)     /* from a wake to the CPU that looks at its queue */
#define UTILISATION    0.85           /* what vCPUs ask for, if none waits */
#define TRACED_SLICE   10000000u      /* credit2's, in records */
#define MAX_RATE_BYTES 4096u          /* a CPU's turn at --rate max */
#define NEVER          UINT64_MAX

struct vcpu {
    uint32_t number; /* in vcpus[], and of the truth */
    uint32_t domid;
    uint32_t id;
    enum truth_state state;
    struct pcpu *pcpu;   /* where it runs or is queued, or ran last */
    struct vcpu *after;  /* in the queue */
    uint64_t next;       /* it is woken or continued */
    uint64_t burst_nsec; /* still to run before it blocks */
    uint64_t scale;      /* how much longer it runs and blocks than others do */
    uint64_t since_tsc;
    bool is_paused;      /* while it runs: it is to stop */
    bool has_ended;      /* its domain has shut down: it never runs again */
    struct pcpu *pinned; /* for an incident: it runs there only; NULL: anywhere */
    bool is_held;        /* ... and waits until that is over */
};

struct pcpu {
    uint32_t number;
    struct vcpu *idle;
    struct vcpu *current;
    struct vcpu *queue;
    uint32_t queued;
    bool is_tickled;    /* what runs is to make room */
    uint64_t ipi;       /* it looks at its queue */
    uint64_t started;   /* the current one's burst was looked at */
    uint64_t slice_end; /* of what runs; NEVER: idle */
    uint64_t burst_end;
};

struct sched_state {
    struct sim *sim;
    struct truth *truth; /* NULL: nobody asked for it */
    uint64_t now;        /* nsec of the model */
    uint64_t next_pause;
    uint64_t random;
    uint64_t last_tsc;
    double block_factor; /* blocked time to burst */
    struct vcpu *vcpus;  /* [nr_vcpus], then the idle ones: [nr_pcpus] */
    uint32_t nr_vcpus;
    struct pcpu *pcpus; /* online CPUs */
    uint32_t nr_pcpus;
    uint32_t incidents;        /* of `xensim domain starve`: begun */
    uint64_t incident_end_tsc; /* of the one that goes on; 0: none */
    struct pcpu *incident_pcpu;
    uint64_t bytes;    /* of records, ever */
    double owed_bytes; /* with a rate: still to be made */
};

/* --- Chance. --- */

static uint64_t next_random(struct sched_state *st)
{
    /* xorshift64: repeatable, and good enough for a schedule */
    st->random ^= st->random << 13;
    st->random ^= st->random >> 7;
    st->random ^= st->random << 17;
    return st->random;
}

static bool is_one_of(struct sched_state *st, uint32_t n)
{
    return (next_random(st) >> 11) % n == 0;
}

/* Around half of MEAN four times of five, else around three times MEAN: some are much longer. */
static uint64_t random_nsec(struct sched_state *st, uint64_t mean)
{
    uint64_t base = is_one_of(st, 5) ? 3 * mean : mean / 2;

    return base / 4 + (next_random(st) >> 11) % (base * 3 / 2 + 1) + 1;
}

static struct pcpu *random_pcpu(struct sched_state *st)
{
    return &st->pcpus[(next_random(st) >> 11) % st->nr_pcpus];
}

/* --- Records. --- */

/* Returns the record's TSC. */
static uint64_t emit(struct sched_state *st, const struct pcpu *p, uint32_t event, uint32_t words,
                     const uint32_t *extra)
{
    pthread_mutex_t *lock = &st->sim->shared->cpus[p->number].lock;
    struct tbuf_event e = {
        .event = (uint32_t)(event | TRC_HD_CYCLE_FLAG),
        .extra_words = words,
        .extra = extra,
    };

    sim_lock(lock);
    e.tsc = max_u64(sim_tsc(), st->last_tsc + 1);
    (void)tbuf_insert(st->sim, p->number, &e); /* what is lost is counted there */
    sim_unlock(lock);
    st->last_tsc = e.tsc;
    st->bytes += 12 + words * 4;
    truth_note_record(st->truth, p->number, e.tsc);
    return e.tsc;
}

/* A record with the domain and the vCPU in two words. */
static void emit_vcpu(struct sched_state *st, const struct pcpu *p, uint32_t event,
                      const struct vcpu *v)
{
    const uint32_t extra[] = {v->domid, v->id};

    (void)emit(st, p, event, ARRAY_SIZE(extra), extra);
}

static uint32_t nsec_since(const struct sched_state *st, uint64_t tsc)
{
    return (uint32_t)((st->last_tsc - tsc) * 1000000 / st->sim->shared->cpu_khz);
}

/* V becomes TO, which P logs. */
static void change(struct sched_state *st, const struct pcpu *p, struct vcpu *v,
                   enum truth_state to)
{
    const uint32_t extra[] = {v->domid << 16 | v->id};

    v->since_tsc = emit(
        st, p, TRC_SCHED_RUNSTATE_CHANGE | (uint32_t)v->state << 8 | (uint32_t)to << 4, 1, extra);
    v->state = to;
    truth_change(st->truth, v->number, to, p->number, v->since_tsc);
}

static void continue_running(struct sched_state *st, const struct pcpu *p, struct vcpu *v)
{
    const uint32_t infcont[] = {v->domid, v->id, nsec_since(st, v->since_tsc),
                                v == p->idle ? UINT32_MAX : TRACED_SLICE};
    const uint32_t extra[] = {v->domid << 16 | v->id};

    (void)emit(st, p, TRC_SCHED_SWITCH_INFCONT, ARRAY_SIZE(infcont), infcont);
    v->since_tsc = emit(st, p, TRC_SCHED_CONTINUE_RUNNING, 1, extra);
    truth_change(st->truth, v->number, TRUTH_RUNNING, p->number, v->since_tsc);
}

static void switch_to(struct sched_state *st, struct pcpu *p, struct vcpu *prev,
                      enum truth_state prev_becomes, struct vcpu *next)
{
    const uint32_t infprev[] = {prev->domid, prev->id, nsec_since(st, prev->since_tsc)};
    const uint32_t infnext[] = {next->domid, next->id, nsec_since(st, next->since_tsc),
                                next == p->idle ? UINT32_MAX : TRACED_SLICE};
    const uint32_t both[] = {prev->domid, prev->id, next->domid, next->id};

    (void)emit(st, p, TRC_SCHED_SWITCH_INFPREV, ARRAY_SIZE(infprev), infprev);
    (void)emit(st, p, TRC_SCHED_SWITCH_INFNEXT, ARRAY_SIZE(infnext), infnext);
    (void)emit(st, p, TRC_SCHED_SWITCH, ARRAY_SIZE(both), both);
    change(st, p, prev, prev_becomes);
    change(st, p, next, TRUTH_RUNNING);
}

/* --- Queues. --- */

static void ask(struct sched_state *st, struct pcpu *p)
{
    p->ipi = min_u64(p->ipi, st->now + random_nsec(st, IPI_NSEC));
}

static void enqueue(struct pcpu *p, struct vcpu *v, bool at_head)
{
    struct vcpu **place = &p->queue;

    while (!at_head && *place)
        place = &(*place)->after;
    v->after = *place;
    *place = v;
    v->pcpu = p;
    p->queued++;
}

static void dequeue(struct vcpu *v)
{
    struct vcpu **place = &v->pcpu->queue;

    while (*place != v)
        place = &(*place)->after;
    *place = v->after;
    v->pcpu->queued--;
}

static bool is_idle(const struct pcpu *p)
{
    return p->current == p->idle && p->queued == 0;
}

/* Any idle CPU, or NULL. */
static struct pcpu *find_idle(struct sched_state *st)
{
    uint32_t from = (uint32_t)(random_pcpu(st) - st->pcpus);

    for (uint32_t i = 0; i < st->nr_pcpus; i++) {
        struct pcpu *p = &st->pcpus[(from + i) % st->nr_pcpus];

        if (is_idle(p))
            return p;
    }
    return NULL;
}

static struct pcpu *find_longest_queue(struct sched_state *st)
{
    struct pcpu *longest = &st->pcpus[0];

    for (uint32_t i = 1; i < st->nr_pcpus; i++)
        if (st->pcpus[i].queued > longest->queued)
            longest = &st->pcpus[i];
    return longest;
}

/* --- What happens. --- */

/* To the CPU where V ran, or an idle one; there it may come first. */
static void queue_woken(struct sched_state *st, struct vcpu *v)
{
    struct pcpu *p = v->pcpu, *idle = is_idle(p) ? p : find_idle(st);
    bool at_head = is_one_of(st, 3);

    if (v->pinned) {
        enqueue(v->pinned, v, false);
        ask(st, v->pinned);
        return;
    }
    if (p == st->incident_pcpu) /* others keep away from it */
        p = &st->pcpus[(p->number + 1) % st->nr_pcpus];
    if (idle && is_one_of(st, 2))
        p = idle;
    enqueue(p, v, at_head);
    p->is_tickled |= at_head;
    if (at_head || p->current == p->idle)
        ask(st, p);
    else if (idle && is_one_of(st, 2))
        ask(st, idle); /* which steals it, if it is still there */
}

static void wake(struct sched_state *st, struct vcpu *v)
{
    const struct pcpu *waker = random_pcpu(st);

    v->next = NEVER;
    if (v->burst_nsec == 0)
        v->burst_nsec = random_nsec(st, BURST_NSEC * v->scale);
    emit_vcpu(st, waker, TRC_SCHED_WAKE, v);
    change(st, waker, v, TRUTH_RUNNABLE);
    queue_woken(st, v);
}

/* A toolstack pauses somebody. One that runs stops when its CPU is asked to. */
static void pause_one(struct sched_state *st)
{
    struct vcpu *v = &st->vcpus[(next_random(st) >> 11) % st->nr_vcpus];
    const struct pcpu *p = random_pcpu(st);

    st->next_pause = st->now + random_nsec(st, PAUSES_NSEC / st->nr_vcpus + 1);
    if (v->pinned || v->has_ended)
        return;
    switch (v->state) {
    case TRUTH_RUNNING:
        v->is_paused = true;
        ask(st, v->pcpu);
        emit_vcpu(st, p, TRC_SCHED_SLEEP, v);
        return;
    case TRUTH_RUNNABLE:
        dequeue(v);
        change(st, p, v, TRUTH_OFFLINE);
        emit_vcpu(st, p, TRC_SCHED_SLEEP, v);
        break;
    case TRUTH_BLOCKED: /* which Xen logs only when it is woken meanwhile */
        emit_vcpu(st, p, TRC_SCHED_WAKE, v);
        change(st, p, v, TRUTH_OFFLINE);
        break;
    case TRUTH_OFFLINE:
        return;
    }
    v->next = st->now + random_nsec(st, PAUSE_NSEC);
}

/* What becomes of P's current vCPU, if another one runs there; logs why. */
static enum truth_state leave(struct sched_state *st, struct pcpu *p, struct vcpu *v)
{
    if (v == p->idle)
        return TRUTH_RUNNABLE;
    v->burst_nsec -= min_u64(v->burst_nsec, st->now - p->started);
    p->started = st->now;
    if (v->is_paused) {
        v->is_paused = false;
        v->next = v->has_ended ? NEVER : st->now + random_nsec(st, PAUSE_NSEC);
        return TRUTH_OFFLINE;
    }
    if (v->burst_nsec > 0)
        return TRUTH_RUNNABLE;
    if (is_one_of(st, 10)) {
        emit_vcpu(st, p, TRC_SCHED_YIELD, v);
        v->burst_nsec = random_nsec(st, BURST_NSEC);
        p->is_tickled = true;
        return TRUTH_RUNNABLE;
    }
    emit_vcpu(st, p, TRC_SCHED_BLOCK, v);
    v->next =
        st->now + random_nsec(st, (uint64_t)((double)(BURST_NSEC * v->scale) * st->block_factor));
    return TRUTH_BLOCKED;
}

/* The first in the queue of FROM that may run on P; NULL: there is none. */
static struct vcpu *find_queued(const struct pcpu *from, const struct pcpu *p)
{
    for (struct vcpu *v = from->queue; v; v = v->after)
        if (!v->is_held && (!v->pinned || v->pinned == p))
            return v;
    return NULL;
}

/* Who runs on P next, out of its queue. PREV could continue if it is runnable. */
static struct vcpu *pick(struct sched_state *st, struct pcpu *p, struct vcpu *prev,
                         enum truth_state prev_becomes)
{
    bool may_continue = prev != p->idle && prev_becomes == TRUTH_RUNNABLE && !prev->is_held &&
                        (!prev->pinned || prev->pinned == p);
    struct vcpu *next = find_queued(p, p);

    if (may_continue && (!next || (!p->is_tickled && st->now < p->slice_end)))
        return prev;
    if (!next && p != st->incident_pcpu)
        next = find_queued(find_longest_queue(st), p);
    if (!next)
        return p->idle;
    dequeue(next);
    return next;
}

static void schedule(struct sched_state *st, struct pcpu *p)
{
    struct vcpu *prev = p->current;
    enum truth_state becomes = leave(st, p, prev);
    struct vcpu *next = pick(st, p, prev, becomes);

    if (next == prev) {
        continue_running(st, p, prev);
    } else {
        switch_to(st, p, prev, becomes, next);
        if (becomes == TRUTH_RUNNABLE && prev != p->idle)
            enqueue(prev->pinned ? prev->pinned : p, prev, false);
        if (becomes == TRUTH_RUNNABLE && prev->pinned && prev->pinned != p)
            ask(st, prev->pinned);
    }
    next->pcpu = p;
    p->current = next;
    p->is_tickled = false;
    p->ipi = NEVER;
    p->started = st->now;
    p->slice_end = next == p->idle ? NEVER : st->now + SLICE_NSEC;
    p->burst_end = next == p->idle ? NEVER : st->now + next->burst_nsec;
}

static uint64_t next_of_pcpu(const struct pcpu *p)
{
    return min_u64(p->ipi, min_u64(p->slice_end, p->burst_end));
}

/* The next event, unless it is after UNTIL. */
static bool step(struct sched_state *st, uint64_t until)
{
    uint64_t next = st->next_pause;
    struct vcpu *v = NULL;
    struct pcpu *p = NULL;

    for (uint32_t i = 0; i < st->nr_vcpus; i++) {
        if (st->vcpus[i].next >= next)
            continue;
        v = &st->vcpus[i];
        next = v->next;
    }
    for (uint32_t i = 0; i < st->nr_pcpus; i++) {
        if (next_of_pcpu(&st->pcpus[i]) >= next)
            continue;
        p = &st->pcpus[i];
        next = next_of_pcpu(p);
    }
    if (next > until)
        return false;
    st->now = next;
    if (p)
        schedule(st, p);
    else if (v)
        wake(st, v);
    else
        pause_one(st);
    return true;
}

/* --- Incidents, and domains that end. --- */

static struct vcpu *find_vcpu(struct sched_state *st, uint32_t domid, uint32_t id)
{
    for (uint32_t i = 0; i < st->nr_vcpus; i++)
        if (st->vcpus[i].domid == domid && st->vcpus[i].id == id && !st->vcpus[i].has_ended)
            return &st->vcpus[i];
    return NULL;
}

/* From now on V runs on P, or waits for it. */
static void pin(struct sched_state *st, struct vcpu *v, struct pcpu *p)
{
    v->pinned = p;
    switch (v->state) {
    case TRUTH_RUNNING:
        ask(st, v->pcpu);
        return;
    case TRUTH_RUNNABLE:
        dequeue(v);
        enqueue(p, v, false);
        ask(st, p);
        return;
    case TRUTH_BLOCKED:
    case TRUTH_OFFLINE:
        v->next = st->now; /* it is woken */
        return;
    }
}

static void begin_incident(struct sched_state *st, const struct sim_starve *starve)
{
    struct vcpu *victim = find_vcpu(st, starve->domid, 0);

    if (!victim || st->incident_end_tsc)
        return;
    st->incident_pcpu = victim->pcpu;
    st->incident_end_tsc = st->last_tsc + (uint64_t)starve->msec * st->sim->shared->cpu_khz;
    for (uint32_t id = 0; id < 2; id++) {
        struct vcpu *busy = find_vcpu(st, starve->by, id);

        if (!busy)
            continue;
        busy->burst_nsec = NEVER / 2;
        pin(st, busy, st->incident_pcpu);
    }
    victim->is_held = true;
    pin(st, victim, st->incident_pcpu);
}

/* Who waited runs at once. */
static void end_incident(struct sched_state *st)
{
    for (uint32_t i = 0; i < st->nr_vcpus; i++) {
        struct vcpu *v = &st->vcpus[i];

        if (v->pinned && !v->is_held)
            v->burst_nsec = random_nsec(st, BURST_NSEC);
        if (v->is_held && v->state == TRUTH_RUNNABLE) {
            dequeue(v);
            enqueue(st->incident_pcpu, v, true);
            st->incident_pcpu->is_tickled = true;
        }
        v->pinned = NULL;
        v->is_held = false;
    }
    ask(st, st->incident_pcpu);
    st->incident_pcpu = NULL;
    st->incident_end_tsc = 0;
}

/* As domain_shutdown() does, by pausing them: who sleeps is not shown to have stopped. */
static void end_vcpu(struct sched_state *st, struct vcpu *v)
{
    v->has_ended = true;
    v->pinned = NULL;
    v->is_held = false;
    v->next = NEVER;
    if (v->state == TRUTH_RUNNING) {
        v->is_paused = true;
        ask(st, v->pcpu);
    } else if (v->state == TRUTH_RUNNABLE) {
        dequeue(v);
        change(st, v->pcpu, v, TRUTH_OFFLINE);
        emit_vcpu(st, v->pcpu, TRC_SCHED_SLEEP, v);
    }
}

/* A domain ends while it runs; one that sleeps is woken for it. Whether it does. */
static bool runs(struct sched_state *st, uint32_t domid)
{
    struct vcpu *sleeper = NULL;

    for (uint32_t i = 0; i < st->nr_vcpus; i++) {
        struct vcpu *v = &st->vcpus[i];

        if (v->domid != domid)
            continue;
        if (v->state == TRUTH_RUNNING || v->has_ended)
            return true;
        if (v->state == TRUTH_BLOCKED && !v->pinned)
            sleeper = v;
    }
    if (sleeper)
        sleeper->next = st->now;
    return false;
}

static void end_domain(struct sched_state *st, uint32_t domid)
{
    if (!runs(st, domid))
        return;
    for (uint32_t i = 0; i < st->nr_vcpus; i++)
        if (st->vcpus[i].domid == domid && !st->vcpus[i].has_ended)
            end_vcpu(st, &st->vcpus[i]);
}

static void look_at_domains(struct sched_state *st)
{
    struct sim_shared *s = st->sim->shared;
    struct sim_starve starve;

    sim_lock(&s->domains_lock);
    starve = s->starve;
    for (uint32_t i = 0; i < s->nr_domains; i++)
        if (s->domains[i].has_shut_down)
            end_domain(st, s->domains[i].domid);
    sim_unlock(&s->domains_lock);
    if (st->incident_end_tsc && sim_tsc() >= st->incident_end_tsc)
        end_incident(st);
    if (starve.number != st->incidents)
        begin_incident(st, &starve);
    st->incidents = starve.number;
}

/* --- The workload. --- */

static void sched_stop(void *state)
{
    struct sched_state *st = state;

    if (!st)
        return;
    truth_free(st->truth);
    free(st->vcpus);
    free(st->pcpus);
    free(st);
}

static void sched_freep(struct sched_state **st)
{
    sched_stop(*st);
}

static int make_pcpus(struct sched_state *st)
{
    const struct sim_shared *s = st->sim->shared;

    st->pcpus = calloc(s->nr_cpus, sizeof(*st->pcpus));
    if (!st->pcpus)
        return -ENOMEM;
    for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++)
        if (s->cpus[cpu].online)
            st->pcpus[st->nr_pcpus++] =
                (struct pcpu){.number = cpu, .ipi = NEVER, .slice_end = NEVER, .burst_end = NEVER};
    return st->nr_pcpus ? 0 : -EINVAL;
}

/* The domains get more vCPUs, in turn, until there are more than two for each CPU. */
static uint32_t add_vcpus(struct sim *sim, uint32_t wanted)
{
    struct sim_shared *s = sim->shared;
    uint32_t total = 0;

    sim_lock(&s->domains_lock);
    for (uint32_t i = 0; i < s->nr_domains; i++)
        total += s->domains[i].vcpus;
    for (uint32_t i = 0; s->nr_domains && total < wanted; i++, total++)
        s->domains[i % s->nr_domains].vcpus++;
    sim_unlock(&s->domains_lock);
    return total;
}

static void make_vcpu(struct sched_state *st, uint32_t number, uint32_t domid, uint32_t id)
{
    struct vcpu *v = &st->vcpus[number];

    *v = (struct vcpu){
        .number = number,
        .domid = domid,
        .id = id,
        .state = TRUTH_BLOCKED,
        .pcpu = random_pcpu(st),
        .scale = is_one_of(st, 5) ? 6 : 1, /* some work hard */
        .since_tsc = st->last_tsc,
    };
    v->next = random_nsec(st, BURST_NSEC);
    truth_add_vcpu(st->truth, domid << 16 | id, v->state, 0);
}

/* The idle domain's vCPU of a CPU has the CPU's number. */
static void make_idle(struct sched_state *st, struct pcpu *p, uint32_t number)
{
    p->idle = p->current = &st->vcpus[number];
    *p->idle = (struct vcpu){
        .number = number,
        .domid = DOMID_IDLE,
        .id = p->number,
        .pcpu = p,
        .next = NEVER,
        .since_tsc = st->last_tsc,
    };
    truth_add_vcpu(st->truth, DOMID_IDLE << 16 | p->number, TRUTH_RUNNING, p->number);
}

static int make_vcpus(struct sched_state *st)
{
    const struct sim_shared *s = st->sim->shared;
    uint32_t n = 0;

    st->nr_vcpus = add_vcpus(st->sim, 2 * st->nr_pcpus + 3);
    if (st->nr_vcpus == 0)
        return -EINVAL;
    st->vcpus = calloc((size_t)st->nr_vcpus + st->nr_pcpus, sizeof(*st->vcpus));
    if (!st->vcpus)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->nr_domains; i++)
        for (uint32_t v = 0; v < s->domains[i].vcpus; v++)
            make_vcpu(st, n++, s->domains[i].domid, v);
    for (uint32_t i = 0; i < st->nr_pcpus; i++)
        make_idle(st, &st->pcpus[i], n++);
    st->block_factor = (double)st->nr_vcpus / (UTILISATION * st->nr_pcpus) - 1;
    return 0;
}

static int sched_start(struct sim *sim, const struct workload_options *options, void **ret_state)
{
    _cleanup_(sched_freep) struct sched_state *st = calloc(1, sizeof(*st));
    int r;

    if (!st)
        return -ENOMEM;
    st->sim = sim;
    st->random = (options->seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    st->random = st->random ? st->random : 1;
    st->last_tsc = sim_tsc();
    if (options->truth_file) {
        r = truth_new(&st->truth);
        if (r < 0)
            return r;
    }
    r = make_pcpus(st);
    if (r < 0)
        return r;
    r = make_vcpus(st);
    if (r < 0)
        return r;
    *ret_state = TAKE_PTR(st);
    return 0;
}

static uint64_t sched_produce(struct sim *sim, const struct workload_options *options, void *state,
                              uint64_t nsec, bool *ret_finished)
{
    struct sched_state *st = state;
    uint64_t before = st->bytes, until = st->now + nsec;

    (void)sim;
    (void)ret_finished;
    look_at_domains(st);
    if (options->rate_bytes == 0 && !options->rate_max) {
        while (step(st, until))
            ;
        st->now = until;
        return st->bytes - before;
    }
    /* The model's clock runs as fast as it takes. */
    st->owed_bytes += options->rate_max ? (double)MAX_RATE_BYTES * st->nr_pcpus
                                        : (double)options->rate_bytes * (double)nsec / 1e9;
    while (st->owed_bytes > 0) {
        uint64_t had = st->bytes;

        (void)step(st, NEVER);
        st->owed_bytes -= (double)(st->bytes - had);
    }
    return st->bytes - before;
}

static int sched_finish(const struct workload_options *options, void *state)
{
    const struct sched_state *st = state;
    int r = options->truth_file ? truth_write(st->truth, options->truth_file) : 0;

    if (r < 0)
        (void)fprintf(stderr, "xensim: cannot write %s: %s\n", options->truth_file, strerror(-r));
    return r;
}

const struct workload workload_sched = {
    .name = "sched",
    .start = sched_start,
    .produce = sched_produce,
    .finish = sched_finish,
    .stop = sched_stop,
};
