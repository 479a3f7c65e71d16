/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One picture for a screen: lines of text, each cut to the width, at most as many as there are
 * rows. Text may have the sequences of a palette (ctl/color.h), which take no room. Nothing here
 * touches a terminal. Any thread that owns it.
 */

#include <stdio.h>

#include "common/util.h"

struct frame {
    unsigned int rows, cols;
    unsigned int used; /* lines that are complete */
    char *line;        /* the one that is being written; NULL: none */
    size_t line_bytes;
    char **lines; /* [rows]; NULL: empty */
};

/* -ENOMEM. FRAME needs frame_done() in any case. */
int frame_init(struct frame *frame, unsigned int rows, unsigned int cols);
void frame_done(struct frame *frame);

#define _cleanup_frame_ _cleanup_(frame_done)

/* Appends to the line. Without memory, or without a row that is left, nothing. */
void frame_put(struct frame *frame, const char *format, ...) _printf_(2, 3);

/* How many columns of the line are used. */
unsigned int frame_column(const struct frame *frame);

/* Appends blanks up to COLUMN, one at least if the line is not empty. */
void frame_tab(struct frame *frame, unsigned int column);

/* Ends the line. */
void frame_end_line(struct frame *frame);

/* frame_put() and frame_end_line(). */
void frame_add(struct frame *frame, const char *format, ...) _printf_(2, 3);

/* Ends lines until ROW is the next one. */
void frame_skip_to(struct frame *frame, unsigned int row);

/* Rows that are left. */
unsigned int frame_left(const struct frame *frame);

/* The lines, each with END after it, the last one too. */
void frame_print(const struct frame *frame, FILE *file, const char *end);
