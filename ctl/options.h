/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The options of start and record: one table. A new option is a line there, a member here, and its
 * paragraph in xentracectl(1). They are checked as far as a client can check them; the daemon
 * judges the rest (which CPUs there are, which size is in force).
 */

#include <stdbool.h>
#include <stdint.h>

#include "ctl/args.h"
#include "ctl/ctl.h"

/* record's table; start has all of it but the first two, --quiet and --bundle. */
extern const struct args_option options_table[];

#define OPTIONS_OF_RECORD options_table
#define OPTIONS_OF_START  (options_table + 2)

struct capture_options {
    const struct args_option *table; /* one of the two */
    uint64_t given;                  /* as args_parse() sets it */

    const char *name;   /* NULL: the daemon makes one; borrowed from argv, as all but events */
    char *events;       /* all -e, joined by commas; NULL without any */
    const char *cpus;   /* NULL: all */
    const char *output; /* as typed; "-" is standard output; NULL: a file of the daemon's */
    const char *on_reserve, *compress;
    uint64_t time_usec, max_size_bytes, reserve_bytes, poll_usec;    /* 0: not given */
    uint64_t memory_bytes, max_age_usec;                             /* a ring in memory */
    uint64_t segment_size_bytes, segment_time_usec, keep_size_bytes; /* a disk ring */
    uint32_t keep_files, buffer_pages;
    bool discard, keep_enabled, start_disabled, persist;
    bool force, quiet, bundle;
};

/*
 * Parses the arguments by TABLE, one of the two. Returns as args_parse(). OPTIONS need
 * options_done() in any case.
 */
int options_parse(struct ctl *ctl, const struct args_option *table, int argc, char **argv,
                  struct capture_options *options, char **ret_error);

void options_done(struct capture_options *options);
