/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A session: what a user starts and stops. A filter, limits, and a storage (storage.h), where its
 * records go. Main thread; nothing here waits.
 *
 * States, in this order; session.c is the only place that changes them:
 *
 *   opening    its worker opens the output
 *   starting   the sink is handed to the collector; Xen does not trace for it yet
 *   running    records flow
 *   draining   Xen lets no more events pass; what is in its buffers is fetched
 *   settling   some CPUs may hold back counts of lost records: a moment for Xen to report them
 *   closing    tracing is disabled, unless others record; the last writes of the collector
 *   finishing  the storage is completed: the file is cut, or a ring is written to its output
 *   sealing    the last sidecar is written
 *   ended      for its user. It is released as soon as it holds nothing any more
 *
 * session_abort() goes to `ended` from any state at once. What the kernel or a worker still holds
 * then stays with the session until it is given back: only afterwards is the file cut, and the
 * session `released`. The same goes for a start that failed because the disk did not answer.
 */

#include "daemon/session/session-data.h"

struct ledger;
struct message;
struct sink;
struct sink_totals;

/*
 * Makes a session and begins to open its output; `changed` tells when it runs, or has ended with
 * its start_failure. NAME and OPTIONS are checked before anything is touched: any error sets
 * FAILURE, and nothing is left. The flight recorder has nothing to open: it is STARTING at once.
 */
int session_new(const struct session_context *context, const char *name,
                const struct session_options *options, struct session **ret_session,
                struct failure *failure);

/*
 * Released, or when the event loop and the collector thread have ended: then a sidecar may still be
 * under way, whose answer does nothing. Takes NULL.
 */
struct session *session_free(struct session *session);

/* Ends it for REASON, unless it is ending already; `changed` tells when it has ended. */
void session_stop(struct session *session, enum end_reason reason);

/*
 * Ends it at once, whatever its output does: what was not written is counted as dropped. Nothing if
 * it has ended or was aborted before.
 */
void session_abort(struct session *session);

/*
 * The daemon ends, and the next one continues the session: its segment is completed, and tracing
 * stays enabled. There are no more rounds (MESSAGE_HOLD), so later records stay in Xen's buffers.
 */
void session_hand_over(struct session *session);

/* A snapshot of its ring begins, or has ended: the ring stays for that long. */
void session_note_snapshot(struct session *session, bool begins);

/* A message of the collector about one of this session's sinks; and whether SINK is one. */
void session_handle_message(struct session *session, const struct message *message);
bool session_owns_sink(const struct session *session, const struct sink *sink);

/*
 * Since when (CLOCK_MONOTONIC, in microseconds) its output has not answered, if that is at least
 * SESSION_PATIENCE_USEC; 0: it does not wait.
 */
uint64_t session_waiting_since_usec(const struct session *session);

/* After an abort: memory that waits for the kernel to give it back. */
uint64_t session_held_bytes(const struct session *session);

/* As in documents. While SEALING the sidecar shows it ended: that is for AS_SEALED. */
const char *session_state_name(const struct session *session, bool as_sealed);
