/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The order in which the event loop dispatches what is pending; the lower number first. Each turn
 * dispatches one source and then looks again, so a client that never stops calling delays no
 * message of the collector's, no timer, no signal and no finished job.
 */

enum {
    PRIORITY_SIGNAL = -30,
    PRIORITY_COLLECTOR = -20,
    PRIORITY_WATCHDOG = -10,
    PRIORITY_NORMAL = 0,      /* sd-event's default: timers, finished jobs, the host */
    PRIORITY_ROOT = 10,       /* root's clients, and new connections */
    PRIORITY_OPERATOR = 20,   /* clients who may control their own captures */
    PRIORITY_VIEWER = 30,     /* clients who may only look */
};
