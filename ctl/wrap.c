// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/wrap.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The bytes of the color sequence at TEXT; 0: there is none. */
static size_t sequence_bytes(const char *text)
{
    const char *end;

    if (text[0] != '\033' || text[1] != '[')
        return 0;
    end = strchr(text, 'm');
    return end ? (size_t)(end - text) + 1 : 0;
}

/* The columns of the first BYTES of TEXT: characters of UTF-8. */
static unsigned int columns_of(const char *text, size_t bytes)
{
    unsigned int columns = 0;

    for (size_t i = 0; i < bytes;) {
        size_t sequence = sequence_bytes(text + i);

        columns += sequence == 0 && ((unsigned char)text[i] & 0xc0) != 0x80;
        i += sequence > 0 ? sequence : 1;
    }
    return columns;
}

/* The bytes of TEXT that fit into COLUMNS: whole words, but one at least. */
static size_t fit(const char *text, unsigned int columns)
{
    size_t bytes = strcspn(text, " ");

    while (text[bytes]) {
        size_t blanks = strspn(text + bytes, " ");
        size_t next = bytes + blanks + strcspn(text + bytes + blanks, " ");

        if (columns_of(text, next) > columns)
            break;
        bytes = next;
    }
    return bytes;
}

static unsigned int wrap(FILE *file, const char *text, unsigned int width, unsigned int indent,
                         unsigned int hanging)
{
    unsigned int lines = 0;

    do {
        unsigned int blanks = lines == 0 ? indent : hanging;
        size_t bytes = width == 0 ? strlen(text) : fit(text, width > blanks ? width - blanks : 1);

        if (file)
            (void)fprintf(file, "%*s%.*s\n", (int)blanks, "", (int)bytes, text);
        text += bytes;
        text += strspn(text, " ");
        lines++;
    } while (*text);
    return lines;
}

unsigned int wrap_print(FILE *file, const char *text, unsigned int width, unsigned int indent,
                        unsigned int hanging)
{
    return wrap(file, text, width, indent, hanging);
}

unsigned int wrap_count(const char *text, unsigned int width, unsigned int indent,
                        unsigned int hanging)
{
    return wrap(NULL, text, width, indent, hanging);
}
