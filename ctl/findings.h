/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The findings of a trace: a sentence, with its numbers, for each measure that exceeds a limit. The
 * limits are in docs/measures.md. Any thread that owns what it is given.
 */

#include <stddef.h>

struct input;
struct measures;

struct finding {
    const char *kind; /* "wait", "overcommitted", ...: docs/measures.md */
    char *text;
    double weight; /* findings of a kind: the heaviest first */
};

struct findings;

/* The findings, by importance. 0 or -ENOMEM. */
int findings_new(const struct input *input, const struct measures *measures,
                 struct findings **ret_findings);
/* Takes NULL; returns NULL. */
struct findings *findings_free(struct findings *findings);

size_t findings_count(const struct findings *findings);
const struct finding *findings_at(const struct findings *findings, size_t i);
