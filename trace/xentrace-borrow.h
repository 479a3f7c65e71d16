/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A struct xentrace of a trace that the client has opened itself, with what was selected of it: for
 * callers that know the public interface only, such as export/. Not in the shared library.
 */

#include <stdbool.h>
#include <stdint.h>

struct merge;
struct sidecar;
struct source;
struct subjects;
struct xentrace;

struct xentrace_borrow {
    struct source *source;
    struct sidecar *sidecar;
    struct merge *merge;             /* where it stands is where the trace begins */
    const struct subjects *subjects; /* NULL: all */
    uint64_t tsc_khz;
    bool khz_is_assumed;
    uint64_t first_tsc; /* of the whole trace; 0: that of the first record that is read */
};

/*
 * All that is named is borrowed until xentrace_close(). xentrace_next() returns records that are
 * about the subjects only, and an observer receives what `report --view intervals` has for them
 * (docs/measures.md, "Selections"), exits of these vCPUs on these CPUs, and gaps of these CPUs.
 * xentrace_seek() and xentrace_select() must not be called. 0 or -ENOMEM.
 */
int xentrace_borrow(const struct xentrace_borrow *from, struct xentrace **ret_trace);
