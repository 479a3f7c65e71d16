/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which files of the state directory are to go: a pure function over a list. What is in the list,
 * and the removal, are state-files.c's. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What removing a file by itself would mean. */
enum vacuum_class {
    VACUUM_NEVER, /* a capture that a user started, a file that is not ours */
    VACUUM_ANY,   /* a snapshot, a segment of a ring: the oldest goes first */
    VACUUM_LAST,  /* a trigger's snapshot of the last day: only when nothing else is left */
};

struct vacuum_file {
    enum vacuum_class vacuum_class;
    bool is_open; /* somebody uses it: it stays */
    uint64_t bytes;
    uint64_t time_ns; /* CLOCK_REALTIME, when it was written last */
    bool goes;        /* the answer */
};

/* 0: no such limit. */
struct vacuum_limits {
    uint64_t max_use_bytes;   /* of the files that may go at all, those that are open included */
    uint64_t keep_free_bytes; /* of the file system */
    uint64_t max_age_usec;
};

struct vacuum_outcome {
    size_t files;
    uint64_t bytes;
    bool is_enough; /* the limits are kept then */
};

#define VACUUM_PROTECTED_USEC (UINT64_C(24) * 3600 * 1000000) /* of a trigger's snapshots */

/* The class of a snapshot: a trigger's is protected for a day. */
enum vacuum_class vacuum_class_of_snapshot(bool is_triggered, uint64_t time_ns, uint64_t now_ns);

/*
 * Sets `goes` of those of FILES, in any order, that have to go for LIMITS; FREE_BYTES are free now.
 * Age alone removes no VACUUM_LAST.
 */
struct vacuum_outcome vacuum_choose(struct vacuum_file *files, size_t count,
                                    const struct vacuum_limits *limits, uint64_t free_bytes,
                                    uint64_t now_ns);
