/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The screen of `report`: the quality of the trace, the domains, the busiest CPUs, the findings.
 * docs/measures.md defines each number. Any thread that owns what it is given.
 */

#include <stdio.h>

struct findings;
struct input;
struct measures;

/* Lines of tables fit into WIDTH, 0: any. Takes the waits from the vCPUs of MEASURES. */
void report_print(FILE *file, int width, const struct input *input, struct measures *measures,
                  const struct findings *findings);

/* Its first lines: what is there, what is missing. */
void report_print_quality(FILE *file, const struct input *input, const struct measures *measures);
