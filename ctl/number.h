/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Counts as people read them. Documents and --json have plain numbers. Any thread.
 */

#include <stdint.h>

#define NUMBER_MAX 32u

/* "7", "1,234,567", whatever the locale is. Returns BUFFER. */
const char *number_format(char buffer[static NUMBER_MAX], uint64_t number);

/* For narrow places, 5 characters at most: "999", "12.3k", "4.6M", "120M", "18.4E". Returns
 * BUFFER. */
const char *number_format_short(char buffer[static NUMBER_MAX], uint64_t number);
