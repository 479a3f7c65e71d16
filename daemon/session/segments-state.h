/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shared by segments.c, which begins and ends segments, and segment-files.c, which keeps the list
 * of their files. Main thread; nothing here waits.
 */

#include "collector/account.h"
#include "daemon/session/segments.h"

/* --- segments.c --- */

/* Does what can be done now; to be called whenever something has changed. */
void segments_advance(struct segments *segments);

/* That the next segment's file is granted when it is opened, at most. */
uint64_t segments_first_grant_bytes(const struct segments *segments);

static inline struct session *segments_session(const struct segments *segments)
{
    return segments->storage.session;
}

/* --- segments-resume.c --- */

/* STATE is of the daemon before; NULL: there is none. It begins with a sink that holds. */
int segments_take_state(struct segments *segments, const struct persist_state *state,
                        struct failure *failure);
int segments_make_holder(struct segments *segments, struct failure *failure);

/* The session runs: has the disk read, then the first segment made. */
void segments_resume(struct segments *segments);

/* SINK is to be the first one: it reports what is missing before it. */
void segments_pass_missing(struct segments *segments, struct sink *sink);
/* It has taken over; the one that held comes back; and: the session ends before that. */
void segments_end_holding(struct segments *segments);
void segments_note_held(struct segments *segments, const struct sink *sink);
void segments_stop_holding(struct segments *segments);

/* Of one CPU, what is known of it after a restart. */
struct recovered_sums {
    uint64_t read;    /* records in those that were read now */
    uint64_t told;    /* missing ones that these report */
    uint64_t pending; /* of the past: that they had to report */
    uint64_t last_tsc;
};

/*
 * Brings PAST up to what was TAKEN from Xen. *RET_ADDED is what comes to it. Returns how many
 * records the next segment has to report.
 */
uint64_t segments_settle_ledger(struct ledger *past, struct account_sum taken,
                                const struct recovered_sums *sums, struct ledger *ret_added);

/* --- segment-files.c --- */

/* SEGMENT is on the disk, of an earlier daemon; DELIVERED per CPU is evicted when it is deleted. */
void segments_list_old(struct segments *segments, const struct segment *segment,
                       const uint64_t *delivered, bool is_unread);
/* ... and was read; and: has gone. */
void segments_update_old(struct segments *segments, const struct segment *segment,
                         const uint64_t *delivered);
void segments_drop_old(struct segments *segments, unsigned int number);

/* Adds the figures of SINK. */
void segments_add_sink(const struct sink *sink, unsigned int nr_cpus, struct ledger *past,
                       struct sink_totals *totals);

/* What OPTIONS ask for, checked together. -EINVAL and FAILURE. */
int segments_take_options(struct segments *segments, const struct session_options *options,
                          struct failure *failure);

/* The SINK of a segment has come back: its figures go to the past ones. */
void segments_enter_past(struct segments *segments, const struct sink *sink);

/* Segment NUMBER is finished: lists it. RET_SEGMENT is what there is to report of it. */
void segments_enter_file(struct segments *segments, const struct sink *sink, unsigned int number,
                         enum segment_reason reason, struct segment *ret_segment);

/*
 * Has the sidecar of SEGMENT written; then, also if that failed, `segment_finished` is called. And:
 * the session waits for it, as it is the last one.
 */
void segments_write_sidecar(struct segments *segments, const struct segment *segment,
                            const struct sink *sink);
void segments_write_last_sidecar(struct segments *segments);

/* Has the oldest file deleted; nothing if that is under way, or there is none. */
void segments_delete_oldest(struct segments *segments);

/* The same for what segments_evict() asked for, as far as it can be done now. */
void segments_advance_eviction(struct segments *segments);

/* Has the files of segment NUMBER removed, which was empty. DONE may be NULL. */
void segments_remove_empty(struct segments *segments, unsigned int number,
                           void (*done)(struct segments *segments, int error));

/* Whether keep-files= asks for the oldest to go before the current one is given its name. */
bool segments_exceed_keep_files(const struct segments *segments);
/* Whether keep-size= asks for the oldest to go if there are to be BYTES more. */
bool segments_exceed_keep_bytes(const struct segments *segments, uint64_t bytes);

/* Of the storage's kind. */
void segments_make_room(struct storage *storage, uint64_t bytes, bool disk_is_full,
                        void (*done)(struct storage *storage, bool has_deleted));
/* ... as far as it can be done now. */
void segments_advance_room(struct segments *segments);
void segments_add_ledger(const struct storage *storage, unsigned int cpu, struct ledger *ledger);
void segments_add_totals(const struct storage *storage, struct sink_totals *totals);
