/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Text from outside (domains' names, the host's, Xen's command line) as valid UTF-8 that is safe to
 * print. Text is converted once, on input: JSON has no other encoding, and control characters would
 * reach the terminal of a user who runs `status`. Any thread.
 */

#include <stdbool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The length in bytes of the character at the beginning of TEXT, and its number; 0: these bytes are
 * not UTF-8. At the end of TEXT the length is 1.
 */
size_t utf8_read(const char *text, uint32_t *ret_character);

/*
 * Whether CHARACTER shows where it stands. Controls (C0, DEL and C1) steer a terminal; others turn
 * the direction of the text around, end its line, or are invisible, so that names look like others.
 */
bool utf8_is_shown(uint32_t character);

#define UTF8_ESCAPED_BYTES 4u /* what utf8_copy() makes of a byte, at most */

/*
 * Copies FROM to TO, which has room for SIZE bytes (1 at least), and terminates it. Each byte that
 * is not part of a valid character becomes U+FFFD, as does a noncharacter, which many libraries
 * refuse. Controls become "\xNN", others that are not shown "\uNNNN" or "\UNNNNNNNN". The copy ends
 * after the last character, or escape sequence, that fits as a whole. Returns its length.
 */
size_t utf8_copy(char *to, size_t size, const char *from);

#define UTF8_ELLIPSIS "\xe2\x80\xa6" /* U+2026 */

/* The same with an ellipsis at the end of a copy that is not complete. SIZE is 4 at least. */
size_t utf8_copy_short(char *to, size_t size, const char *from);

/*
 * TEXT was valid UTF-8 until snprintf(3) cut it: removes the beginning of a character that was cut.
 * Returns the length.
 */
size_t utf8_trim(char *text);

bool utf8_is_valid(const char *text);
