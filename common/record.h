/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The trace record and the window, as Xen writes them and every reader expects them.
 *
 * Source: <xen/trace.h> (struct t_rec) and Xen's common/trace.c. A record is a 32-bit header
 * (bits 0-27 event, 28-30 number of extra words, 31 "has a TSC"), then 8 bytes of TSC if bit 31 is
 * set, then 0 to 7 words: 4 to 40 bytes, always a multiple of 4.
 *
 * A file is a sequence of windows: a cpu_change record, then that many bytes of one CPU's records.
 * Nothing here trusts its input; nothing allocates. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <xen/trace.h>

#include "common/cpu-set.h"

#define RECORD_MIN_BYTES 4u
#define RECORD_MAX_BYTES 40u

#define RECORD_EVENT_MASK 0x0fffffffu

#define WINDOW_HEADER_BYTES 12u
#define WINDOW_HEADER       0x2001f003u /* TRC_TRACE_CPU_CHANGE with 2 extra words, no TSC */

/* A window is one CPU's trace buffer at most. All of Xen's together have at most a quarter of this.
 */
#define WINDOW_MAX_BYTES (UINT32_C(1) << 30)

#define LOST_RECORD_HEADER 0xc001f001u /* TRC_LOST_RECORDS with a TSC and 4 extra words */
#define LOST_RECORD_BYTES  28u

/* The cpu_change record before every window. */
struct window_header {
    uint32_t header; /* WINDOW_HEADER */
    uint32_t cpu;
    uint32_t bytes; /* of records that follow */
};

/* A lost_records record: COUNT records did not fit since FIRST_TSC. */
struct lost_record {
    uint32_t header; /* LOST_RECORD_HEADER */
    uint32_t tsc[2]; /* low, high */
    uint32_t count;
    uint16_t domid;
    uint16_t vcpu;
    uint32_t first_tsc[2]; /* low, high */
};

_Static_assert(sizeof(struct window_header) == WINDOW_HEADER_BYTES, "a file format");
_Static_assert(sizeof(struct lost_record) == LOST_RECORD_BYTES, "a file format");

/* Whether a window may begin with the WINDOW_HEADER_BYTES at P: what they say is possible. */
static inline bool window_parse(const void *p, struct window_header *ret_header)
{
    memcpy(ret_header, p, sizeof(*ret_header));
    return ret_header->header == WINDOW_HEADER && ret_header->cpu < CPU_SET_MAX &&
           ret_header->bytes % 4 == 0 && ret_header->bytes <= WINDOW_MAX_BYTES;
}

static inline uint32_t record_event(uint32_t header)
{
    return header & RECORD_EVENT_MASK;
}

/* Bytes of the whole record, from its header alone: 4 to 40. */
static inline uint32_t record_bytes(uint32_t header)
{
    return RECORD_MIN_BYTES + (header >> 31) * 8u + ((header >> TRACE_EXTRA_SHIFT) & 7u) * 4u;
}

static inline bool record_has_tsc(uint32_t header)
{
    return header >> 31;
}

/* The TSC of the record at P; only if record_has_tsc(). P needs no alignment beyond 4. */
static inline uint64_t record_tsc(const void *p)
{
    uint32_t word[2];

    memcpy(word, (const char *)p + 4, sizeof(word));
    return (uint64_t)word[1] << 32 | word[0];
}

/* wrap_buffer: filler, skipped by all readers, never counted as a record. */
static inline bool record_is_wrap(uint32_t header)
{
    return record_event(header) == TRC_TRACE_WRAP_BUFFER;
}

/* lost_records with the size that Xen gives it: reports a loss, is not counted as a record. */
static inline bool record_is_lost(uint32_t header)
{
    return header == LOST_RECORD_HEADER;
}
