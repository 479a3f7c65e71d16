// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One table look-up shows for each record whether a watch wants it; few are wanted.
 *
 * A watch passes to and fro between the threads by its state: while it is armed its hit is the
 * collector's, once it has come true the main thread's. The release store of the one state pairs
 * with the acquire load of it on the other side.
 */

#include "collector/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/burst.h"
#include "collector/memory.h"
#include "collector/runnable.h"
#include "common/record.h"
#include "common/util.h"

#define TABLE_SIZE 65536u /* class bits and subclass nibble of an event, bits 12-27 */

/* In the table, beside the bits of the watches for events. */
#define IS_CHANGE (UINT32_C(1) << WATCH_MAX)       /* may be a runstate change */
#define IS_GEN    (UINT32_C(1) << (WATCH_MAX + 1)) /* may be lost_records or wrap_buffer */

enum watch_state {
    WATCH_ARMED,
    WATCH_FIRED,
};

struct watch {
    struct watch_config config;
    struct burst *burst; /* WATCH_EVENT with a count above 1 */
    bool was_fired;      /* the collector's own memory of the state */
    struct watch_hit hit;
    uint32_t state; /* atomic: enum watch_state */
};

struct watch_set {
    size_t count;
    struct watch watches[WATCH_MAX];
    struct runnable *runnable; /* for all that wait for latencies; NULL: none does */
    uint64_t last_tsc;         /* of the last record that had one */
    bool has_fired;            /* since the last end of a round */
    uint32_t table[TABLE_SIZE];
};

_Static_assert(WATCH_COUNT_MAX == BURST_COUNT_MAX, "watches count with bursts");

static uint32_t bit(size_t index)
{
    return UINT32_C(1) << index;
}

