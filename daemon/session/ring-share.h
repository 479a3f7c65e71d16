/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The memory of all rings together, which memory-share= limits. At most half of it is for rings of
 * users other than root, and they leave room for the flight recorder while that does not run: so
 * root's rings and the recorder have theirs, in whatever order they are started. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/failure.h"

struct ring_share {
    uint32_t percent;        /* memory-share= */
    uint64_t bytes;          /* that rings have, or are about to have */
    uint64_t users_bytes;    /* of these: rings of users other than root */
    uint64_t recorder_bytes; /* that the recorder needs when it is started; 0: it has them */
};

/*
 * Whether there may be another ring of BYTES when dom0 can spare AVAILABLE_BYTES (0: unknown);
 * OF_USER: of a user other than root. Returns 0, or -ENOMEM and FAILURE.
 */
int ring_share_check(const struct ring_share *share, bool of_user, uint64_t bytes,
                     uint64_t available_bytes, struct failure *failure);

/* A ring of BYTES is about to be made; or is gone. */
void ring_share_take(struct ring_share *share, bool of_user, uint64_t bytes);
void ring_share_give(struct ring_share *share, bool of_user, uint64_t bytes);
