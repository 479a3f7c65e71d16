/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The flight recorder: the ring session of the configuration, which begins with the daemon, and
 * continues where an earlier daemon was ended or killed. Main thread.
 */

#include <stdbool.h>

#include "common/protocol.h"
#include "daemon/base/failure.h"

struct config;
struct fd_store;
struct session;
struct session_context;
struct recorder_stop;
struct watch_set;

#define RECORDER_NAME PROTOCOL_RECORDER

/*
 * Starts it as CONFIG says, WATCH (NULL: none) looking at its records, with the ring in INHERITED
 * if there is one, or its newest records in a new one if CONFIG wants another size; what cannot be
 * taken over is dropped, and the log reports why. For the start of the daemon: carrying over takes
 * seconds for a GiB, and the service manager is waited for. Returns 0, or a negative errno and
 * FAILURE.
 */
int recorder_start(const struct session_context *context, const struct config *config,
                   struct fd_store *inherited, struct watch_set *watch,
                   struct session **ret_session, struct failure *failure);

/*
 * The same with a new ring, while the daemon runs: its memory is made on a worker, and the
 * context's `changed` reports whether it runs.
 */
int recorder_start_anew(const struct session_context *context, const struct config *config,
                        struct watch_set *watch, struct session **ret_session,
                        struct failure *failure);

/*
 * Ends it on request. Its memory is freed on a worker. What STOP says of who asked is in its
 * document and in the log.
 */
void recorder_stop(struct session *session, const struct recorder_stop *stop);

/* How far its oldest record is back, for people; "" if it is empty. TEXT is UNITS_TEXT_MAX long. */
const char *recorder_history(char *text, const struct session *session);

/*
 * It runs: has its ring kept, with what the next daemon needs to know; DONE is called as that
 * of fd_store_keep(), or at once if it is kept already. And: only brings up to date what the next
 * daemon needs to know.
 */
void recorder_keep(struct session *session, void (*done)(void *userdata, bool is_kept),
                   void *userdata);
void recorder_note(struct session *session);

/* The recorder has ended or is disabled: removes everything that is kept for it. */
void recorder_forget(const struct session_context *context);

/* The recorder is disabled: stops the tracing that the previous daemon left enabled for it. */
void recorder_leave(const struct session_context *context, struct fd_store *inherited);
