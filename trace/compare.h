/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What differs between two traces, by domain, and whether it is more than what differs between the
 * halves of one of them: docs/measures.md, "Differences". All numbers are integers that another
 * program can compute, too.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct measures;

#define COMPARE_REASONS_MAX 2048u /* of a domain; the two vendors have a few hundred */

/* The lengths of waits in nanoseconds, ascending. */
struct compare_waits {
    uint64_t *values;
    uint64_t *counts; /* of each value */
    size_t nr_values, max_values;
    uint64_t total; /* how many waits */
};

struct compare_exit {
    uint32_t reason;
    uint64_t count;
    uint64_t rate; /* a thousandth of an exit a second */
};

/* A domain in a trace or in a part of one. */
struct compare_domain {
    uint32_t domid;
    uint64_t running; /* cycles of its vCPUs */
    uint64_t run_ppm; /* of the time; of one CPU */
    struct compare_waits waits;
    struct compare_exit *exits; /* by reason */
    size_t nr_exits, max_exits;
};

/* A trace or a part of one. */
struct compare_side {
    uint64_t span_nsec;
    bool is_svm;
    struct compare_domain *domains; /* by domid */
    size_t nr_domains, max_domains;
    uint64_t span_cycles;
};

/*
 * Of MEASURES, which are not needed afterwards, of SPAN_CYCLES. The idle and the default domain are
 * left out. 0 or -ENOMEM.
 */
int compare_side_new(const struct measures *measures, uint64_t span_cycles, uint64_t tsc_khz,
                     struct compare_side **ret_side);
struct compare_side *compare_side_free(struct compare_side *side);

/* NULL: it is not there. */
const struct compare_domain *compare_find(const struct compare_side *side, uint32_t domid);

/* The length of which PART of WHOLE waits are at most; 0: there are none. */
uint64_t compare_percentile(const struct compare_waits *waits, unsigned int part,
                            unsigned int whole);

/* A quantity in A and in B, and the distances. */
struct compare_value {
    uint64_t a, b;
    bool has_distance, has_noise; /* false: something that it takes is missing */
    uint64_t distance;            /* between A and B */
    uint64_t noise;               /* the larger one of those between halves */
    bool is_larger;               /* the distance is larger than the noise, and than chance */
};

/* A domain of A, of B, or of both, in the trace and in both halves. NULL: it is not there. */
struct compare_pair {
    const struct compare_domain *a[3], *b[3]; /* the trace, its first half, its second half */
};

/* RET_VALUE: in millionths of a CPU. */
void compare_by_run(const struct compare_pair *pair, struct compare_value *ret_value);
/* RET_VALUE: `a` and `b` are numbers of waits, distances in millionths. */
void compare_by_waits(const struct compare_pair *pair, struct compare_value *ret_value);
/* RET_VALUE: in thousandths of an exit a second. */
void compare_by_exits(const struct compare_pair *pair, uint32_t reason,
                      struct compare_value *ret_value);
