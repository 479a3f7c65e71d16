/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Counts of events by subject: exits of a vCPU by reason, interrupts of a CPU by number. The key of
 * a tally is its kind, subject and number. Open addressing.
 *
 * One thread.
 */

#include <stddef.h>
#include <stdint.h>

/* Of a kind: who, what. docs/measures.md defines what is counted, and the cycles. */
enum tally_kind {
    TALLY_EXIT,      /* a vCPU's exits, by reason */
    TALLY_INTERRUPT, /* interrupts that a CPU handled, by IRQ */
    TALLY_INJECTED,  /* interrupts that a vCPU was given, by vector */
    TALLY_EXTERNAL,  /* interrupts during which a vCPU ran, by vector */
    TALLY_YIELD,     /* a vCPU's yields */
    TALLY_PIO_READ,  /* a domain's accesses, by port or address */
    TALLY_PIO_WRITE,
    TALLY_MMIO_READ,
    TALLY_MMIO_WRITE,
    TALLY_HYPERCALL, /* a PV vCPU's, by number */
    TALLY_SUBCALL,   /* hypercalls inside of a multicall, by number */
    TALLY_PV,        /* a PV vCPU's entries to Xen, by event */
    TALLY_SCHED,     /* what the scheduler did with a vCPU, by event */
    TALLY_MIGRATION, /* a vCPU's, by CPUs: from << 32 | to */
    TALLY_PREEMPTED, /* a vCPU's preemptions, by who ran instead */
    TALLY_MEMORY,    /* of a domain's memory, by event << 32 | the domain that did it */
    TALLY_C_STATE,   /* a CPU's times in an idle state */
    TALLY_FREQUENCY, /* a CPU's times at a frequency, by MHz */
    TALLY_KINDS,
};

#define TALLY_NOBODY UINT32_MAX /* it is not known who; no vCPU has this key */

struct tally {
    uint64_t count; /* 0: the slot is empty */
    uint64_t timed; /* of which it is known how long they took */
    uint64_t cycles;
    uint64_t most; /* of the cycles that were added at once */
    uint64_t what;
    uint32_t who;
    enum tally_kind kind;
};

struct tallies {
    struct tally *slots; /* [1 << bits] */
    unsigned int bits;
    uint32_t nr;
    uint64_t ignored; /* beyond TALLIES_MAX, or without memory */
};

#define TALLIES_MAX (UINT32_C(1) << 17) /* 12 MiB */

int tallies_init(struct tallies *tallies); /* 0 or -ENOMEM */
void tallies_done(struct tallies *tallies);

/*
 * Adds COUNT, which took CYCLES (0: unknown). Without a count, CYCLES are those of one that was
 * added before.
 */
void tallies_add(struct tallies *tallies, enum tally_kind kind, uint32_t who, uint64_t what,
                 uint64_t count, uint64_t cycles);

/* Calls FN for each of KIND, in no order. */
void tallies_each(const struct tallies *tallies, enum tally_kind kind,
                  void (*fn)(void *context, const struct tally *tally), void *context);

/* All of KIND, by who and what, *RET_COUNT of them; free it. NULL: out of memory. */
struct tally *tallies_sorted(const struct tallies *tallies, enum tally_kind kind,
                             size_t *ret_count);
