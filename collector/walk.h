/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The record walk: steps through the headers of a window that was just copied, while it is hot in
 * the cache. It proves the framing, counts, reads the TSCs, and takes out what a session did not
 * ask for. The bytes are private to us but their content is Xen's: untrusted.
 *
 * Collector thread; nothing allocates, nothing blocks.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/event-set.h"

/* Class bits and subclass nibble of an event, bits 12-27, as an index into a bitmap. */
#define WALK_FILTER_BITS 65536u

#define WALK_FOREIGN_TICKS (UINT64_C(1) << 36) /* half a minute, about */

struct walk_filter {
    uint64_t allow[WALK_FILTER_BITS / 64];
    /* The same of the usual records, in short: bits 12-16 of the event as an index into a word
     * for its lowest class; the last, without a class, lets none pass. Less than in `allow`:
     * no records about tracing itself. */
    uint32_t plain[EVENT_CLASSES + 1];
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

/*
 * Walks BYTES of records at WINDOW and puts those that pass FILTER together at KEPT: WINDOW itself,
 * which is best when all pass; a place elsewhere with room for BYTES, all of which may be written
 * to, which is best when many do not; or NULL to count only.
 * WHOLE says that Xen's own end of the window is its end; otherwise it was cut to fit and may end
 * inside a record, which is left for the next round. CLASS_RECORDS is added to.
 */
void walk_window(const uint8_t *window, uint32_t bytes, bool whole,
                 const struct walk_filter *filter, uint8_t *kept,
                 uint64_t class_records[static EVENT_CLASSES], struct walk_result *ret_result);

/*
 * Passes over what is older than TSC at the start of BYTES of records at WINDOW: records, and
 * lost_records whose losses began before LOSSES_TSC or that are older than TSC themselves. Returns
 * how many bytes that are, whole records; *RET_FOUND: a record that is not older follows.
 *
 * One without a TSC is older if an older one comes after it. One that is older by
 * WALK_FOREIGN_TICKS is not: its TSC is of another clock, as in a trace that is replayed.
 */
uint32_t walk_pass_older(const uint8_t *window, uint32_t bytes, uint64_t tsc, uint64_t losses_tsc,
                         bool *ret_found);

/* Adds the walk over what followed, in the same window, to RESULT. */
void walk_add(struct walk_result *result, const struct walk_result *next);

/*
 * Fills BYTES (a multiple of 4) at DESTINATION with wrap_buffer records, which every reader skips.
 */
void walk_write_padding(uint8_t *destination, uint32_t bytes);
