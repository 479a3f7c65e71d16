/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How far back a ring goes, how long a full ring will last, and why a snapshot covers less than
 * requested. Everything is computed from the caller's figures; any thread.
 *
 * A ring goes back to the time from which it is complete, not to its oldest record, because a time
 * without records is part of the history.
 */

#include <stdbool.h>
#include <stdint.h>

/* --- Of a ring. --- */

struct history_ring {
    uint32_t tsc_khz;
    uint64_t now_tsc;
    uint64_t started_tsc;       /* when recording began */
    uint64_t complete_from_tsc; /* ring_complete_from_tsc() */
    uint64_t oldest_tsc;        /* as of struct ring_stats */
    uint64_t used_bytes;
    uint64_t memory_bytes;
    uint64_t max_age_usec; /* 0: none */
    bool has_evicted;      /* anything, ever */
};

struct history {
    uint64_t usec;             /* from then on everything is in the ring */
    uint64_t bytes_per_second; /* on average over that time; 0: it is too short to tell */
    uint64_t full_usec;        /* a full ring lasts for that long at this rate, or for max-age; 0:
                                  unknown */
    bool is_full;              /* it forgets the oldest record for each new one */
};

struct history history_of_ring(const struct history_ring *ring);

/* --- Of a snapshot. --- */

/* Why a snapshot is shorter than was asked for. */
enum history_limit {
    HISTORY_NO_LIMIT,
    HISTORY_BEGAN,    /* recording began after that */
    HISTORY_JOINED,   /* a recorder that survived a restart was given more CPUs or events then */
    HISTORY_EVICTED,  /* the ring had overwritten what was older */
    HISTORY_MAX_AGE,  /* the ring is to forget what is older */
    HISTORY_DAMAGED,  /* what was older was damaged */
    HISTORY_MAX_SIZE, /* of the file */
};

struct history_snapshot {
    uint32_t tsc_khz;
    uint64_t asked_usec; /* of the newest part; 0: whatever there is */
    uint64_t requested_tsc;
    uint64_t pinned_tsc;

    /* The ring when it was pinned. */
    uint64_t started_tsc;
    uint64_t complete_from_tsc;
    uint64_t oldest_tsc;
    uint64_t max_age_usec;
    uint32_t chunk_bytes;
    bool is_resumed; /* it was taken over from an earlier daemon */

    /* The file. */
    uint64_t from_tsc; /* from then on it is complete: of struct snapshot_plan */
    uint64_t bytes;
    uint64_t max_size_bytes; /* 0: none */
    bool is_damaged;         /* older chunks were left out for that */
};

struct history_coverage {
    uint64_t asked_usec;
    uint64_t held_usec; /* before it was requested, asked_usec at most if that is given */
    enum history_limit limit;
};

/*
 * What is missing up to a hundredth of what was asked for, but 1 ms at least and 1 s at most, does
 * not count.
 */
struct history_coverage history_of_snapshot(const struct history_snapshot *snapshot);

const char *history_limit_name(enum history_limit limit); /* as in documents; "": none */

/* For the sentence. */
struct history_words {
    struct history_coverage coverage;
    bool is_recorder;
    uint64_t memory_bytes;
    uint64_t max_age_usec;
    uint64_t bytes;        /* of the file */
    uint64_t requested_ns; /* CLOCK_REALTIME */
};

#define HISTORY_TEXT_MAX 160u

/* Why it is shorter, and what to do, for people; "" if it is not. Returns TEXT. */
const char *history_explain(const struct history_words *words, char text[static HISTORY_TEXT_MAX]);
