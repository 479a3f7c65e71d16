// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The nominal frequency of the TSC is off by some parts in a million, and NTP adjusts the wall
 * clock: but by nearly the same all the time. So a line is continued for as long as one slope is
 * right for all readings since its first pair, to within the tolerance; the readings narrow down
 * which slopes are. When no slope is left, the line ends at the last reading, and the next begins.
 */

#include "daemon/base/clock-history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define TOLERANCE_NS 1e6
#define SKEW_MAX_NS  1e9  /* of two CPUs' TSCs: a suspend takes longer */
#define NSEC_MAX     9e18 /* fits into 64 bits */
#define TICKS_MAX    4e18 /* added to a TSC, it fits, too */
/* By how much a wall clock can differ from the TSC that is not stepped: the kernel adjusts by up to
 * 500 ppm, adjtime(3) by as much, and the nominal frequency may be wrong by 1000 ppm. */
#define DRIFT_MAX 2e-3
/* A slope is measured over this long at least, so that a reading that took 0.1 ms is no matter. */
#define SLOPE_MIN_SEC 10u

struct clock_history {
    double nominal; /* nanoseconds a tick */
    uint64_t slope_min_ticks;
    struct clock_pair pairs[CLOCK_PAIRS_MAX]; /* TSCs ascend, or are equal at a step */
    size_t count;                             /* 1 at least */
    uint32_t version;                         /* how many were ever added */
    struct clock_pair seen;                   /* the last reading: pairs[count - 1], or later */
    double min_slope, max_slope; /* of a line from the last pair that all later readings allow */
    double slope;                /* as last measured */
};

int clock_history_new(uint32_t khz, struct clock_pair now, struct clock_history **ret_history)
{
    struct clock_history *history = calloc(1, sizeof(*history));

    if (!history)
        return -ENOMEM;
    history->nominal = 1e6 / (khz ? khz : 1);
    history->slope = history->nominal;
    history->slope_min_ticks = (uint64_t)khz * 1000 * SLOPE_MIN_SEC;
    history->pairs[0] = now;
    history->count = 1;
    history->version = 1;
    history->seen = now;
    history->min_slope = 0;
    history->max_slope = (double)INT64_MAX;
    *ret_history = history;
    return 0;
}

struct clock_history *clock_history_free(struct clock_history *history)
{
    free(history);
    return NULL;
}

/* Differences are exact in a double for 100 days, and good to a microsecond for years. */
static double ticks_between(struct clock_pair from, struct clock_pair to)
{
    return (double)(int64_t)(to.tsc - from.tsc);
}

static double nsec_between(struct clock_pair from, struct clock_pair to)
{
    return (double)(int64_t)(to.realtime_ns - from.realtime_ns);
}

/* The wall clock at TSC, on a line through PAIR. */
static uint64_t continue_line(struct clock_pair pair, double slope, uint64_t tsc)
{
    double nsec = slope * (double)(int64_t)(tsc - pair.tsc);

    if (nsec < -NSEC_MAX || nsec > NSEC_MAX)
        return 0; /* that is no TSC */
    return pair.realtime_ns + (uint64_t)(int64_t)(nsec < 0 ? nsec - 0.5 : nsec + 0.5);
}

/* The wall clock at TSC, on the line from one pair to the next. */
static uint64_t interpolate(struct clock_pair from, struct clock_pair to, uint64_t tsc)
{
    double ticks = ticks_between(from, to);

    return continue_line(from, ticks > 0 ? nsec_between(from, to) / ticks : 0, tsc);
}

/* --- Adding. --- */

/* By how much the dates next to a pair would change if it was left out. */
static double thinning_error(const struct clock_history *history, size_t i)
{
    struct clock_pair pair = history->pairs[i];
    uint64_t without = interpolate(history->pairs[i - 1], history->pairs[i + 1], pair.tsc);
    double error = (double)(int64_t)(pair.realtime_ns - without);

    return error < 0 ? -error : error;
}

