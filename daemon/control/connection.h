/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The connection of one client: bytes in, one whole call at a time, with the descriptors that came
 * with its bytes; replies out. Limits the bytes, descriptors and time that the client may use:
 *
 *   a message             VARLINK_CALL_BYTES_MAX, CONNECTION_INPUT_USEC from its first to its last
 * byte its descriptors       CONNECTION_PASSED_MAX; with more, all are closed, and the server
 * learns it calls                 one at a time: the next one stays in the socket until the last
 * reply of this one was read what it does not read CONNECTION_OUTPUT_USEC since it last read
 * something
 *
 * A client that exceeds a limit is disconnected. Nothing that the client made is closed here, but
 * on its person's thread (daemon/base/vacate.h). Main thread; nothing here waits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/units.h"

#define CONNECTION_INPUT_USEC  (2 * USEC_PER_SEC)
#define CONNECTION_OUTPUT_USEC (5 * USEC_PER_SEC)
#define CONNECTION_PASSED_MAX  2u /* an output and its sidecar */

struct connection;
struct json_object;
struct sd_event;
struct vacate_batch;
struct vacate_person;
struct varlink_call;

/* Descriptors of a call. */
struct passed {
    int fds[CONNECTION_PASSED_MAX];
    unsigned int count;
    bool is_refused; /* there were more: `fds` has none of them */
};

/* What the server does; USERDATA is the owner's. None of them may free the connection, but
 * `closed`. */
struct connection_server {
    /* Whether a call may be read now; else connection_resume() comes later. */
    bool (*may_read)(void *userdata);
    /*
     * CALL is to be answered with connection_reply(), now or later; not if it is oneway. All of
     * MESSAGE and PASSED is borrowed until this returns. A negative errno disconnects the client.
     */
    int (*call)(void *userdata, struct json_object *message, const struct varlink_call *call,
                const struct passed *passed);
    /* All replies so far were sent. */
    void (*drained)(void *userdata);
    /* The client has gone, or was disconnected, for REASON. The last thing that is called. */
    void (*closed)(void *userdata, const char *reason);
};

struct connection_options {
    struct sd_event *event;
    int64_t priority;
    struct vacate_person *person; /* borrowed */
    const struct connection_server *server;
    void *userdata;
};

/* SOCKET has the client's socket (non-blocking) alone, and is given away on success. */
int connection_new(const struct connection_options *options, struct vacate_batch *socket,
                   struct connection **ret_connection);
/* Disconnects the client without calling `closed`. Takes NULL; returns NULL. */
struct connection *connection_free(struct connection *connection);

/*
 * Sends MESSAGE, which is given away; NULL: it could not be made. If it does not continue, it is
 * the last reply to the present call. A reply that cannot be sent ends the connection, a little
 * later.
 */
void connection_reply(struct connection *connection, struct json_object *message, bool continues);

/* Bytes of replies that the client has not read. */
size_t connection_unsent_bytes(const struct connection *connection);

/* `may_read` may return something else now. */
void connection_resume(struct connection *connection);

/* Ends it, a little later, for REASON, a static string: for callers that are called by it. */
void connection_end(struct connection *connection, const char *reason);

/* The client's socket, borrowed: the kernel knows who is at the other end. */
int connection_fd(const struct connection *connection);

/* In place of the priority in its options. A negative errno of the event loop. */
int connection_set_priority(struct connection *connection, int64_t priority);

/* When the event loop has ended: sends what the client's socket accepts without blocking. */
void connection_send_last(struct connection *connection);
