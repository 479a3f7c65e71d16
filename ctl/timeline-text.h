/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A timeline for people: a line of characters for each row, with a time axis and a legend. Pure: no
 * terminal. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/color.h"
#include "trace/timeline.h"

struct input;

struct timeline_style {
    unsigned int width; /* of the lines, in characters */
    bool is_ascii;      /* the terminal has no other characters */
    const struct palette *palette;
};

/* The columns of a picture that is WIDTH wide; at least 10. */
unsigned int timeline_text_columns(enum timeline_by by, unsigned int width);

/* Prints TIMELINE, which INPUT was read for. FIRST_TSC is the trace's. 0 or -ENOMEM. */
int timeline_text_print(FILE *file, const struct input *input, const struct timeline *timeline,
                        uint64_t first_tsc, const struct timeline_style *style);
