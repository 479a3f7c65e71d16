/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which time a snapshot is asked to cover: the newest part, or from one moment to another, each by
 * the wall clock of its own time or as a length of time before the request. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/failure.h"

struct clock_history;

/* As asked for; 0: not said. */
struct snapshot_span {
    uint64_t last_usec;      /* from that long before the request, */
    uint64_t since_ns;       /* or from that moment (CLOCK_REALTIME); else from the beginning */
    uint64_t until_ns;       /* to that moment, */
    uint64_t until_ago_usec; /* or to that long before the request; else to the request */
};

/* The same by the clock of the records. */
struct snapshot_ticks {
    uint64_t since_tsc; /* 0: from the beginning */
    uint64_t end_tsc;   /* the request, or earlier: */
    bool has_until;
    uint64_t asked_usec; /* from one to the other; 0: all there is */
};

/* 0; -EINVAL and FAILURE if it contradicts itself. */
int snapshot_span_check(const struct snapshot_span *span, struct failure *failure);

/* By what CLOCK knows; it may be NULL if SPAN has no moments. KHZ is the frequency of the TSC. */
struct snapshot_ticks snapshot_span_read(const struct snapshot_span *span,
                                         const struct clock_history *clock, uint32_t khz,
                                         uint64_t requested_tsc);
