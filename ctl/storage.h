/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where a session keeps its records, and how that is shown: in a file, a stream (a pipe or a
 * device), a ring in memory, or segments on the disk. Each kind is one line of a table in
 * storage.c. Documents without a kind, of an older daemon, are of files.
 *
 * Print functions take documents that were made printable.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/doc.h"

/* "file", "stream", "ring", "segments", or "recorder" for the flight recorder's ring. */
const char *storage_name(struct json_object *session);

/* Whether it is the flight recorder, which is no capture: nobody started it. */
bool storage_is_recorder(struct json_object *session);

/* Whether its records are in memory still, or were never to be written. */
bool storage_is_in_memory(struct json_object *session);

/* The size of the memory that it keeps records in; 0 if it writes them at once. */
uint64_t storage_memory_bytes(struct json_object *session);

/* What it holds: of the file, of all segments that are left, or in memory. */
uint64_t storage_bytes(struct json_object *session);

/* The path of the file to look into: of the newest segment if it has several. "-": none. Borrowed.
 */
const char *storage_file(struct json_object *session);

/* For one line: the path, "3 segments up to PATH", "memory only". NULL: no memory. */
char *storage_place(struct json_object *session);

/* "58M of 64M" of a ring's memory, "-" of anything else. NULL: no memory. */
char *storage_memory(struct json_object *session);

/*
 * How far back a ring goes: "19s; about 8min at 102K/s when full". "": of anything else, or
 * unknown. NULL: no memory.
 */
char *storage_history(struct json_object *session);

/* The lines of start: where the records go. */
void storage_print_start(FILE *file, struct json_object *session);

/* The lines of status about the place. */
void storage_print(FILE *file, struct json_object *session);

/* The line about how much it holds; RECORDS delivered in USEC. */
void storage_print_amount(FILE *file, struct json_object *session, uint64_t records, uint64_t usec);

/* The table of segments; nothing if there are none. */
void storage_print_segments(FILE *file, struct json_object *session, int width);

/* The lines about one segment: its file, time window, records, and what is missing. */
void storage_print_segment(FILE *file, struct json_object *segment);

/* The object of SESSION about the segment in the file PATH; NULL: none. Borrowed. */
struct json_object *storage_find_segment(struct json_object *session, const char *path);

/*
 * "none", "10 lost by Xen, 2 dropped by xentraced", or "unknown" if COUNTS, of a snapshot or a
 * segment, have no such counts. NULL: no memory.
 */
char *storage_missing(struct json_object *counts);
