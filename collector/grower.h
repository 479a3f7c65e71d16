/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The grower: a thread that populates and locks the steps of extents (extent.h), and returns them
 * to the kernel. It enforces one budget for all extents. It has priority over ordinary threads
 * (nice -10, where permitted), and the collector never waits for it.
 *
 * Any thread but the collector's, unless it says otherwise.
 */

#include <stdbool.h>
#include <stdint.h>

struct extent;
struct grower;

/*
 * All extents together use at most BUDGET_BYTES. Returns 0, -ENOMEM, or the error of eventfd(2) or
 * pthread_create(3).
 */
int grower_new(uint64_t budget_bytes, struct grower **ret_grower);
/* Ends the thread; no extent may be left. Takes NULL; returns NULL. */
struct grower *grower_free(struct grower *grower);

/* Serves EXTENT from now on. Steps that were adopted count, even beyond the budget. */
void grower_add(struct grower *grower, struct extent *extent);
/*
 * Stops serving EXTENT. Waits some milliseconds if a step is being populated. Its memory no longer
 * counts.
 */
void grower_remove(struct grower *grower, struct extent *extent);

/* Any thread, the collector's too. */
uint64_t grower_budget_bytes(const struct grower *grower);
uint64_t grower_used_bytes(const struct grower *grower);