/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A session's data-plane half: where the windows of one session go. It has a filter of its own,
 * fills chunks, of the pool and then writes them to its output, or of a ring; and it keeps the
 * session's ledger.
 *
 * Ownership: the main thread makes it, hands it to the collector thread with MESSAGE_ATTACH and has
 * it back with MESSAGE_CLOSED. In between the main thread may only call sink_read_*().
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/ledger.h"
#include "collector/walk.h"
#include "common/cpu-set.h"
#include "common/event-set.h"

struct chunk;
struct pool;
struct ring;
struct sink;
struct uring;
struct watch_set;

#define SINK_NO_LIMIT   UINT64_MAX
#define SINK_WRITES_MAX 8u /* under way at once, to a file; one to a pipe */

struct sink_config {
    int fd;                     /* borrowed; open for writing, positioned at 0 if a file */
    bool is_stream;             /* a pipe: written in order, as it comes, without offsets */
    uint32_t align_bytes;       /* every write's offset and length: a power of two >= 4 */
    uint64_t granted_bytes;     /* may be written up to there for now */
    uint64_t max_bytes;         /* and never further; SINK_NO_LIMIT */
    uint64_t grant_ahead_bytes; /* ask for more when less than this is left of the grant, but not
                                   for what lies behind rotate_bytes */
    uint64_t poll_usec;         /* the fallback timer while records come */
    bool discard;               /* what is in Xen's buffers when it is attached as the first */
    uint64_t rotate_bytes;      /* a successor takes over when the next round may make it longer
                                   than that; 0: only when told to */
    struct watch_set *watch;    /* of a ring: looks at what goes into it; NULL: none. Lent */
    uint64_t max_age_tsc;       /* of a ring: older records are evicted; 0: never */
    struct event_set events;
    struct cpu_set cpus;
    unsigned int nr_cpus;
};

struct sink_totals {
    uint64_t output_bytes; /* whole windows that are written: what a reader may rely on */
    uint64_t queued_bytes; /* closed chunks still to be written */
    uint64_t windows;
    uint64_t class_records[EVENT_CLASSES];
    uint64_t writing_since_usec; /* CLOCK_MONOTONIC, when the oldest write that the kernel has not
                                    completed was submitted; 0: none is under way */
    /* No record of its CPUs from that TSC on is missing, but for those that are told as lost. Of a
     * sink that joined others: the moment it did, and no record is older. Of the first: when it was
     * attached; what was in the buffers then is older. Of a successor: what came in front of it is
     * older. 0: it was not attached yet. */
    uint64_t complete_from_tsc;
};

/*
 * Takes no chunk and touches nothing yet. CONFIG is copied. -ENOMEM; -EINVAL: POOL has had a sink
 * with fewer CPUs before.
 */
int sink_new(const struct sink_config *config, struct pool *pool, struct sink **ret_sink);
/* A sink into RING, which is borrowed; of CONFIG only what is not about an output counts. -ENOMEM.
 */
int sink_new_ring(const struct sink_config *config, struct ring *ring, struct sink **ret_sink);
/* After MESSAGE_CLOSED, if it was never attached, or when the collector thread has ended. */
struct sink *sink_free(struct sink *sink);

/*
 * When it has come back with MESSAGE_CLOSED: its ring may be freed, its figures stay. Without
 * memory for them they become 0.
 */
void sink_release_ring(struct sink *sink);

/* --- Main thread, at any time: figures as of a moment ago. --- */

void sink_read_ledger(const struct sink *sink, unsigned int cpu, struct ledger *ret_ledger);
void sink_read_totals(const struct sink *sink, struct sink_totals *ret_totals);

/* After MESSAGE_DRAINED, until the next message to the collector: CPUs whose losses are untold. */
const struct cpu_set *sink_unsettled(const struct sink *sink);

/* --- Collector thread. --- */

const struct sink_config *sink_config(const struct sink *sink);
/* What the session asked for. */
const struct walk_filter *sink_filter(const struct sink *sink);

struct ring *sink_ring(const struct sink *sink); /* NULL: an output */
void sink_set_unsettled(struct sink *sink, const struct cpu_set *cpus);

/*
 * Its share of the pool: PROMISED bytes, and more as long as LEFT stay free, which are promised to
 * others.
 */
void sink_set_share(struct sink *sink, uint64_t promised_bytes, uint64_t left_bytes);

/* Of the output, with what is not yet written. */
uint64_t sink_used_bytes(const struct sink *sink);

