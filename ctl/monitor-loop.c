// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One Status a second, which costs the daemon 0.1 ms, and now and then a look at the disk; on the
 * page about vCPUs the newest second, too. Nothing while it is paused.
 *
 * A daemon that is restarted, or does not answer, is shown as such, and asked again.
 */

#include "ctl/monitor-loop.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "ctl/ask-status.h"
#include "ctl/ctl.h"
#include "ctl/frame.h"
#include "ctl/screen.h"
#include "ctl/second.h"
#include "ctl/str.h"

#define ANSWER_USEC        (1 * USEC_PER_SEC)
#define DISK_ANSWER_USEC   (200 * USEC_PER_MSEC)
#define DISK_INTERVAL_USEC (10 * USEC_PER_SEC)
#define PAUSED_USEC        (60 * USEC_PER_SEC) /* any time: only keys end a pause */

struct monitor {
    struct ctl *ctl;
    struct client *client; /* NULL: not connected */
    struct screen *screen;
    const struct palette *palette;
    struct json_object *status, *before;
    uint64_t asked_usec;      /* CLOCK_MONOTONIC, of the last document */
    uint64_t disk_asked_usec; /* 0: never */
    char *error;
    char time[STR_TIME_MAX];
    struct second second;
    struct top *top;
    char *top_error;
    uint64_t second_asked_usec; /* 0: never */
    struct monitor_facts facts;
    struct monitor_view view;
};

static void monitor_done(struct monitor *monitor)
{
    monitor->screen = screen_free(monitor->screen);
    monitor->client = client_free(monitor->client);
    monitor->status = doc_free(monitor->status);
    monitor->before = doc_free(monitor->before);
    free(monitor->error);
    second_done(&monitor->second);
    monitor->top = top_free(monitor->top);
    free(monitor->top_error);
}

