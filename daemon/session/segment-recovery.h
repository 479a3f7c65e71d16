/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the segments of a capture that continues. First those that a killed daemon has not finished
 * are read, truncated after their last whole window, and counted: the next segment waits for that.
 * The others, which may be thousands, are looked at one by one afterwards. On a worker: may wait
 * for the disk, and takes as long as reading a segment.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/failure.h"
#include "daemon/session/segments.h"

/* Of one CPU, in one segment. */
struct recovered_cpu {
    uint64_t delivered;
    uint64_t told; /* missing, as its lost_records records report */
    uint64_t last_tsc;
};

struct recovered_segment {
    struct segment segment; /* of one that was read here: `lost` is all that it reports */
    bool is_unread;         /* only its number and its file's size are known yet */
    bool is_read;           /* it was not finished */
    bool has_sidecar;
    uint64_t class_records[EVENT_CLASSES];
    uint64_t windows;
    struct recovered_cpu *cpus; /* [nr_cpus] */
};

struct recovery_request {
    int directory_fd;
    const char *directory;
    const char *name;
    unsigned int nr_cpus;
    bool has_state;           /* else no segment waits, and those with a sidecar are finished */
    uint32_t finished_number; /* with it: those up to that are */
};

struct recovery {
    struct recovered_segment *segments; /* by number */
    size_t count;
    uint32_t last_number;    /* of any file; 0: there is none */
    bool sidecar_is_foreign; /* NAME.json is no capture's with segments: it may not be replaced */
};

/* Lists all, and reads those that the state does not include. Waits for no reader of any. */
int recovery_read(const struct recovery_request *request, struct recovery *ret_recovery,
                  struct failure *failure);
/*
 * Reads the sidecar of SEGMENT, one of those listed, or its file if it has none; of one that was
 * read before: syncs it. Returns 0, 1 if nothing was in it and it was removed, or a negative errno.
 */
int recovery_complete(const struct recovery_request *request, struct recovered_segment *segment);
void recovery_done(struct recovery *recovery);
