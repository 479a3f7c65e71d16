// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xentracectl monitor: a live picture. One Status a second, which costs the daemon 0.1 ms, and now
 * and then a look at the disk; nothing while it is paused.
 *
 * A daemon that is restarted, or does not answer, is shown as such, and asked again.
 */

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/ask-status.h"
#include "ctl/ctl.h"
#include "ctl/frame.h"
#include "ctl/monitor.h"
#include "ctl/remote.h"
#include "ctl/screen.h"
#include "ctl/str.h"

#define ANSWER_USEC        (1 * USEC_PER_SEC)
#define DISK_ANSWER_USEC   (200 * USEC_PER_MSEC)
#define DISK_INTERVAL_USEC (10 * USEC_PER_SEC)
#define INTERVAL_MIN_USEC  (100 * USEC_PER_MSEC)
#define PAUSED_USEC        (60 * USEC_PER_SEC) /* any time: only keys end a pause */

struct options {
    uint64_t interval_usec;
    bool utc;
};

static const struct args_option monitor_options[] = {
    {"interval", 'n', "TIME", ARGS_DURATION, offsetof(struct options, interval_usec), USEC_PER_SEC,
     .help = "time between updates (default 1s)"},
    {"utc", .offset = offsetof(struct options, utc), .help = "show times in UTC"},
    {},
};

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
}

static uint64_t now_usec(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

/* Not while a child may still wait for it. That of another host is out of reach. */
static void read_disk(struct monitor *monitor, uint64_t now)
{
    const char *path = doc_text(monitor->status, "daemon.state_dir", NULL);

    if (!path || remote_is_address(monitor->ctl->socket) ||
        (monitor->disk_asked_usec && now - monitor->disk_asked_usec < DISK_INTERVAL_USEC))
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

/* A document that is newer, or the reason why there is none. */
static void refresh(struct monitor *monitor)
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
        int key = 0;

        switch (screen_wait(monitor->screen, time_left(monitor, next_usec), &key)) {
        case SCREEN_TIMEOUT:
            if (time_left(monitor, next_usec) == 0) {
                next_usec = now_usec() + interval_usec;
                refresh(monitor);
                next_usec = max_u64(next_usec, now_usec() + INTERVAL_MIN_USEC);
            }
            break;
        case SCREEN_RESIZED:
            break;
        case SCREEN_KEY:
            if (monitor_press(&monitor->view, key))
                return CTL_OK;
            break;
        case SCREEN_QUIT:
            return CTL_OK;
        }
        draw(monitor);
    }
}

static int cmd_monitor(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_(monitor_done) struct monitor monitor = {.ctl = ctl, .facts.disk_result = -ENODATA};
    struct options options = {.interval_usec = USEC_PER_SEC};
    char *error = NULL;
    int r;

    r = args_parse(ctl, monitor_options, argc, argv, 0, &options, NULL, &error);
    if (r == 0 && ctl->json)
        r = str_refuse(-EINVAL, &error,
                       "monitor has no JSON output. Use: xentracectl status --json");
    if (r == 0 && options.interval_usec < INTERVAL_MIN_USEC)
        r = str_refuse(-EINVAL, &error, "--interval must be 100ms or more.");
    if (r < 0)
        return args_exit(&verb_monitor, r, error);
    if (options.utc)
        str_use_utc();
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
    return run(&monitor, options.interval_usec);
}

const struct verb verb_monitor = {
    .name = "monitor",
    .run = cmd_monitor,
    .words = "",
    .summary = "show a live view of CPUs, captures and triggers",
    .help = "Shows rates, the fill of each CPU's buffer, losses, the disk, captures and\n"
            "triggers, and updates them every second. q quits, h shows all keys.\n",
    .options = monitor_options,
};
