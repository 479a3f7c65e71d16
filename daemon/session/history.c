// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/session/history.h"

#include <stdio.h>
#include <time.h>

#include "common/units.h"
#include "common/util.h"

/*
 * Rounds are a second apart and more on a quiet host: a rate over less than a few is a guess. In a
 * ring that has gone round there are many of them.
 */
#define RATE_MIN_USEC     (5 * USEC_PER_SEC)
#define RATE_MIN_OLD_USEC (10 * USEC_PER_MSEC)

/* The largest memory= there is. */
#define MEMORY_MAX_BYTES (UINT64_C(64) << 30)

#define TOLERANCE_MIN_USEC (1 * USEC_PER_MSEC)
#define TOLERANCE_MAX_USEC (1 * USEC_PER_SEC)

/* The time from one TSC to a later one; 0 if it is not later. */
static uint64_t usec_between(uint64_t from_tsc, uint64_t to_tsc, uint32_t khz)
{
    if (to_tsc <= from_tsc || khz == 0)
        return 0;
    return (uint64_t)((unsigned __int128)(to_tsc - from_tsc) * 1000 / khz);
}

static uint64_t multiply_divide(uint64_t a, uint64_t b, uint64_t divisor)
{
    unsigned __int128 result = (unsigned __int128)a * b / divisor;

    return result > INT64_MAX ? INT64_MAX : (uint64_t)result;
}

/* --- Of a ring. --- */

/*
 * A full ring keeps an eighth of its chunks for snapshots, and its chunks are at least three
 * quarters full. One that holds less than half of its memory had to give chunks to snapshots.
 */
static bool is_full(const struct history_ring *ring)
{
    return ring->has_evicted && ring->used_bytes >= ring->memory_bytes / 2;
}

struct history history_of_ring(const struct history_ring *ring)
{
    uint64_t from_tsc = max_u64(ring->started_tsc, ring->complete_from_tsc);
    struct history history = {.is_full = is_full(ring)};

    if (ring->has_evicted)
        from_tsc = max_u64(from_tsc, ring->oldest_tsc);
    history.usec = usec_between(from_tsc, ring->now_tsc, ring->tsc_khz);
    if (history.usec >= (ring->has_evicted ? RATE_MIN_OLD_USEC : RATE_MIN_USEC))
        history.bytes_per_second = multiply_divide(ring->used_bytes, USEC_PER_SEC, history.usec);
    if (history.is_full && history.bytes_per_second)
        history.full_usec = history.usec;
    else if (history.bytes_per_second)
        history.full_usec =
            multiply_divide(ring->memory_bytes / 8 * 7, USEC_PER_SEC, history.bytes_per_second);
    if (ring->max_age_usec) {
        history.usec = min_u64(history.usec, ring->max_age_usec);
        if (!history.full_usec || ring->max_age_usec < history.full_usec)
            history.full_usec = ring->max_age_usec;
    }
    return history;
}

/* --- Of a snapshot. --- */

static bool is_less(uint64_t usec, uint64_t asked_usec)
{
    uint64_t tolerance_usec =
        max_u64(TOLERANCE_MIN_USEC, min_u64(asked_usec / 100, TOLERANCE_MAX_USEC));

    return asked_usec > usec && asked_usec - usec > tolerance_usec;
}

/* Whether the file is cut to a size, and not where the ring began. */
static bool is_cut(const struct history_snapshot *snapshot)
{
    return snapshot->max_size_bytes &&
           snapshot->bytes + snapshot->chunk_bytes > snapshot->max_size_bytes &&
           snapshot->from_tsc > snapshot->oldest_tsc;
}

/*
 * Whether what is older was too old when the ring was pinned, which may be after the request. Whole
 * chunks are evicted, and up to the next one that begins with a round.
 */
static bool is_aged(const struct history_snapshot *snapshot)
{
    uint64_t usec = usec_between(snapshot->from_tsc, snapshot->pinned_tsc, snapshot->tsc_khz);

    if (snapshot->bytes)
        usec += multiply_divide(usec, UINT64_C(2) * snapshot->chunk_bytes, snapshot->bytes);
    return snapshot->max_age_usec && !is_less(usec, snapshot->max_age_usec);
}

/*
 * Whether the ring goes back further than was asked for. A file from within it begins with a whole
 * round, after losses that may have been reported late.
 */
static bool is_within(const struct history_snapshot *snapshot)
{
    return snapshot->oldest_tsc && usec_between(snapshot->oldest_tsc, snapshot->requested_tsc,
                                                snapshot->tsc_khz) >= snapshot->asked_usec;
}

static enum history_limit find_limit(const struct history_snapshot *snapshot)
{
    if (snapshot->is_damaged)
        return HISTORY_DAMAGED;
    if (is_cut(snapshot))
        return HISTORY_MAX_SIZE;
    if (is_aged(snapshot))
        return HISTORY_MAX_AGE;
    if (snapshot->from_tsc > max_u64(snapshot->started_tsc, snapshot->complete_from_tsc))
        return is_within(snapshot) ? HISTORY_NO_LIMIT : HISTORY_EVICTED;
    if (snapshot->is_resumed && snapshot->from_tsc > snapshot->started_tsc)
        return HISTORY_JOINED;
    return HISTORY_BEGAN;
}

