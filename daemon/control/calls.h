/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Replies to calls, at once or later: a call that has to wait for a session, a snapshot or a
 * segment is kept until then. So is a stream, a call with several replies. Private to control.c.
 * Main thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/failure.h"
#include "daemon/control/audit.h"
#include "daemon/session/session.h"

#define CALLS_MAX          64u /* kept, of all clients */
#define CALLS_OF_USERS_MAX 48u /* of them may be of others than root */
#define CALLS_OF_USER_MAX  8u  /* ... and of one of them */

struct connection;
struct json_object;
struct manager;
struct reload_result;
struct sd_event_source;
struct segment;
struct snapshot;
struct vacate_batch;
struct vacuum_result;

enum stream {
    STREAM_NONE,     /* one reply */
    STREAM_STATUS,   /* the status, each interval; of `session` until it ends */
    STREAM_PROGRESS, /* of `snapshot`, until it ends */
    STREAM_LIVE,     /* a snapshot after the other */
};

/* A call that is answered later: when SESSION is in state UNTIL, or SNAPSHOT has ended. */
struct call {
    struct connection *connection; /* NULL: a signal asks, and nobody waits for the reply */
    const char *reply;             /* the reply's parameter: REPLY_* */
    struct audit_call audit;       /* who asks for what: reported with the outcome */
    const struct session *session;
    enum session_state until;        /* SESSION_RUNNING or SESSION_ENDED */
    const struct snapshot *snapshot; /* instead of both */
    unsigned int segment;            /* instead of `until`: when SESSION has finished that one */
    bool stops_recorder;             /* instead of all of them: when that is stopped */
    uint64_t ticket;                 /* likewise: when this request to the vacuum is done; 0: no */
    unsigned int reload;             /* likewise: when that reading was applied, or refused */

    enum stream stream;
    uint64_t interval_usec;
    uint64_t next_usec; /* CLOCK_MONOTONIC: of its next reply, or part */
    /* Of a live view, kept for its next parts: */
    struct json_object *message;
    struct vacate_batch *output;
};

struct calls {
    struct call kept[CALLS_MAX];
    size_t count;
    const struct manager *manager;
    struct sd_event_source *timer; /* of streams */
    /* Begins the next part of a live view: returns what calls_check() does. */
    int (*next_part)(void *userdata, struct call *call, struct failure *failure);
    void *userdata;
};

/* MANAGER is borrowed. A negative errno. */
int calls_init(struct calls *calls, const struct manager *manager,
               int (*next_part)(void *userdata, struct call *call, struct failure *failure),
               void *userdata);
/* No call is kept any more. */
void calls_done(struct calls *calls);

/* Replies to CALL; the audit trail is the caller's. DOCUMENT is given away. */
void call_answer_failure(const struct call *call, const struct failure *failure);
void call_answer_document(const struct call *call, struct json_object *document);
/* ... with a reply that continues, of a stream. */
void call_send_document(const struct call *call, struct json_object *document);
/* CALL is answered, and was not kept: gives up what it has of a live view. */
void call_forget(struct call *call);

/*
 * CALL is copied, and answered later; what it has of a live view is given away. calls_check() has
 * returned 0 before. A stream has its first reply, or progress, after its interval. Returns 0.
 */
int calls_keep(struct calls *calls, const struct call *call);

/* Whether PERSON may have one more call kept: else -EBUSY, and FAILURE. */
int calls_check(const struct calls *calls, uid_t person, struct failure *failure);

/* The client of CONNECTION has gone. */
void calls_forget_connection(struct calls *calls, const struct connection *connection);

/* SESSION runs, could not start, or has ended: answers the calls that wait for that. */
void calls_handle_session(struct calls *calls, const struct session *session);
/* The recorder that was to be stopped is: DOCUMENT is its object, and stays the caller's. */
void calls_handle_recorder_stopped(struct calls *calls, struct json_object *document);
/* The configuration was read again. */
void calls_handle_reload(struct calls *calls, const struct reload_result *result);
/* SNAPSHOT is written, or has failed. */
void calls_handle_snapshot(struct calls *calls, const struct snapshot *snapshot);
/* The request to the vacuum of that TICKET is done. */
void calls_handle_vacuum(struct calls *calls, uint64_t ticket, const char *state_dir,
                         const struct vacuum_result *result);
/* Segment NUMBER of SESSION is finished; SEGMENT NULL: it was empty. */
void calls_handle_segment(struct calls *calls, const struct session *session, unsigned int number,
                          const struct segment *segment);
