/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The grower: a thread that makes the steps of extents (extent.h) memory, touched and locked, and
 * gives them back; and the one budget that all extents share. It comes before ordinary
 * threads (nice -10, where that is allowed), and the collector never waits for it.
 *
 * Any thread but the collector's, unless it says otherwise.
 */

#include <stdbool.h>
#include <stdint.h>

struct extent;
struct grower;

/* All extents together have no more than BUDGET_BYTES. Returns 0, -ENOMEM, or what eventfd(2) and
 * pthread_create(3) say. */
int grower_new(uint64_t budget_bytes, struct grower **ret_grower);
/* Ends the thread; no extent may be left. Takes NULL; returns NULL. */
struct grower *grower_free(struct grower *grower);

/* Serves EXTENT from now on. Steps that were adopted count, even beyond the budget. */
void grower_add(struct grower *grower, struct extent *extent);
/* No more: waits for the step that is being made, if any, some milliseconds. Its memory no longer
 * counts. */
void grower_remove(struct grower *grower, struct extent *extent);

/* Any thread, the collector's too. */
uint64_t grower_budget_bytes(const struct grower *grower);
uint64_t grower_used_bytes(const struct grower *grower);