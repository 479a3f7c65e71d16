// SPDX-License-Identifier: GPL-2.0-or-later
/* A character of UTF-8 is one column wide: what is shown here was made printable, and is narrow. */

#include "ctl/frame.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define RESET "\033[0m"

int frame_init(struct frame *frame, unsigned int rows, unsigned int cols)
{
    *frame = (struct frame){.rows = rows, .cols = cols};
    frame->lines = calloc(rows ? rows : 1, sizeof(*frame->lines));
    return frame->lines ? 0 : -ENOMEM;
}

void frame_done(struct frame *frame)
{
    for (unsigned int i = 0; frame->lines && i < frame->rows; i++)
        free(frame->lines[i]);
    free(frame->lines);
    free(frame->line);
    *frame = (struct frame){0};
}

/* The bytes of the sequence or the character that TEXT begins with; *RET_WIDTH is 0 or 1. */
static size_t step(const char *text, unsigned int *ret_width)
{
    size_t bytes = 1;

    *ret_width = 0;
    if (text[0] == '\033' && text[1] == '[')
        return 2 + strcspn(text + 2, "m") + (text[2 + strcspn(text + 2, "m")] ? 1 : 0);
    *ret_width = 1;
    while ((text[bytes] & 0xc0) == 0x80)
        bytes++;
    return bytes;
}

/* The bytes of TEXT that fit into COLS columns; *RET_COLS are those that it takes. */
static size_t fit(const char *text, unsigned int cols, unsigned int *ret_cols)
{
    const char *p = text;

    *ret_cols = 0;
    while (*p) {
        unsigned int width;
        size_t bytes = step(p, &width);

        if (*ret_cols + width > cols)
            break;
        *ret_cols += width;
        p += bytes;
    }
    return (size_t)(p - text);
}

static void append(struct frame *frame, const char *text)
{
    size_t bytes = strlen(text);
    char *line = realloc(frame->line, frame->line_bytes + bytes + 1);

    if (!line)
        return;
    memcpy(line + frame->line_bytes, text, bytes + 1);
    frame->line = line;
    frame->line_bytes += bytes;
}

static void put(struct frame *frame, const char *format, va_list ap) _printf_(2, 0);

static void put(struct frame *frame, const char *format, va_list ap)
{
    char *text;

    if (frame->used >= frame->rows || vasprintf(&text, format, ap) < 0)
        return;
    append(frame, text);
    free(text);
}

void frame_put(struct frame *frame, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    put(frame, format, ap);
    va_end(ap);
}

unsigned int frame_column(const struct frame *frame)
{
    unsigned int cols = 0;

    if (frame->line)
        (void)fit(frame->line, frame->cols, &cols);
    return cols;
}

void frame_tab(struct frame *frame, unsigned int column)
{
    unsigned int used = frame_column(frame);

    if (used < column)
        frame_put(frame, "%*s", (int)(column - used), "");
    else if (used > 0)
        frame_put(frame, " ");
}

void frame_end_line(struct frame *frame)
{
    unsigned int cols;
    size_t bytes;

    if (frame->used >= frame->rows)
        return;
    if (frame->line) {
        bytes = fit(frame->line, frame->cols, &cols);
        if (frame->line[bytes]) { /* what is cut off may have been the end of a color */
            bool has_color = memchr(frame->line, '\033', bytes);

            frame->line[bytes] = 0;
            frame->line_bytes = bytes;
            if (has_color)
                append(frame, RESET);
        }
    }
    frame->lines[frame->used++] = TAKE_PTR(frame->line);
    frame->line_bytes = 0;
}

void frame_add(struct frame *frame, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    put(frame, format, ap);
    va_end(ap);
    frame_end_line(frame);
}

void frame_skip_to(struct frame *frame, unsigned int row)
{
    while (frame->used < row && frame->used < frame->rows)
        frame_end_line(frame);
}

unsigned int frame_left(const struct frame *frame)
{
    return frame->rows - frame->used;
}

void frame_print(const struct frame *frame, FILE *file, const char *end)
{
    for (unsigned int i = 0; i < frame->used; i++)
        (void)fprintf(file, "%s%s", frame->lines[i] ? frame->lines[i] : "", end);
}
