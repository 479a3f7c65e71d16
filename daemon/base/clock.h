/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The wall clock beside Xen's clock, so that a reader can date a record. Any thread.
 */

#include <stdint.h>
#include <time.h>

#include "collector/xen.h"
#include "common/units.h"

struct clock_pair {
    uint64_t realtime_ns; /* CLOCK_REALTIME, since 1970 */
    uint64_t tsc;         /* as in records */
};

/* Both as of now, the TSC read in the middle of a pair of readings no further apart than needed. */
static inline struct clock_pair clock_pair_now(void)
{
    struct timespec ts;
    uint64_t before = xen_read_tsc();

    (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail for this clock */
    return (struct clock_pair){
        .realtime_ns = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec,
        .tsc = before + (xen_read_tsc() - before) / 2,
    };
}

/* The ticks of USEC at KHZ; of an absurdly long time INT64_MAX, so that sums do not overflow. */
static inline uint64_t clock_tsc_of_usec(uint64_t usec, uint32_t khz)
{
    unsigned __int128 tsc = (unsigned __int128)usec * khz / 1000;

    return tsc > INT64_MAX ? INT64_MAX : (uint64_t)tsc;
}

/* The time of TSC ticks at KHZ, which is not 0. */
static inline uint64_t clock_usec_of_tsc(uint64_t tsc, uint32_t khz)
{
    return (uint64_t)((unsigned __int128)tsc * 1000 / khz);
}

/* The wall clock when the TSC, which counts at KHZ, was TSC; 0 if either is 0. */
static inline uint64_t clock_realtime_ns(uint64_t tsc, double khz)
{
    struct clock_pair now = clock_pair_now();

    if (tsc == 0 || khz <= 0)
        return 0;
    return now.realtime_ns - (uint64_t)(int64_t)((double)(int64_t)(now.tsc - tsc) / khz * 1e6);
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
