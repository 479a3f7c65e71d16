/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Writes a part of a trace as a trace of its own (docs/file-format.md, "Parts"): the records of the
 * part, in rounds that are in the order of time. Each keeps its effective time, so that the
 * measures of the new trace are those of the part.
 *
 * One thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "trace/merge.h"

/* A loss in the part. */
struct cut_gap {
    uint32_t cpu;
    uint32_t count;
    uint64_t from_tsc, to_tsc;
};

#define CUT_GAPS_MAX 1000u

struct cut_result {
    uint64_t records; /* without lost_records */
    uint64_t lost;    /* the sum of their counts */
    uint64_t bytes;
    uint64_t first_tsc, last_tsc;      /* of the records; 0: there are none */
    uint64_t left_out;                 /* records that no reader would accept: cpu_change, zeroes */
    uint64_t nr_gaps;                  /* of which gaps[] has the first CUT_GAPS_MAX */
    struct cut_gap gaps[CUT_GAPS_MAX]; /* as they ended */
};

/*
 * Writes what MERGE has left, from PART.from on and before PART.until, to FD. MERGE may have that
 * part, or more. Returns 0; -ENOMEM; of write(2), or what reading ended with (merge->error).
 * *RET_RESULT is written in any case.
 */
int cut_write(struct merge *merge, struct merge_part part, int fd, struct cut_result *ret_result);
