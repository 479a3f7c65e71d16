/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What CPUs do that is no runstate, as intervals: idle states, frequencies, interrupts
 * (docs/measures.md, "Other events").
 *
 * Source: TRC_PM_* and TRC_HW_IRQ_HANDLED in <xen/trace.h>.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "trace/merge.h"

enum hardware_kind {
    HARDWARE_IDLE,      /* in an idle state, whose number is the value */
    HARDWARE_FREQUENCY, /* in MHz */
    HARDWARE_INTERRUPT, /* handled by Xen: the IRQ */
};

struct hardware_interval {
    enum hardware_kind kind;
    uint32_t stream, cpu;
    uint32_t value;
    uint64_t from, to;
    uint64_t cycles;    /* as the records have it: `to` less `from`, but of senseless ones */
    bool is_incomplete; /* one of its ends is unknown */
    bool ends_in_loss;
};

typedef void (*hardware_fn)(void *context, const struct hardware_interval *interval);

/* Of a CPU: what it is doing. */
struct hardware_cpu {
    bool is_idle;
    uint32_t c_state;
    uint64_t idle_since;
    uint32_t mhz; /* 0: unknown */
    uint64_t mhz_since;
};

struct hardware {
    hardware_fn fn;
    void *context;
    struct hardware_cpu *cpus; /* [nr_cpus], by number of the stream */
    unsigned int nr_cpus;
};

/* FN is called for each interval, when it ends. What it is given is valid during the call. */
void hardware_init(struct hardware *hardware, hardware_fn fn, void *context);
void hardware_done(struct hardware *hardware);

/* There are NR CPUs now; to be called before the first record of a new one. 0 or -ENOMEM. */
int hardware_grow(struct hardware *hardware, unsigned int nr);

/* A loss begins (MERGE_BLIND). */
void hardware_begin_blind(struct hardware *hardware, const struct merge_record *record);

/* A record of the class hw; others are ignored. */
void hardware_record(struct hardware *hardware, const struct merge_record *record, uint32_t event);
