/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon as a whole, as JSON: what Status answers without a name; and of it, the flight
 * recorder, which StopRecorder answers with. Main thread.
 */

struct json_object;
struct manager;

/* The caller owns the object: json_object_put(). */
struct json_object *status_document(const struct manager *manager);
struct json_object *status_of_recorder(const struct manager *manager);
