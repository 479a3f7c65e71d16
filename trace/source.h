/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where a trace's bytes come from, and the windows in them: a file that is mapped, memory, or a
 * pipe, of which two rounds are kept. Windows are found as they are asked for, in the order of the
 * file.
 *
 * The bytes are untrusted. A trace ends at the first byte that begins no window (damage); what came
 * before is used. One thread.
 *
 * Source: <xen/trace.h>; docs/file-format.md of what xentraced writes.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

struct source;

/* A window's records: whole windows only, whatever is in them. */
struct source_window {
    uint64_t offset; /* of its header, in the file */
    uint32_t cpu;    /* below SOURCE_CPUS_MAX */
    uint32_t bytes;  /* of records */
    const uint8_t *records; /* until source_release() of it, or of the source */
};

#define SOURCE_CPUS_MAX 16384u

/* Where a trace ends before its file does, and why: see enum trace_file_damage. */
struct source_damage {
    bool is_damaged;
    uint64_t offset;
};

/*
 * FD is read from where it stands; it is mapped if it is a regular file, and read as it comes
 * otherwise. Owned from then on, whatever is returned. 0; -ENOMEM, or what mmap(2) says.
 */
int source_new_fd(int fd, struct source **ret_source);
/* BYTES at DATA, aligned to 4, borrowed until source_free(). */
int source_new_memory(const void *data, uint64_t bytes, struct source **ret_source);
struct source *source_free(struct source *source);

/* Whether it is read once, and kept only until source_release(). */
bool source_is_stream(const struct source *source);

/* The next window. 1; 0: there are no more; or a negative errno of read(2), -ENOMEM. */
int source_next(struct source *source, struct source_window *ret_window);
/* Of a stream: its records are not needed any more. */
void source_release(struct source *source, const struct source_window *window);

/*
 * Of what is not a stream: the next window is the first that begins at OFFSET or after it, as far as
 * that can be told: there is a window header, and others follow it. False: there is none.
 */
bool source_seek(struct source *source, uint64_t offset);
/* Where the next window is, or the damage; its file's size at the end. */
uint64_t source_offset(const struct source *source);

/* After source_next() has returned 0. */
struct source_damage source_damage(const struct source *source);
uint64_t source_bytes(const struct source *source); /* read, or of the file */
