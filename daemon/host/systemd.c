// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * systemd's private socket is there without a message bus, and answers root. It is opened anew for
 * each request: they are rare.
 *
 * A request that someone waits for has a deadline on the main thread. When it passes, the answer is
 * given without the worker, which may be stuck in an earlier job; its result is then ignored.
 *
 * Source: org.freedesktop.systemd1(5): GetUnitByPID(), properties Job and JobType, StartUnit().
 */

#include "daemon/host/systemd.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "common/units.h"
#include "common/util.h"
#include "daemon/host/systemd-state.h"

#define ADDRESS       "unix:path=/run/systemd/private"
#define DESTINATION   "org.freedesktop.systemd1"
#define MANAGER_PATH  "/org/freedesktop/systemd1"
#define MANAGER       "org.freedesktop.systemd1.Manager"
#define CALL_USEC     USEC_PER_SEC /* systemd's time for one call */
#define DEADLINE_USEC (2 * USEC_PER_SEC)
#define SLACK_USEC    (50 * USEC_PER_MSEC)

struct systemd {
    struct sd_event *event;
    struct worker *worker;
    struct systemd_job *jobs; /* not done */
};

/* --- Jobs. --- */

static void systemd_unlink_job(struct systemd_job *job)
{
    struct systemd *systemd = job->systemd;

    if (!systemd)
        return;
    if (job->previous)
        job->previous->next = job->next;
    else
        systemd->jobs = job->next;
    if (job->next)
        job->next->previous = job->previous;
    job->systemd = NULL;
}

static void systemd_finish_job(struct systemd_job *job, bool is_late)
{
    if (job->is_finished)
        return;
    job->is_finished = true;
    job->deadline = sd_event_source_disable_unref(job->deadline);
    if (job->finish)
        job->finish(job, is_late);
}

static int systemd_handle_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
    (void)source;
    (void)usec;
    systemd_finish_job(userdata, true);
    return 0;
}

static void run_systemd_job(struct job *job)
{
    struct systemd_job *systemd_job = job_container(job, struct systemd_job, job);

    systemd_job->run(systemd_job);
}

static void systemd_job_done(struct job *job)
{
    struct systemd_job *systemd_job = job_container(job, struct systemd_job, job);

    if (systemd_job->systemd) {
        systemd_unlink_job(systemd_job);
        systemd_finish_job(systemd_job, false);
    }
    if (systemd_job->release)
        systemd_job->release(systemd_job);
    free(systemd_job);
}

void systemd_send(struct systemd *systemd, struct systemd_job *job, bool has_deadline)
{
    job->job = (struct job){.run = run_systemd_job, .done = systemd_job_done};
    job->systemd = systemd;
    job->previous = NULL;
    job->next = systemd->jobs;
    if (job->next)
        job->next->previous = job;
    systemd->jobs = job;
    /* Without memory for a timer, the answer comes when the worker has it. */
    if (has_deadline)
        (void)sd_event_add_time_relative(systemd->event, &job->deadline, CLOCK_MONOTONIC,
                                         DEADLINE_USEC, SLACK_USEC, systemd_handle_deadline, job);
    worker_send(systemd->worker, &job->job);
}

/* --- Calls, on the worker. --- */

static void unref_busp(sd_bus **bus)
{
    *bus = sd_bus_flush_close_unref(*bus);
}

static void unref_messagep(sd_bus_message **message)
{
    *message = sd_bus_message_unref(*message);
}

#define _cleanup_bus_     _cleanup_(unref_busp)
#define _cleanup_message_ _cleanup_(unref_messagep)

static int open_manager(sd_bus **ret_bus)
{
    _cleanup_bus_ sd_bus *bus = NULL;
    int r;

    r = sd_bus_new(&bus);
    if (r < 0)
        return r;
    r = sd_bus_set_address(bus, ADDRESS);
    if (r < 0)
        return r;
    r = sd_bus_set_method_call_timeout(bus, CALL_USEC);
    if (r < 0)
        return r;
    r = sd_bus_start(bus);
    if (r < 0)
        return r;
    *ret_bus = TAKE_PTR(bus);
    return 0;
}

static int copy_path(const char *path, char **ret_path)
{
    char *copy = strdup(path);

    if (!copy)
        return -ENOMEM;
    *ret_path = copy;
    return 0;
}

/* The unit's job, as an object path; "/" if it has none. Free *RET_PATH. */
static int read_job(sd_bus *bus, const char *unit, char **ret_path)
{
    _cleanup_message_ sd_bus_message *reply = NULL;
    const char *path;
    int r;

    r = sd_bus_get_property(bus, DESTINATION, unit, "org.freedesktop.systemd1.Unit", "Job", NULL,
                            &reply, "(uo)");
    if (r < 0)
        return r;
    r = sd_bus_message_read(reply, "(uo)", NULL, &path);
    if (r < 0)
        return r;
    return copy_path(path, ret_path);
}

/* Our own unit, as an object path. Free *RET_PATH. */
static int read_unit(sd_bus *bus, char **ret_path)
{
    _cleanup_message_ sd_bus_message *reply = NULL;
    const char *path;
    int r;

    r = sd_bus_call_method(bus, DESTINATION, MANAGER_PATH, MANAGER, "GetUnitByPID", NULL, &reply,
                           "u", (uint32_t)getpid());
    if (r < 0)
        return r;
    r = sd_bus_message_read(reply, "o", &path);
    if (r < 0)
        return r;
    return copy_path(path, ret_path);
}

