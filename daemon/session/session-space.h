/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Space on the disk for what a session writes: grants for its sink (output.h), and what happens
 * when no more can be granted. Main thread.
 */

#include <stdbool.h>

struct sd_event_source;
struct session;

/* When all but the reserve is used. */
enum on_reserve {
    ON_RESERVE_STOP,   /* the session ends */
    ON_RESERVE_ROTATE, /* its oldest segments are deleted; it ends if there is none left */
    ON_RESERVE_PAUSE,  /* its chunks wait in the pool until there is space */
};

/* Part of a session. */
struct space {
    enum on_reserve on_reserve;
    bool is_paused;                 /* what it has taken cannot be written for now */
    struct sd_event_source *source; /* looks whether there is space; NULL: there is enough */
};

/* -EINVAL: TEXT is none of "stop", "rotate", "pause". */
int on_reserve_parse(const char *text, enum on_reserve *ret_on_reserve);
const char *on_reserve_name(enum on_reserve on_reserve);

/* The session's sink comes near the end of its grant: sends it another one, or the last one, or
 * waits until there is space. */
void space_extend(struct session *session);

/* No more looking: the session stops, or writes elsewhere. */
void space_stop_waiting(struct session *session);
