/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The formats file of xentrace_format(1), which Xen had up to 4.18: a line for each event, its
 * number and a text with %(NAME)d, where NAME is cpu, tsc, reltsc, event, or 1 to 7 for the words.
 * Records are printed as that program does: in the order of the file, those of tracing itself too,
 * events that are not listed by the line of event 0, or not at all.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stdio.h>

#include "common/util.h"

struct event_set;
struct format_file;
struct source;

/* -EINVAL, or of open(2) and read(2), with a sentence in *RET_ERROR (free it); -ENOMEM. */
int format_file_new(const char *path, struct format_file **ret_formats, char **ret_error);
struct format_file *format_file_free(struct format_file *formats);

static inline void format_file_freep(struct format_file **formats)
{
    *formats = format_file_free(*formats);
}

#define _cleanup_format_file_ _cleanup_(format_file_freep)

/*
 * Prints the records of SOURCE; those of EVENTS only, unless it is NULL. 0; -EPIPE: nobody reads
 * any more; of source_next(); -ENOMEM.
 */
int format_file_print(const struct format_file *formats, struct source *source,
                      const struct event_set *events, FILE *out);
