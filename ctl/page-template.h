/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The page of `report --html` and `diff --html` without its data, which is a part of this program
 * (page/local.mk). Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

struct page_template {
    const char *head; /* up to where the data belongs */
    size_t head_bytes;
    const char *tail;
    size_t tail_bytes;
};

/* Pages begin with this, which is how these know a file that they may replace. */
#define PAGE_FIRST_LINES "<!DOCTYPE html>\n<!-- A page of xentracectl. -->\n"

/* False: this build has none, as D3 was not there. */
bool page_template_find(struct page_template *ret_template);
