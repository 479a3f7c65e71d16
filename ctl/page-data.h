/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The data of a page: the document of `report --json`, with what people read beside it (names, the
 * first lines of the report, the places of findings), and the timeline. docs/page.md describes it.
 * One thread.
 */

struct findings;
struct input;
struct json_object;
struct measures;

/*
 * Makes the document, and reads INPUT again for its timeline and waits: MEASURES end with it. 0; or
 * a negative errno with a sentence in *RET_ERROR (free it). Free the document with doc_free().
 */
int page_data_new(struct input *input, struct measures *measures, const struct findings *findings,
                  struct json_object **ret_doc, char **ret_error);

/*
 * Adds `trace`, the facts, and `waits`, the distributions. To be called before measures_doc_add(),
 * which takes the samples.
 */
void page_data_add_trace(struct json_object *doc, const struct input *input,
                         const struct measures *measures);

/* The findings as documents have them: `report --json` too. */
void page_data_add_findings(struct json_object *doc, const struct findings *findings);
