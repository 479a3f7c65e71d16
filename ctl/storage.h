/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where a session keeps its records, as people read it: in a file, in a ring in memory, or in a
 * disk ring of segments. Documents without a kind, of an older daemon, are of files.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/doc.h"

bool storage_is_ring(struct json_object *session);
bool storage_is_segmented(struct json_object *session);

/* Whether it is the flight recorder, which is no capture: nobody started it. */
bool storage_is_recorder(struct json_object *session);

/* "file", "ring", "segments", "recorder". Borrowed from SESSION, or static. */
const char *storage_kind(struct json_object *session);

/* Whether it is a ring whose records are in memory still, or were never to be written. */
bool storage_is_in_memory(struct json_object *session);

/* What it holds: of the file, of all segments that are left, or in memory. */
uint64_t storage_bytes(struct json_object *session);

/* The path of the newest segment, "-" if there is none. Borrowed. */
const char *storage_newest(struct json_object *session);

/* For one line: the path, "3 segments up to PATH", "memory only". NULL: no memory. */
char *storage_place(struct json_object *session);

/* "58M of 64M" of a ring's memory, "-" of anything else. NULL: no memory. */
char *storage_memory(struct json_object *session);

/* The lines of status about the place. */
void storage_print(FILE *file, struct json_object *session);

/* The table of segments; nothing if there are none. */
void storage_print_segments(FILE *file, struct json_object *session);

/* The lines about one segment: its file, time window, records, and what is missing. */
void storage_print_segment(FILE *file, struct json_object *segment);

/* "nothing is missing", or "10 lost by Xen, 2 dropped by xentraced", of a snapshot or a segment.
 * NULL: no memory. */
char *storage_missing(struct json_object *counts);
