// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Only gaps of at least the latency between two changes of a vCPU can be waits worth telling, so
 * changes closer together than that are kept as one spell: its first and its last change. A few
 * spells reach back a few latencies at least, however often the vCPU comes and goes; that is how
 * far the buffers of different CPUs may be apart. What is older than all spells of a vCPU that has
 * forgotten some is ignored.
 *
 * Between two spells, "became runnable" at the end of the one and "runs" at the start of the next
 * are a wait, unless a change comes later, out of another CPU's buffer, that lies in between.
 *
 * The table is set-associative: a vCPU may be in one of a few places, and when all are taken the
 * one whose last change is oldest goes. It costs the same however full it is; what is forgotten is
 * a wait that has already begun, of a vCPU that nobody has heard of for longest.
 */

#include "collector/runnable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xen/trace.h>
#include <xen/vcpu.h>

#include "collector/memory.h"
#include "common/record.h"

#define WAYS      8u
#define SETS_BITS 8u
#define SETS      (1u << SETS_BITS)

_Static_assert(WAYS *SETS == RUNNABLE_VCPUS, "the table's size");

#define CHANGE_MASK 0x0ffffccfu /* the event without its two states, of two bits each */

#define NO_KEY UINT32_MAX /* no domain has the id 65535 */

enum change {
    CHANGE_RUNNABLE, /* became runnable */
    CHANGE_RUNNING,  /* runs, and was runnable before */
    CHANGE_OTHER,
};

/* Changes of one vCPU, each less than the latency after the one before. */
struct spell {
    uint64_t first_tsc;
    uint64_t last_tsc;
    uint8_t first; /* enum change */
    uint8_t last;
    uint16_t first_cpu;
};

struct vcpu {
    uint32_t key; /* domid << 16 | vcpu, as in records; NO_KEY: free */
    uint32_t nr_spells;
    struct spell spells[RUNNABLE_SPELLS]; /* ascending, at least the latency apart */
};

struct found {
    struct runnable_wait wait;
    uint32_t key;
    uint32_t round;
};

struct runnable {
    uint64_t latency_tsc;
    uint32_t round;
    bool has_loss;
    uint64_t loss_tsc; /* where the newest loss ends */
    size_t nr_found;
    struct found found[RUNNABLE_WAITS_MAX];
    struct vcpu vcpus[SETS][WAYS];
};

static bool is_before(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) < 0; /* the counter may wrap */
}

int runnable_new(uint64_t latency_tsc, struct runnable **ret_runnable)
{
    struct runnable *runnable;

    if (latency_tsc == 0 || latency_tsc > INT64_MAX)
        return -EINVAL;
    runnable = memory_alloc(1, sizeof(*runnable));
    if (!runnable)
        return -ENOMEM;
    runnable->latency_tsc = latency_tsc;
    runnable_reset(runnable); /* also touches every page before the collector does */
    *ret_runnable = runnable;
    return 0;
}

struct runnable *runnable_free(struct runnable *runnable)
{
    free(runnable);
    return NULL;
}

void runnable_reset(struct runnable *runnable)
{
    runnable->has_loss = false;
    runnable->nr_found = 0;
    for (size_t set = 0; set < SETS; set++)
        for (size_t way = 0; way < WAYS; way++)
            runnable->vcpus[set][way].key = NO_KEY;
}

/* --- The table. --- */

static uint64_t newest_tsc(const struct vcpu *vcpu)
{
    return vcpu->spells[vcpu->nr_spells - 1].last_tsc;
}

/* The place of a vCPU; made empty if it was not there. */
static struct vcpu *find(struct runnable *runnable, uint32_t key)
{
    /* Fibonacci hashing: domain ids and vCPU numbers are small and adjacent. */
    struct vcpu *set = runnable->vcpus[key * 2654435769u >> (32 - SETS_BITS)];
    struct vcpu *victim = &set[0];

    for (size_t way = 0; way < WAYS; way++) {
        if (set[way].key == key)
            return &set[way];
        if (victim->key != NO_KEY &&
            (set[way].key == NO_KEY || is_before(newest_tsc(&set[way]), newest_tsc(victim))))
            victim = &set[way];
    }
    victim->key = key;
    victim->nr_spells = 0;
    return victim;
}

/* --- Waits that were found. --- */

static void drop_found(struct runnable *runnable, size_t index)
{
    runnable->found[index] = runnable->found[--runnable->nr_found];
}

/* Keeps the gap before spells[INDEX] if it is a wait. */
static void judge_gap(struct runnable *runnable, const struct vcpu *vcpu, uint32_t index)
{
    const struct spell *before, *after;

    if (index == 0 || index >= vcpu->nr_spells)
        return;
    before = &vcpu->spells[index - 1];
    after = &vcpu->spells[index];
    if (before->last != CHANGE_RUNNABLE || after->first != CHANGE_RUNNING ||
        runnable->nr_found == RUNNABLE_WAITS_MAX)
        return;
    if (runnable->has_loss && is_before(before->last_tsc, runnable->loss_tsc))
        return;
    runnable->found[runnable->nr_found++] = (struct found){
        .wait =
            {
                .domid = (uint16_t)(vcpu->key >> 16),
                .vcpu = (uint16_t)vcpu->key,
                .cpu = after->first_cpu,
                .from_tsc = before->last_tsc,
                .to_tsc = after->first_tsc,
            },
        .key = vcpu->key,
        .round = runnable->round,
    };
}