static void history_remove(struct clock_history *history, size_t i, size_t count)
{
    history->count -= count;
    memmove(&history->pairs[i], &history->pairs[i + count],
            (history->count - i) * sizeof(*history->pairs));
}

static void history_thin(struct clock_history *history)
{
    size_t best = 1;

    for (size_t i = 2; i + 1 < history->count; i++)
        if (thinning_error(history, i) < thinning_error(history, best))
            best = i;
    history_remove(history, best, 1);
}

static void history_add(struct clock_history *history, struct clock_pair pair)
{
    if (history->count == CLOCK_PAIRS_MAX)
        history_thin(history);
    history->pairs[history->count++] = pair;
    history->version++;
    history->min_slope = 0;
    history->max_slope = (double)INT64_MAX;
}

static struct clock_pair history_last(const struct clock_history *history)
{
    return history->pairs[history->count - 1];
}

/* Continues the line to PAIR, or ends it at the last reading and begins the next one there. */
static void history_extend(struct clock_history *history, struct clock_pair pair)
{
    struct clock_pair last = history_last(history);
    double ticks = ticks_between(last, pair);
    double slope = nsec_between(last, pair) / ticks;

    if (slope < history->min_slope || slope > history->max_slope) {
        history_add(history, history->seen);
        last = history->seen;
        ticks = ticks_between(last, pair);
        slope = nsec_between(last, pair) / ticks;
    }
    if (slope - TOLERANCE_NS / ticks > history->min_slope)
        history->min_slope = slope - TOLERANCE_NS / ticks;
    if (slope + TOLERANCE_NS / ticks < history->max_slope)
        history->max_slope = slope + TOLERANCE_NS / ticks;
    history->seen = pair;
    if (pair.tsc - last.tsc >= history->slope_min_ticks)
        history->slope = slope;
}

void clock_history_note(struct clock_history *history, struct clock_pair now, bool is_stepped)
{
    double ticks = ticks_between(history->seen, now);
    double limit_ns = TOLERANCE_NS + (is_stepped ? 0 : DRIFT_MAX * history->nominal * ticks);
    struct clock_pair expected = {.tsc = now.tsc};
    double off_ns;

    if (ticks <= 0 && -ticks * history->nominal < SKEW_MAX_NS)
        return;
    if (ticks < 0) {
        history->count = 0;
        history_add(history, now);
        history->seen = now;
        return;
    }
    expected.realtime_ns = continue_line(history->seen, history->slope, now.tsc);
    off_ns = nsec_between(expected, now);
    if (off_ns >= -limit_ns && off_ns <= limit_ns) {
        history_extend(history, now);
        return;
    }
    history_extend(history, expected);
    history_add(history, expected);
    history_add(history, now);
    history->seen = now;
}

void clock_history_adopt(struct clock_history *history, struct clock_pair earlier)
{
    struct clock_pair first = history->pairs[0];
    struct clock_pair expected = {
        .realtime_ns = continue_line(first, history->nominal, earlier.tsc),
        .tsc = earlier.tsc,
    };
    double off_ns = nsec_between(expected, earlier);
    double limit_ns = TOLERANCE_NS + DRIFT_MAX * history->nominal * ticks_between(earlier, first);
    bool was_stepped = off_ns < -limit_ns || off_ns > limit_ns;

    if (earlier.tsc >= first.tsc || history->count + 2 > CLOCK_PAIRS_MAX)
        return;
    /* Nobody knows when it was stepped. What is still recorded is rather newer than older. */
    if (was_stepped) {
        memmove(&history->pairs[1], history->pairs, history->count++ * sizeof(*history->pairs));
        history->pairs[0] = expected;
    }
    memmove(&history->pairs[1], history->pairs, history->count++ * sizeof(*history->pairs));
    history->pairs[0] = earlier;
}

void clock_history_forget(struct clock_history *history, uint64_t oldest_tsc)
{
    size_t count = 0;

    while (count + 1 < history->count && history->pairs[count + 1].tsc <= oldest_tsc)
        count++;
    history_remove(history, 0, count);
}

/* --- Reading. --- */

uint32_t clock_history_version(const struct clock_history *history)
{
    return history ? history->version : 0;
}

