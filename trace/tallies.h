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

enum tally_kind {
    TALLY_EXIT,      /* a vCPU's exits by reason; cycles: of those whose time is known */
    TALLY_INTERRUPT, /* interrupts that a CPU handled, by IRQ: TRC_HW_IRQ_HANDLED */
    TALLY_INJECTED,  /* interrupts that a vCPU was given, by vector: TRC_HVM_INJ_VIRQ */
    TALLY_YIELD,     /* a vCPU's yields: TRC_SCHED_YIELD */
};

struct tally {
    uint64_t count; /* 0: the slot is empty */
    uint64_t cycles;
    enum tally_kind kind;
    uint32_t who;  /* a vCPU's key, or a CPU */
    uint32_t what; /* a reason, an IRQ, a vector */
};

struct tallies {
    struct tally *slots; /* [1 << bits] */
    unsigned int bits;
    uint32_t nr;
    uint64_t ignored; /* beyond TALLIES_MAX, or without memory */
};

#define TALLIES_MAX (UINT32_C(1) << 18)

int tallies_init(struct tallies *tallies); /* 0 or -ENOMEM */
void tallies_done(struct tallies *tallies);

/* CYCLES alone (COUNT 0) are added to a tally that there is. */
void tallies_add(struct tallies *tallies, enum tally_kind kind, uint32_t who, uint32_t what,
                 uint64_t count, uint64_t cycles);

/* Calls FN for each of KIND, in no order. */
void tallies_each(const struct tallies *tallies, enum tally_kind kind,
                  void (*fn)(void *context, const struct tally *tally), void *context);
