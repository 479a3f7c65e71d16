/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * An output file, a session's or a snapshot's, as the disk sees it: opened or adopted, space
 * granted ahead of the writes so that the reserve is never touched, cut to its exact length at the
 * end. Main thread: these calls may wait for the disk, the collector never does.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/failure.h"

struct output {
    int fd;
    bool is_stream;    /* a pipe, a socket, a terminal-less device: written as it comes */
    bool is_direct;    /* O_DIRECT */
    bool preallocates; /* the file system can fallocate(2) */
    char *path;        /* for people; "-" if there is none */
    uint64_t reserve_bytes;
    uint64_t max_bytes; /* UINT64_MAX: none */
    uint64_t aim_bytes; /* as long as it is likely to become: no more is granted ahead; 0: any */
    bool waits;         /* what cannot be granted now may be later: it is not final */
    uint64_t granted_bytes; /* the writer may come as far as this */
    bool is_final;          /* and never further */
    bool ran_out;           /* because of the disk (not of max_bytes), at the last attempt */
};

/* Limits set, nothing open. */
void output_init(struct output *output, uint64_t reserve_bytes, uint64_t max_bytes);
/* Closes. Takes what output_init() made, at any stage. */
void output_done(struct output *output);

/*
 * Creates NAME.xentrace, 0640, in the directory DIRECTORY_FD, whose path is DIRECTORY. Fails with
 * ERROR_NAME_IN_USE, ERROR_OUTPUT, ERROR_NO_SPACE.
 */
int output_create(struct output *output, int directory_fd, const char *directory, const char *name,
                  struct failure *failure);

/*
 * The same under a hidden name, until output_publish(), which fails with -EEXIST if NAME.xentrace
 * is there by then; output_discard() removes it instead. output->path is the later one at once.
 */
int output_create_hidden(struct output *output, int directory_fd, const char *directory,
                         const char *name, struct failure *failure);
int output_publish(int directory_fd, const char *name);
void output_discard(int directory_fd, const char *name);

/*
 * The same for a segment, NAME's, that is to be written before it has its own name: while it is
 * hidden it is `prepared`, and output_publish_segment() may give it another name than it was
 * prepared for.
 */
int output_prepare_segment(struct output *output, int directory_fd, const char *directory,
                           const char *name, struct failure *failure);
int output_publish_segment(struct output *output, int directory_fd, const char *directory,
                           const char *prepared, const char *name);
void output_discard_segment(int directory_fd, const char *prepared);

/*
 * Hidden files that a daemon before us has left in the directory: removes them, but for a segment
 * with records in it, which gets its name.
 */
void output_sweep(int directory_fd);

/* Grants BYTES in all, known beforehand. Fails with ERROR_NO_SPACE. */
int output_require(struct output *output, uint64_t bytes, struct failure *failure);

/* Takes over FD, which a client opened; PATH is what it calls it. Fails with ERROR_OUTPUT,
 * _NO_SPACE. */
int output_adopt(struct output *output, int fd, const char *path, struct failure *failure);

/* How much output_extend() would like to grant. */
uint64_t output_step_bytes(const struct output *output);

/* How much of the disk may still be granted, as of now. WRITTEN_BYTES is how far the writer has
 * come. */
uint64_t output_headroom_bytes(const struct output *output, uint64_t written_bytes);

/*
 * Grants more, if there is more, in output->granted_bytes; else sets ran_out, and is_final unless
 * it `waits`.
 */
void output_extend(struct output *output, uint64_t written_bytes);

/* Cuts the file to BYTES, which frees what was granted too much, and has it on the disk. */
int output_finish(struct output *output, uint64_t bytes);

/* Pages that buffered writes have left behind up to BYTES go out of the page cache. */
void output_drop_cache(const struct output *output, uint64_t bytes);
