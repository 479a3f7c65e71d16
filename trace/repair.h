/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Makes a readable trace of a damaged one (docs/file-format.md, "Damaged files"): windows that are
 * sound are copied as they are, of others the records before the damage, and lost_records records
 * mark where records may be missing. A sound trace is copied unchanged, and so is a repaired one.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/trace-file.h"

/* Bytes that were left out. */
struct repair_drop {
    uint64_t offset;
    uint64_t bytes; /* 0: only the size of the window there was wrong */
    enum trace_file_damage damage;
    bool has_cpu; /* they are of one CPU alone: */
    uint32_t cpu;
};

#define REPAIR_DROPS_MAX 1000u

struct repair_result {
    uint64_t bytes;         /* of the new trace */
    uint64_t dropped_bytes; /* of the original */
    uint64_t nr_drops;      /* of which drops[] has the first REPAIR_DROPS_MAX */
    uint64_t marks;         /* lost_records records that were added */
    uint64_t windows;
    uint64_t records;             /* without lost_records and wrap_buffer */
    uint64_t lost;                /* by lost_records records, the added ones too */
    uint64_t first_tsc, last_tsc; /* 0: no record has one */
    bool is_shorter;              /* after -EIO: the original is shorter than BYTES now */
    bool is_read;                 /* after an error: it is one of reading */
    struct repair_drop drops[REPAIR_DROPS_MAX];
};

/*
 * Reads the BYTES of the file FROM, and writes the new trace to FD; -1: only finds what there is to
 * do. Returns 0; -ENOMEM; of write(2) or read(2); -EIO: also if the file has become shorter.
 */
int repair_write(int from, uint64_t bytes, int fd, struct repair_result *ret_result);
