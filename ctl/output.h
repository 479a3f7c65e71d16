/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The file that the user named with -o, and its sidecar, opened with the user's own rights.
 *
 * Nothing that was there is touched before the daemon has accepted: files are made
 * anew, and with --force made beside the old ones, which output_keep() replaces. output_free()
 * without output_keep() removes what was made.
 */

#include <stdbool.h>

#include "common/util.h"

/* One file that is being made. */
struct output_file {
    int fd;
    char *path;      /* absolute: where it belongs */
    char *temporary; /* where it is until it replaces an old one; NULL: at its path */
    bool is_new;     /* made by this run */
};

struct output {
    struct output_file trace;
    struct output_file sidecar; /* fd -1: none, the output is a stream */
    bool is_stream;             /* a pipe, a FIFO or a device */
    bool is_stdout;             /* no path then */
};

/*
 * Opens what the user TYPED: "-", a FIFO or device that exists, or a new file (an existing regular
 * one with FORCE). Returns 0 or a negative errno with one sentence in *RET_ERROR (free it), which
 * says NOTHING ("Nothing was started") where it is not plain.
 */
int output_open(const char *typed, bool force, const char *nothing, struct output **ret_output,
                char **ret_error);

/*
 * The daemon has accepted: the files stay, and take the place of old ones. An error with its
 * sentence says where the new file stays instead.
 */
int output_keep(struct output *output, char **ret_error);

/* Nobody knows whether it has: files stay where they are, old ones too. */
void output_abandon(struct output *output);

struct output *output_free(struct output *output);

static inline void output_freep(struct output **output)
{
    *output = output_free(*output);
}

#define _cleanup_output_ _cleanup_(output_freep)

/* Where people read: stderr if standard output carries the records. TYPED may be NULL. */
FILE *output_talk(const char *typed);
