/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The timeline of a page: a pyramid of summaries (trace/pyramid.h) with the intervals themselves
 * where they fit, and at the places that matter. docs/page.md has the format. One thread.
 */

#include <stddef.h>
#include <stdint.h>

struct input;
struct json_object;
struct measures;

/* A place to be shown in detail: CYCLES from TSC on. */
struct page_place {
    uint64_t tsc, cycles;
};

struct page_timeline;

/* Decides what is shown, by MEASURES, which are not needed later. PLACES: the first matter most. */
int page_timeline_new(const struct input *input, const struct measures *measures,
                      const struct page_place *places, size_t nr_places,
                      struct page_timeline **ret_timeline);
/*
 * Reads INPUT again, and adds it to DOC. 0; or a negative errno with a sentence in *RET_ERROR (free
 * it).
 */
int page_timeline_read(struct page_timeline *timeline, struct input *input, struct json_object *doc,
                       char **ret_error);
/* Takes NULL; returns NULL. */
struct page_timeline *page_timeline_free(struct page_timeline *timeline);
