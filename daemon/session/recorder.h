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

/* It runs: has its ring kept, with what the next daemon needs to know. */
void recorder_keep(struct session *session);

/* It has ended, or is switched off: has nothing kept any more. */
void recorder_forget(void);

/* It is switched off now: what the daemon before left for it to go on with, tracing, ends. */
void recorder_leave(const struct session_context *context, struct fd_store *inherited);
