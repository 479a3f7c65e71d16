/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which records are about the domains, vCPUs and CPUs that were selected (docs/measures.md,
 * "Selections"): for this it follows who runs where. One thread.
 */

#include <stdbool.h>

struct about;
struct merge_record;
struct record_text_style;
struct subjects;

/* SUBJECTS are borrowed. 0 or -ENOMEM. */
int about_new(const struct subjects *subjects, struct about **ret_about);
struct about *about_free(struct about *about); /* takes NULL; returns NULL */

/*
 * To be called for each record, in the order of time. STYLE finds its fields. -ENOMEM: the same for
 * all later ones.
 */
int about_record(struct about *about, const struct merge_record *record,
                 const struct record_text_style *style, bool *ret_is_about);
