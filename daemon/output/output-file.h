/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The output file of a session or a snapshot. It is created or adopted, space is allocated before
 * it is written so that the reserve is never used, and it is truncated to its exact length at the
 * end.
 *
 * Every function here may wait for the disk: they belong to the output's worker (output.h). The
 * state directory is named by a descriptor, DIRECTORY_FD, and by its path for people, DIRECTORY.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/disk-limit.h"
#include "daemon/base/failure.h"
#include "daemon/output/disk-space.h"
#include "daemon/output/live-files.h"

/* What a new file is called until it is published. */
enum output_naming {
    OUTPUT_NAMED,    /* NAME.xentrace at once; NAME.xentrace.zst, if it is compressed */
    OUTPUT_HIDDEN,   /* a snapshot: what a daemon that died leaves of it is removed */
    OUTPUT_PREPARED, /* a segment: the same, but one that holds records is named */
};

struct output_file {
    int fd;
    bool is_stream;              /* a pipe, a block device: written as it comes */
    bool is_direct;              /* O_DIRECT */
    bool is_buffered;            /* ... is not wanted */
    bool is_packed;              /* compressed: its name ends in .zst */
    bool preallocates;           /* the file system can fallocate(2) */
    char *path;                  /* for people; "-" if there is none */
    char file[NAME_MAX + 1];     /* its name in the directory now, of one of our own */
    bool is_published;           /* ... is its final one, since output_file_publish() */
    struct live_file live;       /* ... and it is not swept */
    uint64_t reserve_bytes;      /* of free space, to be left; DISK_RESERVE_AUTO until it is open */
    struct disk_limit keep_free; /* what that follows from */
    uint64_t max_bytes;          /* UINT64_MAX: none */
    uint64_t aim_bytes;          /* its likely length: no more is granted ahead; 0: any */
    bool waits;               /* space that cannot be granted now may be later: it is not final */
    uint64_t granted_bytes;   /* the writer may come as far as this */
    uint64_t loose_bytes;     /* of these, granted without being allocated */
    uint64_t unwritten_bytes; /* ... and not written yet: its part in `space` */
    struct disk_space *space; /* of its file system; NULL: it is a stream */
    bool is_final;            /* and never further */
    bool ran_out;             /* because of the disk (not of max_bytes), at the last attempt */
};

/* Limits set, nothing open. */
void output_file_init(struct output_file *output, uint64_t reserve_bytes, uint64_t max_bytes);
/* Closes. Takes what output_file_init() made, at any stage. */
void output_file_done(struct output_file *output);

/* Whether NAME may be used, beside its own file: 0, or -EEXIST and FAILURE. */
typedef int (*output_check_fn)(int directory_fd, const char *directory, const char *name,
                               struct failure *failure);

/*
 * Creates NAME's file, 0640, if CHECK (NULL: none) lets it, and grants its first space. Replaces
 * nothing. Fails with ERROR_NAME_IN_USE, ERROR_OUTPUT, ERROR_NO_SPACE; then no file is left.
 */
int output_file_create(struct output_file *output, int directory_fd, const char *directory,
                       const char *name, enum output_naming naming, output_check_fn check,
                       struct failure *failure);

/*
 * Gives the file its place as NAME.xentrace, which is in output->path from then on, and has the
 * directory on the disk. Replaces nothing: -EEXIST. Returns 0 or a negative errno; if is_published
 * is set then, it has its name, which a power cut may undo.
 */
int output_file_publish(struct output_file *output, int directory_fd, const char *directory,
                        const char *name);

/* Removes what output_file_create() made, under the name that it has now. */
void output_file_remove(struct output_file *output, int directory_fd);

/*
 * Removes hidden files that an earlier daemon has left in the directory; a segment that contains
 * records is renamed to its final name instead; and trims all traces. Files of this process
 * (live-files.h) are kept.
 */
void output_file_sweep(int directory_fd);

/* The same for the hidden segments of the capture NAME. */
void output_file_sweep_segments(int directory_fd, const char *name);

/*
 * Whether blocks are allocated beyond the end of the file of ST. A daemon that was killed leaves up
 * to a grant's worth in each.
 */
bool output_file_has_spare(const struct stat *st);
/* Frees these, unless the file is live or open elsewhere. FILE is its name in the directory. */
bool output_file_trim(int directory_fd, const char *file);

/* Grants BYTES in all, known beforehand. Fails with ERROR_NO_SPACE. */
int output_file_require(struct output_file *output, uint64_t bytes, struct failure *failure);

/*
 * Takes over FD, which a client opened, root if BY_ROOT; PATH is what it calls it. FD is the
 * output's from then on, also on failure. Fails with ERROR_OUTPUT (passed-file.h), _NO_SPACE.
 */
int output_file_adopt(struct output_file *output, int fd, const char *path, bool by_root,
                      struct failure *failure);

/* How much output_file_extend() would like to grant. */
uint64_t output_file_step_bytes(const struct output_file *output);

/*
 * How much of the disk may still be granted, as of now. WRITTEN_BYTES is how far the writer has
 * come.
 */
uint64_t output_file_headroom_bytes(struct output_file *output, uint64_t written_bytes);

/*
 * Grants more, if there is more, in output->granted_bytes; else sets ran_out, and is_final unless
 * it `waits`.
 */
void output_file_extend(struct output_file *output, uint64_t written_bytes);

/*
 * Truncates the file to BYTES, which frees unused space, and syncs it. Returns 0 or a negative
 * errno.
 */
int output_file_finish(struct output_file *output, uint64_t bytes);

/* Drops the pages of buffered writes up to BYTES from the page cache. */
void output_file_drop_cache(const struct output_file *output, uint64_t bytes);
