// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One table look-up shows for each record whether a watch wants it; few are wanted.
 *
 * The state of a watch determines which thread owns its hit: the collector while it is armed, the
 * main thread after it has fired. The release store of the state pairs with the acquire load by the
 * other thread.
 *
 * The watches of a set form a plan, which the main thread may replace while the collector is using
 * it: it publishes the next plan, the collector takes it before the next window, and returns the
 * old plan for the main thread to free. Neither waits for the other.
 *
 * The wanted domains are a bitmap, which the main thread changes. No other data depends on it, so
 * relaxed loads and stores suffice.
 */

#include "collector/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/burst.h"
#include "collector/memory.h"
#include "collector/runnable.h"
#include "common/cpu-set.h"
#include "common/record.h"
#include "common/util.h"

#define TABLE_SIZE 65536u /* class bits and subclass nibble of an event, bits 12-27 */

/* In the table, beside the bits of the watches for events. */
#define IS_CHANGE (UINT32_C(1) << WATCH_MAX)       /* may be a runstate change */
#define IS_GEN    (UINT32_C(1) << (WATCH_MAX + 1)) /* may be lost_records or wrap_buffer */

#define DOMIDS       65536u /* domid_t has 16 bits */
#define DOMID_WORDS  (DOMIDS / 32)
#define NOBODY       UINT16_MAX /* who runs is not known; no domain has that id */
#define RUNNING_MASK 0x30u      /* of a runstate change: the state after, RUNSTATE_running is 0 */

enum watch_state {
    WATCH_ARMED,
    WATCH_FIRED,
};

struct watch {
    struct watch_config config;
    struct burst *burst; /* WATCH_EVENT with a count above 1 */
    bool was_fired;      /* the collector's own memory of the state */
    struct watch_hit hit;
    uint32_t state;    /* atomic: enum watch_state */
    uint32_t *domains; /* atomic, [DOMID_WORDS]: who is wanted; NULL: any is */
};

struct watch_plan {
    struct watch_plan *older; /* when it is retired */
    size_t count;
    struct watch watches[WATCH_MAX];
    struct runnable *runnable; /* for all that wait for latencies; NULL: none does */
    uint16_t *runs;            /* [CPU_SET_MAX]: which domain; NULL: nobody asks */
    uint64_t last_tsc;         /* of the last record that had one */
    bool has_fired;            /* since the last end of a round */
    uint32_t table[];          /* TABLE_SIZE; none if there is no watch */
};

struct watch_set {
    struct watch_plan *latest;  /* the main thread's view: `next`, or `current` */
    struct watch_plan *current; /* the collector's */
    struct watch_plan *next;    /* atomic; NULL: nothing new */
    struct watch_plan *retired; /* atomic: a list, which the main thread frees */
};

_Static_assert(WATCH_COUNT_MAX == BURST_COUNT_MAX, "watches count with bursts");

static uint32_t bit(size_t index)
{
    return UINT32_C(1) << index;
}

/* Of GEN events the buffers' own records are not meant, whatever the set says. */
static uint32_t table_entry(const struct watch_plan *plan, uint32_t event)
{
    uint32_t entry = 0;

    for (size_t i = 0; i < plan->count; i++) {
        const struct event_set *events = &plan->watches[i].config.events;

        if (plan->watches[i].config.kind == WATCH_EVENT && event_set_has(events, event) &&
            !(event & TRC_GEN & ~(0xfu << TRC_SUBCLS_SHIFT)))
            entry |= bit(i);
    }
    if ((plan->runnable || plan->runs) && event == (TRC_SCHED_MIN & ~0xfffu))
        entry |= IS_CHANGE;
    if (event == TRC_GEN)
        entry |= IS_GEN;
    return entry;
}

static int init_watch(struct watch *watch, const struct watch_config *config,
                      uint64_t *min_latency_tsc)
{
    watch->config = *config;
    watch->state = WATCH_ARMED;
    if (config->by_domain) {
        watch->domains = memory_alloc(DOMID_WORDS, sizeof(*watch->domains));
        if (!watch->domains)
            return -ENOMEM;
        memset(watch->domains, config->wants_all ? 0xff : 0, DOMID_WORDS * sizeof(uint32_t));
    }
    switch (config->kind) {
    case WATCH_EVENT:
        return config->count == 1 ? 0 : burst_new(config->count, config->within_tsc, &watch->burst);
    case WATCH_RUNNABLE:
        if (config->latency_tsc == 0)
            return -EINVAL;
        if (*min_latency_tsc == 0 || config->latency_tsc < *min_latency_tsc)
            *min_latency_tsc = config->latency_tsc;
        return 0;
    case WATCH_LOST:
        return 0;
    }
    return -EINVAL;
}

