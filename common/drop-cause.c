// SPDX-License-Identifier: GPL-2.0-or-later

#include "common/drop-cause.h"

const struct drop_cause_text drop_causes[DROP_CAUSES] = {
    [DROP_SLOW_OUTPUT] = {"slow-output",
                          "the output does not keep up, and its memory (pool-max=) is full",
                          "Record fewer events, use a faster disk, or set a larger pool-max=."},
    [DROP_NO_SPACE] = {"no-space",
                       "the output waits for disk space, and its memory (pool-max=) is full",
                       "Free some space: xentracectl vacuum, or stop the capture."},
    [DROP_PINNED] = {"pinned", "snapshots that are being written hold all memory of the ring",
                     "Write snapshots to a faster disk, or set a larger memory= or pool-max=."},
    [DROP_OUTPUT_FAILED] =
        {"output-failed", "the output failed before they were written",
         "The windows written before are readable. To see the error: xentracectl status"},
    [DROP_LIMIT] = {"limit", "the output reached its limit before they were written",
                    "Set a larger --max-size, or free some space above the reserve."},
    [DROP_ABORTED] = {"aborted", "the session was aborted on request before they were written",
                      "To wait for the disk instead, use xentracectl stop without --abort."},
    [DROP_RESTART] =
        {"restart", "they were in memory when the previous xentraced ended",
         "The next segment reports them. To see why it ended: journalctl -u xentraced"},
    [DROP_RESUMING] =
        {"resuming", "the capture was waiting for its first segment after a restart",
         "The next segment reports them. Reading the segments of before took that long."},
};
