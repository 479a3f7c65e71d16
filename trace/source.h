/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The source of a trace and its windows: a file, memory, or a pipe. Windows are found on request,
 * in the order of the file.
 *
 * Each of them may be compressed with zstd (common/unpack.h): offsets and sizes are those of what
 * it holds. With a seek table it is sought frame by frame; without one it is read once, as a pipe
 * is.
 *
 * The bytes are untrusted. A trace ends at the first byte that does not begin a window (damage);
 * the part before is used.
 *
 * No file is mapped: a disk that fails, and a file that has become shorter since it was opened
 * (-EIO), are errors of the function that reads. After the first, source_next() returns it as well.
 * One thread.
 *
 * Source: <xen/trace.h>; docs/file-format.md of what xentraced writes.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "common/cpu-set.h"

struct source;

/* A window, whatever is in it. */
struct source_window {
    uint64_t offset;        /* of its header, in the file */
    uint32_t cpu;           /* below SOURCE_CPUS_MAX */
    uint32_t bytes;         /* of records */
    const uint8_t *records; /* until source_release() of it; NULL: they are in the file */
};

/* Records of a window in memory, or a part of them that need not end with a record. */
struct source_piece {
    const uint8_t *p;
    uint32_t bytes;
    void *allocated; /* private */
};

/* A stream's windows in memory: three rounds of trace buffers as large as Xen's can be. */
#define SOURCE_HELD_MAX_BYTES (UINT64_C(768) << 20)

#define SOURCE_CPUS_MAX CPU_SET_MAX

/* Where a trace ends before its file does, and why: see enum trace_file_damage. */
struct source_damage {
    bool is_damaged;
    uint64_t offset;
};

/*
 * FD is read from where it stands. Owned from then on, whatever is returned. 0; -ENOMEM, -EISDIR,
 * or what read(2) says.
 */
int source_new_fd(int fd, struct source **ret_source);
/* BYTES at DATA, aligned to 4, borrowed until source_free(). */
int source_new_memory(const void *data, uint64_t bytes, struct source **ret_source);
struct source *source_free(struct source *source);

/* Whether it is read once. */
bool source_is_stream(const struct source *source);
/*
 * Whether windows take no memory. Else they take it until source_release(), as those of a stream
 * and of a compressed file do: only as many as needed should be read ahead.
 */
bool source_keeps_windows(const struct source *source);
bool source_is_packed(const struct source *source);

/*
 * The next window. 1; 0: there are no more; -EFBIG: windows that were not released have more than
 * SOURCE_HELD_MAX_BYTES; -ENOMEM, -EIO, or what read(2) says.
 */
int source_next(struct source *source, struct source_window *ret_window);
/* The window is not needed any more. */
void source_release(struct source *source, const struct source_window *window);

/*
 * Looks at the records of WINDOW from SKIP on, where there are some: at least RECORD_MAX_BYTES, or
 * all that are left, until the next call of a function for the source. NULL: they cannot be read.
 */
const uint8_t *source_look(struct source *source, const struct source_window *window, uint32_t skip,
                           uint32_t *ret_bytes);
/* The same until source_release_piece(). 0; -ENOMEM, -EIO, or what read(2) says. */
int source_take(struct source *source, const struct source_window *window, uint32_t skip,
                struct source_piece *ret_piece);
/* Takes an empty one. PIECE is empty then. */
void source_release_piece(struct source *source, struct source_piece *piece);

/*
 * Not for streams: continues with the first window at or after OFFSET; of a compressed file, with
 * the first that begins a frame. A window is recognized by its header and the headers that follow.
 * At the trace's beginning, or before it, it continues there, whatever is there. False: none was
 * found.
 */
bool source_seek(struct source *source, uint64_t offset);
/* Not for streams: continues at OFFSET, where a window was. */
void source_return(struct source *source, uint64_t offset);
/* Where the next window is, or the damage; its file's size at the end. */
uint64_t source_offset(const struct source *source);

/* After source_next() has returned 0. */
struct source_damage source_damage(const struct source *source);
uint64_t source_bytes(const struct source *source); /* read, or of the file */
/* The first error of reading; 0: there was none. */
int source_error(const struct source *source);
/* After -EIO: whether that is because the file has become shorter since it was opened. */
bool source_is_shorter(const struct source *source);
