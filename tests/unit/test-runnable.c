// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Sequences of records are written as words, in the order in which the collector sees them:
 *
 *   5w1@100   in CPU 5's buffer: vCPU 1 was woken at 100 (blocked to runnable)
 *   5p1@100   preempted (running to runnable)      5r1@100   runs (runnable to running)
 *   5b1@100   blocks (running to blocked)          5o1@100   taken offline (runnable to offline)
 *   5L90@100  lost records from 90 to 100
 *   .         the end of a complete round          ,         of one that left something behind
 *
 * What is told is written as vcpu:from-to/cpu, with a dot for each round's end.
 */

#include "collector/runnable.h"

#include <errno.h>

#include <xen/trace.h>
#include <xen/vcpu.h>

#include "common/record.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define LATENCY 50u
#define DOMID   3u

static const uint64_t bases[] = {0, UINT64_MAX - 130, (UINT64_C(1) << 63) - 130};

static void note(struct runnable *runnable, unsigned int cpu, uint32_t states, uint32_t domid,
                 uint32_t vcpu, uint64_t tsc)
{
    const uint32_t record[4] = {
        0x80000000 | 1u << TRACE_EXTRA_SHIFT | TRC_SCHED_RUNSTATE_CHANGE | states,
        (uint32_t)tsc,
        (uint32_t)(tsc >> 32),
        domid << 16 | vcpu,
    };

    CHECK(runnable_is_change(record_event(record[0])));
    runnable_note(runnable, cpu, (const uint8_t *)record);
}

/* The event's states, from << 8 | to << 4: 0 running, 1 runnable, 2 blocked, 3 offline. */
static uint32_t states_of(char op)
{
    switch (op) {
    case 'w':
        return 0x210;
    case 'p':
        return 0x010;
    case 'r':
        return 0x100;
    case 'b':
        return 0x020;
    case 'o':
        return 0x130;
    }
    return 0;
}

struct wait_case {
    const char *name;
    const char *records;
    const char *told;
};

static const struct wait_case wait_cases[] = {
    {"long", "0w1@100 0r1@160 . .", ". 1:100-160/0 ."},
    {"exactly", "0w1@100 0r1@150 . .", ". 1:100-150/0 ."},
    {"one less", "0w1@100 0r1@149 . . .", ". . ."},
    {"preempted", "0r1@10 0p1@100 0r1@190 . .", ". 1:100-190/0 ."},
    {"not certain before another round", "0w1@100 0r1@160 . , .", ". . 1:100-160/0 ."},
    {"told once", "0w1@100 0r1@160 . . 0b1@170 . .", ". 1:100-160/0 . . ."},
    {"no start", "0r1@160 . .", ". ."},
    {"no end", "0w1@100 . . .", ". . ."},
    {"ends in another round", "0w1@100 . . . 0r1@400 . .", ". . . . 1:100-400/0 ."},
    {"it slept", "0w1@100 0r1@110 0b1@120 . 0w1@200 0r1@210 . .", ". . ."},
    {"offline in between", "0w1@100 0o1@120 0r1@200 . .", ". ."},
    {"another vCPU", "0w1@100 0r2@160 . .", ". ."},
    {"two vCPUs", "0w1@100 0w2@100 0r1@160 0r2@170 . .", ". 2:100-170/0 1:100-160/0 ."},
    {"woken elsewhere, seen before", "1w1@100 5r1@160 . .", ". 1:100-160/5 ."},
    {"woken elsewhere, seen later", "2r1@160 5w1@100 . .", ". 1:100-160/2 ."},
    {"woken elsewhere, seen a round later", "2r1@160 . 5w1@100 . .", ". . 1:100-160/2 ."},
    {"seen later, and short", "2r1@140 5w1@100 . .", ". ."},
    /* Runs on CPU 3 and sleeps there, between being woken by CPU 0 and running on CPU 1. */
    {"refuted in the same round", "0w1@100 1r1@400 3r1@110 3b1@150 3w1@390 . .", ". ."},
    {"refuted in the next round", "0w1@100 1r1@400 . 0r1@110 0b1@150 0w1@390 . .", ". . ."},
    {"refuted in a round that came to an end later", "0w1@100 1r1@400 . , 3r1@110 . .", ". . . ."},
    {"refuted, but half of it is long enough", "0w1@100 1r1@400 3r1@110 3b1@150 3w1@300 . .",
     ". 1:300-400/1 ."},
    {"refuted close to its end", "0w1@100 1r1@400 3w1@390 . .", ". ."},
    {"refuted close to its start", "0w1@100 1r1@400 3r1@101 . .", ". ."},
    {"a run that is seen before the one in front of it", "0r1@400 1r1@200 2w1@100 3w1@390 . .",
     ". 1:100-200/1 ."},
    {"starts that are seen in the wrong order", "0w1@390 1w1@100 2r1@200 3r1@400 . .",
     ". 1:100-200/2 ."},
    {"spells that become one", "0w1@100 0r1@200 1b1@145 1w1@160 . .", ". ."},
    {"lost in between", "0w1@100 0r1@200 5L120@130 . .", ". ."},
    {"lost in between, known before", "5L120@130 0w1@100 0r1@200 . .", ". ."},
    {"lost at its start", "0w1@100 0r1@200 5L90@101 . .", ". ."},
    {"lost at its end", "0w1@100 0r1@200 5L199@300 . .", ". ."},
    {"lost before", "0w1@100 0r1@200 5L90@100 . .", ". 1:100-200/0 ."},
    {"lost behind", "0w1@100 0r1@200 5L200@210 . .", ". 1:100-200/0 ."},
    {"lost before, known before", "5L90@100 0w1@100 0r1@200 . .", ". 1:100-200/0 ."},
    {"lost in the next round", "0w1@100 0r1@200 . 5L120@130 .", ". ."},
    {"lost long ago", "5L1@50 . 0w1@100 0r1@200 5L10@20 . .", ". . 1:100-200/0 ."},
};

