/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The screen of `report`: the quality of the trace, the findings, the domains, the CPUs, the
 * longest waits. docs/measures.md defines each number. Any thread that owns what it is given.
 */

#include <stddef.h>
#include <stdio.h>

#include "ctl/color.h"

struct findings;
struct input;
struct measures;

/* The size that the report has to fit. 0: any number of columns, of rows. */
struct report_page {
    unsigned int width, rows;
    const struct palette *palette;
};

/*
 * With rows, the findings and domains that have no room are left out, and named. Takes the waits
 * from the vCPUs of MEASURES.
 */
void report_print(FILE *file, const struct report_page *page, const struct input *input,
                  struct measures *measures, const struct findings *findings);

/* Its first lines: what is there, what is missing, why the snapshot was taken. */
void report_print_quality(FILE *file, const struct input *input, const struct measures *measures,
                          unsigned int width);