/* The type of our unit's job: "stop", "restart". Free *RET_TYPE. */
static int read_job_type(char **ret_type)
{
    _cleanup_free_ char *unit = NULL, *job = NULL;
    _cleanup_bus_ sd_bus *bus = NULL;
    int r;

    r = open_manager(&bus);
    if (r < 0)
        return r;
    r = read_unit(bus, &unit);
    if (r < 0)
        return r;
    r = read_job(bus, unit, &job);
    if (r < 0)
        return r;
    return sd_bus_get_property_string(bus, DESTINATION, job, "org.freedesktop.systemd1.Job",
                                      "JobType", NULL, ret_type);
}

static int start_unit(const char *unit)
{
    _cleanup_bus_ sd_bus *bus = NULL;
    int r;

    r = open_manager(&bus);
    if (r < 0)
        return r;
    r = sd_bus_call_method(bus, DESTINATION, MANAGER_PATH, MANAGER, "StartUnit", NULL, NULL, "ss",
                           unit, "fail");
    return r < 0 ? r : 0;
}

/* --- Starting units. --- */

struct start_job {
    struct systemd_job base;
    void (*done)(void *userdata, const char *unit, int error);
    void *userdata;
    int error;
    char unit[];
};

static void run_start(struct systemd_job *job)
{
    struct start_job *start = (struct start_job *)job;

    start->error = start_unit(start->unit);
}

static void finish_start(struct systemd_job *job, bool is_late)
{
    struct start_job *start = (struct start_job *)job;

    (void)is_late; /* it has no deadline */
    start->done(start->userdata, start->unit, start->error);
}

void systemd_start_unit(struct systemd *systemd, const char *unit,
                        void (*done)(void *userdata, const char *unit, int error), void *userdata)
{
    size_t bytes = strlen(unit) + 1;
    struct start_job *start = calloc(1, sizeof(*start) + bytes);

    if (!start) {
        done(userdata, unit, -ENOMEM);
        return;
    }
    start->base.run = run_start;
    start->base.finish = finish_start;
    start->done = done;
    start->userdata = userdata;
    memcpy(start->unit, unit, bytes);
    systemd_send(systemd, &start->base, false);
}

/* --- Why we are stopped. --- */

struct ask_job {
    struct systemd_job base;
    void (*answer)(void *userdata, bool for_good);
    void *userdata;
    bool is_stop;
};

static void run_ask(struct systemd_job *job)
{
    struct ask_job *ask = (struct ask_job *)job;
    _cleanup_free_ char *type = NULL;

    ask->is_stop = read_job_type(&type) >= 0 && strcmp(type, "stop") == 0;
}

/* Late, is_stop is still the worker's. */
static void finish_ask(struct systemd_job *job, bool is_late)
{
    struct ask_job *ask = (struct ask_job *)job;

    ask->answer(ask->userdata, !is_late && ask->is_stop);
}

void systemd_ask_stop(struct systemd *systemd, void (*answer)(void *userdata, bool for_good),
                      void *userdata)
{
    struct ask_job *ask = calloc(1, sizeof(*ask));

    if (!ask) {
        answer(userdata, false);
        return;
    }
    ask->base.run = run_ask;
    ask->base.finish = finish_ask;
    ask->answer = answer;
    ask->userdata = userdata;
    systemd_send(systemd, &ask->base, true);
}

/* --- sd_notify(3). --- */

struct notify_job {
    struct systemd_job base;
    char text[];
};

static void run_notify(struct systemd_job *job)
{
    /* Nobody may be listening. */
    (void)sd_notify(false, ((struct notify_job *)job)->text);
}

void systemd_notify(struct systemd *systemd, const char *text)
{
    size_t bytes = strlen(text) + 1;
    struct notify_job *notify = calloc(1, sizeof(*notify) + bytes);

    if (!notify)
        return; /* a status text; READY=1 comes at the start, when there is memory */
    notify->base.run = run_notify;
    memcpy(notify->text, text, bytes);
    systemd_send(systemd, &notify->base, false);
}

struct flush_job {
    struct systemd_job base;
    void (*done)(void *userdata);
    void *userdata;
};

static void run_flush(struct systemd_job *job)
{
    (void)job; /* its turn is the answer */
}

static void finish_flush(struct systemd_job *job, bool is_late)
{
    struct flush_job *flush = (struct flush_job *)job;

    (void)is_late; /* late or not: the wait is over */
    flush->done(flush->userdata);
}

void systemd_flush(struct systemd *systemd, void (*done)(void *userdata), void *userdata)
{
    struct flush_job *flush = calloc(1, sizeof(*flush));

    if (!flush) {
        done(userdata);
        return;
    }
    flush->base.run = run_flush;
    flush->base.finish = finish_flush;
    flush->done = done;
    flush->userdata = userdata;
    systemd_send(systemd, &flush->base, true);
}

/* --- Construction. --- */

int systemd_new(struct sd_event *event, struct workers *workers, struct systemd **ret_systemd)
{
    struct systemd *systemd = calloc(1, sizeof(*systemd));
    int r;

    if (!systemd)
        return -ENOMEM;
    r = worker_new(workers, "systemd", &systemd->worker);
    if (r < 0) {
        free(systemd);
        return r;
    }
    systemd->event = sd_event_ref(event);
    *ret_systemd = systemd;
    return 0;
}

struct systemd *systemd_free(struct systemd *systemd)
{
    if (!systemd)
        return NULL;
    while (systemd->jobs) {
        systemd->jobs->deadline = sd_event_source_disable_unref(systemd->jobs->deadline);
        systemd_unlink_job(systemd->jobs);
    }
    worker_free(systemd->worker);
    sd_event_unref(systemd->event);
    free(systemd);
    return NULL;
}
