// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When xenstore reports that some domain came or went, Xen is asked at once, with one system call,
 * who has crashed. The crash is reported with the UUID that this call returns, and with the name
 * that is known by then: to ask xenstore for it would take time that a snapshot does not have.
 *
 * A connection to xenstore is opened by one job and closed by another, on the same worker, because
 * both may wait. The worker keeps their order, so the connection may be given up at any time, also
 * while it is still being opened. It is freed when it has been closed.
 */

#include "daemon/host/domain-watch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "collector/xen.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/base/worker.h"
#include "daemon/host/domain-names.h"
#include "daemon/host/xenstore.h"

_Static_assert(DOMAIN_UUID_BYTES == XEN_UUID_BYTES, "the same UUIDs");

#define MAX_DOMAINS 1024u /* as domain-names.c; Xen may have more, later ones are not watched */
#define RETRY_USEC  (30 * USEC_PER_SEC)
#define SLACK_USEC  (5 * USEC_PER_SEC)

struct connection {
    struct job open_job;
    struct job close_job;
    struct domain_watch *watch;   /* NULL: given up */
    struct xenstore_watch *store; /* the worker's until open_job is done */
    int result;                   /* of opening it */
};

struct domain_watch {
    struct sd_event *event;
    struct xen_host *host;
    struct domain_names *names;
    domain_crashed_fn crashed;
    void *userdata;

    struct connection *connection; /* NULL while it waits for retry_source */
    struct sd_event_source *store_source;
    struct sd_event_source *retry_source;
    bool has_complained;

    bool has_looked;
    size_t nr_states;
    struct xen_domain_state states[MAX_DOMAINS]; /* at the last look, ascending */
    struct xen_domain_state fresh[MAX_DOMAINS];
};

static const struct xen_domain_state *watch_find_state(const struct domain_watch *watch,
                                                       uint32_t domid)
{
    for (size_t i = 0; i < watch->nr_states; i++)
        if (watch->states[i].domid == domid)
            return &watch->states[i];
    return NULL;
}

static void watch_report(struct domain_watch *watch, const struct xen_domain_state *state)
{
    struct xen_domain domain = {.domid = state->domid};

    memcpy(domain.uuid, state->uuid, sizeof(domain.uuid));
    (void)snprintf(domain.name, sizeof(domain.name), "%s",
                   domain_names_of(watch->names, state->domid));
    watch->crashed(watch->userdata, &domain);
}

static void watch_look(struct domain_watch *watch)
{
    int n = xen_host_list_domain_states(watch->host, watch->fresh, MAX_DOMAINS);

    if (n < 0) {
        log_warning("Xen did not list its domains: %s. A crash may have been missed.",
                    strerror(-n));
        return;
    }
    for (int i = 0; watch->has_looked && i < n; i++) {
        const struct xen_domain_state *before = watch_find_state(watch, watch->fresh[i].domid);

        if (watch->fresh[i].crashed && !(before && before->crashed))
            watch_report(watch, &watch->fresh[i]);
    }
    memcpy(watch->states, watch->fresh, (size_t)n * sizeof(watch->fresh[0]));
    watch->nr_states = (size_t)n;
    watch->has_looked = true;
    domain_names_refresh(watch->names);
}

/* --- The connection to xenstore. --- */

static int watch_begin_connecting(struct domain_watch *watch);
static int watch_retry_later(struct domain_watch *watch, int error);

static int watch_handle_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct domain_watch *watch = userdata;
    int r;

    (void)source;
    (void)usec;
    watch->retry_source = sd_event_source_disable_unref(watch->retry_source);
    r = watch_begin_connecting(watch);
    return r < 0 ? watch_retry_later(watch, r) : 0;
}

static void run_close(struct job *job)
{
    struct connection *connection = job_container(job, struct connection, close_job);

    connection->store = xenstore_watch_free(connection->store);
}

