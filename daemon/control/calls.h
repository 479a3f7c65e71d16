/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Answers to method calls, at once or later: a call that has to wait for a session, a snapshot or a
 * segment is kept until then. Private to control.c. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/failure.h"
#include "daemon/session/session.h"

#define CALLS_MAX 64u /* kept, of all clients */

struct json_object;
struct sd_bus;
struct sd_bus_message;
struct reload_result;
struct segment;
struct snapshot;

/* A call that is answered later: when SESSION is in state UNTIL, or SNAPSHOT has ended. */
struct call {
    struct sd_bus_message *message;
    const struct session *session;
    enum session_state until;        /* SESSION_RUNNING or SESSION_ENDED */
    const struct snapshot *snapshot; /* instead of both */
    unsigned int segment;            /* instead of `until`: when SESSION has finished that one */
    bool stops_recorder;             /* instead of all of them: when that is stopped */
    unsigned int reload;             /* likewise: when that reading was applied, or refused */
};

struct calls {
    struct call kept[CALLS_MAX];
    size_t count;
};

/* What a method handler returns. DOCUMENT is given away. */
int call_answer_failure(struct sd_bus_message *message, const struct failure *failure);
int call_answer_document(struct sd_bus_message *message, struct json_object *document);

/* Likewise; CALL is copied, its message is referenced. Beyond CALLS_MAX, the client gets an error.
 */
int calls_keep(struct calls *calls, const struct call *call);

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
/* Segment NUMBER of SESSION is finished; SEGMENT NULL: it was empty. */
void calls_handle_segment(struct calls *calls, const struct session *session, unsigned int number,
                          const struct segment *segment);