static void forget_who_runs(struct watch_plan *plan)
{
    for (size_t cpu = 0; plan->runs && cpu < CPU_SET_MAX; cpu++)
        plan->runs[cpu] = NOBODY;
}

/* Whether a watch has to know who runs when an event happens. */
static bool asks_who_runs(const struct watch_config *configs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (configs[i].kind == WATCH_EVENT && configs[i].by_domain)
            return true;
    return false;
}

static struct watch_plan *watch_plan_free(struct watch_plan *plan)
{
    if (!plan)
        return NULL;
    for (size_t i = 0; i < plan->count; i++) {
        burst_free(plan->watches[i].burst);
        free(plan->watches[i].domains);
    }
    runnable_free(plan->runnable);
    free(plan->runs);
    free(plan);
    return NULL;
}

static void watch_plan_freep(struct watch_plan **plan)
{
    watch_plan_free(*plan);
}

static int watch_plan_new(const struct watch_config *configs, size_t count,
                          struct watch_plan **ret_plan)
{
    _cleanup_(watch_plan_freep) struct watch_plan *plan = NULL;
    uint64_t min_latency_tsc = 0;
    int r;

    if (count > WATCH_MAX)
        return -EINVAL;
    plan = memory_alloc(1, sizeof(*plan) + (count > 0 ? TABLE_SIZE * sizeof(plan->table[0]) : 0));
    if (!plan)
        return -ENOMEM;
    plan->count = count;
    for (size_t i = 0; i < count; i++) {
        r = init_watch(&plan->watches[i], &configs[i], &min_latency_tsc);
        if (r < 0)
            return r;
    }
    if (asks_who_runs(configs, count)) {
        plan->runs = memory_alloc(CPU_SET_MAX, sizeof(*plan->runs));
        if (!plan->runs)
            return -ENOMEM;
        forget_who_runs(plan);
    }
    if (min_latency_tsc > 0) {
        r = runnable_new(min_latency_tsc, &plan->runnable);
        if (r < 0)
            return r;
    }
    for (uint32_t i = 0; count > 0 && i < TABLE_SIZE; i++)
        plan->table[i] = table_entry(plan, i << TRC_SUBCLS_SHIFT);
    *ret_plan = TAKE_PTR(plan);
    return 0;
}

int watch_set_new(const struct watch_config *configs, size_t count, struct watch_set **ret_set)
{
    struct watch_set *set = memory_alloc(1, sizeof(*set));
    int r;

    if (!set)
        return -ENOMEM;
    r = watch_plan_new(configs, count, &set->current);
    if (r < 0) {
        free(set);
        return r;
    }
    set->latest = set->current;
    *ret_set = set;
    return 0;
}

/* Main thread: what the collector has done with. */
static void watch_set_reap(struct watch_set *set)
{
    /* Pairs with watch_retire(): the collector does not touch it any more. */
    struct watch_plan *plan = __atomic_exchange_n(&set->retired, NULL, __ATOMIC_ACQUIRE);

    while (plan) {
        struct watch_plan *older = plan->older;

        watch_plan_free(plan);
        plan = older;
    }
}

struct watch_set *watch_set_free(struct watch_set *set)
{
    if (!set)
        return NULL;
    watch_set_reap(set);
    watch_plan_free(set->next);
    watch_plan_free(set->current);
    free(set);
    return NULL;
}

/* --- Collector thread. --- */

