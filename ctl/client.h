/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * xentraced's client: calls of the interface org.xentraced.Control, as docs/control-protocol.md
 * says, and everything that is waited for beside them.
 *
 * Calls wait for their answer, a limited time. Once signals are caught, Ctrl-C and SIGTERM end a
 * wait with -EINTR instead of ending the process. A connection carries one call at a time: a call
 * while another one is under way has a connection of its own. One thread.
 *
 * Errors of all functions here: one sentence in *RET_ERROR (free it) and
 *   -EREMOTEIO   the daemon refused: nothing was done
 *   -ENOTCONN    nobody listens: xentraced is not running
 *   -ECONNRESET  the connection is gone, or never came about for another reason
 *   -ETIMEDOUT   no answer in time
 *   -EBADMSG     an answer that is none
 *   -EINTR       interrupted (no sentence)
 *   -ENOMEM and the like
 */

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "ctl/doc.h"

/* A start that opens files: below a second. */
#define CLIENT_TIMEOUT_USEC (30 * USEC_PER_SEC)
/* Gigabytes to a slow disk, or of memory to be taken, may take long. */
#define CLIENT_LONG_TIMEOUT_USEC (3600 * USEC_PER_SEC)

struct client;

/* Connects to the socket at PATH, and learns what listens there. */
int client_new(const char *path, struct client **ret_client, char **ret_error);
struct client *client_free(struct client *client);

static inline void client_freep(struct client **client)
{
    *client = client_free(*client);
}

#define _cleanup_client_ _cleanup_(client_freep)

/* The daemon's version; borrowed, printable. */
const char *client_version(const struct client *client);

/* --- What is waited for beside answers. --- */

/* From now on SIGINT, SIGTERM and SIGHUP (unless it is ignored) interrupt a wait: each signal one.
 */
int client_catch_signals(struct client *client, char **ret_error);

/*
 * The last of them if the process group did not receive it, so that a command which runs beside
 * this one has to be sent it; else 0. Forgets it.
 */
int client_take_signal(struct client *client);

/* From now on the end of the process PID, a child, ends client_sleep() and client_next(). */
int client_watch_child(struct client *client, pid_t pid, char **ret_error);

/* Whether it has ended; its status as of waitpid(2) is *RET_STATUS then. */
bool client_child_has_ended(const struct client *client, int *ret_status);

/* Waits. Returns 0 or -EINTR. */
int client_sleep(struct client *client, uint64_t usec);

/* --- Calls. --- */

/* What is read while answers are awaited. */
struct client_reader {
    int *fd; /* does not block; closed, and -1, when READ has returned false */
    bool (*read)(void *context);
    void *context;
};

struct client_call {
    const char *method;             /* PROTOCOL_START ... */
    struct json_object *parameters; /* NULL: none; borrowed */
    const int *fds;                 /* passed with it: parameters name them by their index */
    size_t nr_fds;
    const char *answer; /* the reply's parameter that is the document: "session" */
    const char *format; /* of the document; NULL: any object */
    uint64_t timeout_usec;
    struct client_reader *reader; /* NULL: none */
    /* Asks for progress and is called with it: bytes of, in all. NULL: not asked for. */
    void (*on_progress)(void *context, uint64_t bytes, uint64_t total_bytes);
    void *context;
};

/* Makes the call and waits for its document. */
int client_call(struct client *client, const struct client_call *call, struct json_object **ret_doc,
                char **ret_error);

/* --- Streams: a call whose answer is one document after the other. --- */

struct client_stream;

/* Makes the call, which has no timeout and no progress. */
int client_stream(struct client *client, const struct client_call *call,
                  struct client_stream **ret_stream, char **ret_error);

/*
 * Waits for the next document, TIMEOUT_USEC at most: 1; 0: the child has ended, or TIMEOUT_USEC is
 * 0 and there is none yet. An error ends the stream, but for -EINTR. After the last document it is
 * -ECONNRESET.
 */
int client_next(struct client_stream *stream, uint64_t timeout_usec, struct json_object **ret_doc,
                char **ret_error);

/*
 * Gives it up, and closes its connection if it has not ended; client_free() does so, too. NULL is
 * fine. Returns NULL.
 */
struct client_stream *client_stream_free(struct client_stream *stream);

/* Adds what poll(2) should wait for before client_next() is worth a call: its number. */
#define CLIENT_STREAM_FDS_MAX 2u
size_t client_stream_fds(const struct client_stream *stream,
                         struct pollfd fds[static CLIENT_STREAM_FDS_MAX]);

/* --- The daemon's methods. --- */

/*
 * Stop(NAME). If the answer has not come after 3 s, WHILE_WAITING is called, and again each second
 * until it returns 1. It may make calls; -EINTR from it ends the wait.
 */
int client_stop(struct client *client, const char *name,
                int (*while_waiting)(struct client *client, const char *name),
                struct json_object **ret_doc, char **ret_error);

/* Abort(NAME), Status(NAME): "" is everything. */
int client_abort(struct client *client, const char *name, struct json_object **ret_doc,
                 char **ret_error);
int client_status(struct client *client, const char *name, struct json_object **ret_doc,
                  char **ret_error);

/* A stream of Status(NAME), one each INTERVAL_USEC; of a session, the last one is of its end. */
int client_stream_status(struct client *client, const char *name, uint64_t interval_usec,
                         struct client_stream **ret_stream, char **ret_error);

/* StopRecorder(): the recorder's object. */
int client_stop_recorder(struct client *client, struct json_object **ret_doc, char **ret_error);

/* Reload(): what has changed. NAME is not used. */
int client_reload(struct client *client, const char *name, struct json_object **ret_doc,
                  char **ret_error);

/* Rotate(NAME): a segment object. Trigger(NAME): a trigger object. */
int client_rotate(struct client *client, const char *name, struct json_object **ret_doc,
                  char **ret_error);
int client_trigger(struct client *client, const char *name, struct json_object **ret_doc,
                   char **ret_error);

/* One of the calls above, made to the daemon at the socket PATH on a connection of its own. */
int client_ask(const char *path,
               int (*call)(struct client *client, const char *name, struct json_object **ret_doc,
                           char **ret_error),
               const char *name, struct json_object **ret_doc, char **ret_error);

/* Likewise Status of everything, for commands that continue without it: waits for TIMEOUT_USEC. */
int client_ask_briefly(const char *path, uint64_t timeout_usec, struct json_object **ret_doc,
                       char **ret_error);
