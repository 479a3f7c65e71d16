/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The page of `report --html` and of `diff --html`: one HTML file without references. It is the
 * template (page-template.h) and one JSON document (docs/page.md), by which it is about one trace
 * or two. One thread.
 */

#include <stddef.h>

#include "common/util.h"

struct json_object;

/* Where a page is written to. */
struct page_output;

/*
 * PATH: "-" is standard output. A file that exists is replaced if it is a page, which can be made
 * again, and refused otherwise. 0, or a negative errno with a sentence in *RET_ERROR (free it).
 * -ENOTSUP: this build has no page.
 */
int page_open(const char *path, struct page_output **ret_output, char **ret_error);

/* -EEXIST with a sentence if a page may not take the place of what is at PATH. */
int page_check_path(const char *path, char **ret_error);

/* Writes the page with DATA, and puts it in its place. Returns as page_open(). */
int page_write(struct page_output *output, struct json_object *data, size_t *ret_bytes,
               char **ret_error);

/* For people: what was written to PATH, unless that is standard output. */
void page_print_written(const char *path, size_t bytes);

/* Without page_write(), nothing remains. Takes NULL; returns NULL. */
struct page_output *page_free(struct page_output *output);

static inline void page_freep(struct page_output **output)
{
    *output = page_free(*output);
}

#define _cleanup_page_ _cleanup_(page_freep)
