/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The source of a trace and its windows: a mapped file, memory, or a pipe, of which two rounds are
 * kept. Windows are found on request, in the order of the file.
 *
 * Each of them may be compressed with zstd (common/unpack.h): offsets and sizes are those of what
 * it holds. With a seek table it is sought frame by frame; without one it is read once, as a pipe
 * is.
 *
 * The bytes are untrusted. A trace ends at the first byte that does not begin a window (damage);
 * the part before is used. One thread.
 *
 * Source: <xen/trace.h>; docs/file-format.md of what xentraced writes.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "common/cpu-set.h"

struct source;

/* A window's records: whole windows only, whatever is in them. */
struct source_window {
    uint64_t offset;        /* of its header, in the file */
    uint32_t cpu;           /* below SOURCE_CPUS_MAX */
    uint32_t bytes;         /* of records */
    const uint8_t *records; /* until source_take() or source_release() of it, or source_free() */
};

#define SOURCE_CPUS_MAX CPU_SET_MAX

/* Where a trace ends before its file does, and why: see enum trace_file_damage. */
struct source_damage {
    bool is_damaged;
    uint64_t offset;
};

/*
 * FD is read from where it stands; it is mapped if it is a regular file, and read as it comes
 * otherwise. Owned from then on, whatever is returned. 0; -ENOMEM, -EISDIR, or what mmap(2) says.
 */
int source_new_fd(int fd, struct source **ret_source);
/* BYTES at DATA, aligned to 4, borrowed until source_free(). */
int source_new_memory(const void *data, uint64_t bytes, struct source **ret_source);
struct source *source_free(struct source *source);

/* Whether it is read once. */
bool source_is_stream(const struct source *source);
/*
 * Whether windows take no memory before source_take(). Else they take it until source_release(), as
 * those of a stream and of a compressed file do: only as many as needed should be read ahead.
 */
bool source_keeps_windows(const struct source *source);
bool source_is_packed(const struct source *source);

/* The next window. 1; 0: there are no more; or a negative errno of read(2), -ENOMEM. */
int source_next(struct source *source, struct source_window *ret_window);
/*
 * The beginning of its records, to look at just after source_next() and until the next call; not
 * always all of them.
 */
const uint8_t *source_begin_of(struct source *source, const struct source_window *window,
                               uint32_t *ret_bytes);
/* Before all of its records are read, which is optional, but faster: they are moved in memory. */
void source_take(struct source *source, struct source_window *window);
/* Its records are not needed any more. */
void source_release(struct source *source, const struct source_window *window);

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
