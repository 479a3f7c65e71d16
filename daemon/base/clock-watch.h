/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Updates a clock history: once a minute while something is recorded, and immediately when the wall
 * clock is stepped. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

struct clock_history;
struct clock_watch;
struct sd_event;

/* What the history is needed for. */
struct clock_need {
    bool is_recording;
    uint64_t oldest_tsc; /* of xen_read_tsc(): nothing older is recorded; UINT64_MAX: nothing is */
};

typedef struct clock_need (*clock_need_fn)(void *userdata);

/*
 * Nothing is watched yet. NEED is asked each time the clocks are looked at, from the event loop.
 * EVENT is referenced, HISTORY borrowed. Returns 0 or a negative errno.
 */
int clock_watch_new(struct sd_event *event, struct clock_history *history, clock_need_fn need,
                    void *userdata, struct clock_watch **ret_watch);
/* Takes NULL; returns NULL. */
struct clock_watch *clock_watch_free(struct clock_watch *watch);

/* Something is recorded from now on, until NEED says otherwise. */
void clock_watch_start(struct clock_watch *watch);
