/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Determines which part of a pinned ring becomes a snapshot: its begin, length and content.
 *
 * A snapshot begins with a whole round, and ends where another begins, or where the ring did when
 * it was pinned. Called by the thread that owns the pin; only reads pinned chunks.
 */

#include <stdbool.h>
#include <stdint.h>

struct chunk;
struct ring;

struct snapshot_bounds {
    uint64_t since_tsc;  /* everything from then on; it may begin earlier by a part of a round */
    uint64_t until_tsc;  /* nothing after it, but for the rest of a round; 0: none */
    uint64_t max_bytes;  /* in whole pages of each chunk; 0: none */
    uint64_t verify_seq; /* chunks up to that one were written by a daemon before: check them */
};

struct snapshot_plan {
    const struct chunk *first; /* begins in this chunk ... */
    uint32_t first_offset;     /* ... here */
    const struct chunk *end;   /* ends in this chunk, NULL: with the pin ... */
    uint32_t end_offset;       /* ... here; 0: before that chunk */
    uint64_t bytes;            /* from there to the end, in whole pages of each chunk */
    uint64_t records;
    uint64_t lost; /* as its lost_records records report */
    uint64_t first_tsc;
    uint64_t last_tsc;
    uint64_t complete_from_tsc; /* no record from then on is missing, but for those reported lost */
    bool damaged; /* older chunks had to be left out: they are not what they should be */
};

/*
 * Plans for RING, pinned as PIN. Returns 0; -ENODATA: there is no record, or none of that time;
 * -EFBIG: not even the newest round fits into max_bytes.
 */
int snapshot_make_plan(const struct ring *ring, int pin, const struct snapshot_bounds *bounds,
                       unsigned int nr_cpus, struct snapshot_plan *ret_plan);