static void watch_retire(struct watch_set *set, struct watch_plan *plan)
{
    plan->older = __atomic_load_n(&set->retired, __ATOMIC_RELAXED);
    /* Pairs with watch_set_reap(). The main thread only takes the whole list, so this ends. */
    while (!__atomic_compare_exchange_n(&set->retired, &plan->older, plan, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

/* The plan to go by from here on. */
static struct watch_plan *watch_plan_of(struct watch_set *set)
{
    struct watch_plan *next;

    if (!__atomic_load_n(&set->next, __ATOMIC_RELAXED))
        return set->current;
    /* Pairs with watch_set_replace(): the plan is whole. The main thread may take it back first. */
    next = __atomic_exchange_n(&set->next, NULL, __ATOMIC_ACQUIRE);
    if (!next)
        return set->current;
    watch_retire(set, set->current);
    set->current = next;
    return next;
}

bool watch_is_active(struct watch_set *set)
{
    return set && watch_plan_of(set)->count > 0;
}

static bool is_armed(struct watch *watch)
{
    /* Pairs with watch_arm(): the main thread has read the hit. */
    if (__atomic_load_n(&watch->state, __ATOMIC_ACQUIRE) != WATCH_ARMED)
        return false;
    if (watch->was_fired && watch->burst)
        burst_reset(watch->burst); /* what it came true for does not count again */
    watch->was_fired = false;
    return true;
}

static uint32_t armed_bits(struct watch_plan *plan)
{
    uint32_t bits = 0;

    for (size_t i = 0; i < plan->count; i++)
        if (is_armed(&plan->watches[i]))
            bits |= bit(i);
    return bits;
}

/* Only of a watch that is armed. */
static void fire(struct watch_plan *plan, size_t index, const struct watch_hit *hit)
{
    struct watch *watch = &plan->watches[index];

    watch->hit = *hit;
    watch->was_fired = true;
    /* Pairs with watch_take(): the hit is whole. */
    __atomic_store_n(&watch->state, WATCH_FIRED, __ATOMIC_RELEASE);
    plan->has_fired = true;
}

static bool wants(const struct watch *watch, uint16_t domid)
{
    return !watch->domains ||
           __atomic_load_n(&watch->domains[domid / 32], __ATOMIC_RELAXED) >> domid % 32 & 1;
}

/* An event that the watches of BITS wait for. Returns which of them came true. */
static uint32_t match_event(struct watch_plan *plan, uint32_t bits, const struct watch_hit *hit)
{
    uint32_t fired = 0;

    for (; bits; bits &= bits - 1) {
        size_t index = (size_t)__builtin_ctz(bits);
        struct watch *watch = &plan->watches[index];

        if (!wants(watch, hit->domid) || (watch->burst && !burst_note(watch->burst, hit->tsc)))
            continue;
        fire(plan, index, hit);
        fired |= bit(index);
    }
    return fired;
}

/* The lost_records record at P. Returns the watches that came true. */
static uint32_t match_lost(struct watch_plan *plan, uint32_t armed, unsigned int cpu,
                           const uint8_t *p)
{
    uint32_t fired = 0;
    struct lost_record lost;
    struct watch_hit hit;

    memcpy(&lost, p, sizeof(lost));
    hit = (struct watch_hit){
        .cpu = cpu,
        .tsc = record_tsc(p),
        .domid = lost.domid,
        .lost = lost.count,
    };
    if (plan->runs)
        plan->runs[cpu] = NOBODY; /* a change may be among the lost ones */
    if (plan->runnable)
        runnable_note_loss(plan->runnable, (uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0],
                           hit.tsc);
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->watches[i].config.kind != WATCH_LOST || !(armed & bit(i)) ||
            !wants(&plan->watches[i], lost.domid))
            continue;
        fire(plan, i, &hit);
        fired |= bit(i);
    }
    return fired;
}

/* A runstate change in CPU's buffer. That vCPU runs there from now on, or does so no more. */
static void note_who_runs(struct watch_plan *plan, unsigned int cpu, const uint8_t *p)
{
    uint32_t header, key;

    memcpy(&header, p, sizeof(header));
    if (record_bytes(header) < RECORD_MIN_BYTES + sizeof(key) + (record_has_tsc(header) ? 8 : 0))
        return;
    memcpy(&key, p + RECORD_MIN_BYTES + (record_has_tsc(header) ? 8 : 0), sizeof(key));
    if (!(record_event(header) & RUNNING_MASK))
        plan->runs[cpu] = (uint16_t)(key >> 16);
}

void watch_window(struct watch_set *set, unsigned int cpu, const uint8_t *records, uint32_t bytes)
{
    struct watch_plan *plan = watch_plan_of(set);
    uint32_t wanted = armed_bits(plan) | IS_CHANGE | IS_GEN;
    const uint8_t *timed = NULL; /* the last record that has a TSC */
    uint32_t length;

    if (plan->count == 0)
        return;
    for (uint32_t offset = 0; bytes - offset >= RECORD_MIN_BYTES; offset += length) {
        const uint8_t *p = records + offset;
        uint32_t header, found;

        memcpy(&header, p, sizeof(header));
        length = record_bytes(header);
        if (length > bytes - offset)
            break;
        if (record_has_tsc(header))
            timed = p;
        found = plan->table[record_event(header) >> TRC_SUBCLS_SHIFT] & wanted;
        if (!found)
            continue;
        if (found & IS_GEN) {
            if (record_is_lost(header))
                wanted &= ~match_lost(plan, wanted, cpu, p);
            continue;
        }
        if (found & IS_CHANGE && runnable_is_change(record_event(header))) {
            if (plan->runnable)
                runnable_note(plan->runnable, cpu, p);
            if (plan->runs)
                note_who_runs(plan, cpu, p);
        }
        if (found & ~IS_CHANGE) {
            const struct watch_hit hit = {
                .cpu = cpu,
                .tsc = timed ? record_tsc(timed) : plan->last_tsc,
                .event = record_event(header),
                .domid = plan->runs ? plan->runs[cpu] : NOBODY,
            };

            wanted &= ~match_event(plan, found & ~IS_CHANGE, &hit);
        }
    }
    if (timed)
        plan->last_tsc = record_tsc(timed);
}

/* The longest of those that WATCH wants; NULL: none. */
static const struct runnable_wait *longest_wait(const struct watch *watch,
                                                const struct runnable_wait *waits, size_t count)
{
    const struct runnable_wait *longest = NULL;
    uint64_t longest_tsc = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t waited_tsc = waits[i].to_tsc - waits[i].from_tsc;

        if (waited_tsc <= longest_tsc || waited_tsc < watch->config.latency_tsc ||
            !wants(watch, waits[i].domid))
            continue;
        longest = &waits[i];
        longest_tsc = waited_tsc;
    }
    return longest;
}

