/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a vCPU did (trace/story.h), as text and as a document (docs/measures.md, "why"). Any thread.
 */

#include <stdint.h>
#include <stdio.h>

struct input;
struct json_object;
struct palette;
struct story;
struct story_change;

/*
 * A summary, its longest wait, then a line for each interval. Lines have at most WIDTH columns; 0:
 * any number. FIRST_TSC is the trace's.
 */
void story_text_print(FILE *file, unsigned int width, const struct input *input,
                      const struct story *story, uint64_t first_tsc, const struct palette *palette);

/* The records around the story's time, in which there are none: what is known nevertheless. */
void story_text_print_changes(FILE *file, const struct input *input, const struct story *story,
                              uint64_t first_tsc, const struct story_change *before,
                              const struct story_change *after);

/* Adds STORY, which INPUT was read for, to DOC. */
void story_doc_add(struct json_object *doc, const struct input *input, const struct story *story);
void story_doc_add_changes(struct json_object *doc, const struct story_change *before,
                           const struct story_change *after);
