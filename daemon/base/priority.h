/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The order in which the event loop dispatches pending sources, lowest number first. Each iteration
 * dispatches one source and then checks all again, so that a client that calls continuously does
 * not delay messages of the collector, timers, signals or finished jobs.
 */

enum {
    PRIORITY_SIGNAL = -30,
    PRIORITY_COLLECTOR = -20,
    PRIORITY_WATCHDOG = -10,
    PRIORITY_NORMAL = 0,    /* sd-event's default: timers, finished jobs, the host */
    PRIORITY_ROOT = 10,     /* root's clients, and new connections */
    PRIORITY_OPERATOR = 20, /* clients who may control their own captures */
    PRIORITY_VIEWER = 30,   /* clients who may only look */
};
