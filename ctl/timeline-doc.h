/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A timeline as a JSON document (docs/measures.md, "Timeline"). Any thread. */

struct input;
struct json_object;
struct timeline;

/* Adds TIMELINE, which INPUT was read for, to DOC. */
void timeline_doc_add(struct json_object *doc, const struct input *input,
                      const struct timeline *timeline);
