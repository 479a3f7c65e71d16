/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Captures that continue across restarts of the daemon: which ones start with the daemon, and how
 * all continued sessions begin with the same record. Main thread; nothing here waits, except for
 * the runtime directory, which is in memory.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/capture-config.h"
#include "daemon/session/session-data.h"

/*
 * Calls START for each capture that CONFIGS have enabled, and for each that was started by hand and
 * has left a state in the runtime directory. Removes states that do not continue. Returns whether
 * there was any state: Xen may then still be tracing for it.
 */
bool continuation_start_captures(int runtime_dir_fd, const struct capture_configs *configs,
                                 void (*start)(void *userdata, const char *name,
                                               const struct session_options *options),
                                 void *userdata);

/* While captures are being continued. All 0 at first; lent are the event loop and the collector. */
struct continuation {
    struct sd_event *event;
    struct collector *collector;
    struct sd_event_source *source; /* NULL: it is over */
};

/* No round is made from here on: sessions that are attached now begin together. */
void continuation_begin(struct continuation *continuation);
/*
 * All are attached. Rounds begin when none of SESSIONS holds (continuation_check()), at the latest
 * after half a second or when a buffer is half full.
 */
void continuation_limit(struct continuation *continuation, struct session *const *sessions,
                        size_t count);
/* Something may have changed. */
void continuation_check(struct continuation *continuation, struct session *const *sessions,
                        size_t count);
/* The daemon ends: there are no more rounds, and later records are for the next daemon. */
void continuation_hand_over(struct continuation *continuation);
/* When the daemon ends. */
void continuation_done(struct continuation *continuation);
