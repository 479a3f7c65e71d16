/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who runs on each CPU, and the runstate of each vCPU, by the definitions of docs/measures.md:
 * intervals, waits, losses, exits. The counts of each vCPU are kept here; the intervals are passed
 * to observers.
 *
 * Source: trace_runstate_change() in Xen's common/sched/core.c, TRC_SCHED_*, TRC_HVM_* in
 * <xen/trace.h>.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/record.h"
#include "trace/merge.h"

enum state_runstate {
    STATE_RUNNING, /* as RUNSTATE_* in <xen/vcpu.h> */
    STATE_RUNNABLE,
    STATE_BLOCKED,
    STATE_OFFLINE,
    STATE_UNKNOWN,
};
#define STATE_RUNSTATES 4u

enum state_wait {
    STATE_WAKE,    /* it was blocked */
    STATE_PREEMPT, /* it ran */
    STATE_OTHER,
};
#define STATE_WAITS 3u

/* "running", "runnable", "blocked", "offline", "unknown". Static, as documents have it. */
const char *state_runstate_name(enum state_runstate runstate);
/* "wake", "preempt", "other". Static. */
const char *state_wait_name(enum state_wait wait);

#define STATE_DOMAIN_IDLE    32767u
#define STATE_DOMAIN_DEFAULT 32768u

struct state_on_cpu {
    uint32_t stream;
    uint64_t cycles;
};

/* A vCPU. What is below `totals` is for whoever reads the sums. */
struct state_vcpu {
    uint32_t key; /* domain << 16 | vCPU */
    uint32_t number;
    enum state_runstate runstate;
    enum state_wait wait;  /* while it is runnable: what it did before */
    uint64_t since;        /* of the open interval, if the runstate is known */
    uint32_t changer;      /* the stream whose CPU logged its beginning */
    uint32_t stream;       /* of the CPU on which it is running */
    uint32_t shown_stream; /* where it was last shown running, plus 1; 0: nowhere yet */

    bool has_left; /* an exit is not over: */
    uint32_t exit_reason;
    uint32_t exit_stream; /* of the CPU on which it left */
    uint64_t exit_since;
    uint64_t exit_run_cycles;  /* what it has run in the intervals that were closed since */
    uint64_t exit_lead_cycles; /* what it had run by then in the first of them */

    /* Totals. */
    uint64_t cycles[STATE_RUNSTATES];
    uint64_t intervals[STATE_RUNSTATES];
    uint64_t switches_in;
    uint64_t migrations;
    struct state_on_cpu *on_cpus; /* where it ran: by number of the stream */
    unsigned int nr_on_cpus, max_on_cpus, last_on_cpu;
    void *observed; /* the observer's */
};

/* A counted interval. */
struct state_interval {
    struct state_vcpu *vcpu;
    enum state_runstate runstate;
    enum state_wait wait; /* if it was runnable */
    uint32_t stream;      /* if it ran: where */
    uint32_t changer;     /* the stream of the CPU that logged its beginning: who woke the vCPU */
    uint64_t from, to;
    enum state_runstate next; /* what the vCPU did then; unknown: it ends in a loss */
    bool ends_in_loss;
};

/* A wait: a counted runnable interval after which the vCPU ran, on a CPU. Not of idle vCPUs. */
struct state_wait_end {
    struct state_vcpu *vcpu;
    enum state_wait wait;
    uint32_t stream;
    uint64_t from, to;
};

/* Of any may be NULL. What they are given is valid during the call. */
struct state_observer {
    void *context;
    void (*interval)(void *context, const struct state_interval *interval);
    void (*wait)(void *context, const struct state_wait_end *wait);
    /* TIMED: it took CYCLES of running time; otherwise how long is not known. */
    void (*exit)(void *context, struct state_vcpu *vcpu, uint32_t reason, bool timed,
                 uint64_t cycles);
    /* VCPU is shown running on another CPU than the time before. */
    void (*moved)(void *context, struct state_vcpu *vcpu, uint32_t from_stream, uint32_t to_stream);
    /* A VMEXIT; VCPU is NULL if nobody is known to run there. */
    void (*left)(void *context, struct state_vcpu *vcpu, uint32_t reason);
};

/* What a CPU of the trace does. */
struct state_cpu {
    struct state_vcpu *running; /* known to run there; NULL */
    bool is_blind;
    uint64_t busy_cycles;
    uint64_t idle_cycles;
};

struct state {
    const struct state_observer *observer;
    struct state_cpu *cpus; /* [nr_cpus], by number of the stream */
    unsigned int nr_cpus;
    unsigned int nr_blind;
    struct state_vcpu **vcpus; /* [nr_vcpus], as they came */
    unsigned int nr_vcpus, max_vcpus;
    struct state_vcpu **table; /* by key: open addressing */
    unsigned int table_bits;
    uint64_t mismatches;
    uint64_t ignored; /* records of vCPUs beyond STATE_VCPUS_MAX */
    int error;        /* -ENOMEM: what follows is not complete */
};

#define STATE_VCPUS_MAX 65536u /* more are no host's */

/* OBSERVER is borrowed. 0 or -ENOMEM. */
int state_init(struct state *state, const struct state_observer *observer);
void state_done(struct state *state);

/* There are NR CPUs now; to be called before the first record of a new one. */
int state_grow(struct state *state, unsigned int nr);

/* A loss begins (MERGE_BLIND). */
void state_begin_blind(struct state *state, const struct merge_record *record);
/* The trace is over: exits that are not are reported. */
void state_end(struct state *state);

/* NULL: it has had no record. */
struct state_vcpu *state_find(const struct state *state, uint32_t key);

/* --- Records that matter. --- */

void state_sched(struct state *state, const struct merge_record *record, uint32_t event);
void state_hvm(struct state *state, const struct merge_record *record, uint32_t event);
void state_end_blind(struct state *state, const struct merge_record *record);

static inline bool state_is_runstate(uint32_t event)
{
    return (event & ~UINT32_C(0x330)) == 0x21001;
}

static inline bool state_is_exit(uint32_t event)
{
    uint32_t code = event & ~UINT32_C(0x500);

    return code == 0x81002 || code == 0x81003;
}

static inline bool state_is_entry(uint32_t event)
{
    return (event & ~UINT32_C(0x400)) == 0x81001;
}

/* Whether records of EVENT change anything. */
static inline bool state_wants(uint32_t event)
{
    return event == TRC_SCHED_CONTINUE_RUNNING || event == TRC_LOST_RECORDS ||
           state_is_runstate(event) || state_is_exit(event) || state_is_entry(event);
}

/* To be called for each record in the order of time, for which state_wants(). */
static inline void state_record(struct state *state, const struct merge_record *record)
{
    uint32_t event = record_event(record->header);
    uint32_t kind = event & 0xffff000u;

    if (kind == 0x21000u)
        state_sched(state, record, event);
    else if (kind == 0x81000u)
        state_hvm(state, record, event);
    else if (__builtin_expect(event == TRC_LOST_RECORDS, 0))
        state_end_blind(state, record);
}
