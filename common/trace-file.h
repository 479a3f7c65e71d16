/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads a trace file from its first byte to its last, summarizes its content, and checks that every
 * reader can read it: whole windows of whole records, no padding, rounds with CPUs ascending. Of a
 * file that is compressed with zstd this is about what it holds, as are all offsets.
 *
 * The file is untrusted. It is read in pieces: memory does not grow with the file. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event-set.h"
#include "common/unpack.h"

/*
 * The kind of damage at trace_file_summary.damage_offset, which is the begin of a torn window, the
 * position where a window should begin, or the begin of an invalid record.
 */
enum trace_file_damage {
    TRACE_FILE_SOUND,
    TRACE_FILE_EMPTY,       /* no byte at all: a capture in which nothing happened */
    TRACE_FILE_NOT_A_TRACE, /* begins neither with a cpu_change record nor with zero bytes */
    TRACE_FILE_TORN_WINDOW, /* the last window is cut off: a crash, a full disk */
    TRACE_FILE_ZEROES,      /* zero bytes for a window or a record: preallocation, padding, crash */
    TRACE_FILE_NO_WINDOW,   /* something else where a window should begin */
    TRACE_FILE_RECORD_OVERLAP, /* a record reaches beyond its window */
    TRACE_FILE_NESTED_WINDOW,  /* a cpu_change record inside a window */
    TRACE_FILE_BAD_FRAME,      /* a compressed frame is cut off, or is damaged: see packing */
};

struct trace_file_cpu {
    bool present;
    uint64_t windows;
    uint64_t records;      /* without lost_records, wrap_buffer */
    uint64_t lost;         /* sum of the lost_records counts */
    uint64_t lost_records; /* how many lost_records records */
    uint64_t bytes;        /* of windows, their headers left out */
    uint64_t first_tsc;    /* the lowest and the highest; 0 if no record has one */
    uint64_t last_tsc;
};

/* All counts are of whole, sound windows: what is left when the file is cut to sound_bytes. */
struct trace_file_summary {
    enum trace_file_damage damage;
    uint64_t damage_offset; /* where */
    uint64_t bytes; /* of the file; of a pipe, and if it is compressed, up to the damage and as far
                     * as it was read */
    uint64_t sound_bytes; /* up to the end of the last whole, sound window */
    bool is_packed;       /* it is compressed; the file itself has */
    uint64_t stored_bytes;
    bool has_seek_table;
    enum unpack_damage packing;
    uint64_t windows;
    uint64_t rounds;
    uint64_t records;
    uint64_t lost;
    uint64_t lost_records;
    uint64_t first_tsc; /* over all CPUs; 0 if no record has one */
    uint64_t last_tsc;
    uint64_t class_records[EVENT_CLASSES]; /* by lowest class bit */
    unsigned int nr_cpus;                  /* entries in cpus[]: highest CPU present + 1 */
    struct trace_file_cpu *cpus;
};

/*
 * Reads FD from where it stands up to its end or to the first damage; it need not be seekable.
 * Returns 0 (a damaged file too: see damage); -EIO: also if a file has become shorter since then;
 * other errors of read(2); -ENOMEM. Free with trace_file_summary_free().
 */
int trace_file_scan(int fd, struct trace_file_summary **ret_summary);
struct trace_file_summary *trace_file_summary_free(struct trace_file_summary *summary);

/* What DAMAGE means, as half a sentence for people: "the last window is cut off". Static. */
const char *trace_file_damage_text(enum trace_file_damage damage);
/* The same as a word for programs: "torn-window"; NULL: it is sound. Static. */
const char *trace_file_damage_kind(enum trace_file_damage damage);

/*
 * Judges the record at P. From there on, the file has AVAILABLE bytes, and the record's window has
 * LEFT. Every strict walk over a trace uses this.
 */
enum trace_file_damage trace_file_judge_record(const void *p, uint64_t available, uint64_t left);
/* Judges the bytes at P, OFFSET in the file, where a window should begin. */
enum trace_file_damage trace_file_judge_window(const void *p, uint64_t available, uint64_t offset);

/*
 * Called for every record, including lost_records and wrap_buffer, in file order. RECORD points to
 * its header, aligned to 4 bytes. Records of a damaged window are passed up to the damage, but the
 * summary does not count them. A return value other than 0 ends the walk, which returns it.
 */
typedef int (*trace_file_record_fn)(void *context, unsigned int cpu, const void *record,
                                    uint32_t record_bytes);

/* As trace_file_scan(), and gives each record to FN. */
int trace_file_walk(int fd, trace_file_record_fn fn, void *context,
                    struct trace_file_summary **ret_summary);

#define TRACE_FILE_BUFFER_MIN_BYTES 64u

/* As trace_file_walk(), reading into a buffer of that size; for tests. FN may be NULL. */
int trace_file_walk_buffered(int fd, size_t buffer_bytes, trace_file_record_fn fn, void *context,
                             struct trace_file_summary **ret_summary);
