/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The wall clock beside the TSC over time: a polyline that the wall clock has followed to within a
 * millisecond, as pairs of both. Between two pairs it is a straight line; a step of the wall clock
 * is two pairs with one TSC. So a record is dated by the wall clock of its own time, whatever that
 * was set to since. Main thread.
 *
 * It knows what it was shown, with clock_history_note(): daemon/base/clock-watch.h does that.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"

/* How many pairs are kept; of more, those go whose absence changes least. */
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

/* Another number whenever there are other pairs; 0 if HISTORY is NULL. */
uint32_t clock_history_version(const struct clock_history *history);

/* The wall clock when a record with that TSC was made; 0 if TSC is 0. */
uint64_t clock_history_realtime_ns(const struct clock_history *history, uint64_t tsc);

/* When a wall clock that was set may have shown a time twice, or not at all. */
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
