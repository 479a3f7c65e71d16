/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The file that the user named with -o, and its sidecar, opened with the user's own rights.
 * Provides the descriptors that are passed to the daemon, and copies the records if the daemon does
 * not accept the user's descriptor: a socket, or a file in memory (common/memory-file.h).
 *
 * Existing files are not changed before the daemon has accepted the request: new files are created,
 * with --force next to the old ones, which output_keep() replaces. output_free() without
 * output_keep() removes the new files. Files and links of other users in a directory with the
 * sticky bit are neither opened nor followed (chase.h).
 */

#include <stdbool.h>
#include <stdio.h>

#include "common/util.h"

struct copy;
struct json_object;

/* One file that is being made. */
struct output_file {
    int fd;           /* to be passed to the daemon */
    int directory_fd; /* of its directory; lent */
    char *path;       /* absolute: where it belongs */
    char *temporary;  /* where it is until it replaces an old one; NULL: at its path */
    bool is_new;      /* made by this run */
};

struct output {
    int directory_fd; /* of both files; -1: no path */
    struct output_file trace;
    struct output_file sidecar; /* fd -1: none, the output is a stream */
    bool is_stream;             /* a pipe, a FIFO or a device */
    bool is_stdout;             /* no path then */
    struct copy *copy;          /* from a pipe, whose other end is trace.fd; NULL: none */
    int own_sidecar_fd;         /* of a copy: this process writes the sidecar; -1: it does not */
};

/* What is to be opened. */
struct output_options {
    const char *typed;      /* "-", a FIFO or device that exists, or a new file */
    const char *nothing;    /* "Nothing was started": where it is not plain */
    bool force;             /* an existing regular file or link is replaced */
    bool for_daemon;        /* passed to the daemon, which writes to no file in memory */
    bool may_copy;          /* the caller lives until the end, and calls output_finish() */
    uint64_t reserve_bytes; /* that a copy into memory leaves free; OUTPUT_RESERVE_AUTO; 0: none */
    bool is_packed;         /* of a bundle: the trace is compressed */
    bool is_archive;        /* one file, without a sidecar, which this process writes itself */
};

#define OUTPUT_RESERVE_AUTO UINT64_MAX /* as the daemon's default for a file on a disk */

/* Returns 0 or a negative errno with one sentence in *RET_ERROR (free it). */
int output_open(const struct output_options *options, struct output **ret_output, char **ret_error);

/*
 * Copies all that comes from FD, which is taken over, to the output, instead of passing a
 * descriptor to the daemon: for a daemon that cannot be passed one. output_finish() waits for it.
 */
int output_copy_from(struct output *output, int fd, char **ret_error);

/*
 * The daemon has accepted: the files stay, and take the place of old ones; what was passed is
 * closed. An error with its sentence says where the new file stays instead.
 */
int output_keep(struct output *output, char **ret_error);

/* Nobody knows whether it has: files stay where they are, old ones too. */
void output_abandon(struct output *output);

/*
 * Writes DOC as the sidecar, after the daemon has accepted, and again at the end. If the daemon
 * writes to a pipe and this process to the file (own_sidecar_fd), DOC describes the file
 * afterwards; else does nothing. Returns 0 or a negative errno with a sentence in *RET_ERROR.
 */
int output_describe(struct output *output, struct json_object *doc, char **ret_error);

/*
 * The daemon has written everything: waits until all was copied, if there is a copy.
 */
int output_finish(struct output *output, char **ret_error);

struct output *output_free(struct output *output);

static inline void output_freep(struct output **output)
{
    *output = output_free(*output);
}

#define _cleanup_output_ _cleanup_(output_freep)

/* Where people read: stderr if standard output carries the records. TYPED may be NULL. */
FILE *output_talk(const char *typed);
