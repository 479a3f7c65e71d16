/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A capture in segments: numbered files, NAME.00001.xentrace and so on, in the state directory.
 * Each segment can be read alone, and all of them concatenated: they do not overlap, and no record
 * is lost between two. A kind of storage (storage.h). Main thread; nothing here waits.
 *
 * Each segment has a sink and an output of its own. The storage's are those of the segment that is
 * being written, the current one. Three more things may be under way beside it, one of each:
 *
 *   next     prepared ahead: its file is opened, hidden, then its sink is offered to the collector,
 *            which hands over to it between two rounds
 *   before   the one that was current before: flushed by the collector, then its file is finished
 *   oldest   deleted, to make room
 *
 * After the handover by the collector, the new current file is renamed to its final name. The next
 * handover waits for this, and for the previous segment. If the next segment is not ready in time,
 * or there is no space, the current segment becomes longer.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/ledger.h"
#include "collector/sink.h"
#include "daemon/base/clock.h"
#include "daemon/base/failure.h"
#include "daemon/base/worker.h"
#include "daemon/session/storage.h"

struct persist_state;
struct sd_event_source;
struct session_options;

#define SEGMENT_NAME_MAX   80u /* a session's name, ".00001" */
#define SEGMENTS_SHOWN_MAX 64u /* in a document: the newest */

/* Why a segment ends where it does. */
enum segment_reason {
    SEGMENT_IS_WRITTEN, /* it has not ended */
    SEGMENT_SIZE,
    SEGMENT_TIME,
    SEGMENT_ROTATE,
    SEGMENT_END,     /* of the session */
    SEGMENT_RESTART, /* its daemon ended before it */
};

struct segment {
    unsigned int number;
    enum segment_reason reason;
    uint64_t bytes;
    bool is_packed; /* its file is compressed: what it holds, and what of that is stored raw */
    uint64_t plain_bytes, raw_bytes;
    uint64_t first_tsc, last_tsc; /* of its records; 0: none */
    uint64_t first_ns, last_ns;   /* CLOCK_REALTIME */
    uint64_t records, lost, dropped;
    uint64_t complete_from_tsc;  /* see struct sink_totals */
    uint64_t missing_before;     /* records that were dropped in a restart, before its first one */
    const struct ledger *ledger; /* per CPU; NULL: its sink has it */
};

/* Of one CPU, after a restart. */
struct missing {
    uint64_t records;
    uint64_t since_tsc;
};

/* A finished one whose file is there. */
struct segment_file {
    struct segment segment;
    bool is_unread;       /* of an earlier daemon; only its number and size are known yet */
    uint64_t delivered[]; /* per CPU: what is evicted when it is deleted */
};

struct segments;

/* Removes a segment's file and sidecar on the session's worker. */
struct segment_removal {
    struct job job;
    struct segments *segments;
    void (*done)(struct segments *segments, int error);
    bool is_under_way;
    int directory_fd; /* these four are the worker's while it is under way */
    struct held_files *held;
    char name[SEGMENT_NAME_MAX];
    int error;
};

/* Read only, but for segments.c and segment-files.c. */
struct segments {
    struct storage storage; /* the current one's sink and output */
    unsigned int nr_cpus;
    /* As asked for; 0: not. */
    uint64_t size_bytes; /* or what follows from keep-size= */
    uint64_t time_usec;
    uint32_t keep_files;
    uint64_t keep_bytes;

    bool is_released; /* free() came while something was under way: the process ends */
    bool is_stopped;  /* nothing is prepared or offered any more */
    bool is_over;     /* the last one is finished, too */

    /* It continues what an earlier daemon has begun: see segments-resume.c. */
    bool is_holding;       /* the current one has no file yet: its sink holds */
    bool is_new_run;       /* there is no state: what is on the disk is of an older run */
    bool is_recovering;    /* a worker reads the disk */
    bool is_recovered;     /* ... and has read all that the first one reports */
    struct worker *reader; /* of its finished ones; NULL: none is left */
    struct clock_pair holds_since;
    bool is_last_removed;      /* it ended right after a segment */
    unsigned int first_number; /* of this run; those before are an older one's */
    struct missing *missing; /* [nr_cpus]: what the first one reports; NULL: nothing is continued */
    bool before_held;        /* the one before had no file */
    unsigned int continued_number; /* of the first one */
    uint64_t missing_before;       /* the sum */
    uint64_t current_missing;      /* of the current one */
    uint64_t before_missing;       /* of the one that is being entered */

