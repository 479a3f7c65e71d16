/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The destination of a session's records: a file, a stream, a sequence of segments, or a ring in
 * memory. Each kind is a struct that begins with a struct storage, and a table of operations. The
 * session controls the storage, which reports through the session_handle_*() functions below. Main
 * thread; nothing here waits: what may wait is a request to an output (daemon/output/output.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/failure.h"
#include "daemon/output/output.h"
#include "daemon/session/session-data.h"

struct storage;

struct storage_kind {
    const char *name; /* as in documents */
    uint64_t
        grant_ahead_bytes; /* asks for space when less is granted; 0: half of the first grant */

    /* Those that may be NULL have nothing to do in that kind. */

    /*
     * Begins to open the output; session_handle_opened() follows from the event loop. Returns 1 if
     * there is nothing to open, 0, or a negative errno and FAILURE.
     */
    int (*open)(struct storage *storage, const struct session_options *options,
                struct failure *failure);

    /*
     * The output is open, the trace buffers are mapped: makes storage->sink. WATCH as in struct
     * session_options. Returns 0 or a negative errno and FAILURE.
     */
    int (*make_sink)(struct storage *storage, struct watch_set *watch, struct failure *failure);

    /* The session runs. */
    void (*begin)(struct storage *storage); /* NULL */

    /* The session ends: no timers, nothing new. */
    void (*stop)(struct storage *storage); /* NULL */

    /*
     * A message about another sink than storage->sink, or one that only this kind knows. The
     * session handles all others. NULL: there are none.
     */
    void (*handle_message)(struct storage *storage, const struct message *message);
    bool (*owns_sink)(const struct storage *storage, const struct sink *sink);

    /* Gives up all sinks but storage->sink, which the session has given up. */
    void (*abort)(struct storage *storage); /* NULL */

    /*
     * All sinks have come back and the figures are final: completes what there is, then
     * session_handle_finished(). Also after an abort, and after a start that failed
     * (session->start_failure.name is set): that leaves no file of ours.
     */
    void (*finish)(struct storage *storage);

    /*
     * The session's last sidecar is under way: those of its own follow, each between two
     * session_note_sidecar().
     */
    void (*seal)(struct storage *storage); /* NULL */

    /* Every sink has come back, and nothing of it is under way but storage->sink. NULL: always. */
    bool (*is_quiet)(const struct storage *storage);

    /* Adds what is not in storage->sink. NULL: there is nothing. */
    void (*add_ledger)(const struct storage *storage, unsigned int cpu, struct ledger *ledger);
    void (*add_totals)(const struct storage *storage, struct sink_totals *totals);

    /*
     * When the worker's long write last came further (CLOCK_MONOTONIC, in microseconds): it does
     * not wait for the disk then; 0: never. NULL: there is no such write.
     */
    uint64_t (*progress_usec)(const struct storage *storage);

    /*
     * Space for BYTES more is wanted, as far as limits of its own go; and: the disk has no more,
     * something may be deleted for it. `done` of storage.c's is called when that is over, with
     * whether anything was deleted. NULL: nothing ever is.
     */
    void (*make_room)(struct storage *storage, uint64_t bytes, bool disk_is_full,
                      void (*done)(struct storage *storage, bool has_deleted));

    /* When no message, request or timer can come any more. */
    struct storage *(*free)(struct storage *storage);
};

/* When all but the reserve is used. */
enum on_reserve {
    ON_RESERVE_STOP,   /* the session ends */
    ON_RESERVE_ROTATE, /* its oldest segments are deleted; it ends if there is none left */
    ON_RESERVE_PAUSE,  /* its chunks wait in the pool until there is space */
};

/* Part of a storage; space.c's. */
struct space {
    enum on_reserve on_reserve;
    bool is_paused;                 /* what it has taken cannot be written for now */
    bool is_asked;                  /* a request for more is under way */
    bool is_asked_again;            /* ... and another is to follow it */
    struct sd_event_source *source; /* looks whether there is space; NULL: there is enough */
};

struct storage {
    const struct storage_kind *kind;
    struct session *session;
    struct sink *sink;     /* the one that is fed; NULL until make_sink() */
    bool is_sink_closed;   /* the collector does not have it: not yet, or not any more */
    struct output *output; /* the file that is written; NULL: none yet, or a ring that has none */
    struct space space;    /* ... and what if the disk has no more */
};

/* -EINVAL: TEXT is none of "stop", "rotate", "pause". */
int on_reserve_parse(const char *text, enum on_reserve *ret_on_reserve);
const char *on_reserve_name(enum on_reserve on_reserve);

/* --- What the kinds have in common. --- */

/* Part of every kind's construction: checks and takes over what all outputs have in common. */
int storage_init(struct storage *storage, const struct storage_kind *kind, struct session *session,
                 const struct session_options *options, struct failure *failure);

/* A sink into OUTPUT as the session's options say. ROTATE_BYTES as in struct sink_config. */
int storage_make_sink(const struct storage *storage, const struct output *output,
                      uint64_t rotate_bytes, struct sink **ret_sink);

/* What OPTIONS ask for: a client's file, or one of our own with NAME. */
struct output_request storage_request(const struct storage *storage, const char *name,
                                      const struct session_options *options);

/* A start failed: removes the file of our own and its sidecar, then session_handle_finished(). */
void storage_remove_output(struct storage *storage);

/*
 * Opens storage->output as REQUEST says; DONE, whose userdata is STORAGE, has to come to
 * storage_handle_opened() in the end. -ENOMEM and FAILURE.
 */
int storage_open_output(struct storage *storage, const struct output_request *request,
                        output_done_fn done, struct failure *failure);

/* The output is open, or ERROR and FAILURE: passes it on to the session. An output_done_fn. */
void storage_handle_opened(void *storage, int error, const struct failure *failure);

/* --- What a session hears of its storage. session.c. --- */

/*
 * The output is open, or ERROR and FAILURE. Its files got NAME, if that is not the session's (see
 * may_rename).
 */
void session_handle_opened(struct session *session, const char *name, int error,
                           const struct failure *failure);
/* OUTPUT is open: what the reserve is, if it was to follow from the file system. */
void session_note_reserve(struct session *session, const struct output *output);
/* What follows does not wait for the disk, and may take long; and: it may wait for it again. */
void session_unlimit_start(struct session *session);
void session_limit_start(struct session *session);
/* It ends because OUTPUT could not be written; for a reason that session->message may explain. */
void session_handle_failure(struct session *session, const struct output *output, int error);
void session_end_output(struct session *session, enum end_reason reason);
/* session->message reports that OUTPUT could not be finished; the reason becomes the output's. */
void session_explain_finish(struct session *session, const struct output *output, int error);
/* The session has a new sink, which did not receive the messages sent to the previous one. */
void session_handle_handover(struct session *session);
/* Something that held up its end is over; it may be asked too often. */
void session_continue_end(struct session *session);
/* finish() is over. */
void session_handle_finished(struct session *session);
/* Its sidecar should be brought up to date. */
void session_update_sidecar(struct session *session);
/* Another of its sidecars is being written, or was: it does not end before that. */
void session_note_sidecar(struct session *session, bool begins);
/* A request to the disk was made: starts watching whether it answers. */
void session_expect_answer(struct session *session);
