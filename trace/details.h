/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The measures that are no runstates, by subject: exits, interrupts, accesses, hypercalls, idle
 * states, decisions of the scheduler. Only the parts that somebody wants are computed.
 *
 * Source: TRC_* in <xen/trace.h>; docs/measures.md.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "trace/hardware.h"
#include "trace/merge.h"
#include "trace/state.h"
#include "trace/tallies.h"

enum details_part {
    DETAILS_EXITS = 1 << 0,       /* TALLY_EXIT */
    DETAILS_ACCESSES = 1 << 1,    /* TALLY_PIO_*, TALLY_MMIO_* */
    DETAILS_INTERRUPTS = 1 << 2,  /* TALLY_INTERRUPT, _INJECTED, _EXTERNAL */
    DETAILS_YIELDS = 1 << 3,      /* TALLY_YIELD */
    DETAILS_PV = 1 << 4,          /* TALLY_HYPERCALL, _SUBCALL, _PV */
    DETAILS_SCHEDULER = 1 << 5,   /* TALLY_SCHED */
    DETAILS_MIGRATIONS = 1 << 6,  /* TALLY_MIGRATION */
    DETAILS_PREEMPTIONS = 1 << 7, /* TALLY_PREEMPTED */
    DETAILS_MEMORY = 1 << 8,      /* TALLY_MEMORY */
    DETAILS_POWER = 1 << 9,       /* TALLY_C_STATE, _FREQUENCY */
};

#define DETAILS_ALL ((1u << 10) - 1)

/* Of a CPU. */
struct details_cpu {
    uint64_t incomplete; /* times in an idle state whose end is missing */
    uint32_t preempted;  /* the vCPU that was preempted last, by number, plus 1; 0: somebody has
                          * run since */
};

/* Of a vCPU. */
struct details_vcpu {
    bool is_preempted;
    uint32_t preempted_on; /* the stream of that CPU */
    uint32_t preempted_by; /* TALLY_NOBODY: not known (yet) */
    bool has_accessed;     /* since it left its guest: */
    enum tally_kind access;
    uint64_t address;
};

/* To be read only. */
struct details {
    unsigned int parts;
    uint32_t classes; /* of events that matter: bits 16 to 27 of an event, from bit 0 on */
    const struct merge *merge;
    const struct state *state;
    struct tallies tallies;
    struct hardware hardware;
    struct details_cpu *cpus; /* [nr_cpus], by number of the stream */
    unsigned int nr_cpus;
    struct details_vcpu *vcpus; /* [nr_vcpus], by number of the vCPU */
    unsigned int nr_vcpus;
    int error; /* -ENOMEM: what follows is not complete */
};

/* PARTS: of enum details_part. MERGE and STATE are borrowed; DETAILS must not move. 0 or -ENOMEM.
 */
int details_init(struct details *details, unsigned int parts, const struct merge *merge,
                 const struct state *state);
void details_done(struct details *details);

/* There are NR CPUs now. 0 or -ENOMEM. */
int details_grow(struct details *details, unsigned int nr);

/* What the state reports. */
void details_note_exit(struct details *details, const struct state_vcpu *vcpu, uint32_t reason,
                       bool timed, uint64_t cycles);
void details_note_wait(struct details *details, const struct state_wait_end *wait);
void details_note_move(struct details *details, const struct state_vcpu *vcpu, uint32_t from,
                       uint32_t to);

/* A loss begins (MERGE_BLIND). */
void details_begin_blind(struct details *details, const struct merge_record *record);

/* --- Private. --- */

void details_record_slow(struct details *details, const struct merge_record *record,
                         uint32_t event);
void details_note_yield(struct details *details, const struct merge_record *record);

/* --- */

/* Whether records of EVENT are in any of the parts. */
bool details_want(const struct details *details, uint32_t event);

/* To be called for each record for which details_want(), after state_record(). */
static inline void details_record(struct details *details, const struct merge_record *record,
                                  uint32_t event)
{
    /* Most of the class hvm are entries and exits, which the state reports. */
    if ((event >> 16 & details->classes) != 0 && (event & 0xffff000u) != TRC_HVM_ENTRYEXIT)
        details_record_slow(details, record, event);
    if (__builtin_expect(event == TRC_SCHED_YIELD, 0))
        details_note_yield(details, record);
}
