/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * [capture NAME] of the configuration: a capture in segments that starts with the daemon. The keys
 * and what their values mean; config.c reads the lines. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/name.h"

#define CAPTURE_CONFIGS_MAX 8u
#define CAPTURE_LIST_MAX    200u /* a line of the file, as inih reads it */
#define CAPTURE_PROBLEM_MAX 400u
#define CAPTURE_SECTION     "capture NAME"

/* A value. */
struct capture_config {
    char name[SESSION_NAME_MAX + 1];
    bool enabled;
    char events[CAPTURE_LIST_MAX]; /* as typed; valid */
    char cpus[CAPTURE_LIST_MAX];   /* as typed; valid but for CPUs that this host may not have */
    uint64_t segment_size_bytes;   /* 0: none, if there is a time */
    uint64_t segment_time_usec;
    uint32_t keep_files;      /* 0: all */
    uint64_t keep_size_bytes; /* 0: any */
    uint64_t reserve_bytes;   /* or DISK_RESERVE_AUTO */
    const char *on_reserve;   /* static */
};

struct capture_configs {
    struct capture_config captures[CAPTURE_CONFIGS_MAX]; /* in the order of the file */
    size_t count;
};

/* Whether the section TEXT, without its brackets, is that of a capture with a name. */
bool capture_config_is_section(const char *text);

/*
 * A section begins: adds the capture, with its defaults. On any error of these functions PROBLEM is
 * half a sentence. -EINVAL.
 */
int capture_config_begin(struct capture_configs *configs, const char *section,
                         char problem[static CAPTURE_PROBLEM_MAX]);

/* KEY=VALUE of the newest one. -EINVAL, -ENOMEM; an unknown key has a problem, too. */
int capture_config_set(struct capture_configs *configs, const char *key, const char *value,
                       char problem[static CAPTURE_PROBLEM_MAX]);

/* Whether the newest one is complete, and its keys go together. */
int capture_config_check(struct capture_configs *configs, char problem[static CAPTURE_PROBLEM_MAX]);
