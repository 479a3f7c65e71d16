/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * [capture NAME] of the configuration: a capture in segments that starts with the daemon. Its keys
 * and values are defined in config-keys.c. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/name.h"

#define CAPTURE_CONFIGS_MAX       8u
#define CAPTURE_LIST_MAX          200u /* a line of the file, as inih reads it */
#define CAPTURE_SEGMENT_MIN_BYTES (UINT64_C(1) << 20)

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
    bool compress;            /* compress=zstd */
};

struct capture_configs {
    struct capture_config captures[CAPTURE_CONFIGS_MAX]; /* in the order of the files */
    size_t count;
};
