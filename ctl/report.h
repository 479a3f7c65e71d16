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

void report_print(FILE *file, const struct input *input, struct measures *measures,
                  const struct findings *findings);