    /* The current one. While it holds: the number is the last one's. */
    unsigned int number;
    enum segment_reason due; /* SEGMENT_IS_WRITTEN: it is not to end yet, but for its size */
    bool is_open;            /* the session's first file was created */
    bool is_name_due;        /* its file is hidden, and is about to be given its name */
    bool is_named;
    struct sd_event_source *name_source; /* tries again to give it its name; NULL: no need */
    unsigned int name_tries;
    unsigned int nr_taken; /* numbers passed over because somebody else has a file of that name */

    /* The next one. */
    struct output *next_output; /* NULL: none */
    struct sink *next;          /* NULL: its output is not open yet */
    bool is_offered;            /* to the collector ... */
    bool is_offered_now;        /* ... to be taken after the next round */
    bool needs_space;           /* the disk is full: the oldest one is deleted for it */
    bool is_failure_logged;
    int next_error;              /* why it could not be prepared at the last attempt; 0: it could */
    struct failure next_failure; /* the same in words */

    /* The one before. */
    struct sink *before; /* NULL: none */
    struct output *before_output;
    unsigned int before_number; /* 0: it was empty, and its file is removed */
    enum segment_reason before_reason;

    /* Finished ones. */
    struct segment_file **files; /* oldest first; what is being deleted is still in it */
    size_t nr_files;
    uint64_t files_bytes;
    uint32_t written;         /* finished ones */
    uint32_t deleted;         /* of these */
    unsigned int gone_number; /* those up to that were deleted, or one of them is being */
    unsigned int nr_sidecars; /* of segments, under way */

    struct segment_removal oldest; /* of files[0] */
    struct segment_removal empty;  /* of one in which nothing was recorded */

    /* make_room() of the storage's, as long as room_done is set. */
    void (*room_done)(struct storage *storage, bool has_deleted);
    uint64_t room_bytes;
    bool room_needs_one; /* one has to go, whatever keep-size= says */
    bool room_has_deleted;
    unsigned int evictions_due; /* segments_evict() */

    /* Of all that are finished, but for the storage's last sink. */
    struct ledger *past; /* [nr_cpus] */
    struct sink_totals past_totals;

    struct sd_event_source *time_source;  /* segment-time= */
    struct sd_event_source *retry_source; /* the next one could not be prepared */
};

extern const struct storage_kind storage_segments;

/*
 * Checks what OPTIONS ask for as to segments, and that what needs segments does not come without.
 * Returns 0, or -EINVAL and FAILURE.
 */
int segments_check_options(const struct session_options *options, bool *ret_segmented,
                           struct failure *failure);

/* The storage for OPTIONS, which were checked to be segmented. -EINVAL or -ENOMEM with FAILURE. */
int segments_new(struct session *session, const struct session_options *options,
                 struct storage **ret_storage, struct failure *failure);

bool storage_is_segmented(const struct storage *storage); /* NULL: it is not */

/* STORAGE, which is of that kind. */
const struct segments *segments_of(const struct storage *storage);

const char *segment_reason_name(enum segment_reason reason); /* as in documents; "": not ended */
enum segment_reason segment_reason_parse(const char *name);  /* NULL, unknown: SEGMENT_RESTART */

/* The number of the last finished segment, and the sums up to it: what a restart continues from. */
unsigned int segments_finished_number(const struct segments *segments);
void segments_read_finished(const struct segments *segments, struct ledger *ret_past,
                            uint64_t *ret_pending, struct sink_totals *ret_totals);

/* "NAME.00001", which is its file's name without the ending; and where the file is. */
void segment_name(const struct session *session, unsigned int number,
                  char ret_name[static SEGMENT_NAME_MAX]);
void segment_path(const struct session *session, const struct segment *segment,
                  char ret_path[static PATH_MAX]);

/*
 * On a worker, for NAME of a session's first segment: fails with -EEXIST, ERROR_NAME_IN_USE if
 * there are segments or a sidecar of an older session of that name. An output_check_fn.
 */
int segments_check_none(int directory_fd, const char *directory, const char *name,
                        struct failure *failure);

/* The directory is to become smaller: has the COUNT oldest segments of SESSION deleted. */
void segments_evict(struct session *session, unsigned int count);

/* How long a segment's file is to become, at most if all goes well; 0: any length. */
uint64_t segments_aim_bytes(const struct segments *segments);

/* What the sink of a segment has, as of now; its number and reason are left 0. */
void segment_describe(const struct session *session, const struct sink *sink,
                      struct segment *ret_segment);

/*
 * Has the segment that is being written end after the next round. `segment_finished` of the
 * session's context reports when segment *RET_NUMBER is finished, or was empty. Fails with
 * ERROR_NOT_SEGMENTED, _NO_SESSION, _NO_SPACE, and with what the next file could not be created
 * for.
 */
int segments_rotate(struct session *session, unsigned int *ret_number, struct failure *failure);
