/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A line on standard error while a trace is read, if that takes longer than a second and standard
 * error is a terminal: "Reading FILE: 43%, 1.2G of 2.8G, 2s left". It is erased when all is read.
 * Others whose progress is in bytes have it, too: "Writing: 43%, ...".
 *
 * One thread.
 */

#include <stdbool.h>
#include <stdint.h>

struct merge;

struct reading {
    const char *verb, *name; /* NAME "": nothing has a name */
    uint64_t total_bytes;    /* 0: unknown */
    uint64_t begin_usec, shown_usec;
    bool has_line;
};

/* Begins to show how MERGE is read. NAME is borrowed as READING is. */
void reading_begin(struct reading *reading, struct merge *merge, const char *name,
                   uint64_t total_bytes);

/* The same for another act, which reading_show() reports. Both are borrowed. */
void reading_init(struct reading *reading, const char *verb, const char *name,
                  uint64_t total_bytes);
void reading_show(struct reading *reading, uint64_t taken_bytes);

/* Erases the line, before anything else is printed. */
void reading_end(struct reading *reading);

/* --- For tests. --- */

/* The line into BUFFER, without control characters. Returns BUFFER. */
#define READING_TEXT_MAX 160u
const char *reading_format(char buffer[static READING_TEXT_MAX], const struct reading *reading,
                           uint64_t taken_bytes, uint64_t elapsed_usec);
