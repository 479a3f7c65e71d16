/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The line that record shows while it waits: one line rewritten on a terminal, now and then a new
 * one elsewhere.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/doc.h"

/* The counts at one moment. */
struct progress_sample {
    uint64_t elapsed_usec;
    uint64_t limit_usec; /* 0: without an end */
    uint64_t records, bytes, lost, dropped;
    uint64_t memory_bytes, evicted; /* of a ring, 0 otherwise; bytes are those used then */
};

/* The counts of a session document, ELAPSED_USEC after its start. */
struct progress_sample progress_read(struct json_object *session, uint64_t elapsed_usec);

/*
 * The line into BUFFER: "12s / 30s  1234567 records  103287/s  80M  6.7M/s  lost 0". Rates are
 * those since BEFORE (NULL: since the start). A ring shows its memory in place of what it writes:
 * "58M of 64M  evicted 123". Returns BUFFER.
 */
const char *progress_format(char *buffer, size_t bytes, const struct progress_sample *before,
                            const struct progress_sample *now);

struct progress {
    bool on_terminal;
    bool quiet;
    bool has_line; /* of the terminal, to be cleared */
    uint64_t shown_usec;
    struct progress_sample last;
};

void progress_init(struct progress *progress, bool quiet);

/* How often a new sample is worth asking for: twice a second for eyes, once otherwise. */
uint64_t progress_interval_usec(const struct progress *progress);

/* Shows SAMPLE if it is time to. */
void progress_show(struct progress *progress, const struct progress_sample *sample);

/* Clears the line, before anything else is printed. */
void progress_clear(struct progress *progress);