static void close_done(struct job *job)
{
    free(job_container(job, struct connection, close_job));
}

static void watch_disconnect(struct domain_watch *watch)
{
    struct connection *connection = TAKE_PTR(watch->connection);

    watch->store_source = sd_event_source_disable_unref(watch->store_source);
    if (!connection)
        return;
    connection->watch = NULL;
    domain_names_send(watch->names, &connection->close_job);
}

/* Xenstore cannot be watched because of ERROR: logs that once, and tries again later. */
static int watch_retry_later(struct domain_watch *watch, int error)
{
    if (!watch->has_complained)
        log_warning(
            "Cannot watch xenstore: %s. Until this works, crashes of domains fire no triggers.",
            strerror(-error));
    watch->has_complained = true;
    watch_disconnect(watch);
    return sd_event_add_time_relative(watch->event, &watch->retry_source, CLOCK_MONOTONIC,
                                      RETRY_USEC, SLACK_USEC, watch_handle_retry, watch);
}

static int watch_handle_store(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct domain_watch *watch = userdata;
    int n = xenstore_watch_read(watch->connection->store);

    (void)source;
    (void)fd;
    (void)revents;
    if (n < 0)
        return watch_retry_later(watch, n);
    if (n > 0)
        watch_look(watch);
    return 0;
}

static int watch_listen(struct domain_watch *watch)
{
    int fd = xenstore_watch_fd(watch->connection->store);
    int r;

    r = sd_event_add_io(watch->event, &watch->store_source, fd, EPOLLIN, watch_handle_store, watch);
    if (r < 0)
        return r;
    /* A crashed domain may be gone in a moment: everything else can wait. */
    return sd_event_source_set_priority(watch->store_source, SD_EVENT_PRIORITY_IMPORTANT);
}

static void run_open(struct job *job)
{
    struct connection *connection = job_container(job, struct connection, open_job);

    connection->result = xenstore_watch_new(&connection->store);
}

/* Looks again: domains may have crashed while the connection was being opened. */
static void open_done(struct job *job)
{
    struct connection *connection = job_container(job, struct connection, open_job);
    struct domain_watch *watch = connection->watch;
    int r;

    if (!watch)
        return; /* given up: it is being closed */
    r = connection->result < 0 ? connection->result : watch_listen(watch);
    if (r < 0) {
        (void)watch_retry_later(watch, r); /* without memory for a timer: the end of watching */
        return;
    }
    if (watch->has_complained)
        log_info("Xenstore is watched for crashes of domains again.");
    watch->has_complained = false;
    watch_look(watch);
}

static int watch_begin_connecting(struct domain_watch *watch)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (!connection)
        return -ENOMEM;
    connection->open_job = (struct job){.run = run_open, .done = open_done};
    connection->close_job = (struct job){.run = run_close, .done = close_done};
    connection->watch = watch;
    watch->connection = connection;
    domain_names_send(watch->names, &connection->open_job);
    return 0;
}

int domain_watch_new(struct sd_event *event, struct xen_host *host, struct domain_names *names,
                     domain_crashed_fn crashed, void *userdata, struct domain_watch **ret_watch)
{
    struct domain_watch *watch = calloc(1, sizeof(*watch));
    int r;

    if (!watch)
        return -ENOMEM;
    watch->event = sd_event_ref(event);
    watch->host = host;
    watch->names = names;
    watch->crashed = crashed;
    watch->userdata = userdata;
    watch_look(watch);
    r = watch_begin_connecting(watch);
    if (r < 0) {
        domain_watch_free(watch);
        return r;
    }
    *ret_watch = watch;
    return 0;
}

struct domain_watch *domain_watch_free(struct domain_watch *watch)
{
    if (!watch)
        return NULL;
    watch_disconnect(watch);
    watch->retry_source = sd_event_source_disable_unref(watch->retry_source);
    sd_event_unref(watch->event);
    free(watch);
    return NULL;
}