/*
 * The index of the last pair that is not after TSC; 0 if all are. Our TSC of a record from before
 * dom0 was there is negative.
 */
static size_t history_find(const struct clock_history *history, uint64_t tsc)
{
    size_t i = history->count - 1;

    while (i > 0 && (int64_t)(history->pairs[i].tsc - tsc) > 0)
        i--;
    return i;
}

uint64_t clock_history_realtime_ns(const struct clock_history *history, uint64_t tsc)
{
    uint64_t own_tsc = tsc - tsc_offset();
    size_t i = history_find(history, own_tsc);

    if (tsc == 0)
        return 0;
    if ((int64_t)(own_tsc - history->pairs[i].tsc) < 0)
        return continue_line(history->pairs[i], history->nominal, own_tsc);
    if (i + 1 < history->count)
        return interpolate(history->pairs[i], history->pairs[i + 1], own_tsc);
    return continue_line(history->seen, history->slope, own_tsc);
}

/* The TSC, on a line through PAIR, at which the wall clock shows REALTIME_NS. */
static uint64_t continue_back(struct clock_pair pair, double slope, uint64_t realtime_ns)
{
    double ticks = nsec_between(pair, (struct clock_pair){.realtime_ns = realtime_ns}) / slope;
    int64_t tsc;

    if (ticks > TICKS_MAX)
        return INT64_MAX;
    if (ticks < -TICKS_MAX)
        return 1;
    tsc = (int64_t)(pair.tsc + tsc_offset()) + (int64_t)ticks;
    return tsc > 0 ? (uint64_t)tsc : 1;
}

/* Likewise, on the line from one pair to the next; REALTIME_NS is between them. */
static uint64_t interpolate_back(struct clock_pair from, struct clock_pair to, uint64_t realtime_ns)
{
    double nsec = nsec_between(from, to), ticks = ticks_between(from, to);

    if (nsec <= 0 || ticks <= 0) /* a step */
        return to.tsc + tsc_offset();
    return continue_back(from, nsec / ticks, realtime_ns);
}

static uint64_t history_first_tsc(const struct clock_history *history, uint64_t realtime_ns)
{
    const struct clock_pair *pairs = history->pairs;

    if (pairs[0].realtime_ns >= realtime_ns)
        return continue_back(pairs[0], history->nominal, realtime_ns);
    for (size_t i = 1; i < history->count; i++)
        if (pairs[i].realtime_ns >= realtime_ns)
            return interpolate_back(pairs[i - 1], pairs[i], realtime_ns);
    return continue_back(history->seen, history->slope, realtime_ns);
}

static uint64_t history_last_tsc(const struct clock_history *history, uint64_t realtime_ns)
{
    const struct clock_pair *pairs = history->pairs;

    if (history_last(history).realtime_ns <= realtime_ns)
        return continue_back(history->seen, history->slope, realtime_ns);
    for (size_t i = history->count - 1; i > 0; i--)
        if (pairs[i - 1].realtime_ns <= realtime_ns)
            return interpolate_back(pairs[i - 1], pairs[i], realtime_ns);
    return continue_back(pairs[0], history->nominal, realtime_ns);
}

uint64_t clock_history_tsc(const struct clock_history *history, uint64_t realtime_ns,
                           enum clock_choice choice)
{
    return choice == CLOCK_FIRST ? history_first_tsc(history, realtime_ns)
                                 : history_last_tsc(history, realtime_ns);
}

size_t clock_history_read(const struct clock_history *history, uint64_t from_tsc, uint64_t to_tsc,
                          struct clock_pair *pairs)
{
    size_t from = history_find(history, from_tsc - tsc_offset());
    size_t to = to_tsc ? history_find(history, to_tsc - tsc_offset()) : history->count - 1;
    size_t count;

    if (from > to) /* nothing says that the first record is the older one */
        from = to;
    if (to + 1 < history->count)
        to++;
    count = to + 1 - from;
    memcpy(pairs, &history->pairs[from], count * sizeof(*pairs));
    return count;
}
