/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The record walk: steps through the headers of a window that was just copied, while it is in the
 * cache. In one pass, it checks the framing, counts, reads the TSCs, and selects the records for
 * each sink. The copy is private, but its content is from Xen and untrusted.
 *
 * Collector thread; nothing allocates, nothing blocks.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/event-set.h"

#define WALK_FOREIGN_TICKS (UINT64_C(1) << 36) /* half a minute, about */

/* A bit for each value of the subclass nibble, of each class. A record passes with any class. */
struct walk_filter {
    uint16_t passes[EVENT_CLASSES];
};

/* Lets everything pass: to count what was filtered before. */
extern const struct walk_filter walk_everything;

/* Lets exactly SET pass; lost_records and wrap_buffer, which readers skip, always. */
void walk_filter_init(struct walk_filter *filter, const struct event_set *set);

struct walk_result {
    uint32_t consumed_bytes; /* of the window as Xen wrote it: whole records */
    uint32_t kept_bytes;     /* what is left at its start after filtering */
    uint64_t records;        /* kept, without lost_records and wrap_buffer */
    uint64_t lost;           /* the sum of the lost_records counts */
    uint64_t first_tsc;      /* of the kept records; 0 if none has one */
    uint64_t last_tsc;
    uint64_t lost_first_tsc; /* of the first loss reported; 0 if there is none */
    uint64_t lost_last_tsc;  /* of the record that reports the last one */
    bool broken;             /* a record has no class, or reached beyond a window that was whole */
};

/* How much of a piece passes a filter. */
enum walk_passing {
    WALK_ALL,
    WALK_SOME,
    WALK_NONE,
};

/* A sink's part of a window, which is walked in pieces. Begins with zeroes, but for the filter. */
struct walk_part {
    const struct walk_filter *filter;
    /*
     * Where the records that pass are put together. Pieces of which all is expected to pass are
     * best copied there before they are walked; otherwise it has room for the whole window, and any
     * of that may be written to. NULL: they are only counted.
     */
    uint8_t *kept;
    enum walk_passing passing; /* of the last piece: the next one is expected to be like it */
    struct walk_result result;
    uint64_t class_records[EVENT_CLASSES];
};

/*
 * Walks the next BYTES of a window's records, at PIECE, for all of PARTS, and adds to each what
 * passes its filter; at kept + result.kept_bytes, which of at most one part is PIECE itself. WHOLE
 * says that the piece ends where Xen's window does; otherwise it may end inside a record, which is
 * left for the next piece.
 */
void walk_piece(uint8_t *piece, uint32_t bytes, bool whole, struct walk_part *const *parts,
                unsigned int nr_parts);

/*
 * The same for a window in one piece, and one filter; adds to CLASS_RECORDS. WINDOW is written to
 * only if KEPT is the same.
 */
void walk_window(const uint8_t *window, uint32_t bytes, bool whole,
                 const struct walk_filter *filter, uint8_t *kept,
                 uint64_t class_records[static EVENT_CLASSES], struct walk_result *ret_result);

/*
 * Skips records older than TSC at the start of BYTES of records at WINDOW, and lost_records records
 * that are older than TSC or whose loss began before LOSSES_TSC. Returns the number of bytes to
 * skip, whole records; *RET_FOUND: a record that is not older follows.
 *
 * One without a TSC is older if an older one comes after it. One that is older by
 * WALK_FOREIGN_TICKS is not: its TSC is of another clock, as in a trace that is replayed.
 */
uint32_t walk_pass_older(const uint8_t *window, uint32_t bytes, uint64_t tsc, uint64_t losses_tsc,
                         bool *ret_found);

/*
 * Fills BYTES (a multiple of 4) at DESTINATION with wrap_buffer records, which every reader skips.
 */
void walk_write_padding(uint8_t *destination, uint32_t bytes);
