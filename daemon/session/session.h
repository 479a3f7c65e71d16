/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A session: what a user starts and stops. A filter, an output, limits; its data-plane half is a
 * sink. Main thread.
 *
 * States, in this order; session.c is the only place that changes them:
 *
 *   starting   the sink is handed to the collector, Xen is not yet told to trace
 *   running    records flow
 *   draining   Xen lets no more events pass; what is in its buffers is fetched
 *   settling   some CPUs may hold back counts of lost records: a moment for Xen to tell them
 *   closing    tracing is disabled, unless others go on; the last writes
 *   writing    of a ring with an output: what is in it goes there
 *   ended      the file is finished
 *
 * A session has an output, or a ring, or both: then the ring is written to it at the end. The
 * output may be a succession of segments (segments.h): `output` and `sink` are then the current
 * one's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/cpu-set.h"
#include "common/event-set.h"
#include "daemon/base/clock.h"
#include "daemon/host/domains.h"
#include "daemon/session/end-reason.h"
#include "daemon/base/failure.h"
#include "daemon/base/name.h"
#include "daemon/output/output.h"
#include "daemon/session/session-space.h"
#include "daemon/host/tracing.h"

struct collector;
struct domain_names;
struct host;
struct ledger;
struct message;
struct pool;
struct ring;
struct sd_event;
struct sd_event_source;
struct segment;
struct segments;
struct session;
struct sink;
struct sink_totals;
struct snapshot;
struct systemd;
struct watch_set;
struct xen_host;

/* What a session works with; lent by the manager, which outlives all sessions. */
struct session_context {
    struct sd_event *event;
    struct xen_host *xen;
    struct domain_names *names;
    struct systemd *systemd;
    const struct host *host;
    struct tracing *tracing;
    struct collector *collector;
    struct pool *pool;
    int state_dir_fd;
    const char *state_dir;
    uint32_t default_buffer_pages;
    uint32_t memory_share_percent; /* of the free memory that a ring may take */

    /* Called when a session got to SESSION_RUNNING or SESSION_ENDED, last thing in the transition.
     */
    void (*changed)(void *userdata, struct session *session);
    /* Called when segment NUMBER is finished; SEGMENT NULL: it was empty, and there is no file. */
    void (*segment_finished)(void *userdata, const struct session *session, unsigned int number,
                             const struct segment *segment);
    void *userdata;
};

/* As asked for; NULL, 0 and false stand for "not said". Nothing here is kept. */
struct session_options {
    const char *events; /* "all" */
    const char *cpus;   /* "all" */
    uint64_t time_usec;
    uint64_t reserve_bytes;
    uint64_t max_size_bytes;
    uint32_t buffer_pages;
    uint64_t poll_usec;
    bool discard;
    bool keep_enabled;
    bool start_disabled;
    bool has_output;
    int output_fd; /* borrowed */
    const char *output_path;
    int sidecar_fd; /* borrowed; -1: none */

    const char *on_reserve; /* "stop" */
    uint64_t segment_size_bytes;
    uint64_t segment_time_usec;
    uint32_t keep_files;
    uint64_t keep_size_bytes;

    uint64_t memory_bytes; /* a ring */
    uint64_t max_age_usec;
    bool is_recorder;         /* no output; of a ring */
    struct ring *ring;        /* taken over: it goes on with that; given away on success */
    struct clock_pair *since; /* ... and it was started then */
    struct watch_set *watch;  /* of a ring; lent. NULL: none */
};

enum session_state {
    SESSION_STARTING,
    SESSION_RUNNING,
    SESSION_DRAINING,
    SESSION_SETTLING,
    SESSION_CLOSING,
    SESSION_WRITING,
    SESSION_ENDED,
};

struct session {
    const struct session_context *context;
    char name[SESSION_NAME_MAX + 1];
    enum session_state state;

    char *events_spec;
    char *cpus_spec;
    struct event_set events;
    struct cpu_set cpus;
    unsigned int nr_cpus;
    uint64_t time_usec;
    uint64_t poll_usec;
    bool discard;
    bool keep_enabled;
    bool start_disabled;
    bool told_xen; /* masks are set for it, and tracing enabled unless start_disabled */
    struct tracing_use use;

