/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Triggers as objects of docs/control-protocol.md. Main thread.
 */

struct json_object;
struct trigger;
struct triggers;

/* The caller owns the object: json_object_put(). */
struct json_object *document_of_trigger(const struct trigger *trigger);
/* An array of all of them, in the order of the configuration. */
struct json_object *document_of_triggers(const struct triggers *triggers);
