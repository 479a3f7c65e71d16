/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The measures of a trace, as docs/measures.md defines them: one pass over its records.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/counts.h"
#include "trace/details.h"
#include "trace/merge.h"
#include "trace/sample.h"
#include "trace/state.h"
#include "trace/subjects.h"
#include "trace/worst.h"

#define MEASURES_DOMAINS (1u << 16)

/*
 * What to compute: of enum details_part, and these. Records, events, losses, runstates and exits
 * by reason are always there.
 */
enum measures_part {
    MEASURES_WAITS = 1 << 16, /* the lengths of each vCPU's waits */
    MEASURES_WORST = 1 << 17, /* the longest waits, and who ran meanwhile */
};

#define MEASURES_REPORT                                                                            \
    (MEASURES_WAITS | MEASURES_WORST | DETAILS_EXITS | DETAILS_INTERRUPTS | DETAILS_YIELDS)
#define MEASURES_ALL (MEASURES_WAITS | MEASURES_WORST | DETAILS_ALL)

struct measures_loss {
    uint32_t cpu;
    uint64_t from_tsc, to_tsc;
    uint64_t count;
};

struct measures_exit {
    uint32_t reason;
    uint64_t count;
    uint64_t timed; /* of which it is known how long they took */
    uint64_t cycles;
    uint64_t most_cycles;
    uint64_t unattributed;
};

struct measures_io {
    uint64_t mmio_read, mmio_write, pio_read, pio_write;
};

/* Of a vCPU; its sums are in struct state_vcpu, of which this is `observed`. */
struct measures_vcpu {
    struct sample waits[STATE_WAITS];
    uint64_t longest_from, longest_cycles; /* its longest wait, of any kind */
};

/* What is shown, of what the trace has: docs/measures.md ("Selections"). */
struct measures_shown {
    struct subjects domains; /* that have a vCPU which is shown */
    struct subjects cpus;
};

/* Everything is to be read only. Times are effective times, in ticks of the TSC. */
struct measures {
    uint64_t first_tsc, last_tsc;
    uint64_t records;     /* of all kinds, those of tracing itself included */
    struct counts events; /* by event */
    struct count *event;  /* that of the record that is being read; NULL: it is ignored */
    struct state state;
    struct state_observer observer;
    struct merge *merge;
    struct worst *worst;          /* NULL: not asked for */
    struct measures_loss *losses; /* as they ended */
    size_t nr_losses, max_losses;
    uint64_t lost;               /* the sum of their counts */
    struct counts reasons;       /* of exits; `index` is that of exits[] */
    struct measures_exit *exits; /* [reasons.nr] */
    size_t max_exits;
    uint64_t incomplete_exits;
    struct measures_io **io; /* [MEASURES_DOMAINS]; NULL: none */
    unsigned int parts;
    struct details details;
    uint64_t *wait_cycles; /* [state.nr_cpus]: of waits that ended with running there */
    unsigned int nr_wait_cycles;
    const struct subjects *subjects; /* what is shown; NULL: all */
    struct measures_shown *shown;    /* follows from it; NULL: all */
    struct sample_budget budget;
    bool is_svm;
    int error;
};

/*
 * Reads all that is left of MERGE, which is borrowed as long as the measures are used, as SUBJECTS
 * is (NULL: all). The longest waits are those of SUBJECTS; all else is computed of everything, and
 * measures_shows_*() say what is to be shown. IS_SVM: it is known that the trace is of AMD's. 0;
 * -ENOMEM, or what reading ended with.
 */
int measures_new_of(struct merge *merge, const struct subjects *subjects, bool is_svm,
                    unsigned int parts, struct measures **ret_measures);
/* The same of all, with MEASURES_REPORT. */
int measures_new(struct merge *merge, bool is_svm, struct measures **ret_measures);
struct measures *measures_free(struct measures *measures);

/* The cycles of the span. */
static inline uint64_t measures_span(const struct measures *measures)
{
    return measures->last_tsc - measures->first_tsc;
}

/*
 * Of a CPU that is not blind when the trace ends: for how long the vCPU that runs there has, which
 * is in no number; *RET_IDLE: it is an idle one. 0: none is known to run.
 */
static inline uint64_t measures_open_cycles(const struct measures *measures, uint32_t stream,
                                            bool *ret_idle)
{
    const struct state_vcpu *running = measures->state.cpus[stream].running;

    *ret_idle = running && running->key >> 16 == STATE_DOMAIN_IDLE;
    return running && !measures->state.cpus[stream].is_blind ? measures->last_tsc - running->since
                                                             : 0;
}

/* --- What is shown. --- */

bool measures_shows_vcpu(const struct measures *measures, const struct state_vcpu *vcpu);
/* A domain, by the vCPUs of it that are shown; a CPU by its number. */
bool measures_shows_domain(const struct measures *measures, uint32_t domid);
bool measures_shows_cpu(const struct measures *measures, uint32_t cpu);
/* By its subject. */
bool measures_shows_tally(const struct measures *measures, const struct tally *tally);
/* As tallies_sorted(), those that are shown. */
struct tally *measures_tallies(const struct measures *measures, enum tally_kind kind,
                               size_t *ret_count);
/* The running cycles of the domain's vCPUs that are shown. */
uint64_t measures_running_cycles(const struct measures *measures, uint32_t domid);

/* NULL: it never waited. */
static inline struct measures_vcpu *measures_of(const struct state_vcpu *vcpu)
{
    return vcpu->observed;
}