/* Reports to each watch the longest of the waits that are certain now and long enough for it. */
static void match_waits(struct watch_plan *plan, const struct runnable_wait *waits, size_t count)
{
    for (size_t i = 0; count > 0 && i < plan->count; i++) {
        struct watch *watch = &plan->watches[i];
        const struct runnable_wait *wait;

        if (watch->config.kind != WATCH_RUNNABLE || !is_armed(watch))
            continue;
        wait = longest_wait(watch, waits, count);
        if (wait)
            fire(plan, i,
                 &(struct watch_hit){
                     .cpu = wait->cpu,
                     .tsc = wait->to_tsc,
                     .domid = wait->domid,
                     .vcpu = wait->vcpu,
                     .waited_tsc = wait->to_tsc - wait->from_tsc,
                 });
    }
}

bool watch_end_round(struct watch_set *set, bool complete)
{
    struct runnable_wait waits[RUNNABLE_WAITS_MAX];
    struct watch_plan *plan = watch_plan_of(set);
    bool has_fired;

    if (plan->runnable)
        match_waits(plan, waits, runnable_end_round(plan->runnable, complete, waits));
    has_fired = plan->has_fired;
    plan->has_fired = false;
    return has_fired;
}

void watch_reset(struct watch_set *set)
{
    struct watch_plan *plan = watch_plan_of(set);

    for (size_t i = 0; i < plan->count; i++)
        if (plan->watches[i].burst)
            burst_reset(plan->watches[i].burst);
    if (plan->runnable)
        runnable_reset(plan->runnable);
    forget_who_runs(plan);
}

/* --- Main thread. --- */

bool watch_take(const struct watch_set *set, size_t index, struct watch_hit *ret_hit)
{
    const struct watch *watch = &set->latest->watches[index];

    /* Pairs with fire(). */
    if (__atomic_load_n(&watch->state, __ATOMIC_ACQUIRE) != WATCH_FIRED)
        return false;
    *ret_hit = watch->hit;
    return true;
}

void watch_arm(struct watch_set *set, size_t index)
{
    /* Pairs with is_armed(). */
    __atomic_store_n(&set->latest->watches[index].state, WATCH_ARMED, __ATOMIC_RELEASE);
}

int watch_set_replace(struct watch_set *set, const struct watch_config *configs, size_t count)
{
    struct watch_plan *plan, *untouched;
    int r;

    watch_set_reap(set);
    r = watch_plan_new(configs, count, &plan);
    if (r < 0)
        return r;
    set->latest = plan;
    /* Pairs with watch_plan_of(), in both directions: what the collector has not taken is ours. */
    untouched = __atomic_exchange_n(&set->next, plan, __ATOMIC_ACQ_REL);
    watch_plan_free(untouched);
    return 0;
}

void watch_want_domain(struct watch_set *set, size_t index, uint32_t domid, bool is_wanted)
{
    uint32_t *domains = set->latest->watches[index].domains;

    if (!domains || domid >= DOMIDS)
        return;
    if (is_wanted)
        (void)__atomic_fetch_or(&domains[domid / 32], bit(domid % 32), __ATOMIC_RELAXED);
    else
        (void)__atomic_fetch_and(&domains[domid / 32], ~bit(domid % 32), __ATOMIC_RELAXED);
}
