/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The flight recorder: the ring session of the configuration, which begins with the daemon, and
 * goes on where a daemon before it was ended or killed. Main thread.
 */

#include <stdbool.h>

#include "daemon/base/failure.h"

struct config;
struct fd_store;
struct session;
struct session_context;
struct watch_set;

#define RECORDER_NAME "flight-recorder"

/*
 * Starts it as CONFIG says, WATCH (NULL: none) looking at its records, with the ring in INHERITED
 * if there is one; what cannot be taken over is told in the log and dropped. Returns 0, or a
 * negative errno and FAILURE.
 */
int recorder_start(const struct session_context *context, const struct config *config,
                   struct fd_store *inherited, struct watch_set *watch,
                   struct session **ret_session, struct failure *failure);

/* Brings up to date what the next daemon finds in the ring: call it when the session changed. */
void recorder_note(struct session *session);

/*
 * It runs: has its ring kept, with what the next daemon needs to know. KEPT is called as that of
 * fd_store_keep(), or at once if the ring was taken over and is therefore kept already; it sets
 * session->is_kept.
 */
void recorder_keep(struct session *session, void (*kept)(void *userdata, bool is_kept),
                   void *userdata);

/* It has ended, or is switched off: has nothing kept any more. */
void recorder_forget(const struct session_context *context);

/* It is switched off now: what the daemon before left for it to go on with, tracing, ends. */
void recorder_leave(const struct session_context *context, struct fd_store *inherited);
