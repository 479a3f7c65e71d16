/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shared by the parsers of typed text: items of a list, letters without a locale, names, and
 * sentences about mistakes. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

static inline bool text_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static inline bool text_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ASCII only. */
static inline char text_to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The value of a hexadecimal digit; 16 if C is none. */
static inline unsigned int text_hex_digit(char c)
{
    char lower = text_to_lower(c);

    if (text_is_digit(lower))
        return (unsigned int)(lower - '0');
    return lower >= 'a' && lower <= 'f' ? (unsigned int)(lower - 'a') + 10 : 16;
}

/*
 * Whether TEXT can be the name of a session, a snapshot or a trigger, which become file names and
 * words of a command line: letters, digits and "._-@:", the first neither "." nor "-".
 */
bool text_is_name(const char *text);

/* A piece of somebody's text, without blanks at its ends; not terminated. */
struct text_item {
    const char *begin;
    size_t length;
};

/*
 * The next item of a comma-separated list. *REST is the list at first, NULL after the last item.
 * An empty list has one empty item, "a," has two. Returns false if there is none left.
 */
bool text_next_item(const char **rest, struct text_item *ret_item);

/* Whether ITEM is WORD, which is in lower case, in any case. */
bool text_item_is(const struct text_item *item, const char *word);

/* Whether ITEM begins with 0x and has more than that. */
bool text_item_is_hex(const struct text_item *item);

#define TEXT_QUOTE_MAX 48u

/*
 * ITEM for a sentence: '?' for what is not printable ASCII (sentences go through JSON, which is
 * UTF-8, and to terminals), and cut with "..." if it is long. Returns BUFFER.
 */
const char *text_quote(char buffer[static TEXT_QUOTE_MAX], const struct text_item *item);

/*
 * Puts the sentence into *RET_ERROR (free it) and returns ERROR, or -ENOMEM if there is no memory
 * for the sentence: `return text_refuse(-EINVAL, ret_error, "...")`.
 */
int text_refuse(int error, char **ret_error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
