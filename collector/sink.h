/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A sink is the data plane's part of a session. It filters the windows for the session, fills
 * chunks of the pool, which it writes to its output, or chunks of a ring, and keeps the session's
 * ledger.
 *
 * Ownership: the main thread creates it, passes it to the collector thread with MESSAGE_ATTACH and
 * receives it back with MESSAGE_CLOSED. In between the main thread may only call sink_read_*().
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/ledger.h"
#include "collector/walk.h"
#include "common/cpu-set.h"
#include "common/drop-cause.h"
#include "common/event-set.h"

struct account;
struct chunk;
struct handoff;
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
    uint64_t granted_bytes;     /* the output may be written up to there for now */
    uint64_t max_bytes;         /* and never further; SINK_NO_LIMIT */
    uint64_t grant_ahead_bytes; /* ask for more when less than this is left of the grant, but not
                                   beyond rotate_bytes */
    struct handoff *handoff;    /* another thread writes the output, in a form of its own: limits
                                   and grants are about that. The sink's, if it is made. NULL:
                                   chunks are written as they are */
    uint64_t poll_usec;         /* the fallback timer while records come */
    bool discard;               /* throws away the buffers' content if attached as the first */
    uint64_t rotate_bytes;      /* a successor takes over when the next round may make the output
                                   longer than that; 0: only on request */
    struct account *account;    /* what is taken is entered there, too; borrowed; NULL: nowhere */
    bool holds;              /* has no output yet and keeps nothing: a successor is to come. Alone,
                                it leaves the records in Xen's buffers; if others take them, it
                                drops them, and the successor reports that */
    struct watch_set *watch; /* of a ring: sees each window; borrowed; NULL: none */
    uint64_t max_age_tsc;    /* of a ring: older records are evicted; 0: never */
    struct event_set events;
    struct cpu_set cpus;
    unsigned int nr_cpus;
};

struct sink_totals {
    uint64_t output_bytes; /* written in whole windows, without a gap: a reader may rely on it */
    uint64_t plain_bytes;  /* of records in that, if it is in a form of its own */
    uint64_t raw_bytes;    /* ... of which these are in it as they were */
    uint64_t queued_bytes; /* closed chunks still to be written */
    uint64_t windows;
    uint64_t class_records[EVENT_CLASSES];
    uint64_t drops[DROP_CAUSES]; /* in all, what the ledger's lines have as `dropped` */
    uint64_t held_bytes;         /* of the pool */
    uint64_t writing_since_usec; /* CLOCK_MONOTONIC, when the oldest write that the kernel has not
                                    completed was submitted; 0: none is under way */
    uint64_t progress_usec;      /* CLOCK_MONOTONIC, when a write last made progress, complete or
                                    not; 0: none has */
    /*
     * From this TSC on, the sink has all records of its CPUs except those reported as lost. If it
     * joined other sinks, this is the time of joining, and it has no older records. If it was the
     * first, this is when it was attached, and records from the buffers are older. 0: not yet
     * attached.
     */
    uint64_t complete_from_tsc;
    /* xen_read_tsc() when records were last found lost, or were dropped. 0: never, or before the
     * ring was taken over from an earlier daemon. */
    uint64_t last_loss_tsc;
};

/* Notes of a pool (pool_new_growing()) for sinks of NR_CPUS. */
unsigned int sink_notes(unsigned int nr_cpus);

/*
 * Takes no chunk and touches nothing yet. CONFIG is copied. -ENOMEM; -EINVAL: POOL has had a sink
 * with fewer CPUs before.
 */
int sink_new(const struct sink_config *config, struct pool *pool, struct sink **ret_sink);
/* A sink into RING, which is borrowed. The fields of CONFIG about an output are ignored. -ENOMEM.
 */
int sink_new_ring(const struct sink_config *config, struct ring *ring, struct sink **ret_sink);
/* After MESSAGE_CLOSED, if it was never attached, or when the collector thread has ended. */
struct sink *sink_free(struct sink *sink);

/* Likewise: ends the thread that writes the output. The figures stay. */
void sink_release_writer(struct sink *sink);

/*
 * After MESSAGE_CLOSED: keeps the figures, so that the ring may be freed. Without memory for them
 * they become 0.
 */
void sink_release_ring(struct sink *sink);

/*
 * Main thread, before the sink is handed over: COUNT records are missing before the first one of
 * CPU, since FIRST_TSC. They are not in its ledger, but its output reports them.
 */
void sink_add_gap(struct sink *sink, unsigned int cpu, uint64_t count, uint64_t first_tsc);

/* --- Main thread, at any time: figures as of a moment ago. --- */

void sink_read_ledger(const struct sink *sink, unsigned int cpu, struct ledger *ret_ledger);
void sink_read_totals(const struct sink *sink, struct sink_totals *ret_totals);

/* After MESSAGE_DRAINED, until the next message to the collector: CPUs with unreported losses. */
const struct cpu_set *sink_unsettled(const struct sink *sink);

/* --- Collector thread. --- */

const struct sink_config *sink_config(const struct sink *sink);
/* What the session asked for. */
const struct walk_filter *sink_filter(const struct sink *sink);

struct ring *sink_ring(const struct sink *sink); /* NULL: an output */
void sink_set_unsettled(struct sink *sink, const struct cpu_set *cpus);

/*
 * Sets its share of the pool: PROMISED bytes, and more as long as LEFT bytes stay free, which are
 * promised to others. Both are parts of the pool's present size, and change with it. A lone sink
 * can thus use nearly all of the largest pool, and memory promised to others always exists.
 */
void sink_set_share(struct sink *sink, uint64_t promised_bytes, uint64_t left_bytes);

