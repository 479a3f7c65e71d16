/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The wall clock beside Xen's clock, and lengths of time by the latter. Any thread.
 */

#include <stdint.h>
#include <time.h>

#include "collector/tsc.h"
#include "collector/xen.h"
#include "common/units.h"

/* A pair is accurate enough if its readings are at most this far apart: about 10 us. */
#define CLOCK_PAIR_TICKS (UINT64_C(1) << 15)

struct clock_pair {
    uint64_t realtime_ns; /* CLOCK_REALTIME, since 1970 */
    uint64_t tsc;         /* xen_read_tsc(): tsc_offset() less than in records */
};

/*
 * Reads both clocks, the TSC between two readings of the wall clock. Repeats this a few times if
 * the readings are too far apart, because the thread was preempted.
 */
static inline struct clock_pair clock_pair_now(void)
{
    struct clock_pair pair = {0};
    uint64_t best = UINT64_MAX;

    for (unsigned int i = 0; i < 4 && best > CLOCK_PAIR_TICKS; i++) {
        struct timespec ts;
        uint64_t before = xen_read_tsc(), ticks;

        (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail for this clock */
        ticks = xen_read_tsc() - before;
        if (ticks >= best)
            continue;
        best = ticks;
        pair.realtime_ns = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
        pair.tsc = before + ticks / 2;
    }
    return pair;
}

/* Its TSC as in records, with the offset known now. */
static inline uint64_t clock_pair_tsc(struct clock_pair pair)
{
    return pair.tsc + tsc_offset();
}

/* Elapsed time, whatever the wall clock was set to in between; 0 if TO is not after FROM. */
static inline uint64_t clock_usec_between(struct clock_pair from, struct clock_pair to,
                                          uint32_t khz)
{
    if (to.tsc <= from.tsc || khz == 0)
        return 0;
    return (uint64_t)((unsigned __int128)(to.tsc - from.tsc) * 1000 / khz);
}

/* The ticks of USEC at KHZ; of an absurdly long time INT64_MAX, so that sums do not overflow. */
static inline uint64_t clock_tsc_of_usec(uint64_t usec, uint32_t khz)
{
    unsigned __int128 tsc = (unsigned __int128)usec * khz / 1000;

    return tsc > INT64_MAX ? INT64_MAX : (uint64_t)tsc;
}

/* The nanoseconds of TSC ticks at KHZ, rounded up; 0 if KHZ is unknown. */
static inline uint64_t clock_nsec_of_tsc(uint64_t tsc, uint32_t khz)
{
    return khz ? (uint64_t)(((unsigned __int128)tsc * 1000000 + khz - 1) / khz) : 0;
}

/* The local date and time, as "2026-11-21 12:00:03"; TEXT is UNITS_TEXT_MAX long. Returns TEXT. */
static inline const char *clock_format_date(char *text, uint64_t realtime_ns)
{
    time_t when = (time_t)(realtime_ns / NSEC_PER_SEC);
    struct tm tm;

    if (!localtime_r(&when, &tm) || strftime(text, UNITS_TEXT_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        text[0] = '\0';
    return text;
}

/* The local time of day, USEC ago, as "12:00:03"; TEXT is UNITS_TEXT_MAX long. Returns TEXT. */
static inline const char *clock_format_usec_ago(char *text, uint64_t usec)
{
    time_t when = time(NULL) - (time_t)(usec / USEC_PER_SEC);
    struct tm tm;

    if (!localtime_r(&when, &tm) || strftime(text, UNITS_TEXT_MAX, "%H:%M:%S", &tm) == 0)
        text[0] = '\0';
    return text;
}
