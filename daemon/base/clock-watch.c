// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One timer of the wall clock does both: it is set a minute ahead, and with TFD_TIMER_CANCEL_ON_SET
 * the kernel ends the wait when the wall clock is set, or the host wakes up from a suspend.
 * sd-event has no source for that. While nothing is recorded the timer is off, and wakes nobody.
 *
 * Source: timerfd_create(2).
 */

#include "daemon/base/clock-watch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/units.h"
#include "common/util.h"
#include "daemon/base/clock-history.h"

#define LOOK_SEC 60

struct clock_watch {
    struct clock_history *history;
    clock_need_fn need;
    void *userdata;
    int fd;
    bool is_on;
    sd_event_source *source;
};

static void clock_watch_set(struct clock_watch *watch, bool is_on)
{
    struct itimerspec when = {0};

    if (is_on) {
        (void)clock_gettime(CLOCK_REALTIME, &when.it_value); /* cannot fail for this clock */
        when.it_value.tv_sec += LOOK_SEC;
    }
    watch->is_on = is_on;
    /* Not armed it does not expire, but the kernel notes when the clock is set. ECANCELED: it was,
     * since the last read. No other error is possible. */
    if (timerfd_settime(watch->fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL) < 0)
        clock_history_note(watch->history, clock_pair_now(), true);
}

static void clock_watch_look(struct clock_watch *watch, bool is_stepped)
{
    struct clock_need need = watch->need(watch->userdata);

    clock_history_note(watch->history, clock_pair_now(), is_stepped);
    clock_history_forget(watch->history, need.oldest_tsc);
    clock_watch_set(watch, need.is_recording);
}

static int clock_watch_handle_timer(sd_event_source *source, int fd, uint32_t events,
                                    void *userdata)
{
    struct clock_watch *watch = userdata;
    uint64_t expirations;
    ssize_t r = read(fd, &expirations, sizeof(expirations));

    (void)source, (void)events;
    if (r < 0 && errno != ECANCELED)
        return 0; /* it was set anew meanwhile */
    clock_watch_look(watch, r < 0);
    return 0;
}

static void clock_watch_freep(struct clock_watch **watch)
{
    clock_watch_free(*watch);
}

int clock_watch_new(struct sd_event *event, struct clock_history *history, clock_need_fn need,
                    void *userdata, struct clock_watch **ret_watch)
{
    _cleanup_(clock_watch_freep) struct clock_watch *watch = calloc(1, sizeof(*watch));
    int r;

    if (!watch)
        return -ENOMEM;
    watch->history = history;
    watch->need = need;
    watch->userdata = userdata;
    watch->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (watch->fd < 0)
        return -errno;
    clock_watch_set(watch, false);
    r = sd_event_add_io(event, &watch->source, watch->fd, EPOLLIN, clock_watch_handle_timer, watch);
    if (r < 0)
        return r;
    *ret_watch = TAKE_PTR(watch);
    return 0;
}

struct clock_watch *clock_watch_free(struct clock_watch *watch)
{
    if (!watch)
        return NULL;
    watch->source = sd_event_source_disable_unref(watch->source);
    fd_close(&watch->fd);
    free(watch);
    return NULL;
}

void clock_watch_start(struct clock_watch *watch)
{
    if (!watch->is_on)
        clock_watch_look(watch, false);
}