/* A change in the middle of what was thought to be a wait. */
static void refute(struct runnable *runnable, uint32_t key, uint64_t tsc)
{
    for (size_t i = runnable->nr_found; i-- > 0;) {
        const struct found *found = &runnable->found[i];

        if (found->key == key && is_before(found->wait.from_tsc, tsc) &&
            is_before(tsc, found->wait.to_tsc))
            drop_found(runnable, i);
    }
}

void runnable_note_loss(struct runnable *runnable, uint64_t first_tsc, uint64_t last_tsc)
{
    for (size_t i = runnable->nr_found; i-- > 0;) {
        const struct runnable_wait *wait = &runnable->found[i].wait;

        if (is_before(wait->from_tsc, last_tsc) && is_before(first_tsc, wait->to_tsc))
            drop_found(runnable, i);
    }
    if (!runnable->has_loss || is_before(runnable->loss_tsc, last_tsc))
        runnable->loss_tsc = last_tsc;
    runnable->has_loss = true;
}

size_t runnable_end_round(struct runnable *runnable, bool complete,
                          struct runnable_wait ret_waits[static RUNNABLE_WAITS_MAX])
{
    size_t n = 0;

    for (size_t i = runnable->nr_found; complete && i-- > 0;) {
        if (runnable->found[i].round == runnable->round)
            continue;
        ret_waits[n++] = runnable->found[i].wait;
        drop_found(runnable, i);
    }
    runnable->round++;
    return n;
}

/* --- Changes. --- */

/* Whether a spell that ends at LAST_TSC continues with a change at TSC. */
static bool belongs(const struct runnable *runnable, uint64_t last_tsc, uint64_t tsc)
{
    return !is_before(last_tsc, tsc) || tsc - last_tsc < runnable->latency_tsc;
}

static void remove_spell(struct vcpu *vcpu, uint32_t index)
{
    vcpu->nr_spells--;
    memmove(&vcpu->spells[index], &vcpu->spells[index + 1],
            (vcpu->nr_spells - index) * sizeof(vcpu->spells[0]));
}

/* The change is after the start of spells[INDEX], and belongs to it. */
static void extend(struct runnable *runnable, struct vcpu *vcpu, uint32_t index,
                   const struct spell *change)
{
    struct spell *spell = &vcpu->spells[index];

    if (is_before(change->last_tsc, spell->last_tsc))
        return;
    spell->last_tsc = change->last_tsc;
    spell->last = change->last;
    if (index + 1 == vcpu->nr_spells)
        return;
    if (belongs(runnable, spell->last_tsc, spell[1].first_tsc)) {
        spell->last_tsc = spell[1].last_tsc;
        spell->last = spell[1].last;
        remove_spell(vcpu, index + 1);
    } else {
        judge_gap(runnable, vcpu, index + 1);
    }
}

/* A spell of its own, before spells[INDEX]. */
static void insert(struct runnable *runnable, struct vcpu *vcpu, uint32_t index,
                   const struct spell *change)
{
    if (vcpu->nr_spells == RUNNABLE_SPELLS) {
        if (index == 0)
            return;
        remove_spell(vcpu, 0);
        index--;
    }
    memmove(&vcpu->spells[index + 1], &vcpu->spells[index],
            (vcpu->nr_spells - index) * sizeof(vcpu->spells[0]));
    vcpu->nr_spells++;
    vcpu->spells[index] = *change;
    judge_gap(runnable, vcpu, index);
    judge_gap(runnable, vcpu, index + 1);
}

static void add_change(struct runnable *runnable, uint32_t key, const struct spell *change)
{
    struct vcpu *vcpu = find(runnable, key);
    uint64_t tsc = change->first_tsc;
    uint32_t i = vcpu->nr_spells;

    if (runnable->nr_found > 0)
        refute(runnable, key, tsc);
    while (i > 0 && is_before(tsc, vcpu->spells[i - 1].first_tsc))
        i--;
    if (i > 0 && belongs(runnable, vcpu->spells[i - 1].last_tsc, tsc)) {
        extend(runnable, vcpu, i - 1, change);
    } else if (i < vcpu->nr_spells && belongs(runnable, tsc, vcpu->spells[i].first_tsc)) {
        vcpu->spells[i].first_tsc = tsc;
        vcpu->spells[i].first = change->first;
        vcpu->spells[i].first_cpu = change->first_cpu;
        judge_gap(runnable, vcpu, i);
    } else {
        insert(runnable, vcpu, i, change);
    }
}

bool runnable_is_change(uint32_t event)
{
    return (event & CHANGE_MASK) == TRC_SCHED_RUNSTATE_CHANGE;
}

static enum change change_of(uint32_t event)
{
    uint32_t from = event >> 8 & 3, to = event >> 4 & 3;

    if (to == RUNSTATE_runnable)
        return CHANGE_RUNNABLE;
    return to == RUNSTATE_running && from == RUNSTATE_runnable ? CHANGE_RUNNING : CHANGE_OTHER;
}

void runnable_note(struct runnable *runnable, unsigned int cpu, const uint8_t *p)
{
    struct spell change;
    uint32_t header, key;
    uint64_t tsc;
    enum change kind;

    memcpy(&header, p, sizeof(header));
    if (!record_has_tsc(header) || record_bytes(header) < 16)
        return;
    memcpy(&key, p + 12, sizeof(key));
    if (key >> 16 == DOMID_IDLE || key == NO_KEY)
        return;
    tsc = record_tsc(p);
    kind = change_of(record_event(header));
    change = (struct spell){
        .first_tsc = tsc,
        .last_tsc = tsc,
        .first = (uint8_t)kind,
        .last = (uint8_t)kind,
        .first_cpu = (uint16_t)cpu, /* CPU_SET_MAX is less */
    };
    add_change(runnable, key, &change);
}