/* Whether another round, as long as its longest, would make it longer than rotate_bytes. */
bool sink_is_full(const struct sink *sink);

/* Whether all that it has is written, or may be: nothing waits for a grant, nothing has failed. */
bool sink_can_end_here(const struct sink *sink);

/* A round begins. EVEN: the one before took all there was, so that a file may begin here. */
void sink_begin_round(struct sink *sink, bool even);

/*
 * The round is over. COMPLETE: it took all there was. Returns whether a watch has come true, which
 * is to be told.
 */
bool sink_end_round(struct sink *sink, bool complete);

/* What sink_begin_window() found. */
enum sink_room {
    SINK_ROOM,       /* go on */
    SINK_NO_CHUNK,   /* the pool is empty: leave the records where they are */
    SINK_AT_LIMIT,   /* the output is as long as it may be */
    SINK_HAS_FAILED, /* a write failed: nothing more can be kept */
};

/* Where a window comes from. */
struct window_source {
    unsigned int cpu;
    uint32_t cons_from; /* of the trace buffer, before and behind the window */
    uint32_t cons_to;
};

/*
 * Room for a window of up to WANTED_BYTES of CPU's records. *RET_ROOM may be less: cut the window
 * there. To be followed by sink_end_window(), or by nothing if there was nothing to keep.
 */
enum sink_room sink_begin_window(struct sink *sink, unsigned int cpu, uint32_t wanted_bytes,
                                 uint64_t now_usec, uint8_t **ret_records, uint32_t *ret_room);

/* Keeps the window that was walked at *RET_RECORDS, and enters it into the ledger. */
void sink_end_window(struct sink *sink, const struct window_source *source,
                     const struct walk_result *walked,
                     const uint64_t class_records[static EVENT_CLASSES]);

/* There was no room, and others cannot wait: enters the window as dropped, to be told later. */
void sink_drop_window(struct sink *sink, const struct window_source *source,
                      const struct walk_result *walked);

/* It is attached: see sink_totals for COMPLETE_FROM_TSC. */
void sink_begin(struct sink *sink, uint64_t complete_from_tsc);
/* The same without others; a ring that was adopted continues what it has. */
void sink_begin_first(struct sink *sink, uint64_t complete_from_tsc);

/* SINK continues where BEFORE ends: what that one has not told falls to it. */
void sink_take_over(struct sink *sink, struct sink *before);

/* Tells what was dropped and has no next record to be told with. At the end. */
void sink_tell_gaps(struct sink *sink, uint64_t now_usec);

/*
 * A window did not fit below the limit, and others cannot wait: the output ends with what is there,
 * so that it has no hole.
 */
void sink_end(struct sink *sink);

/* Closes the chunk that is being filled, so that it gets written. */
void sink_flush(struct sink *sink);

/*
 * When the oldest record came that could be given to the disk and was not yet, or 0 if there is
 * none. What waits for a grant could not.
 */
uint64_t sink_oldest_usec(const struct sink *sink);

/*
 * Starts as many writes as the grant and the queue depth allow; their tags are chunk pointers. Also
 * gives back dropped chunks, a bounded number with each call.
 */
void sink_submit(struct sink *sink, struct uring *uring, uint64_t now_usec);

/*
 * When sink_submit() should be called again though no write has ended and nothing was queued, as
 * CLOCK_MONOTONIC; it may lie in the past. 0: never.
 */
uint64_t sink_retry_usec(const struct sink *sink);

/*
 * A write of CHUNK ended with RESULT. Returns 0, or the negative errno with which the output failed
 * just now (once): its end is before CHUNK, and its figures are exact at once.
 */
int sink_complete(struct sink *sink, struct chunk *chunk, int result, uint64_t now_usec);

/*
 * Up to where it may be written; FINAL: what lies beyond is dropped, and it ends there. Returns
 * whether anything was.
 */
bool sink_grant(struct sink *sink, uint64_t granted_bytes, bool final);

/* Whether more should be granted; true once per grant. */
bool sink_wants_grant(struct sink *sink);

/*
 * Ends the output at the last chunk before which everything is written. All else is dropped, also
 * what the kernel is writing, which is cancelled as far as possible: its outcome does not matter
 * any more. The ledger and the totals, but for writing_since_usec, are final. Returns whether there
 * was anything to drop, and no failure before.
 */
bool sink_abandon(struct sink *sink, struct uring *uring);

/* Whether it holds no chunk: nothing is queued, and the kernel has given back what it had. */
bool sink_is_quiet(const struct sink *sink);
