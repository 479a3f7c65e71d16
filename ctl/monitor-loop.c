// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A stream of Status, one a second, and now and then a look at the disk; on the page about vCPUs
 * the newest second, too. Nothing while it is paused.
 *
 * A daemon that is restarted, or does not answer, is shown as such. A stream that broke is begun
 * again.
 */

#include "ctl/monitor-loop.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/frame.h"
#include "ctl/screen.h"
#include "ctl/second.h"
#include "ctl/str.h"

#define ANSWER_USEC        (1 * USEC_PER_SEC)
#define DISK_ANSWER_USEC   (200 * USEC_PER_MSEC)
#define DISK_INTERVAL_USEC (10 * USEC_PER_SEC)
#define RETRY_USEC         (1 * USEC_PER_SEC)
#define PAUSED_USEC        (60 * USEC_PER_SEC) /* any time: only keys end a pause */

struct monitor {
    struct ctl *ctl;
    uint64_t interval_usec;
    struct client *client;        /* NULL: not connected */
    struct client_stream *stream; /* of Status; NULL: it is to begin at BEGIN_USEC */
    uint64_t begin_usec;
    struct screen *screen;
    const struct palette *palette;
    struct json_object *status, *before;
    uint64_t heard_usec;      /* CLOCK_MONOTONIC, of the last document, or the stream's beginning */
    uint64_t shown_usec;      /* ... of the document that is shown */
    uint64_t disk_asked_usec; /* 0: never */
    char *error;
    char time[STR_TIME_MAX];
    struct second second;
    struct top *top;
    char *top_error;
    struct monitor_facts facts;
    struct monitor_view view;
};

static void monitor_done(struct monitor *monitor)
{
    monitor->screen = screen_free(monitor->screen);
    second_done(&monitor->second);
    monitor->client = client_free(monitor->client);
    monitor->status = doc_free(monitor->status);
    monitor->before = doc_free(monitor->before);
    free(monitor->error);
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

    r = second_next(&monitor->second, 0, &monitor->top_error);
    if (r <= 0)
        return r;
    r = top_new(monitor->second.data, monitor->second.bytes, monitor->second.doc, &top);
    if (r == -ENODATA)
        return str_refuse(r, &monitor->top_error, "Nothing was recorded in the newest second.");
    if (r < 0)
        return r;
    r = top_follow(top, monitor->top);
    (void)top_free(monitor->top);
    monitor->top = top;
    return r < 0 ? r : 1;
}

/* Returns whether there is something new. */
static bool refresh_top(struct monitor *monitor)
{
    _cleanup_free_ char *before = NULL;
    int r;

    if (monitor->view.page != MONITOR_VCPUS || !monitor->client)
        return false;
    before = TAKE_PTR(monitor->top_error);
    r = take_second(monitor);
    if (r == 0) {
        monitor->top_error = TAKE_PTR(before);
        return false;
    }
    if (r < 0 && !monitor->top_error)
        monitor->top_error = strdup("Out of memory.");
    return true;
}

static void monitor_disconnect(struct monitor *monitor)
{
    second_pause(&monitor->second);
    monitor->stream = client_stream_free(monitor->stream);
    monitor->client = client_free(monitor->client);
}

static int monitor_connect(struct monitor *monitor, char **ret_error)
{
    int r;

    r = monitor->client ? 0 : client_new(monitor->ctl->socket, &monitor->client, ret_error);
    if (r < 0)
        return r;
    second_done(&monitor->second);
    second_init(&monitor->second, monitor->client, monitor->interval_usec);
    monitor->heard_usec = now_usec();
    return client_stream_status(monitor->client, "", monitor->interval_usec, &monitor->stream,
                                ret_error);
}

static void show_error(struct monitor *monitor, char *error)
{
    free(monitor->error);
    monitor->error = error ? error : strdup("Out of memory.");
    monitor->before = doc_free(monitor->before); /* a rate over the pause would mislead */
}

static void show_status(struct monitor *monitor, struct json_object *status)
{
    uint64_t now = now_usec();

    doc_make_printable(status);
    free(monitor->error);
    monitor->error = NULL;
    (void)doc_free(monitor->before);
    monitor->before = monitor->status;
    monitor->status = status;
    monitor->facts.elapsed_usec = now - monitor->shown_usec;
    monitor->heard_usec = monitor->shown_usec = now;
    format_time(monitor);
    read_disk(monitor, now);
}

/* When a stream that is silent is reported as such. */
static uint64_t silence_usec(const struct monitor *monitor)
{
    return monitor->heard_usec + monitor->interval_usec + ANSWER_USEC;
}

