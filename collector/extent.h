/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * An extent: a range of addresses of which more or less is memory. It grows and shrinks by steps,
 * and the collector thread, which uses it, waits for neither: it asks (extent_want()), and takes a
 * step when there is one. Another thread, the grower, touches and locks what is asked for, and
 * gives back to the kernel what is released.
 *
 * A step goes round: absent -> (grower) offered -> (collector) in use -> (collector) released ->
 * (grower) absent. Each change is made by one thread alone, and what was done to the memory before
 * is seen by the other one after it.
 */

#include <stdbool.h>
#include <stdint.h>

struct extent;
struct grower;

/*
 * NR_STEPS steps of STEP_BYTES, a multiple of the page size, from BASE on, which is mapped and not
 * touched. SHARED: a memfd, of which steps that are given back are punched out. All are absent.
 * Borrows BASE until extent_free(). Returns 0 or -ENOMEM.
 *
 * Any thread but the collector's, as extent_free() and extent_adopt().
 */
int extent_new(void *base, uint64_t step_bytes, unsigned int nr_steps, bool shared,
               struct extent **ret_extent);
/* After grower_remove(). The memory stays as it is. Takes NULL; returns NULL. */
struct extent *extent_free(struct extent *extent);

/* Before grower_add(): STEP is there already, and in use: a previous process left it. */
void extent_adopt(struct extent *extent, unsigned int step);

/* --- Collector thread. --- */

/*
 * So many steps are wanted in all, those in use included; no less than are in use. To be called as
 * often as is convenient: the grower is woken if the number is another one. More is granted as far
 * as the budget goes; it is never taken away, but when less is wanted, what is offered goes back.
 */
void extent_want(struct extent *extent, unsigned int nr_steps);

/* A step that was offered, now in use: its number; -1: there is none (yet). */
int extent_take(struct extent *extent);
/* Releases a step that is in use; nothing in it is kept. */
void extent_give(struct extent *extent, unsigned int step);

/* Whether the last that was wanted was refused: by the budget, or since there is no memory. */
bool extent_is_refused(const struct extent *extent);

/* --- Any thread. --- */

bool extent_is_served(const struct extent *extent); /* by a grower */

/* What is memory now: offered, in use, or not yet given back. */
uint64_t extent_bytes(const struct extent *extent);
