/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Snapshot documents (docs/control-protocol.md) as people read them. Print functions take documents
 * that were made printable.
 */

#include <stdbool.h>
#include <stdio.h>

#include "ctl/doc.h"

bool snapshot_is(struct json_object *doc);

/* Whether its file is complete. */
bool snapshot_is_ok(struct json_object *snapshot);

/* Whether it covers less time than was asked for; and prints how much, and why. */
bool snapshot_is_shorter(struct json_object *snapshot);
void snapshot_print_shorter(FILE *file, struct json_object *snapshot);

/* "trigger (crash)", "request": why it was taken, and the label. NULL: no memory. */
char *snapshot_cause(struct json_object *snapshot);

/* The answer of `snapshot`, with what to type next. */
void snapshot_print(FILE *file, struct json_object *snapshot);

/* The newest of the array, a line each, for `status`; nothing if there are none. */
void snapshot_print_list(FILE *file, struct json_object *snapshots, int width);
