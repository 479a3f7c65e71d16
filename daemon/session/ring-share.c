// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A part of what is free would be a part of what the rings before have left, and so on: ten rings
 * of half of the rest take all. So it is a part of what would be free without any ring.
 */

#include "daemon/session/ring-share.h"

#include <errno.h>

#include "common/protocol.h"
#include "common/units.h"

int ring_share_check(const struct ring_share *share, uint64_t bytes, uint64_t available_bytes,
                     struct failure *failure)
{
    uint64_t all_bytes = available_bytes + share->bytes;
    uint64_t share_bytes = all_bytes / 100 * share->percent;
    char wanted[UNITS_TEXT_MAX], available[UNITS_TEXT_MAX], others[UNITS_TEXT_MAX];
    char limit[UNITS_TEXT_MAX];

    if (available_bytes == 0 ||
        (share->bytes <= share_bytes && bytes <= share_bytes - share->bytes))
        return 0;
    return failure_set(
        failure, -ENOMEM, ERROR_NO_MEMORY,
        "A ring of %s is more than dom0 can spare: %s is free%s%s, and memory-share= limits all "
        "rings together to %u %% of that, %s. Use a smaller ring, or set a larger memory-share=.",
        size_format(wanted, bytes), size_format(available, available_bytes),
        share->bytes ? ", rings have " : "", share->bytes ? size_format(others, share->bytes) : "",
        share->percent, size_format(limit, share_bytes));
}
