/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * An extent: a reserved address range, part of which is backed by memory. It grows and shrinks in
 * steps without blocking the collector thread, which uses it: the collector requests steps with
 * extent_want() and takes them when they are available. Another thread, the grower, populates and
 * locks requested steps, and returns released ones to the kernel.
 *
 * The states of a step: absent -> (grower) offered -> (collector) in use -> (collector) released ->
 * (grower) absent. Each transition is made by one thread only, and publishes the preceding changes
 * of the memory to the other thread.
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
 * Sets the total number of steps that are wanted, at least the number in use. May be called often:
 * the grower is woken only if the number changes. Steps are granted within the budget. Steps in use
 * are never taken away; if fewer are wanted, offered steps are withdrawn.
 */
void extent_want(struct extent *extent, unsigned int nr_steps);

/* Takes an offered step into use and returns its number; -1: none is offered. */
int extent_take(struct extent *extent);
/* Releases a step that is in use; nothing in it is kept. */
void extent_give(struct extent *extent, unsigned int step);

/* Whether the last request was refused, by the budget or for lack of memory. */
bool extent_is_refused(const struct extent *extent);

/* --- Any thread. --- */

bool extent_is_served(const struct extent *extent); /* by a grower */

/* Bytes that are backed by memory: offered, in use, or not yet returned. */
uint64_t extent_bytes(const struct extent *extent);
