/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Chooses the files to remove from the state directory: a pure function over a list. state-files.c
 * makes the list, and removes the files. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What removing a file by itself would mean. */
enum vacuum_class {
    VACUUM_NEVER, /* a capture that a user started, a file that is not ours */
    VACUUM_FIRST, /* one that another user than root asked for: before all others, oldest first */
    VACUUM_ANY,   /* a snapshot, a segment of a ring: the oldest goes first */
    VACUUM_LAST,  /* a trigger's snapshot of the last day: only when nothing else is left */
};

enum vacuum_reason { VACUUM_TOO_OLD, VACUUM_MAX_USE, VACUUM_KEEP_FREE };

struct vacuum_file {
    enum vacuum_class vacuum_class;
    bool is_of_trigger; /* a snapshot that a trigger took by itself */
    bool is_of_root;    /* a snapshot that root asked for */
    bool is_in_use;     /* a session writes it: it stays */
    bool is_open;       /* a process has it open: removing it frees no space yet */
    bool is_spared;     /* ... since a moment ago: it does not go yet, and no other instead of it */
    uint64_t bytes;
    uint64_t time_ns; /* CLOCK_REALTIME, when it was written last */
    bool is_chosen;   /* it is its turn */
    bool goes;        /* the answer */
    enum vacuum_reason reason;
};

/* What the files that may go take. */
struct vacuum_use {
    uint64_t user_bytes; /* those of VACUUM_FIRST */
    uint64_t other_bytes;
};

/* 0: no such limit. */
struct vacuum_limits {
    uint64_t max_use_bytes;   /* of the files that may go at all, see vacuum_choose() */
    uint64_t keep_free_bytes; /* of the file system */
    struct vacuum_use base; /* for keep_free_bytes, no more is removed than the growth since then */
    uint64_t max_age_usec;
};

struct vacuum_outcome {
    size_t files;
    uint64_t bytes;
    bool is_enough;         /* the limits are kept then */
    bool is_of_others;      /* less than keep_free_bytes is free, and files that may go stay */
    struct vacuum_use left; /* by the files that stay */
};

#define VACUUM_PROTECTED_USEC (UINT64_C(24) * 3600 * 1000000) /* of a trigger's snapshots */

/* The class of a snapshot: a trigger's is protected for a day, unless a user fired it. */
enum vacuum_class vacuum_class_of_snapshot(bool is_of_user, bool is_triggered, uint64_t time_ns,
                                           uint64_t now_ns);

/*
 * Sets `goes` for those of FILES, in any order, that must be removed to meet LIMITS, and why;
 * FREE_BYTES are free now. VACUUM_LAST files are not removed for their age.
 *
 * No user can have files of others removed. VACUUM_FIRST files are removed before all others; those
 * that stay do not count in max_use_bytes for the others. Nobody can by having files open: no file
 * goes instead of one that is spared. (How much users leave free is limited by keep-for-triggers=.)
 *
 * Nor can anybody by filling the disk. For keep_free_bytes, only the growth since LIMITS->base is
 * removed, and a file that is larger than that only if it makes enough space; never the newest
 * snapshot that a trigger took, nor the newest that root asked for.
 */
struct vacuum_outcome vacuum_choose(struct vacuum_file *files, size_t count,
                                    const struct vacuum_limits *limits, uint64_t free_bytes,
                                    uint64_t now_ns);