struct history_coverage history_of_snapshot(const struct history_snapshot *snapshot)
{
    struct history_snapshot file = *snapshot;
    struct history_coverage coverage = {.asked_usec = snapshot->asked_usec};

    file.from_tsc = max_u64(snapshot->from_tsc, snapshot->started_tsc);
    coverage.held_usec = usec_between(file.from_tsc, file.requested_tsc, file.tsc_khz);
    if (file.max_age_usec)
        coverage.held_usec = min_u64(coverage.held_usec, file.max_age_usec);
    if (is_less(coverage.held_usec, file.asked_usec))
        coverage.limit = find_limit(&file);
    if (coverage.limit == HISTORY_NO_LIMIT && file.asked_usec)
        coverage.held_usec = file.asked_usec;
    return coverage;
}

const char *history_limit_name(enum history_limit limit)
{
    switch (limit) {
    case HISTORY_NO_LIMIT:
        return "";
    case HISTORY_BEGAN:
        return "began";
    case HISTORY_JOINED:
        return "joined";
    case HISTORY_EVICTED:
        return "evicted";
    case HISTORY_MAX_AGE:
        return "max-age";
    case HISTORY_DAMAGED:
        return "damaged";
    case HISTORY_MAX_SIZE:
        return "max-size";
    }
    return "";
}

#define TIME_MAX 32u

/* "12:03:04", local time, with the date if it was another day. */
static const char *format_time(char text[static TIME_MAX], uint64_t realtime_ns)
{
    time_t when = (time_t)(realtime_ns / NSEC_PER_SEC), now = time(NULL);
    struct tm tm, today;

    if (!localtime_r(&when, &tm) || !localtime_r(&now, &today))
        return "an unknown time";
    if (strftime(text, TIME_MAX,
                 tm.tm_yday == today.tm_yday && tm.tm_year == today.tm_year ? "%H:%M:%S"
                                                                            : "%Y-%m-%d %H:%M:%S",
                 &tm) == 0)
        return "an unknown time";
    return text;
}

/* Advice for a ring that is full; TEXT is HISTORY_TEXT_MAX long. */
static void explain_evicted(const struct history_words *words, char *text)
{
    const struct history_coverage *coverage = &words->coverage;
    const char *option = words->is_recorder ? "memory= in [flight-recorder]" : "--memory";
    char memory[UNITS_TEXT_MAX], asked[UNITS_TEXT_MAX], needed[UNITS_TEXT_MAX];
    uint64_t needed_bytes = 0;

    /* Of a ring that lent memory to other snapshots nothing can be concluded. */
    if (coverage->held_usec && words->bytes >= words->memory_bytes / 2)
        needed_bytes =
            multiply_divide(words->memory_bytes, coverage->asked_usec, coverage->held_usec);
    if (needed_bytes && needed_bytes <= MEMORY_MAX_BYTES)
        (void)snprintf(
            text, HISTORY_TEXT_MAX, "The ring of %s is full; to hold %s, set about %s with %s.",
            size_format(memory, words->memory_bytes), duration_format(asked, coverage->asked_usec),
            size_format(needed, needed_bytes), option);
    else
        (void)snprintf(text, HISTORY_TEXT_MAX, "The ring of %s is full; for a larger ring, set %s.",
                       size_format(memory, words->memory_bytes), option);
}

const char *history_explain(const struct history_words *words, char text[static HISTORY_TEXT_MAX])
{
    uint64_t since_ns = words->requested_ns - words->coverage.held_usec * NSEC_PER_USEC;
    char time[TIME_MAX], amount[UNITS_TEXT_MAX];

    text[0] = '\0';
    switch (words->coverage.limit) {
    case HISTORY_NO_LIMIT:
        break;
    case HISTORY_BEGAN:
        (void)snprintf(text, HISTORY_TEXT_MAX, "Recording began at %s.",
                       format_time(time, since_ns));
        break;
    case HISTORY_JOINED:
        (void)snprintf(text, HISTORY_TEXT_MAX,
                       "Records are complete from %s, when xentraced was restarted.",
                       format_time(time, since_ns));
        break;
    case HISTORY_EVICTED:
        explain_evicted(words, text);
        break;
    case HISTORY_MAX_AGE:
        (void)snprintf(text, HISTORY_TEXT_MAX, "The ring keeps records for only %s, as set by %s.",
                       duration_format(amount, words->max_age_usec),
                       words->is_recorder ? "max-age= in [flight-recorder]" : "--max-age");
        break;
    case HISTORY_DAMAGED:
        (void)snprintf(
            text, HISTORY_TEXT_MAX,
            "Records from before the restart of xentraced were damaged and are omitted.");
        break;
    case HISTORY_MAX_SIZE:
        (void)snprintf(text, HISTORY_TEXT_MAX, "The file is limited to the requested size.");
        break;
    }
    return text;
}
