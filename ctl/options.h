/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The options of start and record: what is asked for, checked as far as a client can check it. The
 * rest (which CPUs there are, which size is in force) is the daemon's to judge.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ctl/ctl.h"

struct capture_options {
    const char *name;   /* NULL: the daemon makes one; borrowed from argv, as all but events */
    char *events;       /* all -e, joined by commas; NULL without any */
    const char *cpus;   /* NULL: all */
    const char *output; /* as typed; "-" is standard output; NULL: a file of the daemon's */
    uint64_t time_usec, max_size_bytes, poll_usec; /* 0: not given */
    uint64_t reserve_bytes;
    bool has_reserve; /* 0 is a reserve too */
    uint32_t buffer_pages;
    uint64_t memory_bytes, max_age_usec;                             /* a ring in memory; 0: none */
    uint64_t segment_size_bytes, segment_time_usec, keep_size_bytes; /* a disk ring; 0: not given */
    uint32_t keep_files;
    const char *on_reserve; /* NULL: not given */
    bool discard, keep_enabled, start_disabled;
    bool force, quiet;
};

/*
 * Parses the arguments of start (IS_RECORD false) or record. Returns 0; -ECANCELED for --help;
 * -EINVAL (bad usage) with one sentence in *RET_ERROR (free it); -ENOMEM. OPTIONS need
 * options_done() in any case.
 */
int options_parse(struct ctl *ctl, bool is_record, int argc, char **argv,
                  struct capture_options *options, char **ret_error);

void options_done(struct capture_options *options);
