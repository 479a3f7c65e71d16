/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a reload of the configuration has changed, as JSON (docs/control-protocol.md). */

struct config;
struct config_changes;
struct config_reading;
struct json_object;

/* READING was applied with CHANGES, and MERGED is in force. The caller owns the document. */
struct json_object *document_of_reload(const struct config_reading *reading,
                                       const struct config *merged,
                                       const struct config_changes *changes);
