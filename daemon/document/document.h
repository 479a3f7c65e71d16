/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Sessions, segments and snapshots as JSON: docs/control-protocol.md describes every key. One
 * function makes the document of a session, and `status`, the sidecar and the answers of Start and
 * Stop all are it: they cannot disagree. Main thread.
 */

struct json_object;
struct segment;
struct session;
struct sink;
struct snapshot;

/* The caller owns the object: json_object_put(). */
struct json_object *document_of_session(const struct session *session);
/* The same for its sidecar, the last of which is written just before it has ended. */
struct json_object *document_for_sidecar(const struct session *session);
struct json_object *document_of_snapshot(const struct snapshot *snapshot);
/* Without what is only of interest beside the file. */
struct json_object *document_of_snapshot_summary(const struct snapshot *snapshot);

/* A segment's object; and the sidecar of its file, whose records have come through SINK. */
struct json_object *document_of_segment(const struct session *session,
                                        const struct segment *segment);
struct json_object *document_of_segment_file(const struct session *session,
                                             const struct segment *segment,
                                             const struct sink *sink);
