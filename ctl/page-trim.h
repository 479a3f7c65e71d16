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
