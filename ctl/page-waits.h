/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The distributions of waits that a page draws: of each domain, by kind. docs/page.md has the
 * format. One thread.
 */

struct input;
struct json_object;
struct measures;

/* Adds `waits` to DOC. To be called before measures_doc_add(), which takes the samples. */
void page_waits_add(struct json_object *doc, const struct input *input,
                    const struct measures *measures);
