/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Text from outside (domains' names, the host's, Xen's command line) as valid UTF-8 that is safe to
 * print. Text is converted once, on input: D-Bus disconnects peers that send invalid UTF-8, JSON
 * has no other encoding, and control characters would reach the terminal of a user who runs
 * `status`. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies FROM to TO, which has room for SIZE bytes (1 at least), and terminates it. Each byte that
 * is not part of a valid character becomes U+FFFD, as does a noncharacter, which D-Bus refuses.
 * Control characters (C0, DEL and C1) become "\xNN". The copy ends after the last character, or
 * escape sequence, that fits as a whole. Returns its length.
 */
size_t utf8_copy(char *to, size_t size, const char *from);

/*
 * TEXT was valid UTF-8 until snprintf(3) cut it: removes the beginning of a character that was cut.
 * Returns the length.
 */
size_t utf8_trim(char *text);

bool utf8_is_valid(const char *text);
