/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Values of options as several commands take them: checked before a file is made or anybody is
 * asked. All return 0, or -EINVAL with one sentence in *RET_ERROR (free it), or -ENOMEM; outputs
 * are written on success only. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

/* A time, more than nothing; a number alone is in UNIT_USEC. */
int values_set_duration(const char *option, const char *text, uint64_t unit_usec,
                        uint64_t *ret_usec, char **ret_error);

/* A size; a number alone is in UNIT_BYTES. */
int values_set_size(const char *option, const char *text, uint64_t unit_bytes, bool zero_is_fine,
                    uint64_t *ret_bytes, char **ret_error);

/* A number of WHAT ("pages"), 1 or more. */
int values_set_count(const char *option, const char *text, const char *what, uint32_t *ret_count,
                     char **ret_error);

/* A path behind -o. */
int values_set_output(const char *text, const char **ret_path, char **ret_error);

/* Whether NAME can name WHAT ("a capture"): a word without a slash. */
int values_check_name(const char *name, const char *what, char **ret_error);
