/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A limit on the use of a file system, or on the space to keep free: a number of bytes, or a
 * percentage. As journald's SystemMaxUse= and SystemKeepFree=, see journald.conf(5). Values; any
 * thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/util.h"

#define DISK_LIMIT_AUTO_MAX_BYTES (UINT64_C(4) << 30) /* as journald */
#define DISK_MAX_USE_PERCENT      10u
#define DISK_KEEP_FREE_PERCENT    15u

enum disk_limit_kind {
    DISK_LIMIT_AUTO,    /* the default part of the file system, but at most 4 GiB */
    DISK_LIMIT_NONE,    /* no limit */
    DISK_LIMIT_BYTES,   /* value */
    DISK_LIMIT_PERCENT, /* value, of the file system */
};

/* A reserve that follows from keep-free=, when the file system is known. */
#define DISK_RESERVE_AUTO UINT64_MAX

struct disk_limit {
    enum disk_limit_kind kind;
    uint64_t value;
};

/* [disk] of the configuration: for the state directory. All 0 is the default. */
struct disk_limits {
    struct disk_limit max_use;
    struct disk_limit keep_free;
    uint64_t max_age_usec; /* 0: any */
};

/* "2G", "10%", "auto", "none"; -EINVAL. */
int disk_limit_parse(const char *text, struct disk_limit *ret_limit);

static inline uint64_t disk_part_bytes(uint64_t total_bytes, uint64_t percent)
{
    return total_bytes / 100 * percent + total_bytes % 100 * percent / 100;
}

/* What LIMIT means on a file system of TOTAL_BYTES; 0: nothing is limited. */
static inline uint64_t disk_limit_bytes(struct disk_limit limit, uint64_t total_bytes,
                                        unsigned int auto_percent)
{
    switch (limit.kind) {
    case DISK_LIMIT_AUTO:
        return min_u64(disk_part_bytes(total_bytes, auto_percent), DISK_LIMIT_AUTO_MAX_BYTES);
    case DISK_LIMIT_NONE:
        return 0;
    case DISK_LIMIT_BYTES:
        return limit.value;
    case DISK_LIMIT_PERCENT:
        return disk_part_bytes(total_bytes, limit.value);
    }
    return 0;
}

/*
 * The default reserve of a capture, with AVAILABLE_BYTES free when it starts: on a disk that is
 * nearly full, it may still use half of the rest.
 */
static inline uint64_t disk_auto_reserve_bytes(struct disk_limit keep_free, uint64_t total_bytes,
                                               uint64_t available_bytes)
{
    return min_u64(disk_limit_bytes(keep_free, total_bytes, DISK_KEEP_FREE_PERCENT),
                   available_bytes / 2);
}

/* Snapshots have no default reserve: the oldest files are removed afterwards (vacuum.h). */
static inline uint64_t disk_snapshot_reserve_bytes(uint64_t reserve_bytes)
{
    return reserve_bytes == DISK_RESERVE_AUTO ? 0 : reserve_bytes;
}
