/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Small pieces of text: formatted, made safe for a terminal, quoted for a shell. Any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/util.h"

/* printf() into new memory; NULL if there is none. */
char *str_format(const char *format, ...) _printf_(1, 2);

/*
 * Puts '?' in place of each byte of characters that are not shown (common/utf8.h) and of bytes that
 * are not UTF-8: text from the daemon or a file must not steer a terminal.
 */
void str_make_printable(char *text);

/*
 * Puts the sentence, made printable, into *RET_ERROR (free it) and returns ERROR, or -ENOMEM if
 * there is no memory for it. FORMAT may have %m.
 */
int str_refuse(int error, char **ret_error, const char *format, ...) _printf_(3, 4);

/* TEXT as one word for a shell: unchanged if it is harmless, else in single quotes. NULL: no
 * memory. */
char *str_shell_quote(const char *text);
/* The same for a command that is printed: what is not shown is escaped, as bash and zsh read it. */
char *str_shell_show(const char *text);
/* TEXT in new memory as utf8_copy() has it, for what is printed; NULL: no memory. */
char *str_clean(const char *text);

#define STR_TIME_MAX 64u

/* "2026-11-21 06:05:12", local time; "-" for 0. Returns BUFFER. */
const char *str_time(char buffer[static STR_TIME_MAX], uint64_t realtime_ns);

/* From now on all times are shown in UTC, by this process and those that it starts. */
void str_use_utc(void);

#define STR_AGO_MAX 48u

/* How long before now that was: "2min ago", "just now"; "never" for 0. Returns BUFFER. */
const char *str_ago(char buffer[static STR_AGO_MAX], uint64_t realtime_ns);

#define STR_SINCE_MAX 96u

/* "12:00:03 (14s)", with the date if it was another day. Returns BUFFER. */
const char *str_since(char buffer[static STR_SINCE_MAX], uint64_t realtime_ns);

#define STR_WINDOW_MAX 192u

/*
 * "2026-11-21 06:00:12 to 06:05:12 (5min)", local time, with both dates if they differ; "empty" if
 * there is no beginning. Returns BUFFER.
 */
const char *str_window(char buffer[static STR_WINDOW_MAX], uint64_t first_ns, uint64_t last_ns);

#define STR_HZ_MAX 32u

/* A frequency as xenalyze's --cpu-hz takes it: "2.3G", "2294.608M". Returns BUFFER. */
const char *str_hz(char buffer[static STR_HZ_MAX], uint64_t khz);

/* Ticks of a TSC of KHZ as a time in microseconds; 0 if KHZ is 0. */
uint64_t str_ticks_usec(uint64_t ticks, uint64_t khz);
