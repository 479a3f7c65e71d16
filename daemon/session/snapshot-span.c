// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/session/snapshot-span.h"

#include <errno.h>

#include "common/protocol.h"
#include "common/util.h"
#include "daemon/base/clock.h"
#include "daemon/base/clock-history.h"

int snapshot_span_check(const struct snapshot_span *span, struct failure *failure)
{
    if (span->last_usec && span->since_ns)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "--last and --since both set the beginning: use one of them.");
    if (span->until_ns && span->until_ago_usec)
        return failure_set(
            failure, -EINVAL, ERROR_INVALID,
            "The end is given twice, as a date and as a time before now: use one of them.");
    if ((span->last_usec && span->last_usec <= span->until_ago_usec) ||
        (span->until_ns && span->since_ns >= span->until_ns))
        return failure_set(failure, -EINVAL, ERROR_INVALID, "--since must be before --until.");
    return 0;
}

/* That long before END; 1 if that was before the TSC began to count. */
static uint64_t tsc_before(uint64_t end_tsc, uint64_t usec, uint32_t khz)
{
    uint64_t ticks = clock_tsc_of_usec(usec, khz);

    return ticks < end_tsc ? end_tsc - ticks : 1;
}

static uint64_t usec_between(uint64_t from_tsc, uint64_t to_tsc, uint32_t khz)
{
    return clock_usec_between((struct clock_pair){.tsc = from_tsc},
                              (struct clock_pair){.tsc = to_tsc}, khz);
}

struct snapshot_ticks snapshot_span_read(const struct snapshot_span *span,
                                         const struct clock_history *clock, uint32_t khz,
                                         uint64_t requested_tsc)
{
    struct snapshot_ticks ticks = {.end_tsc = requested_tsc};

    if (span->until_ns)
        ticks.end_tsc =
            min_u64(clock_history_tsc(clock, span->until_ns, CLOCK_LAST), requested_tsc);
    else if (span->until_ago_usec)
        ticks.end_tsc = tsc_before(requested_tsc, span->until_ago_usec, khz);
    ticks.has_until = ticks.end_tsc < requested_tsc;

    if (span->since_ns)
        ticks.since_tsc = clock_history_tsc(clock, span->since_ns, CLOCK_FIRST);
    else if (span->last_usec)
        ticks.since_tsc = tsc_before(requested_tsc, span->last_usec, khz);
    if (span->last_usec && !ticks.has_until)
        ticks.asked_usec = span->last_usec; /* exactly, and also if it is longer than all time */
    else if (ticks.since_tsc)
        ticks.asked_usec = usec_between(ticks.since_tsc, ticks.end_tsc, khz);
    return ticks;
}
