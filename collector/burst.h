/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether a number of events came within a time, wherever the time begins. Their times come almost
 * in order: in order of one CPU, one CPU after the other.
 *
 * Made by the main thread, then the collector thread's: burst_note() does not allocate.
 */

#include <stdbool.h>
#include <stdint.h>

struct burst;

#define BURST_COUNT_MAX 1000u

/* At least this many of the newest times are remembered. */
#define BURST_REMEMBERED 2048u

/* COUNT events, 1 to BURST_COUNT_MAX, no further apart than WITHIN_TSC. -ENOMEM, -EINVAL. */
int burst_new(uint32_t count, uint64_t within_tsc, struct burst **ret_burst);
struct burst *burst_free(struct burst *burst);

/*
 * One more event. Returns whether COUNT of them, this one among them, lie within the time. One that
 * is older than all that are remembered is ignored.
 */
bool burst_note(struct burst *burst, uint64_t tsc);

/* Forgets all of them. */
void burst_reset(struct burst *burst);
