/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What is in one trace file, and whether it is all there: the file itself, read to its end, and
 * what its sidecar says about it. Needs no daemon.
 */

#include <stdbool.h>
#include <stdio.h>

#include "common/trace-file.h"
#include "ctl/doc.h"

struct info {
    char *path;                         /* as typed */
    struct trace_file_summary *summary; /* NULL: could not be read, see error */
    char *error;
    char *sidecar_path;
    struct json_object *sidecar; /* NULL: none */
    char *sidecar_error;         /* there is one, but it is no use */
};

/* Reads PATH ("-": standard input) and its sidecar. Only -ENOMEM is an error. */
int info_new(const char *path, struct info **ret_info);
struct info *info_free(struct info *info);

static inline void info_freep(struct info **info)
{
    *info = info_free(*info);
}

#define _cleanup_info_ _cleanup_(info_freep)

/* What the sidecar says of this one file. */
struct info_told {
    bool is_known; /* false: it says nothing of this file */
    uint64_t bytes, records, lost;
};

struct info_told info_read_told(const struct info *info);

/* Whether xentraced may still be writing it, as far as the sidecar tells. */
bool info_is_running(const struct info *info);

/* Whether the sidecar, of a capture that ended, knows of more than the file has. */
bool info_is_short(const struct info *info);

/* Whether the file can be relied on: exit code 0. */
bool info_is_sound(const struct info *info);

/* The TSC's frequency, from the sidecar; 0 without. */
uint64_t info_tsc_khz(const struct info *info);

/* For people. */
void info_print(FILE *file, struct info *info);

/* As one object of `info --json`, appended to ARRAY. */
void info_add_json(struct json_object *array, const struct info *info);
