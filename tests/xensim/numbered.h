/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The records of the workload `numbered`, for their maker and for `xensim verify`.
 *
 * A record has a TSC and 3 or 4 extra words, 24 or 28 bytes:
 *
 *   word 0   number, bits 0-31
 *   word 1   number, bits 32-47, and the CPU in bits 16-31
 *   word 2   number among the CPU's records of the same event
 *   word 3   (only if bit 0 of the event is 0) check: the three words before, XORed
 *
 * Every attempted record that passes Xen's masks takes the next number of its CPU and of its event,
 * whether it fits or is lost. So a gap is exactly a loss, with or without a mask.
 */

#include "sim.h"
#include "tbuf.h"

#define NUMBERED_EXTRA_MAX 4

struct numbered_record {
    uint64_t number;
    uint32_t cpu;
    uint32_t kind_number;
};

/* Xen's events that are used unless others are given: all classes but guest, all subclasses. */
extern const uint32_t numbered_default_kinds[];
extern const uint32_t numbered_default_kinds_count;

static inline uint32_t numbered_extra_words(uint32_t event)
{
    return event & 1 ? 3 : 4;
}

/* Makes CPU's next record; the caller holds the CPU's lock. Adds its size to *BYTES. */
enum tbuf_result numbered_insert(struct sim *sim, unsigned int cpu, uint64_t *bytes);

/* The same for as many as fit into one run (tbuf_begin_run()), until *BYTES is TARGET or more. */
void numbered_insert_run(struct sim *sim, unsigned int cpu, uint64_t target, uint64_t *bytes);

/* Takes the record at P apart: 0, or -EBADMSG if it is none of ours. */
int numbered_parse(const uint32_t *p, struct numbered_record *ret_record);
