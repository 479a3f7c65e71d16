/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Trigger objects (docs/control-protocol.md) as people read them. Print functions take documents
 * that were made printable.
 */

#include <stdbool.h>
#include <stdio.h>

#include "ctl/doc.h"

/* Whether its last firing was suppressed: busy, cooling down, or the limit of the day reached. */
bool trigger_was_suppressed(struct json_object *trigger);

/* The answer of `trigger`. */
void trigger_print(FILE *file, struct json_object *trigger);

/*
 * The table of the array's triggers, each line after INDENT blanks, and why their snapshots failed.
 * WITH_LIMITS: wide, with what limits their snapshots.
 */
void trigger_print_list(FILE *file, struct json_object *triggers, int indent, bool with_limits,
                        int width);

/* The first finding of the report that each has beside its last snapshot, and its path; nothing
 * where there is none. The reports are files of this host. */
void trigger_print_reports(FILE *file, struct json_object *triggers, int indent);
