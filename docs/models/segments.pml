/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Models the hand-over of segments: sink_take_over(), sink_follow(), sink_drop_window() and
 * sink_end_window() of collector/sink.c, sink_submit(), sink_complete() and sink_fail() of
 * collector/sink-write.c, attachment_succeed() and attachments_detach_quiet() of
 * collector/attachments.c, and segments_offer_next() of daemon/session/segments.c.
 *
 * A chunk holds one record. The kernel carries out writes in any order, and any of them may fail.
 * SIGKILL or a power cut leaves what is on the disk at that moment, so what is promised for them is
 * checked whenever a chunk reaches the disk.
 *
 * BREAK 1: a successor writes while the sink before it still does.
 * BREAK 2: a successor writes after the sink before it has failed.
 * BREAK 3: dropped records that are not yet reported stay with the sink before.
 * BREAK 4: the next segment is offered while the one before the current one is still written.
 */

#ifndef BREAK
#define BREAK 0
#endif

#define SEGMENTS 3
#define RECORDS  3
#define WRITES   2 /* of a sink at once */
#define NONE     SEGMENTS

mtype = {ABSENT, QUEUED, WRITING, DONE, BAD, WRITTEN, DROPPED, REPORTED};

mtype state[RECORDS];
byte segment[RECORDS];
bool is_on_disk[RECORDS];

/* Sinks. */
byte before[SEGMENTS] = NONE; /* the one that it waits for */
byte ends_at[SEGMENTS] = RECORDS; /* chunks from there on are dropped */
bool has_failed[SEGMENTS], finishes[SEGMENTS], is_closed[SEGMENTS];
byte gap[SEGMENTS];

byte nr_taken;  /* records, of Xen's buffers */
byte untold;    /* of those dropped for lack of a chunk, that no chunk reports; the truth */
byte current;   /* the segment that is fed */
bool is_offered;

/* Chooses a chunk, or a sink, of which CONDITION is true; waits until there is one. */
#define CHOOSE_CHUNK(n, CONDITION) \
    if \
    :: CONDITION(0) -> n = 0 \
    :: CONDITION(1) -> n = 1 \
    :: CONDITION(2) -> n = 2 \
    fi
#define CHOOSE_SINK(n, CONDITION) \
    if \
    :: CONDITION(0) -> n = 0 \
    :: CONDITION(1) -> n = 1 \
    :: CONDITION(2) -> n = 2 \
    fi

/* An empty successor may be closed before the one that it waits for. */
#define IS_OVER(sink)  (sink > current || is_closed[sink])
#define ALL_ARE_CLOSED (IS_OVER(0) && IS_OVER(1) && IS_OVER(2))

/* --- The kernel. --- */

/* All that is older and in another segment is on the disk, or is reported there as dropped. */
inline check_older(chunk)
{
    older = 0;
    do
    :: older < chunk ->
        assert(segment[older] == segment[chunk] || is_on_disk[older] || state[older] == REPORTED);
        older++
    :: else -> break
    od;
    older = 0
}

#define IS_WRITING(n) (state[n] == WRITING)

active proctype kernel()
{
    byte n, older;

    do
    :: atomic {
            CHOOSE_CHUNK(n, IS_WRITING);
            if
            :: check_older(n); is_on_disk[n] = true; state[n] = DONE
            :: state[n] = BAD
            fi
        }
    :: nr_taken == RECORDS && ALL_ARE_CLOSED -> break
    od
}

/* --- The collector. --- */

/* The output ends before CHUNK: all from there on counts as dropped. */
inline fail(sink, chunk)
{
    has_failed[sink] = true;
    ends_at[sink] = (chunk < ends_at[sink] -> chunk : ends_at[sink]);
    n = chunk;
    do
    :: n < RECORDS ->
        if
        :: segment[n] == sink && (state[n] == QUEUED || state[n] == DONE || state[n] == WRITTEN ||
                                  state[n] == BAD) -> state[n] = DROPPED
        :: else -> skip /* WRITING: when it is completed */
        fi;
        n++
    :: else -> break
    od;
    n = 0
}

inline submit(sink)
{
    n = 0;
    nr_writing = 0;
    do
    :: n < RECORDS -> nr_writing = nr_writing + (segment[n] == sink && state[n] == WRITING); n++
    :: else -> break
    od;
    n = 0;
    do
    :: n < RECORDS ->
        if
        :: segment[n] == sink && state[n] == QUEUED && nr_writing < WRITES &&
                n < ends_at[sink] -> state[n] = WRITING; nr_writing++
        :: else -> skip
        fi;
        n++
    :: else -> break
    od;
    n = 0;
    nr_writing = 0
}