/* Reads one word; whether it was the end of a round. */
static void play(struct runnable *runnable, const char *word, uint64_t base, char *told,
                 size_t size)
{
    struct runnable_wait waits[RUNNABLE_WAITS_MAX];
    unsigned int cpu, number;
    unsigned long tsc;
    size_t n;
    char op;

    if (sscanf(word, "%u%c%u@%lu", &cpu, &op, &number, &tsc) == 4) {
        if (op == 'L')
            runnable_note_loss(runnable, base + number, base + tsc);
        else
            note(runnable, cpu, states_of(op), DOMID, number, base + tsc);
        return;
    }
    n = runnable_end_round(runnable, word[0] == '.', waits);
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(told);

        CHECK_UINT(waits[i].domid, DOMID);
        (void)snprintf(told + length, size - length, "%u:%" PRIu64 "-%" PRIu64 "/%u ",
                       waits[i].vcpu, waits[i].from_tsc - base, waits[i].to_tsc - base,
                       waits[i].cpu);
    }
    (void)snprintf(told + strlen(told), size - strlen(told), ". ");
}

static void test_waits(uint64_t base)
{
    for (size_t i = 0; i < ARRAY_SIZE(wait_cases); i++) {
        const struct wait_case *c = &wait_cases[i];
        char records[256], told[256] = "";
        struct runnable *runnable;
        char *rest = NULL;

        test_case(c->name);
        CHECK_INT(runnable_new(LATENCY, &runnable), 0);
        (void)snprintf(records, sizeof(records), "%s", c->records);
        for (char *w = strtok_r(records, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
            play(runnable, w, base, told, sizeof(told));
        told[strlen(told) - 1] = '\0';
        CHECK_STR(told, c->told);
        runnable_free(runnable);
    }
}

/* It slept long, and often, before the record comes that says when it first waited. */
static void test_spells(void)
{
    for (uint32_t spells = 1; spells <= 2 * RUNNABLE_SPELLS; spells++) {
        struct runnable_wait waits[RUNNABLE_WAITS_MAX];
        struct runnable *runnable;

        test_case("spells");
        CHECK_INT(runnable_new(LATENCY, &runnable), 0);
        for (uint32_t i = 0; i < spells; i++)
            note(runnable, 0, i % 2 ? 0x020 : 0x100, DOMID, 1, 1000 + i * LATENCY);
        note(runnable, 1, 0x210, DOMID, 1, 1000 - LATENCY);
        CHECK_UINT(runnable_end_round(runnable, true, waits), 0);
        CHECK_UINT(runnable_end_round(runnable, true, waits), spells < RUNNABLE_SPELLS);
        runnable_free(runnable);
    }
}

/* --- What is no wait. --- */

static void test_ignored(void)
{
    const uint32_t no_tsc[2] = {0x10021110, DOMID << 16 | 1};
    const uint32_t no_word[3] = {0x80021110, 160, 0};
    struct runnable_wait waits[RUNNABLE_WAITS_MAX];
    struct runnable *runnable;

    CHECK_INT(runnable_new(LATENCY, &runnable), 0);
    test_case("the idle domain");
    note(runnable, 0, 0x210, DOMID_IDLE, 1, 100);
    note(runnable, 0, 0x100, DOMID_IDLE, 1, 200);
    test_case("short records");
    runnable_note(runnable, 0, (const uint8_t *)no_tsc);
    runnable_note(runnable, 0, (const uint8_t *)no_word);
    test_case("a key that means none");
    note(runnable, 0, 0x210, 0xffff, 0xffff, 100);
    note(runnable, 0, 0x100, 0xffff, 0xffff, 200);
    test_case("forgotten");
    note(runnable, 0, 0x210, 1, 1, 100);
    runnable_reset(runnable);
    note(runnable, 0, 0x100, 1, 1, 200);
    for (int i = 0; i < 3; i++)
        CHECK_UINT(runnable_end_round(runnable, true, waits), 0);
    runnable_free(runnable);

    CHECK(!runnable_is_change(TRC_SCHED_CONTINUE_RUNNING));
    CHECK(!runnable_is_change(TRC_SCHED_MIN));
    CHECK(!runnable_is_change(0x00a21111)); /* another class besides */
    CHECK(!runnable_is_change(0x00021f01)); /* a state has two bits */
    CHECK(!runnable_is_change(0x00021181));
    CHECK_INT(runnable_new(0, &runnable), -EINVAL);
    CHECK(!runnable_free(NULL));
}

/* --- The table. --- */

/* All of COUNT vCPUs wait at once; how many of the waits are told. */
static size_t wait_at_once(struct runnable *runnable, uint32_t count, uint64_t tsc)
{
    struct runnable_wait waits[RUNNABLE_WAITS_MAX];
    size_t told = 0;

    for (uint32_t i = 0; i < count; i++)
        note(runnable, 0, 0x210, 1 + i / 8, i % 8, tsc + i);
    for (uint32_t i = 0; i < count; i++) {
        note(runnable, 0, 0x100, 1 + i / 8, i % 8, tsc + count + LATENCY + i);
        if (i % RUNNABLE_WAITS_MAX == RUNNABLE_WAITS_MAX - 1 || i + 1 == count) {
            told += runnable_end_round(runnable, true, waits);
            told += runnable_end_round(runnable, true, waits);
        }
    }
    return told;
}

static void test_table(void)
{
    struct runnable_wait waits[RUNNABLE_WAITS_MAX];
    struct runnable *runnable;
    size_t told;

    test_case("as many vCPUs as hosts have");
    CHECK_INT(runnable_new(LATENCY, &runnable), 0);
    told = wait_at_once(runnable, 1024, 1000);
    CHECK_UINT(told, 1024);

    test_case("three times as many as there is room for");
    runnable_reset(runnable);
    told = wait_at_once(runnable, 3 * RUNNABLE_VCPUS, 1000000);
    CHECK(told <= RUNNABLE_VCPUS);

    test_case("who is new is remembered, and waits");
    note(runnable, 0, 0x210, 9999, 0, 2000000);
    note(runnable, 0, 0x100, 9999, 0, 2000000 + LATENCY);
    CHECK_UINT(runnable_end_round(runnable, true, waits), 0);
    CHECK_UINT(runnable_end_round(runnable, true, waits), 1);
    CHECK_UINT(waits[0].domid, 9999);

    test_case("more waits at once than are told");
    runnable_reset(runnable);
    for (uint32_t i = 0; i < 2 * RUNNABLE_WAITS_MAX; i++)
        note(runnable, 0, 0x210, 1, i, 1000);
    for (uint32_t i = 0; i < 2 * RUNNABLE_WAITS_MAX; i++)
        note(runnable, 0, 0x100, 1, i, 2000);
    CHECK_UINT(runnable_end_round(runnable, true, waits), 0);
    CHECK_UINT(runnable_end_round(runnable, true, waits), RUNNABLE_WAITS_MAX);
    CHECK_UINT(runnable_end_round(runnable, true, waits), 0);
    runnable_free(runnable);
}

/* --- A host. --- */

#define CPUS       6u
#define VCPUS      20u
#define QUEUE_MAX  4096u
#define TOLD_MAX   65536u
#define HOST_STEPS 200000u

/* At most: some 7 latencies, and what the spells of a vCPU reach back is more. */
#define STEPS_PER_ROUND 64u

struct change {
    uint32_t states;
    uint32_t vcpu;
    uint64_t tsc;
};

/* vCPUs that wander over CPUs, whose buffers are emptied one after the other. */
struct host {
    uint64_t random;
    uint64_t tsc;
    uint32_t state[VCPUS]; /* as in events */
    uint64_t since[VCPUS];
    struct change queue[CPUS][QUEUE_MAX];
    size_t queued[CPUS];
    size_t nr_waits; /* that were long, with a checksum of them */
    uint64_t waits_sum;
    size_t nr_told;
    uint64_t told_sum;
};

static uint64_t sum_of(uint32_t vcpu, uint64_t from, uint64_t to)
{
    uint64_t state = vcpu + from * 31 + to * 1009;

    return test_random(&state);
}

/* Some vCPU changes its state, on some CPU. */
static void host_step(struct host *host)
{
    uint32_t vcpu = (uint32_t)(test_random(&host->random) % VCPUS);
    uint32_t cpu = (uint32_t)(test_random(&host->random) % CPUS);
    uint32_t from = host->state[vcpu], to;

    host->tsc += 1 + test_random(&host->random) % 8;
    if (from == 1 && test_random(&host->random) % 3)
        return; /* goes on waiting */
    if (from == 0)
        to = test_random(&host->random) % 2 ? 1 : 2;
    else
        to = from == 1 ? 0 : 1;
    if (from == 1 && host->tsc - host->since[vcpu] >= LATENCY) {
        host->nr_waits++;
        host->waits_sum += sum_of(vcpu, host->since[vcpu], host->tsc);
    }
    host->state[vcpu] = to;
    host->since[vcpu] = host->tsc;
    host->queue[cpu][host->queued[cpu]++] =
        (struct change){.states = from << 8 | to << 4, .vcpu = vcpu, .tsc = host->tsc};
}

static void host_drain(struct host *host, struct runnable *runnable, uint32_t cpu)
{
    for (size_t i = 0; i < host->queued[cpu]; i++) {
        const struct change *change = &host->queue[cpu][i];

        note(runnable, cpu, change->states, DOMID, change->vcpu, change->tsc);
    }
    host->queued[cpu] = 0;
}

static void host_round(struct host *host, struct runnable *runnable, bool moves)
{
    struct runnable_wait waits[RUNNABLE_WAITS_MAX];
    size_t n;

    for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
        host_drain(host, runnable, cpu);
        for (uint64_t i = test_random(&host->random) % 5; moves && i > 0; i--)
            host_step(host); /* the host does not stand still meanwhile */
    }
    n = runnable_end_round(runnable, true, waits);
    for (size_t i = 0; i < n; i++)
        host->told_sum += sum_of(waits[i].vcpu, waits[i].from_tsc, waits[i].to_tsc);
    host->nr_told += n;
}

/* Every wait that was long, and no other, is told, whatever the order in which records come. */
static void test_host(void)
{
    struct host *host = calloc(1, sizeof(*host));
    struct runnable *runnable;
    uint32_t steps = 0;

    test_case("a host");
    if (!host)
        exit(EXIT_FAILURE);
    host->random = test_seed();
    host->tsc = UINT64_MAX - 100000; /* it wraps on the way */
    for (uint32_t vcpu = 0; vcpu < VCPUS; vcpu++)
        host->state[vcpu] = 2;
    CHECK_INT(runnable_new(LATENCY, &runnable), 0);
    for (uint32_t i = 0; i < HOST_STEPS; i++) {
        host_step(host);
        if (test_random(&host->random) % 20 == 0 || ++steps == STEPS_PER_ROUND) {
            host_round(host, runnable, true);
            steps = 0;
        }
    }
    host_round(host, runnable, false);
    host_round(host, runnable, false);
    CHECK(host->nr_waits > 1000);
    CHECK_UINT(host->nr_told, host->nr_waits);
    CHECK_UINT(host->told_sum, host->waits_sum);
    printf("# %zu of %u changes ended a long wait\n", host->nr_waits, HOST_STEPS);
    runnable_free(runnable);
    free(host);
}

int main(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(bases); i++)
        test_waits(bases[i]);
    test_spells();
    test_ignored();
    test_table();
    test_host();
    return test_end();
}
