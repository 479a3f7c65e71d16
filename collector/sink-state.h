/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A sink from inside: private to sink.c, which fills chunks, and sink-write.c, which writes them.
 */

#include "collector/pool.h"
#include "collector/sink.h"

/* Records that were dropped, of one CPU, and are recorded before its next ones. */
struct gap {
    uint64_t count;
    uint64_t first_tsc;
    uint64_t last_tsc;
};

struct sink {
    struct sink_config config;
    struct walk_filter filter;
    struct gap *gaps;       /* [nr_cpus] */
    bool begins_round;      /* the next window is the first of its round */
    bool begins_even;       /* ... and the round before emptied the buffers */
    uint64_t round_offset;  /* the output's length when the round began */
    uint64_t longest_round; /* so far, in bytes */
    uint64_t passed_tsc;    /* of the newest record, or loss, that it was given */

    /* Either a ring, or an output with chunks of the pool: */
    struct ring *ring;
    struct pool *pool;
    struct chunk *filling;
    unsigned int order;       /* of the next chunk: see sink.c */
    uint64_t promised_bytes;  /* of the pool, that it may hold in any case */
    uint64_t left_bytes;      /* it takes more only while this much stays free */
    struct chunk *queue_head; /* closed, in output order; those from end_offset on are dropped */
    struct chunk *queue_tail;
    struct chunk *writing[SINK_WRITES_MAX]; /* those that the kernel reads, in no order */
    unsigned int nr_writing;

    /* With config.handoff; offsets in the queue are about what the chunks hold. */
    bool is_in_round;         /* between sink_begin_round() and sink_end_round() */
    bool finishes;            /* no chunk follows those in the queue */
    bool is_end_given;        /* ... and the writer knows it */
    bool is_end_done;         /* ... and has completed the output */
    unsigned int nr_given;    /* chunks that the writer has */
    uint64_t complete_offset; /* up to there all is in the output */
    uint64_t least_bytes;     /* the output's length if it ended there */
    uint64_t closed_bytes;    /* output offset at the end of the last closed chunk */
    uint64_t end_offset;      /* the output ends there; SINK_NO_LIMIT while it may grow */
    uint64_t retry_usec;      /* try to write again then; 0: nothing to try again */
    bool is_paused;           /* ... and write nothing before */
    bool has_failed;          /* it ends because of a write or an abort, not of its last grant */
    enum drop_cause failure;  /* ... which of them */
    bool has_dropped;         /* the queue has chunks at its end that are to be given back */
    bool cancels;             /* writes under way are still to be cancelled */
    bool grant_wanted;
    bool has_missed;           /* records were lost or dropped since sink_take_missed() */
    const struct sink *before; /* nothing is written until that one is quiet; NULL: none is */

    /* Written by the collector thread only, read by the main thread: relaxed atomics. */
    struct ledger *ledger;     /* [nr_cpus]; NULL: the ring's */
    struct sink_totals totals; /* of a ring: see sink_read_totals() */
    struct cpu_set unsettled;  /* no atomics: see sink_unsettled() */
};

/*
 * What the figures were when a chunk was taken, in its notes: these are the figures of an output
 * that ends before it, whatever the chunks after it hold.
 */
enum {
    MARK_WINDOWS,
    MARK_CLASSES,
    MARK_DELIVERED = MARK_CLASSES + EVENT_CLASSES, /* of each CPU */
};

/* Whether CHUNK comes after the output's end. sink-write.c. */
bool sink_drops(const struct sink *sink, const struct chunk *chunk);
/*
 * The output ends before OFFSET, or where it ended before if that is less. What that drops is
 * counted under CAUSE. sink-write.c.
 */
void sink_end_at(struct sink *sink, uint64_t offset, enum drop_cause cause);
/* The same when the output fails because of CAUSE. sink-write.c. */
void sink_fail_at(struct sink *sink, uint64_t offset, enum drop_cause cause);
/* A write of CHUNK, and so the output, failed with R: as sink_complete(). sink-write.c. */
int sink_fail(struct sink *sink, const struct chunk *chunk, int r);
/* Takes what is written without a gap out of the queue. sink-write.c. */
void sink_retire_written(struct sink *sink);

/*
 * The output's length, at most and as far as one can guess, when all up to OFFSET of the queue is
 * in it. Without a handoff that is OFFSET. sink-handoff.c.
 */
uint64_t sink_length_at_most(const struct sink *sink, uint64_t offset);
uint64_t sink_length_guess(const struct sink *sink, uint64_t offset);
/* Gives chunks to the writer, as sink_submit(). sink-handoff.c. */
bool sink_hand_over(struct sink *sink, struct uring *uring, uint64_t now_usec);
/* Nothing of the sink is the writer's, and nothing is to become so. sink-handoff.c. */
bool sink_is_handed_back(const struct sink *sink);

/* Records of it were found lost, or dropped, just now. sink.c. */
void sink_note_loss(struct sink *sink);

/* Gives a chunk back to the pool. sink.c. */
void sink_give_chunk(struct sink *sink, struct chunk *chunk);
