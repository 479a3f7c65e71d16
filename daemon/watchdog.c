// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An idle collector sleeps for as long as nothing is recorded, so that it has not run means
 * nothing. It is poked each time, and must have run when the time has come again. With
 * WatchdogSec=60s an idle host is woken every 30 s, and a collector that hangs is noticed within 90
 * s.
 *
 * sd_notify() waits when the service manager does not read its socket, so a worker calls it.
 *
 * Source: sd_watchdog_enabled(3), which recommends half the time.
 */

#include "daemon/watchdog.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "common/units.h"
#include "daemon/base/log.h"
#include "daemon/base/priority.h"
#include "daemon/base/worker.h"

struct watchdog {
    struct collector *collector;
    struct workers *workers;
    struct worker *worker;
    sd_event_source *timer;
    uint64_t interval_usec;
    uint64_t wakeups; /* the collector's, before it was poked */
    bool collector_hangs;
};

static uint64_t watchdog_read_wakeups(const struct watchdog *watchdog)
{
    struct collector_stats stats;

    collector_read_stats(watchdog->collector, &stats);
    return stats.wakeups;
}

static void watchdog_poke(struct watchdog *watchdog)
{
    watchdog->wakeups = watchdog_read_wakeups(watchdog);
    collector_poke(watchdog->collector);
}

static void watchdog_set_collector_hangs(struct watchdog *watchdog, bool hangs)
{
    char text[UNITS_TEXT_MAX];

    if (hangs && !watchdog->collector_hangs)
        log_error("The collector has not run for %s: the watchdog is not notified until it runs.",
                  duration_format(text, watchdog->interval_usec));
    else if (!hangs && watchdog->collector_hangs)
        log_warning("The collector is running again.");
    watchdog->collector_hangs = hangs;
}

static void watchdog_run_feed(struct job *job)
{
    (void)job;
    (void)sd_notify(false, "WATCHDOG=1"); /* an error shows as a restart */
}

static void watchdog_finish_feed(struct job *job)
{
    free(job);
}

/* Not while the service manager has not accepted the one before. */
static void watchdog_feed(struct watchdog *watchdog)
{
    struct job *job = workers_are_idle(watchdog->workers) ? malloc(sizeof(*job)) : NULL;

    if (!job)
        return; /* the next time is early enough */
    *job = (struct job){.run = watchdog_run_feed, .done = watchdog_finish_feed};
    worker_send(watchdog->worker, job);
}

static int watchdog_handle_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct watchdog *watchdog = userdata;

    (void)usec;
    watchdog_set_collector_hangs(watchdog, watchdog_read_wakeups(watchdog) == watchdog->wakeups);
    if (!watchdog->collector_hangs) {
        watchdog_feed(watchdog);
        watchdog_poke(watchdog);
    }
    /* Neither can fail for a source that exists, in this process. */
    (void)sd_event_source_set_time_relative(source, watchdog->interval_usec);
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

static int watchdog_set_up(struct watchdog *watchdog, sd_event *event)
{
    int r;

    r = workers_new(event, &watchdog->workers);
    if (r < 0)
        return r;
    r = worker_new(watchdog->workers, "watchdog", &watchdog->worker);
    if (r < 0)
        return r;
    r = sd_event_add_time_relative(event, &watchdog->timer, CLOCK_MONOTONIC,
                                   watchdog->interval_usec, watchdog->interval_usec / 8,
                                   watchdog_handle_timer, watchdog);
    if (r < 0)
        return r;
    return sd_event_source_set_priority(watchdog->timer, PRIORITY_WATCHDOG);
}

int watchdog_new(struct sd_event *event, struct collector *collector,
                 struct watchdog **ret_watchdog)
{
    struct watchdog *watchdog;
    uint64_t usec;
    int r;

    *ret_watchdog = NULL;
    r = sd_watchdog_enabled(false, &usec);
    if (r <= 0)
        return r;
    watchdog = calloc(1, sizeof(*watchdog));
    if (!watchdog)
        return -ENOMEM;
    watchdog->collector = collector;
    watchdog->interval_usec = usec / 2;
    r = watchdog_set_up(watchdog, event);
    if (r < 0) {
        watchdog_free(watchdog);
        return r;
    }
    watchdog_poke(watchdog);
    *ret_watchdog = watchdog;
    return 0;
}

struct watchdog *watchdog_free(struct watchdog *watchdog)
{
    if (!watchdog)
        return NULL;
    sd_event_source_disable_unref(watchdog->timer);
    worker_free(watchdog->worker);
    (void)workers_free(watchdog->workers); /* a feed that hangs is abandoned */
    free(watchdog);
    return NULL;
}
