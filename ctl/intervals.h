/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Every interval that `report` counts (docs/measures.md), of vCPUs, and of CPUs' idle states,
 * frequencies and interrupts: a line for each, as they end. One thread.
 */

#include <stdbool.h>
#include <stdio.h>

struct input;

/*
 * Reads all that is left of INPUT, and prints those of its subjects. AS_JSON: each line is an
 * object. 0; -ENOMEM, or what reading ended with. Ends when FILE has an error, which the caller
 * looks for.
 */
int intervals_print(FILE *file, struct input *input, bool as_json);
