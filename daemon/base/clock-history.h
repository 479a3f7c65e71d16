/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Maps the TSC to the wall clock over time, as pairs of both. Between two pairs, the wall clock
 * follows a straight line to within a millisecond; a step of the wall clock is two pairs with the
 * same TSC. The time of a record is thus that of the wall clock when it was produced, even if the
 * clock was set later. Main thread.
 *
 * Pairs are added with clock_history_note(), by daemon/base/clock-watch.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"

/* The number of pairs kept; beyond that, the pairs whose removal changes least are dropped. */
#define CLOCK_PAIRS_MAX 128u

struct clock_history;

/* Begins with NOW; the TSC counts at KHZ, or nearly. -ENOMEM. */
int clock_history_new(uint32_t khz, struct clock_pair now, struct clock_history **ret_history);
/* Takes NULL; returns NULL. */
struct clock_history *clock_history_free(struct clock_history *history);

/*
 * The clocks as of NOW. IS_STEPPED: the wall clock may just have been set; otherwise a difference
 * to what was expected is a step only if it is larger than adjusting the clock can make it. A TSC
 * that went back (the host was suspended) begins a new history.
 */
void clock_history_note(struct clock_history *history, struct clock_pair now, bool is_stepped);

/* A pair that an earlier daemon has read: older than any other, or it is passed over. */
void clock_history_adopt(struct clock_history *history, struct clock_pair earlier);

/* Forgets what is not needed to date records from OLDEST_TSC (of xen_read_tsc()) on. */
void clock_history_forget(struct clock_history *history, uint64_t oldest_tsc);

/* A number that changes whenever the pairs change; 0 if HISTORY is NULL. */
uint32_t clock_history_version(const struct clock_history *history);

/* The wall clock when a record with that TSC was made; 0 if TSC is 0. */
uint64_t clock_history_realtime_ns(const struct clock_history *history, uint64_t tsc);

/* Which time to choose if the wall clock was set, and showed a time twice or not at all. */
enum clock_choice {
    CLOCK_FIRST, /* from then on it showed that time, or a later one */
    CLOCK_LAST,  /* until then it showed that time, or an earlier one */
};

/*
 * The TSC of a record that was made when the wall clock showed REALTIME_NS, by CHOICE; the moment
 * of the step, if it never did. 1 if that was before the TSC began to count, INT64_MAX if it is too
 * far ahead.
 */
uint64_t clock_history_tsc(const struct clock_history *history, uint64_t realtime_ns,
                           enum clock_choice choice);

/*
 * Writes the pairs by which a reader dates records from FROM_TSC to TO_TSC to PAIRS, which has room
 * for CLOCK_PAIRS_MAX, and returns how many: those in between, the one before and the one after.
 * Both are TSCs of records; TO_TSC 0: to the end.
 */
size_t clock_history_read(const struct clock_history *history, uint64_t from_tsc, uint64_t to_tsc,
                          struct clock_pair *pairs);
