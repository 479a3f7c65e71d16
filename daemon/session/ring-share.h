/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The memory of all rings together, which memory-share= limits. Main thread.
 */

#include <stdint.h>

#include "daemon/base/failure.h"

struct ring_share {
    uint32_t percent; /* memory-share= */
    uint64_t bytes;   /* that rings have, or are about to have */
};

/*
 * Whether there may be another ring of BYTES when dom0 can spare AVAILABLE_BYTES (0: unknown).
 * Returns 0, or -ENOMEM and FAILURE.
 */
int ring_share_check(const struct ring_share *share, uint64_t bytes, uint64_t available_bytes,
                     struct failure *failure);
