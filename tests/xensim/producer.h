/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The process that is all the CPUs. It makes records while tracing is on and it is not paused, and
 * sleeps without any wake-up otherwise.
 */

#include "workload.h"

struct producer_options {
    const struct workload *workload; /* NULL: none */
    struct workload_options options;
    uint64_t tick_usec;
    uint64_t burst_usec; /* of each second; 0: all of it */
    double duration_sec; /* of producing; 0: no limit */
    const char *report_file;
    bool quiet;
};

/* What it achieved; the CPUs' counts stand in the shared memory. */
struct producer_summary {
    const char *workload;
    uint64_t generated_bytes; /* before masks */
    double active_sec;        /* tracing was on */
    double skipped_sec;       /* of these: not scheduled, nothing made up for */
    double cpu_sec;
    double rate_asked; /* bytes a second; 0: none */
};

/* Runs until shared->stop, then reports. The child's exit status. */
int producer_run(struct sim *sim, const struct producer_options *options);

/* On stderr for people, and to FILE (may be NULL) as JSON. 0 or a negative errno. */
int report_write(const struct sim *sim, const struct producer_summary *summary, const char *file,
                 bool quiet);