/* A document that is newer, or the reason why there is none. Returns whether there is one. */
static bool refresh_status(struct monitor *monitor)
{
    struct json_object *status = NULL;
    uint64_t now = now_usec();
    char *error = NULL;
    int r = 0;

    if (!monitor->stream && now < monitor->begin_usec)
        return false;
    if (!monitor->stream)
        r = monitor_connect(monitor, &error);
    if (r >= 0)
        r = client_next(monitor->stream, 0, &status, &error);
    if (r > 0) {
        show_status(monitor, status);
        return true;
    }
    if (r < 0) {
        show_error(monitor, error);
        monitor_disconnect(monitor);
        monitor->begin_usec = now_usec() + max_u64(monitor->interval_usec, RETRY_USEC);
        return true;
    }
    if (now < silence_usec(monitor))
        return false;
    show_error(monitor, strdup("xentraced does not answer (see: systemctl status xentraced)."));
    monitor->heard_usec = now;
    return true;
}

static void monitor_pause(struct monitor *monitor)
{
    second_pause(&monitor->second);
    monitor->stream = client_stream_free(monitor->stream);
    monitor->begin_usec = 0;
}

/* Returns whether there is something new to show. */
static bool refresh(struct monitor *monitor)
{
    bool is_new;

    if (monitor->view.paused)
        return false;
    is_new = refresh_status(monitor);
    is_new |= refresh_top(monitor);
    return is_new;
}

static void draw(struct monitor *monitor)
{
    _cleanup_frame_ struct frame frame = {0};
    unsigned int rows, cols;

    monitor->facts.status = monitor->status;
    monitor->facts.before = monitor->before;
    monitor->facts.error = monitor->error;
    monitor->facts.time = monitor->time;
    monitor->facts.top = monitor->top;
    monitor->facts.top_error = monitor->top_error;
    screen_size(monitor->screen, &rows, &cols);
    if (frame_init(&frame, rows, cols) < 0)
        return;
    monitor_draw(&frame, &monitor->facts, &monitor->view, monitor->palette);
    screen_draw(monitor->screen, &frame);
}

/* What is waited for beside keys, and how long at most. */
static size_t choose_wait(const struct monitor *monitor, struct pollfd fds[SCREEN_OTHERS_MAX],
                          uint64_t *ret_usec)
{
    uint64_t now = now_usec(), next, second_usec;
    size_t nr = 0, nr_second;

    *ret_usec = PAUSED_USEC;
    if (monitor->view.paused)
        return 0;
    next = monitor->stream ? silence_usec(monitor) : monitor->begin_usec;
    if (monitor->stream)
        nr = client_stream_fds(monitor->stream, fds);
    if (monitor->client && monitor->view.page == MONITOR_VCPUS) {
        nr_second = second_fds(&monitor->second, fds + nr, &second_usec);
        if (nr_second == 0)
            next = min_u64(next, second_usec);
        nr += nr_second;
    }
    *ret_usec = next > now ? next - now : 0;
    return nr;
}

/* Keys are heard also if the daemon hangs. */
static int run(struct monitor *monitor)
{
    struct pollfd fds[SCREEN_OTHERS_MAX];
    uint64_t timeout_usec;
    bool was_paused;
    size_t nr;

    for (;;) {
        int key = 0;

        nr = choose_wait(monitor, fds, &timeout_usec);
        switch (screen_wait(monitor->screen, timeout_usec, fds, nr, &key)) {
        case SCREEN_TIMEOUT:
        case SCREEN_INPUT:
            if (!refresh(monitor))
                continue;
            break;
        case SCREEN_RESIZED:
            break;
        case SCREEN_KEY:
            was_paused = monitor->view.paused;
            if (monitor_press(&monitor->view, key))
                return CTL_OK;
            if (monitor->view.paused && !was_paused)
                monitor_pause(monitor);
            else if (monitor->view.page != MONITOR_VCPUS)
                second_pause(&monitor->second);
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
        .interval_usec = interval_usec,
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
    second_init(&monitor.second, monitor.client, interval_usec);
    monitor.palette = palette_for(STDOUT_FILENO);
    r = screen_new(&monitor.screen);
    if (r < 0) {
        ctl_error(r == -ENOTTY ? "monitor needs a terminal. Use: xentracectl status"
                               : "Cannot use the terminal: %s.",
                  strerror(-r));
        return CTL_FAILURE;
    }
    return run(&monitor);
}
