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
 * Those that Unicode calls default-ignorable (DerivedCoreProperties.txt), the marks and overrides
 * of the bidirectional algorithm, the separators of lines and paragraphs, annotations.
 */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x0, 0x1f},      {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},
    {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

bool utf8_is_shown(uint32_t character)
{
    if (character >= ' ' && character <= '~')
        return true;
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        if (character >= hidden[i].first && character <= hidden[i].last)
            return false;
    return true;
}

/* The terminating zero continues no character, so nothing after it is read. */
size_t utf8_read(const char *from, uint32_t *ret_character)
{
    const uint8_t *text = (const uint8_t *)from;
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

static bool is_noncharacter(uint32_t character)
{
    return (character >= 0xfdd0 && character <= 0xfdef) || (character & 0xfffe) == 0xfffe;
}

#define ESCAPE_MAX sizeof("\\U00000000")

static size_t print_escape(char to[static ESCAPE_MAX], uint32_t character)
{
    if (character < 0xa0)
        return (size_t)snprintf(to, ESCAPE_MAX, "\\x%02x", character);
    if (character < 0x10000)
        return (size_t)snprintf(to, ESCAPE_MAX, "\\u%04x", character);
    return (size_t)snprintf(to, ESCAPE_MAX, "\\U%08x", character);
}

/*
 * Copies FROM to TO as utf8_copy() does. *RET_SHORT is the length up to which there is room for an
 * ellipsis as well. Returns whether all of FROM has been copied.
 */
static bool copy(char *to, size_t size, const char *from, size_t *ret_length, size_t *ret_short)
{
    size_t length = 0, bytes;

    *ret_short = 0;
    for (; *from; from += bytes ? bytes : 1) {
        char escape[ESCAPE_MAX];
        const char *piece = from;
        uint32_t character = 0;
        size_t piece_bytes;

        piece_bytes = bytes = utf8_read(from, &character);
        if (bytes == 0 || is_noncharacter(character)) {
            piece = REPLACEMENT;
            piece_bytes = strlen(REPLACEMENT);
        } else if (!utf8_is_shown(character)) {
            piece_bytes = print_escape(escape, character);
            piece = escape;
        }
        if (length + piece_bytes >= size)
            break;
        memcpy(to + length, piece, piece_bytes);
        length += piece_bytes;
        if (length + strlen(UTF8_ELLIPSIS) < size)
            *ret_short = length;
    }
    to[length] = '\0';
    *ret_length = length;
    return !*from;
}

size_t utf8_copy(char *to, size_t size, const char *from)
{
    size_t length, shorter;

    (void)copy(to, size, from, &length, &shorter);
    return length;
}

size_t utf8_copy_short(char *to, size_t size, const char *from)
{
    size_t length, shorter;

    if (copy(to, size, from, &length, &shorter))
        return length;
    (void)strcpy(to + shorter, UTF8_ELLIPSIS);
    return shorter + strlen(UTF8_ELLIPSIS);
}

bool utf8_is_valid(const char *text)
{
    uint32_t character;

    for (size_t bytes; *text; text += bytes) {
        bytes = utf8_read(text, &character);
        if (bytes == 0)
            return false;
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
