/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Sizes and durations as people write and read them. Any thread; nothing is owned.
 */

#include <stddef.h>
#include <stdint.h>

#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_PER_SEC  UINT64_C(1000000)
#define NSEC_PER_USEC UINT64_C(1000)
#define NSEC_PER_SEC  UINT64_C(1000000000)

/*
 * Parses "64M", "1.5GiB", "4096": K, M, G, T, P, E (with or without B or iB, upper or lower case)
 * are powers of 1024; "B" is bytes; a number alone is in units of DEFAULT_UNIT_BYTES. Returns 0,
 * -EINVAL (not a size, or negative), -ERANGE (does not fit into 63 bits). A part of a byte is cut
 * off.
 */
int size_parse(const char *text, uint64_t default_unit_bytes, uint64_t *ret_bytes);

/*
 * Parses "10", "10s", "1.5s", "500ms", "250us", "5min", "2h", "1d", "1w" ("usec", "msec", "sec",
 * "m" too, and words: "2 hours"; in lower case), and sums "1min 30s". A number alone is in units of
 * DEFAULT_UNIT_USEC. Returns 0, -EINVAL, -ERANGE (does not fit into 63 bits of microseconds).
 */
int duration_parse(const char *text, uint64_t default_unit_usec, uint64_t *ret_usec);

#define UNITS_TEXT_MAX 32u

/* "0B", "512B", "1.5K", "64M", "2.3G": at most 4 digits, rounded. Returns BUFFER. */
const char *size_format(char buffer[static UNITS_TEXT_MAX], uint64_t bytes);

/* "250us", "12ms", "1.5s", "10s", "5min", "2h 5min": cut off, never rounded up. Returns BUFFER. */
const char *duration_format(char buffer[static UNITS_TEXT_MAX], uint64_t usec);

/* Roughly, for a forecast: "8s", "8min", "3h 20min", "12d"; rounded. Returns BUFFER. */
const char *duration_format_about(char buffer[static UNITS_TEXT_MAX], uint64_t usec);

#define UNITS_PART_MAX (2 * UNITS_TEXT_MAX + 16)

/*
 * "9min 58s of the 1h"; "all but 20s of the 2h" if both would be shown alike. Returns BUFFER.
 */
const char *duration_format_part(char buffer[static UNITS_PART_MAX], uint64_t part_usec,
                                 uint64_t whole_usec);
