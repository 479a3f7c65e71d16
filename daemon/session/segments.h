/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A disk ring: a capture as numbered files, segments, NAME.00001.xentrace and so on, in the state
 * directory. Each can be read alone, and so can all of them joined: none overlaps, and no record is
 * lost between two. Main thread.
 *
 * Each segment has a sink of its own. The session's `sink` and `output` are those of the segment
 * that is being written. The next one is prepared beside it, its file hidden; the collector hands
 * over to it between two rounds. The one before is flushed and finished meanwhile. Of both there is
 * one at most: what cannot be prepared or finished in time makes the current one longer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/ledger.h"
#include "collector/sink.h"
#include "daemon/base/failure.h"
#include "daemon/output/output.h"

struct message;
struct sd_event_source;
struct session;
struct session_options;

#define SEGMENT_NAME_MAX   80u /* a session's name, ".00001" */
#define SEGMENTS_SHOWN_MAX 64u /* in a document: the newest */

/* Why a segment ends where it does. */
enum segment_reason {
    SEGMENT_IS_WRITTEN, /* it has not ended */
    SEGMENT_SIZE,
    SEGMENT_TIME,
    SEGMENT_ROTATE,
    SEGMENT_END, /* of the session */
};

struct segment {
    unsigned int number;
    enum segment_reason reason;
    uint64_t bytes;
    uint64_t first_tsc, last_tsc; /* of its records; 0: none */
    uint64_t first_ns, last_ns;   /* CLOCK_REALTIME */
    uint64_t records, lost, dropped;
    uint64_t complete_from_tsc; /* see struct sink_totals */
};

/* A finished one whose file is there. */
struct segment_file {
    struct segment segment;
    uint64_t delivered[]; /* per CPU: what is evicted when it is deleted */
};

/* Part of a session that is segmented. */
struct segments {
    unsigned int nr_cpus;
    /* As asked for; 0: not. */
    uint64_t size_bytes; /* or what follows from keep-size= */
    uint64_t time_usec;
    uint32_t keep_files;
    uint64_t keep_bytes;

    unsigned int number;     /* of the one that is being written */
    enum segment_reason due; /* SEGMENT_IS_WRITTEN: it is not to end yet, but for its size */

    struct sink *next; /* the prepared one; NULL: none */
    struct output next_output;
    char next_name[SEGMENT_NAME_MAX]; /* that it was prepared for */
    bool is_offered;                  /* to the collector ... */
    bool is_offered_now;              /* ... to be taken after the next round */
    bool is_failure_told;

    struct sink *before; /* the one before, which is being flushed; NULL: none */
    struct output before_output;
    unsigned int before_number; /* 0: it was empty, and its file is gone */
    enum segment_reason before_reason;

    struct segment_file **files; /* oldest first */
    size_t nr_files;
    uint64_t files_bytes;
    uint32_t written; /* finished ones */
    uint32_t deleted; /* of these */
    bool is_over;     /* the last one is finished, too */
    bool is_changed;  /* since the session's sidecar was written */

    /* Of all that are finished, but for the session's last sink. */
    struct ledger *past; /* [nr_cpus] */
    struct sink_totals past_totals;

    struct sd_event_source *time_source;  /* segment-time= */
    struct sd_event_source *retry_source; /* the next one could not be prepared */
};

/*
 * What OPTIONS ask for, checked; *RET_SEGMENTS is left as it is if that is none. -EINVAL or -ENOMEM
 * with FAILURE.
 */
int segments_new(const struct session_options *options, unsigned int nr_cpus,
                 struct segments **ret_segments, struct failure *failure);
struct segments *segments_free(struct segments *segments);

const char *segment_reason_name(enum segment_reason reason); /* as in documents; "": not ended */

/* "NAME.00001", which is its file's name without the ending. */
void segment_name(const struct session *session, unsigned int number,
                  char ret_name[static SEGMENT_NAME_MAX]);

/* Fails with ERROR_NAME_IN_USE if there are segments of an older session of that name. */
int segments_refuse_old(const struct session *session, struct failure *failure);

/* How long a segment's file is to become, at most if all goes well; 0: any length. */
uint64_t segments_aim_bytes(const struct segments *segments);

/* What the sink of a segment has, as of now; its number and reason are left 0. */
void segment_describe(const struct session *session, const struct sink *sink,
                      struct segment *ret_segment);

/* The session runs. And: it stops, or is freed. */
void segments_begin(struct session *session);
void segments_stop_timers(struct segments *segments);

/* The collector has handed over. And: a message about the sink before. */
void segments_handle_succeeded(struct session *session);
void segments_handle_message(struct session *session, const struct message *message);

/*
 * Has the segment that is being written end after the next round. `segment_finished` of the
 * session's context tells when segment *RET_NUMBER is finished, or was empty. Fails with
 * ERROR_NOT_SEGMENTED, _NO_SESSION, _NO_SPACE, and what output_create() fails with.
 */
int segments_rotate(struct session *session, unsigned int *ret_number, struct failure *failure);

/* The session's last sink has come back, and its output is finished: it is the last segment. */
void segments_finish_last(struct session *session);
/* The same for its sidecar, when the session has ended. */
void segments_write_last_sidecar(const struct session *session);

/* What was prepared and is not used any more is removed. */
void segments_discard_next(struct session *session);

/* keep-size=: deletes the oldest ones so that there may be BYTES more. Nothing if not segmented. */
void segments_make_room(struct session *session, uint64_t bytes);
/* Deletes the oldest finished one; false if there is none. */
bool segments_delete_oldest(struct session *session);

/* Adds what is not in the session's own sink. */
void segments_add_ledger(const struct segments *segments, unsigned int cpu, struct ledger *ledger);
void segments_add_totals(const struct segments *segments, struct sink_totals *totals);

/* --- Between segments.c and segments-files.c. --- */

/* The SINK of segment NUMBER has come back: its figures go to the past ones. */
void segments_enter_past(struct segments *segments, const struct sink *sink);

/* Segment NUMBER is finished: lists it, writes its sidecar, tells `segment_finished`. */
void segments_enter_file(struct session *session, const struct sink *sink, unsigned int number,
                         enum segment_reason reason);

/* Removes the segment's file and sidecar. */
int segments_remove_file(const struct session *session, unsigned int number);

/* keep-files=: deletes the oldest ones so that there may be the current one and that before. */
void segments_make_place(struct session *session);
