/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Of the waits that a page shows in detail, what `why` knows beyond who ran: what the scheduler
 * decided meanwhile, and whether the vCPU probably held a lock. docs/page.md has the format. One
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input;
struct json_object;

/* A wait of vCPU KEY, from TSC on. */
struct page_wait {
    uint32_t key;
    uint64_t tsc, cycles;
};

/*
 * Reads INPUT around each of WAITS, which were found in what it reads from FIRST_TSC on, and adds
 * them to DOC. 0; or a negative errno with a sentence in *RET_ERROR (free it).
 */
int page_stories_add(struct json_object *doc, struct input *input, const struct page_wait *waits,
                     size_t nr_waits, uint64_t first_tsc, bool is_svm, char **ret_error);