static uint64_t now_usec(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

/* Not while a child may still wait for it. */
static void read_disk(struct monitor *monitor, uint64_t now)
{
    const char *path = doc_text(monitor->status, "daemon.state_dir", NULL);

    if (!path || (monitor->disk_asked_usec && now - monitor->disk_asked_usec < DISK_INTERVAL_USEC))
        return;
    monitor->disk_asked_usec = now;
    monitor->facts.disk_result = disk_read(path, DISK_ANSWER_USEC, &monitor->facts.disk);
}

static void format_time(struct monitor *monitor)
{
    time_t now = time(NULL);
    struct tm tm;

    if (!localtime_r(&now, &tm) || strftime(monitor->time, STR_TIME_MAX, "%H:%M:%S %Z", &tm) == 0)
        monitor->time[0] = 0;
}

static int take_second(struct monitor *monitor)
{
    struct top *top;
    int r;

    if (!monitor->client)
        return str_refuse(-ENOTCONN, &monitor->top_error, "xentraced does not answer.");
    r = second_take(&monitor->second, monitor->client, SECOND_ANSWER_USEC, &monitor->top_error);
    if (r < 0)
        return r;
    r = top_new(monitor->second.data, monitor->second.bytes, monitor->second.doc, &top);
    if (r == -ENODATA)
        return str_refuse(r, &monitor->top_error, "Nothing was recorded in the newest second.");
    if (r < 0)
        return r;
    r = top_follow(top, monitor->top);
    (void)top_free(monitor->top);
    monitor->top = top;
    if (r < 0)
        return r;
    return 0;
}

/* Not more often than once a second, which is what everybody is permitted. */
static void refresh_top(struct monitor *monitor)
{
    uint64_t now = now_usec();
    int r;

    if (monitor->view.page != MONITOR_VCPUS ||
        (monitor->second_asked_usec && now - monitor->second_asked_usec < SECOND_LEAST_USEC))
        return;
    monitor->second_asked_usec = now;
    free(monitor->top_error);
    monitor->top_error = NULL;
    r = take_second(monitor);
    if (r < 0 && !monitor->top_error)
        monitor->top_error = strdup("Out of memory.");
    if (r == -ECONNRESET || r == -ENOTCONN)
        monitor->client = client_free(monitor->client);
    monitor->facts.top = monitor->top;
    monitor->facts.top_error = monitor->top_error;
}

/* A document that is newer, or the reason why there is none. */
static void refresh_status(struct monitor *monitor)
{
    struct json_object *status = NULL;
    uint64_t now;
    int r;

    free(monitor->error);
    monitor->error = NULL;
    r = ask_status(&monitor->client, monitor->ctl->socket, ANSWER_USEC, &status, &monitor->error);
    now = now_usec();
    if (r < 0) {
        if (!monitor->error)
            monitor->error = strdup("Out of memory.");
        monitor->before = doc_free(monitor->before); /* a rate over the pause would mislead */
    } else {
        doc_make_printable(status);
        (void)doc_free(monitor->before);
        monitor->before = monitor->status;
        monitor->status = status;
        monitor->facts.elapsed_usec = now - monitor->asked_usec;
        monitor->asked_usec = now;
        format_time(monitor);
        read_disk(monitor, now);
    }
    monitor->facts.status = monitor->status;
    monitor->facts.before = monitor->before;
    monitor->facts.error = monitor->error;
    monitor->facts.time = monitor->time;
}

static void draw(struct monitor *monitor)
{
    _cleanup_frame_ struct frame frame = {0};
    unsigned int rows, cols;

    screen_size(monitor->screen, &rows, &cols);
    if (frame_init(&frame, rows, cols) < 0)
        return;
    monitor_draw(&frame, &monitor->facts, &monitor->view, monitor->palette);
    screen_draw(monitor->screen, &frame);
}

/* Time until the next update. */
static uint64_t time_left(const struct monitor *monitor, uint64_t next_usec)
{
    uint64_t now = now_usec();

    if (monitor->view.paused)
        return PAUSED_USEC;
    return next_usec > now ? next_usec - now : 0;
}

/* Between two documents there is always time for keys, also if the daemon hangs. */
static int run(struct monitor *monitor, uint64_t interval_usec)
{
    uint64_t next_usec = 0;

    for (;;) {
        enum monitor_page page;
        int key = 0;

        switch (screen_wait(monitor->screen, time_left(monitor, next_usec), &key)) {
        case SCREEN_TIMEOUT:
            if (time_left(monitor, next_usec) == 0) {
                next_usec = now_usec() + interval_usec;
                refresh_status(monitor);
                refresh_top(monitor);
                next_usec = max_u64(next_usec, now_usec() + MONITOR_INTERVAL_MIN_USEC);
            }
            break;
        case SCREEN_RESIZED:
            break;
        case SCREEN_KEY:
            page = monitor->view.page;
            if (monitor_press(&monitor->view, key))
                return CTL_OK;
            if (page != monitor->view.page && !monitor->view.paused)
                next_usec = 0;
            break;
        case SCREEN_QUIT:
            return CTL_OK;
        }
        draw(monitor);
    }
}

int monitor_loop(struct ctl *ctl, const struct monitor_view *view, uint64_t interval_usec)
{
    _cleanup_(monitor_done) struct monitor monitor = {
        .ctl = ctl,
        .view = *view,
        .facts.disk_result = -ENODATA,
    };
    char *error = NULL;
    int r;

    r = client_new(ctl->socket, &monitor.client, &error);
    if (r < 0) { /* later it is waited for; at first it is an error like any other */
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    monitor.palette = palette_for(STDOUT_FILENO);
    r = screen_new(&monitor.screen);
    if (r < 0) {
        ctl_error(r == -ENOTTY ? "monitor needs a terminal. Use: xentracectl status"
                               : "Cannot use the terminal: %s.",
                  strerror(-r));
        return CTL_FAILURE;
    }
    return run(&monitor, interval_usec);
}
