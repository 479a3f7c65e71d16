/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The state directory as a document: docs/control-protocol.md. Main thread. */

struct json_object;
struct vacuum_disk;
struct vacuum_result;

/* RESULT is of a request that succeeded. */
struct json_object *document_of_disk(const struct vacuum_disk *disk);
struct json_object *document_of_files(const char *state_dir, const struct vacuum_result *result);
