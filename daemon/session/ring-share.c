// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A part of what is free would be a part of what the rings before have left, and so on: ten rings
 * of half of the rest take all. So it is a part of what would be free without any ring.
 */

#include "daemon/session/ring-share.h"

#include <errno.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"

/* Whether BYTES more fit beside TAKEN in ROOM. */
static bool fits(uint64_t taken, uint64_t bytes, uint64_t room)
{
    return taken <= room && bytes <= room - taken;
}

static int check_user(const struct ring_share *share, uint64_t bytes, uint64_t share_bytes,
                      struct failure *failure)
{
    uint64_t kept_bytes = min_u64(share->recorder_bytes, share_bytes);
    uint64_t others_bytes = share->bytes - share->users_bytes;
    uint64_t free_bytes = share_bytes - kept_bytes;
    uint64_t users_bytes = min_u64(share_bytes / 2, free_bytes - min_u64(others_bytes, free_bytes));
    char wanted[UNITS_TEXT_MAX], limit[UNITS_TEXT_MAX], used[UNITS_TEXT_MAX];

    if (fits(share->users_bytes, bytes, users_bytes))
        return 0;
    return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY,
                       "A ring of %s is too large: rings of users other than root may have %s "
                       "together, and have %s. The rest of memory-share= is kept for root and the "
                       "flight recorder. Use a smaller ring, or use sudo.",
                       size_format(wanted, bytes), size_format(limit, users_bytes),
                       size_format(used, share->users_bytes));
}

void ring_share_take(struct ring_share *share, bool of_user, uint64_t bytes)
{
    share->bytes += bytes;
    if (of_user)
        share->users_bytes += bytes;
}

void ring_share_give(struct ring_share *share, bool of_user, uint64_t bytes)
{
    share->bytes -= bytes;
    if (of_user)
        share->users_bytes -= bytes;
}

int ring_share_check(const struct ring_share *share, bool of_user, uint64_t bytes,
                     uint64_t available_bytes, struct failure *failure)
{
    uint64_t all_bytes = available_bytes + share->bytes;
    uint64_t share_bytes = all_bytes / 100 * share->percent;
    char wanted[UNITS_TEXT_MAX], available[UNITS_TEXT_MAX], others[UNITS_TEXT_MAX];
    char limit[UNITS_TEXT_MAX];

    if (available_bytes == 0)
        return 0;
    if (fits(share->bytes, bytes, share_bytes))
        return of_user ? check_user(share, bytes, share_bytes, failure) : 0;
    return failure_set(
        failure, -ENOMEM, ERROR_NO_MEMORY,
        "A ring of %s is more than dom0 can spare: %s is free%s%s, and memory-share= limits all "
        "rings together to %u %% of that, %s. Use a smaller ring, or set a larger memory-share=.",
        size_format(wanted, bytes), size_format(available, available_bytes),
        share->bytes ? ", rings have " : "", share->bytes ? size_format(others, share->bytes) : "",
        share->percent, size_format(limit, share_bytes));
}