    struct ring *ring; /* NULL: none */
    bool is_recorder;
    uint64_t memory_bytes; /* of the ring, as asked for */
    uint64_t max_age_usec;
    uint64_t adopted_seq; /* chunks up to that one are of a daemon before us */
    uint32_t restored;    /* times the ring was taken over */
    uint32_t snapshots;   /* written of it */
    unsigned int active_snapshots;
    bool is_closed;         /* its sink has come back */
    bool is_kept;           /* the service manager has the ring, too */
    struct snapshot *final; /* while WRITING */
    uint64_t final_bytes;   /* what it wrote */

    struct output output;
    struct space space;        /* ... and what if the disk has no more */
    bool owns_output;          /* in the state directory: with a sidecar beside it */
    int sidecar_fd;            /* the client's; -1: none, or our own by name */
    char *sidecar_path;        /* NULL: none */
    struct sink *sink;         /* until it has ended; the collector's from STARTING to CLOSING */
    struct segments *segments; /* NULL: the output is one file */
    bool ends_tracing;         /* nobody else is traced for: there is an end to draining */

    struct clock_pair started;
    struct clock_pair ended;
    enum end_reason reason;
    char message[768];             /* how it ended, for people */
    struct cpu_set loss_unknown;   /* CPUs that may have lost more than Xen told */
    struct cpu_set set_aside_told; /* CPUs whose broken buffer is in the log */
    struct domains domains;
    struct failure start_failure; /* why it ended before it ran: start_failure.name is set */

    struct sd_event_source *time_source;  /* -T */
    struct sd_event_source *tick_source;  /* every few seconds while running */
    struct sd_event_source *abort_source; /* for a reader that does not read */
};

/*
 * Makes a session and hands it to the collector; `changed` tells when it runs. NAME is checked; if
 * something cannot be, nothing is left behind: FAILURE says what. Any errno.
 */
int session_new(const struct session_context *context, const char *name,
                const struct session_options *options, struct session **ret_session,
                struct failure *failure);
/* Only in SESSION_ENDED, or before it was started. */
struct session *session_free(struct session *session);

/* Ends it for REASON, if it is not ending already; `changed` tells when it has ended. */
void session_stop(struct session *session, enum end_reason reason);

/* A snapshot of its ring begins, or has ended: its ring stays for that long. */
void session_note_snapshot(struct session *session, bool begins);

/* A message of the collector about one of this session's sinks; and whether SINK is one. */
void session_handle_message(struct session *session, const struct message *message);
bool session_owns_sink(const struct session *session, const struct sink *sink);

/* Of all its sinks, those of segments that are gone included. */
void session_read_ledger(const struct session *session, unsigned int cpu,
                         struct ledger *ret_ledger);
void session_read_totals(const struct session *session, struct sink_totals *ret_totals);

/* --- Between session.c and segments.c. --- */

/* It ends because OUTPUT could not be written; for REASON, which session->message may explain. */
void session_handle_failure(struct session *session, const struct output *output, int error);
void session_end_output(struct session *session, enum end_reason reason);
/* session->message says that OUTPUT could not be finished. */
void session_explain_finish(struct session *session, const struct output *output, int error);
/* Its sink is another one: that is told what the one before did not hear any more. */
void session_handle_handover(struct session *session);
/* Something that held up its end is over. */
void session_continue_end(struct session *session);

const char *session_state_name(enum session_state state); /* as in documents */

/*
 * Of session-setup.c: fills SESSION, whose name and context are set, from OPTIONS. On failure
 * session_remove_files() and session_free() take it back.
 */
int session_prepare(struct session *session, const struct session_options *options,
                    struct failure *failure);
/* A sink into OUTPUT, as the session's options say; WATCH as in them. -ENOMEM. */
int session_make_sink(const struct session *session, const struct output *output,
                      struct watch_set *watch, struct sink **ret_sink);
/* Takes back what was created in the state directory. */
void session_remove_files(struct session *session);
