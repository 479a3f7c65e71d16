/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The service manager's watchdog (WatchdogSec=). It is notified from the event loop, and only while
 * the collector thread also runs. If either hangs, the service manager restarts the daemon. Main
 * thread.
 */

struct collector;
struct sd_event;
struct watchdog;

/*
 * Feeds it from now on, twice in its time. Without a service manager that waits for that there is
 * nothing to do: 0 and NULL. EVENT is referenced, COLLECTOR borrowed. Returns 0 or a negative
 * errno.
 */
int watchdog_new(struct sd_event *event, struct collector *collector,
                 struct watchdog **ret_watchdog);
/* Takes NULL; returns NULL. */
struct watchdog *watchdog_free(struct watchdog *watchdog);
