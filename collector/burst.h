/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Detects whether a number of events occurred within any period of a given length. Events arrive
 * almost in time order: in order for each CPU, one CPU after the other.
 *
 * Created by the main thread, then used by the collector thread: burst_note() does not allocate.
 */

#include <stdbool.h>
#include <stdint.h>

struct burst;

#define BURST_COUNT_MAX 1000u

/* At least this many of the newest times are remembered. */
#define BURST_REMEMBERED 2048u

/* Detects COUNT events (1 to BURST_COUNT_MAX) within WITHIN_TSC ticks. -ENOMEM, -EINVAL. */
int burst_new(uint32_t count, uint64_t within_tsc, struct burst **ret_burst);
struct burst *burst_free(struct burst *burst);

/*
 * Adds an event. Returns whether COUNT events, including this one, lie within the period. An event
 * that is older than all remembered events is ignored.
 */
bool burst_note(struct burst *burst, uint64_t tsc);

/* Forgets all of them. */
void burst_reset(struct burst *burst);
