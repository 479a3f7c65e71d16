// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The well-formed sequences are those of the Unicode Standard, table 3-7: the first byte determines
 * the length and, for E0, ED, F0 and F4, a smaller range for the second byte. That range excludes
 * overlong forms, surrogates and what is above U+10FFFF.
 */

#include "common/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

struct lead {
    uint8_t first, last; /* of the lead byte */
    uint8_t bytes;
    uint8_t second_min, second_max;
};

static const struct lead leads[] = {
    {0x00, 0x7f, 1, 0x00, 0x00}, {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
    {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

static const struct lead *find_lead(uint8_t byte)
{
    for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++)
        if (byte >= leads[i].first && byte <= leads[i].last)
            return &leads[i];
    return NULL;
}

/*
 * The length of the character at TEXT, and its number; 0: there is none. The terminating zero
 * continues no character, so nothing after it is read.
 */
static size_t read_character(const uint8_t *text, uint32_t *ret_character)
{
    const struct lead *lead = find_lead(text[0]);
    uint32_t character;

    if (!lead)
        return 0;
    if (lead->bytes == 1) {
        *ret_character = text[0];
        return 1;
    }
    if (text[1] < lead->second_min || text[1] > lead->second_max)
        return 0;
    character = text[0] & (0xffu >> (lead->bytes + 1));
    for (size_t i = 1; i < lead->bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (text[i] & 0x3f);
    }
    *ret_character = character;
    return lead->bytes;
}

static bool is_control(uint32_t character)
{
    return character < 0x20 || (character >= 0x7f && character < 0xa0);
}

static bool is_noncharacter(uint32_t character)
{
    return (character >= 0xfdd0 && character <= 0xfdef) || (character & 0xfffe) == 0xfffe;
}

size_t utf8_copy(char *to, size_t size, const char *from)
{
    const uint8_t *text = (const uint8_t *)from;
    size_t length = 0;

    while (*text) {
        uint32_t character = 0;
        size_t bytes = read_character(text, &character);
        char escape[sizeof("\\xNN")];
        const char *piece = (const char *)text;
        size_t piece_bytes = bytes;

        if (bytes == 0 || is_noncharacter(character)) {
            piece = REPLACEMENT;
            piece_bytes = strlen(REPLACEMENT);
        } else if (is_control(character)) {
            piece = escape;
            piece_bytes = (size_t)snprintf(escape, sizeof(escape), "\\x%02x", character & 0xff);
        }
        if (length + piece_bytes >= size)
            break;
        memcpy(to + length, piece, piece_bytes);
        length += piece_bytes;
        text += bytes ? bytes : 1;
    }
    to[length] = '\0';
    return length;
}

bool utf8_is_valid(const char *text)
{
    const uint8_t *next = (const uint8_t *)text;
    uint32_t character;

    while (*next) {
        size_t bytes = *next < 0x80 ? 1 : read_character(next, &character);

        if (bytes == 0)
            return false;
        next += bytes;
    }
    return true;
}

size_t utf8_trim(char *text)
{
    size_t length = strlen(text), begin = length;
    const struct lead *lead;

    if (length == 0)
        return 0;
    do
        begin--;
    while (begin > 0 && (text[begin] & 0xc0) == 0x80);
    lead = find_lead((uint8_t)text[begin]);
    if (!lead || begin + lead->bytes <= length)
        return length;
    text[begin] = '\0';
    return begin;
}
