/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Makes a document smaller that is too large for a page: of long lists, only the entries with the
 * largest numbers are kept. One thread.
 */

#include <stddef.h>

struct json_object;

/*
 * Trims DOC to about BYTES of text, and appends to TRIMMED an object for each list that lost
 * entries: `path`, and how many are `kept`, `of` how many. Lists of few entries stay.
 */
void page_trim(struct json_object *doc, size_t bytes, struct json_object *trimmed);

/* Notes in TRIMMED that KEPT of OF entries at PATH are there, before page_trim() keeps fewer. */
void page_trim_note(struct json_object *trimmed, const char *path, size_t kept, size_t of);
