/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A moment as people write it, and as journalctl(1) reads --since and --until: systemd.time(7).
 *
 *   -40s  -1h 30min  +5min  40s ago      relative to now; a number alone is in seconds
 *   now  today  yesterday  tomorrow      the last three are midnight
 *   today 03:10  yesterday 23:50:05      ... or a time of that day
 *   03:10  03:10:05  03:10:05.250        of today
 *   2026-11-21  2026-11-21 03:10         midnight, or that time; "T" may stand for the blank, and
 *                                        a day of the week before the date: Sat 2026-11-21
 *   ... UTC  ... Z  ... +01:00           any time of day or date, in that zone; else local time
 *   @1795241112  @1795241112.5           seconds since 1970
 *
 * Any thread; reads the environment's TZ.
 */

#include <stdbool.h>
#include <stdint.h>

struct time_spec {
    bool is_relative;     /* to now: */
    bool is_after;        /* offset_usec after it, else before */
    uint64_t offset_usec; /* 0: now */
    uint64_t realtime_ns; /* else: since 1970 */
};

/*
 * NOW_NS (CLOCK_REALTIME) determines which day is today. Returns 0; -EINVAL: TEXT is not a time;
 * -ERANGE: it is before 1970, or beyond 64 bits of nanoseconds.
 */
int time_spec_parse(const char *text, uint64_t now_ns, struct time_spec *ret_spec);
