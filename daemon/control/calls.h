/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Answers to method calls, at once or later: a call that has to wait for a session, a snapshot or a
 * segment is kept until then. Private to control.c. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/failure.h"
#include "daemon/control/audit.h"
#include "daemon/session/session.h"

#define CALLS_MAX          64u /* kept, of all clients */
#define CALLS_OF_USERS_MAX 48u /* of them may be of others than root */
#define CALLS_OF_USER_MAX  8u  /* ... and of one of them */

struct json_object;
struct sd_bus;
struct sd_bus_message;
struct reload_result;
struct segment;
struct snapshot;
struct vacuum_result;

/* A call that is answered later: when SESSION is in state UNTIL, or SNAPSHOT has ended. */
struct call {
    struct sd_bus_message *message; /* NULL: a signal asks, and nobody waits for the answer */
    struct audit_call audit;        /* who asks for what: reported with the outcome */
    const struct session *session;
    enum session_state until;        /* SESSION_RUNNING or SESSION_ENDED */
    const struct snapshot *snapshot; /* instead of both */
    unsigned int segment;            /* instead of `until`: when SESSION has finished that one */
    bool stops_recorder;             /* instead of all of them: when that is stopped */
    uint64_t ticket;                 /* likewise: when this request to the vacuum is done; 0: no */
    unsigned int reload;             /* likewise: when that reading was applied, or refused */
};

struct calls {
    struct call kept[CALLS_MAX];
    size_t count;
};

/* What a method handler returns. DOCUMENT is given away. Without a message, nothing is sent. */
int call_answer_failure(struct sd_bus_message *message, const struct failure *failure);
int call_answer_document(struct sd_bus_message *message, struct json_object *document);

/* Likewise; CALL is copied, its message is referenced. calls_check() has returned 0 before. */
int calls_keep(struct calls *calls, const struct call *call);

/* Whether PERSON may have one more call kept: else -EBUSY, and FAILURE. */
int calls_check(const struct calls *calls, uid_t person, struct failure *failure);

/* The client of BUS has gone. */
void calls_forget_bus(struct calls *calls, const struct sd_bus *bus);

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
