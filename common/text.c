// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Error sentences repeat what was typed. It comes from the control socket too, so it may hold
 * terminal escapes, half UTF-8 sequences, or megabytes; a message must carry none of them. And
 * nothing here asks the locale: "all" must be the same word in Turkish.
 */

#include "common/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool text_is_name(const char *text)
{
    if (text[0] == '\0' || text[0] == '.' || text[0] == '-')
        return false;
    for (; *text; text++) {
        char c = text_to_lower(*text);

        if (!text_is_digit(c) && !(c >= 'a' && c <= 'z') && !strchr("._-@:", c))
            return false;
    }
    return true;
}

bool text_next_item(const char **rest, struct text_item *ret_item)
{
    const char *begin = *rest;
    size_t length;

    if (!begin)
        return false;
    length = strcspn(begin, ",");
    *rest = begin[length] == ',' ? begin + length + 1 : NULL;

    for (; length > 0 && text_is_blank(begin[0]); length--)
        begin++;
    while (length > 0 && text_is_blank(begin[length - 1]))
        length--;
    *ret_item = (struct text_item){.begin = begin, .length = length};
    return true;
}

bool text_item_is(const struct text_item *item, const char *word)
{
    for (size_t i = 0; i < item->length; i++) {
        if (text_to_lower(item->begin[i]) != word[i]) /* at the word's end too */
            return false;
    }
    return word[item->length] == '\0';
}

bool text_item_is_hex(const struct text_item *item)
{
    return item->length > 2 && item->begin[0] == '0' && text_to_lower(item->begin[1]) == 'x';
}

const char *text_quote(char buffer[static TEXT_QUOTE_MAX], const struct text_item *item)
{
    size_t used = item->length < TEXT_QUOTE_MAX ? item->length : TEXT_QUOTE_MAX - 1;

    for (size_t i = 0; i < used; i++) {
        char c = item->begin[i];

        buffer[i] = c >= ' ' && c <= '~' ? c : '?';
    }
    if (used < item->length)
        memset(buffer + used - 3, '.', 3);
    buffer[used] = '\0';
    return buffer;
}

int text_refuse(int error, char **ret_error, const char *format, ...)
{
    char *sentence;
    va_list args;
    int length;

    va_start(args, format);
    length = vasprintf(&sentence, format, args);
    va_end(args);
    if (length < 0)
        return -ENOMEM;
    *ret_error = sentence;
    return error;
}
