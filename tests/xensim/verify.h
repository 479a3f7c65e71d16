/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What `xensim verify` knows of a capture: shared by the checks (verify.c) and what is compared
 * with and told afterwards (verify-report.c).
 */

#include "parse.h"
#include "rounds.h"
#include "walk.h"

#define VERIFY_MOST_FILTERS 64u

struct verify_kind {
    uint32_t event;
    uint32_t next;
    uint64_t records;
    bool lost_since; /* a loss was told since the last record of this kind */
};

/* One CPU's numbers, over all files. */
struct verify_cpu {
    bool any;
    bool begun;
    uint64_t begin;   /* the first number that is there, or told as lost in front of it */
    bool any_earlier; /* with --overlap: in a file before this one */
    uint64_t earlier; /* with --overlap: the number that may follow the last of those */
    uint64_t next;
    uint64_t told_now; /* told since the last record */
    uint64_t told;
    uint64_t missed; /* with --kinds: gaps of the kinds' numbers */
    uint64_t last_tsc;
    uint32_t nr_kinds;
    struct verify_kind kinds[SIM_MAX_KINDS];
};

/* What one file, or all of them, have of one CPU. */
struct verify_span {
    bool seen; /* a window */
    uint64_t records;
    uint64_t lost;
    uint64_t first; /* numbers; of no meaning without a record */
    uint64_t last;
    uint64_t first_tsc;
    uint64_t last_tsc;
};

struct verify_account {
    uint64_t bytes;
    uint64_t windows;
    uint64_t rounds;
    uint64_t split_rounds;
    uint64_t wraps;
    uint64_t records;
    uint64_t lost;
    struct verify_span cpus[SIM_MAX_CPUS];
};

struct verify {
    struct walk_file file;
    const char *path; /* of the file that is looked at */
    struct parse_cpus only;
    bool has_only;
    bool warn_rounds;
    bool from_start;
    bool overlap;
    uint32_t nr_ignored;
    uint32_t ignored[VERIFY_MOST_FILTERS]; /* events that are not the workload's */
    uint32_t nr_filters;
    uint32_t filters[VERIFY_MOST_FILTERS];
    uint64_t filter_records[VERIFY_MOST_FILTERS];
    const char *report;
    const char *beside;
    uint64_t complete_from;
    bool one_start;
    const char *json;
    struct rounds rounds;
    struct verify_cpu cpus[SIM_MAX_CPUS];
    struct verify_account now; /* this file */
    struct verify_account total;
};

/* Tells what is wrong; -EBADMSG. */
_printf_(3, 4) int verify_violation(const struct verify *v, size_t offset, const char *format, ...);

/* The producer's report: nothing it made after the last record may be missing untold. */
int verify_report_check(const struct verify *v);

/* --beside: where it begins, held against a file that has everything. */
int verify_beside_check(const struct verify *v);

/* The lines for people and grep, on stdout. */
void verify_report_print(const struct verify *v, const char *path);

/* The document of --json, one file after the other. */
void verify_report_begin_json(FILE *f);
void verify_report_add_json(FILE *f, const struct verify *v, bool is_first);
void verify_report_end_json(FILE *f, const struct verify *v);