/* Of GEN events the buffers' own records are not meant, whatever the set says. */
static uint32_t table_entry(const struct watch_set *set, uint32_t event)
{
    uint32_t entry = 0;

    for (size_t i = 0; i < set->count; i++) {
        const struct event_set *events = &set->watches[i].config.events;

        if (set->watches[i].config.kind == WATCH_EVENT && event_set_has(events, event) &&
            !(event & TRC_GEN & ~(0xfu << TRC_SUBCLS_SHIFT)))
            entry |= bit(i);
    }
    if (set->runnable && event == (TRC_SCHED_MIN & ~0xfffu))
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

static void watch_set_freep(struct watch_set **set)
{
    watch_set_free(*set);
}

int watch_set_new(const struct watch_config *configs, size_t count, struct watch_set **ret_set)
{
    _cleanup_(watch_set_freep) struct watch_set *set = NULL;
    uint64_t min_latency_tsc = 0;
    int r;

    if (count > WATCH_MAX)
        return -EINVAL;
    set = memory_alloc(1, sizeof(*set));
    if (!set)
        return -ENOMEM;
    set->count = count;
    for (size_t i = 0; i < count; i++) {
        r = init_watch(&set->watches[i], &configs[i], &min_latency_tsc);
        if (r < 0)
            return r;
    }
    if (min_latency_tsc > 0) {
        r = runnable_new(min_latency_tsc, &set->runnable);
        if (r < 0)
            return r;
    }
    for (uint32_t i = 0; i < TABLE_SIZE; i++)
        set->table[i] = table_entry(set, i << TRC_SUBCLS_SHIFT);
    *ret_set = TAKE_PTR(set);
    return 0;
}

struct watch_set *watch_set_free(struct watch_set *set)
{
    if (!set)
        return NULL;
    for (size_t i = 0; i < set->count; i++)
        burst_free(set->watches[i].burst);
    runnable_free(set->runnable);
    free(set);
    return NULL;
}

/* --- Collector thread. --- */

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

static uint32_t armed_bits(struct watch_set *set)
{
    uint32_t bits = 0;

    for (size_t i = 0; i < set->count; i++)
        if (is_armed(&set->watches[i]))
            bits |= bit(i);
    return bits;
}

/* Only of a watch that is armed. */
static void fire(struct watch_set *set, size_t index, const struct watch_hit *hit)
{
    struct watch *watch = &set->watches[index];

    watch->hit = *hit;
    watch->was_fired = true;
    /* Pairs with watch_take(): the hit is whole. */
    __atomic_store_n(&watch->state, WATCH_FIRED, __ATOMIC_RELEASE);
    set->has_fired = true;
}

/* An event that the watches of BITS wait for. Returns which of them came true. */
static uint32_t match_event(struct watch_set *set, uint32_t bits, const struct watch_hit *hit)
{
    uint32_t fired = 0;

    for (; bits; bits &= bits - 1) {
        size_t index = (size_t)__builtin_ctz(bits);
        struct watch *watch = &set->watches[index];

        if (watch->burst && !burst_note(watch->burst, hit->tsc))
            continue;
        fire(set, index, hit);
        fired |= bit(index);
    }
    return fired;
}

/* The lost_records record at P. Returns the watches that came true. */
static uint32_t match_lost(struct watch_set *set, uint32_t armed, unsigned int cpu,
                           const uint8_t *p)
{
    uint32_t fired = 0;
    struct lost_record lost;
    struct watch_hit hit;

    memcpy(&lost, p, sizeof(lost));
    hit = (struct watch_hit){.cpu = cpu, .tsc = record_tsc(p), .lost = lost.count};
    if (set->runnable)
        runnable_note_loss(set->runnable, (uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0],
                           hit.tsc);
    for (size_t i = 0; i < set->count; i++) {
        if (set->watches[i].config.kind != WATCH_LOST || !(armed & bit(i)))
            continue;
        fire(set, i, &hit);
        fired |= bit(i);
    }
    return fired;
}

void watch_window(struct watch_set *set, unsigned int cpu, const uint8_t *records, uint32_t bytes)
{
    uint32_t wanted = armed_bits(set) | IS_CHANGE | IS_GEN;
    const uint8_t *timed = NULL; /* the last record that has a TSC */
    uint32_t length;

    for (uint32_t offset = 0; bytes - offset >= RECORD_MIN_BYTES; offset += length) {
        const uint8_t *p = records + offset;
        uint32_t header, found;

        memcpy(&header, p, sizeof(header));
        length = record_bytes(header);
        if (length > bytes - offset)
            break;
        if (record_has_tsc(header))
            timed = p;
        found = set->table[record_event(header) >> TRC_SUBCLS_SHIFT] & wanted;
        if (!found)
            continue;
        if (found & IS_GEN) {
            if (record_is_lost(header))
                wanted &= ~match_lost(set, wanted, cpu, p);
            continue;
        }
        if (found & IS_CHANGE && runnable_is_change(record_event(header)))
            runnable_note(set->runnable, cpu, p);
        if (found & ~IS_CHANGE) {
            const struct watch_hit hit = {
                .cpu = cpu,
                .tsc = timed ? record_tsc(timed) : set->last_tsc,
                .event = record_event(header),
            };

            wanted &= ~match_event(set, found & ~IS_CHANGE, &hit);
        }
    }
    if (timed)
        set->last_tsc = record_tsc(timed);
}

/* Reports to each watch the longest of the waits that are certain now and long enough for it. */
static void match_waits(struct watch_set *set, const struct runnable_wait *waits, size_t count)
{
    const struct runnable_wait *longest = NULL;
    struct watch_hit hit;

    for (size_t i = 0; i < count; i++)
        if (!longest || waits[i].to_tsc - waits[i].from_tsc > longest->to_tsc - longest->from_tsc)
            longest = &waits[i];
    if (!longest)
        return;
    hit = (struct watch_hit){
        .cpu = longest->cpu,
        .tsc = longest->to_tsc,
        .domid = longest->domid,
        .vcpu = longest->vcpu,
        .waited_tsc = longest->to_tsc - longest->from_tsc,
    };
    for (size_t i = 0; i < set->count; i++) {
        struct watch *watch = &set->watches[i];

        if (watch->config.kind == WATCH_RUNNABLE && hit.waited_tsc >= watch->config.latency_tsc &&
            is_armed(watch))
            fire(set, i, &hit);
    }
}

bool watch_end_round(struct watch_set *set, bool complete)
{
    struct runnable_wait waits[RUNNABLE_WAITS_MAX];
    bool has_fired;

    if (set->runnable)
        match_waits(set, waits, runnable_end_round(set->runnable, complete, waits));
    has_fired = set->has_fired;
    set->has_fired = false;
    return has_fired;
}

void watch_reset(struct watch_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->watches[i].burst)
            burst_reset(set->watches[i].burst);
    if (set->runnable)
        runnable_reset(set->runnable);
}

/* --- Main thread. --- */

bool watch_take(const struct watch_set *set, size_t index, struct watch_hit *ret_hit)
{
    const struct watch *watch = &set->watches[index];

    /* Pairs with fire(). */
    if (__atomic_load_n(&watch->state, __ATOMIC_ACQUIRE) != WATCH_FIRED)
        return false;
    *ret_hit = watch->hit;
    return true;
}

void watch_arm(struct watch_set *set, size_t index)
{
    /* Pairs with is_armed(). */
    __atomic_store_n(&set->watches[index].state, WATCH_ARMED, __ATOMIC_RELEASE);
}
