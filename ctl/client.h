/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The connection to xentraced: D-Bus without a bus, as docs/control-protocol.md says.
 *
 * Calls wait for their answer, a limited time. Once signals are caught, Ctrl-C and SIGTERM end a
 * wait with -EINTR instead of ending the process. One thread.
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

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "ctl/doc.h"

/* A start that opens files: below a second. */
#define CLIENT_TIMEOUT_USEC (30 * USEC_PER_SEC)
/* Gigabytes to a slow disk, or of memory to be taken, may take long. */
#define CLIENT_LONG_TIMEOUT_USEC (3600 * USEC_PER_SEC)

struct client;

/* Connects to the socket at PATH. */
int client_new(const char *path, struct client **ret_client, char **ret_error);
struct client *client_free(struct client *client);

static inline void client_freep(struct client **client)
{
    *client = client_free(*client);
}

#define _cleanup_client_ _cleanup_(client_freep)

/* From now on SIGINT, SIGTERM and SIGHUP (unless it is ignored) interrupt a wait: each signal one.
 */
int client_catch_signals(struct client *client, char **ret_error);

/*
 * The last of them if the process group did not receive it, so that a command which runs beside
 * this one has to be sent it; else 0. Forgets it.
 */
int client_take_signal(struct client *client);

/* From now on the end of the process PID, a child, ends a client_sleep(). */
int client_watch_child(struct client *client, pid_t pid, char **ret_error);

/* Whether it has ended; its status as of waitpid(2) is *RET_STATUS then. */
bool client_child_has_ended(const struct client *client, int *ret_status);

/* Waits. Returns 0 or -EINTR. */
int client_sleep(struct client *client, uint64_t usec);

/* A call of MEMBER, to be filled with its arguments. Free with sd_bus_message_unref(). */
int client_make_call(struct client *client, const char *member, sd_bus_message **ret_call,
                     char **ret_error);

/* Makes the call; the answer must be a JSON document of that FORMAT, or any object if it is NULL.
 */
int client_call(struct client *client, sd_bus_message *call, uint64_t timeout_usec,
                const char *format, struct json_object **ret_doc, char **ret_error);

/* What is read while an answer is awaited. */
struct client_reader {
    int *fd; /* does not block; closed, and -1, when READ has returned false */
    bool (*read)(void *context);
    void *context;
};

/* As client_call(); READER's function is called whenever its descriptor can be read. */
int client_call_reading(struct client *client, sd_bus_message *call, uint64_t timeout_usec,
                        const char *format, const struct client_reader *reader,
                        struct json_object **ret_doc, char **ret_error);

/*
 * Stop(NAME). If the answer has not come after 3 s, WHILE_WAITING is called, and again each second
 * until it returns 1. It may make calls; -EINTR from it ends the wait.
 */
int client_stop(struct client *client, const char *name,
                int (*while_waiting)(struct client *client, const char *name),
                struct json_object **ret_doc, char **ret_error);

/* Abort(NAME), Status(NAME): "" as the protocol says. */
int client_abort(struct client *client, const char *name, struct json_object **ret_doc,
                 char **ret_error);
int client_status(struct client *client, const char *name, struct json_object **ret_doc,
                  char **ret_error);

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

/* The daemon's version; free it. */
int client_version(struct client *client, char **ret_version, char **ret_error);