#define IS_SINKS(n, sink) (segment[n] == sink && state[n] != ABSENT && state[n] != WRITTEN && \
                           state[n] != DROPPED && state[n] != REPORTED)
#define IS_QUIET(sink) (!IS_SINKS(0, sink) && !IS_SINKS(1, sink) && !IS_SINKS(2, sink))

#define IS_COMPLETE(n)  (state[n] == DONE || state[n] == BAD)
#define MAY_WRITE(sink) (sink <= current && before[sink] == NONE && \
                         (IS_TO_WRITE(0, sink) || IS_TO_WRITE(1, sink) || IS_TO_WRITE(2, sink)))
#define IS_TO_WRITE(n, sink) (segment[n] == sink && state[n] == QUEUED)
#define IS_DONE(sink)   (finishes[sink] && !is_closed[sink] && IS_QUIET(sink))

active proctype collector()
{
    byte n, sink, nr_writing;

    do
    /* A round takes a record. */
    :: nr_taken < RECORDS && !has_failed[current] ->
        d_step {
            segment[nr_taken] = current;
            state[nr_taken] = QUEUED;
            assert(gap[current] == untold); /* what was dropped is reported before it */
            gap[current] = 0;
            untold = 0;
            nr_taken++
        }
    /* ... or has no chunk for it. */
    :: nr_taken < RECORDS && !has_failed[current] ->
        d_step {
            segment[nr_taken] = current;
            state[nr_taken] = REPORTED; /* when the next chunk comes; else in the ledger only */
            gap[current]++;
            untold++;
            nr_taken++
        }
    /* A sink that has failed takes none: the session ends, and counts it as dropped. */
    :: nr_taken < RECORDS && has_failed[current] ->
        d_step { segment[nr_taken] = current; state[nr_taken] = DROPPED; nr_taken++ }

    /* The end of a round. */
    :: is_offered && !has_failed[current] ->
        d_step {
            is_offered = false;
            finishes[current] = true;
#if BREAK != 1
            before[current + 1] = current;
#endif
#if BREAK != 3
            gap[current + 1] = gap[current];
            gap[current] = 0;
#endif
            current++
        }

    /* A write is completed. */
    :: atomic {
            CHOOSE_CHUNK(n, IS_COMPLETE);
            sink = segment[n];
            if
            :: n >= ends_at[sink] -> state[n] = DROPPED
            :: n < ends_at[sink] && state[n] == DONE -> state[n] = WRITTEN
            :: n < ends_at[sink] && state[n] == BAD -> state[n] = QUEUED /* transient */
            :: n < ends_at[sink] && state[n] == BAD -> fail(sink, n)
            fi;
            n = 0;
            sink = 0
        }

    /* attachments_tend(): chunks are submitted, then sinks that are done are let go of. */
    :: atomic {
            CHOOSE_SINK(sink, MAY_WRITE);
            submit(sink);
            sink = 0
        }
    :: atomic {
            CHOOSE_SINK(sink, IS_DONE);
            is_closed[sink] = true;
            if
            :: sink < SEGMENTS - 1 && before[sink + 1] == sink ->
                before[sink + 1] = NONE;
                if
#if BREAK != 2
                :: has_failed[sink] -> fail(sink + 1, 0)
#endif
                :: else -> skip
                fi
            :: else -> skip
            fi;
            sink = 0
        }
    :: nr_taken == RECORDS && !finishes[current] -> finishes[current] = true
    :: nr_taken == RECORDS && ALL_ARE_CLOSED -> break
    od;

    /* The ledger: what was delivered is there, the rest is dropped. */
    n = 0;
    do
    :: n < RECORDS ->
        assert(state[n] == DROPPED || state[n] == REPORTED || (state[n] == WRITTEN && is_on_disk[n]));
        n++
    :: else -> break
    od
}

/* --- The main thread. --- */

#if BREAK == 4
#define IS_BEFORE_CLOSED true
#else
#define IS_BEFORE_CLOSED (current == 0 || is_closed[current - 1])
#endif

active proctype session()
{
end:
    do
    :: atomic {
            !is_offered && !finishes[current] && current < SEGMENTS - 1 && IS_BEFORE_CLOSED ->
            is_offered = true
        }
    od
}
