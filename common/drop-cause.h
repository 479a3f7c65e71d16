/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Why xentraced dropped records of a session. The collector counts them by cause; the log, status,
 * sidecars and metrics show what it counted, by the names and sentences of the one table here.
 */

#include <stddef.h>

enum drop_cause {
    DROP_SLOW_OUTPUT,   /* its memory was full: the output does not keep up */
    DROP_NO_SPACE,      /* its memory was full: the output was granted no space */
    DROP_PINNED,        /* by an earlier version: a ring's memory was all kept for snapshots */
    DROP_OUTPUT_FAILED, /* a write, or the reader, failed */
    DROP_LIMIT,         /* the output has reached its last grant */
    DROP_ABORTED,       /* on request */
    DROP_RESTART,       /* in memory when the daemon before ended */
    DROP_RESUMING,      /* before a continued capture had its first segment */
    DROP_CAUSES,
};

struct drop_cause_text {
    const char *name;   /* the key in documents, and the label of the metric */
    const char *why;    /* "... were dropped: WHY." */
    const char *advice; /* a sentence */
};

extern const struct drop_cause_text drop_causes[DROP_CAUSES];