/* All that is kept, including chunks that are not written yet. */
uint64_t sink_used_bytes(const struct sink *sink);

/* Whether another round, as long as the longest so far, would exceed rotate_bytes. */
bool sink_is_full(const struct sink *sink);

/* Whether all chunks are written or may be: none waits for a grant, none has failed. */
bool sink_can_end_here(const struct sink *sink);

/* A round begins. EVEN: the one before emptied the buffers, so that a file may begin here. */
void sink_begin_round(struct sink *sink, bool even);

/*
 * The round is over. COMPLETE: it emptied the buffers. Returns whether a watch has come true, which
 * is to be reported.
 */
bool sink_end_round(struct sink *sink, bool complete);

/* What sink_begin_window() found. */
enum sink_room {
    SINK_ROOM,       /* continue */
    SINK_NO_CHUNK,   /* the pool is empty: leave the records where they are */
    SINK_HOLDS,      /* it has no output yet: the same, but no chunk would help */
    SINK_DROPS,      /* it has ended without one: take the records, and drop them */
    SINK_AT_LIMIT,   /* the output has no room for the least that is wanted */
    SINK_HAS_FAILED, /* a write failed, or the sink is abandoned: no more records are kept */
};

/* Where a window comes from. */
struct window_source {
    unsigned int cpu;
    uint32_t cons_from; /* of the trace buffer, before and after the window */
    uint32_t cons_to;
};

/*
 * Room for a window of CPU's records: for WANTED_BYTES if they fit into a chunk, and for not less
 * than LEAST_BYTES. *RET_ROOM is what there is: cut the window there. To be followed by
 * sink_end_window(), or by nothing if there was nothing to keep.
 */
enum sink_room sink_begin_window(struct sink *sink, unsigned int cpu, uint32_t least_bytes,
                                 uint32_t wanted_bytes, uint64_t now_usec, uint8_t **ret_records,
                                 uint32_t *ret_room);

/*
 * Enters the window into the account, if there is one. Before sink_end_window() and
 * sink_drop_window() of any sink: a ring that has the window makes the next daemon continue after
 * it, and what is not in the account then is missing without a report.
 */
void sink_enter_account(const struct sink *sink, const struct window_source *source,
                        const struct walk_result *walked);

/* Keeps the window that was walked at *RET_RECORDS, and enters it into the ledger. */
void sink_end_window(struct sink *sink, const struct window_source *source,
                     const struct walk_result *walked,
                     const uint64_t class_records[static EVENT_CLASSES]);

/*
 * There was no room, and other sinks do not wait: enters the window as dropped, to be reported
 * before the CPU's next records.
 */
void sink_drop_window(struct sink *sink, const struct window_source *source,
                      const struct walk_result *walked);

/* It is attached: see sink_totals for COMPLETE_FROM_TSC. */
void sink_begin(struct sink *sink, uint64_t complete_from_tsc);
/* The same without others; a ring that was adopted continues what it has. */
void sink_begin_first(struct sink *sink, uint64_t complete_from_tsc);

/* Whether records were lost or dropped since the last call. */
bool sink_take_missed(struct sink *sink);

/*
 * SINK continues where BEFORE ends, and reports the drops that BEFORE has not reported yet. Until
 * sink_follow(), SINK writes nothing: what is missing at the end of BEFORE's output must not be
 * followed by records.
 */
void sink_take_over(struct sink *sink, struct sink *before);

/*
 * BEFORE is quiet. If its output has failed, the output of SINK, if that continues it, ends before
 * its first record: its records are dropped, like those after a failed write of one output. Returns
 * whether SINK had waited.
 */
bool sink_follow(struct sink *sink, const struct sink *before);

/* At the end: reports drops that no later record of the same CPU has reported. */
void sink_tell_gaps(struct sink *sink, uint64_t now_usec);

/*
 * A window did not fit below the limit, and other sinks do not wait: the output ends before it, so
 * that it has no gap.
 */
void sink_end(struct sink *sink);

/* Closes the chunk that is being filled, so that it is written. */
void sink_flush(struct sink *sink);
/* The same, and nothing follows. */
void sink_finish(struct sink *sink);

/*
 * The arrival time of the oldest record in the chunk being filled, if the chunk could be written
 * now; 0: the chunk is empty, or needs a grant.
 */
uint64_t sink_oldest_usec(const struct sink *sink);

/*
 * Starts as many writes as the grant and the queue depth allow; their tags are chunk pointers. Also
 * gives back dropped chunks, a bounded number with each call. Returns whether the output has
 * reached its limit just now, before chunks that are dropped.
 */
bool sink_submit(struct sink *sink, struct uring *uring, uint64_t now_usec);

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
 * The same for those that another thread has written; *RET_ANY is set if there were any. Returns
 * what sink_complete() does.
 */
int sink_take_back(struct sink *sink, uint64_t now_usec, bool *ret_any);

/*
 * The output may be written up to GRANTED_BYTES. FINAL: it ends there, and chunks beyond are
 * dropped. Returns whether any was.
 */
bool sink_grant(struct sink *sink, uint64_t granted_bytes, bool final);

/* Whether more should be granted; true once per grant. */
bool sink_wants_grant(struct sink *sink);

/*
 * Ends the output after the last chunk up to which everything is written. Later chunks are dropped,
 * including those that the kernel is writing, which are canceled if possible and whose results are
 * ignored. The ledger and the totals are then final, except writing_since_usec. REQUESTED: it is
 * not because of the output. Returns whether anything was dropped and no write had failed before.
 */
bool sink_abandon(struct sink *sink, struct uring *uring, bool requested);

/* Whether it holds no chunk: nothing is queued, and all that was being written came back. */
bool sink_is_quiet(const struct sink *sink);
