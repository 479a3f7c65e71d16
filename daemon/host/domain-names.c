// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One job reads the names of all domains: it has a copy of the list, and its result is merged into
 * the list as it is by then. A job whose owner was freed only frees itself.
 */

#include "daemon/host/domain-names.h"

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

_Static_assert(DOMAIN_UUID_BYTES == XEN_UUID_BYTES, "the same UUIDs");

#define MAX_DOMAINS 1024u /* Xen may have more: the later ones have no names */
#define RETRY_USEC  (5 * USEC_PER_SEC)
#define SLOW_USEC   (5 * USEC_PER_SEC)
#define SLACK_USEC  USEC_PER_SEC

struct names_job {
    struct job job;
    struct domain_names *names; /* NULL: they have been freed. The main thread's */
    int result;
    unsigned int count;
    struct xen_domain domains[];
};

struct domain_names {
    struct sd_event *event;
    struct sd_event_source *retry_source;
    struct sd_event_source *slow_source; /* while a job is under way */
    bool has_complained;
    bool has_answered; /* xenstore, at the last time */
    struct worker *worker;
    struct xen_host *xen;
    void (*changed)(void *userdata);
    void *userdata;

    struct names_job *job; /* under way */
    bool is_outdated;      /* its result: names were asked for again meanwhile */

    unsigned int count;
    struct xen_domain domains[MAX_DOMAINS];      /* ascending ids */
    struct xen_domain_state states[MAX_DOMAINS]; /* as Xen lists them: for a moment only */
};

const struct xen_domain *domain_names_find(const struct domain_names *names, uint32_t domid)
{
    for (unsigned int i = 0; i < names->count; i++)
        if (names->domains[i].domid == domid)
            return &names->domains[i];
    return NULL;
}

static struct xen_domain *names_find(struct domain_names *names, uint32_t domid)
{
    return (struct xen_domain *)domain_names_find(names, domid);
}

/* --- Reading. --- */

static void run_names_job(struct job *job)
{
    struct names_job *names_job = job_container(job, struct names_job, job);

    names_job->result = xenstore_name_domains(names_job->domains, names_job->count);
}

/* Returns whether a name is another than before. */
static bool names_merge(struct domain_names *names, const struct names_job *job)
{
    bool is_changed = false;

    for (unsigned int i = 0; i < job->count; i++) {
        const struct xen_domain *read = &job->domains[i];
        struct xen_domain *domain = names_find(names, read->domid);

        if (!domain || read->name[0] == '\0' || strcmp(domain->name, read->name) == 0)
            continue;
        memcpy(domain->name, read->name, sizeof(domain->name));
        is_changed = true;
    }
    return is_changed;
}

static int names_handle_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct domain_names *names = userdata;

    (void)source;
    (void)usec;
    names->retry_source = sd_event_source_disable_unref(names->retry_source);
    domain_names_refresh(names);
    return 0;
}

static void names_retry_later(struct domain_names *names)
{
    if (names->retry_source)
        return;
    /* Without memory for a timer, the next refresh is somebody else's. */
    (void)sd_event_add_time_relative(names->event, &names->retry_source, CLOCK_MONOTONIC,
                                     RETRY_USEC, SLACK_USEC, names_handle_retry, names);
}

static int names_handle_slow(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct domain_names *names = userdata;

    (void)source;
    (void)usec;
    names->slow_source = sd_event_source_disable_unref(names->slow_source);
    if (!names->has_complained)
        log_warning("Xenstore does not answer. Until it does, new domains have no names, and "
                    "crashes of domains may not fire triggers. Check that xenstored is running.");
    names->has_complained = true;
    names->has_answered = false;
    return 0;
}

static void names_begin_reading(struct domain_names *names);

static void names_job_done(struct job *job)
{
    struct names_job *names_job = job_container(job, struct names_job, job);
    struct domain_names *names = names_job->names;
    bool is_changed;

    if (!names) {
        free(names_job);
        return;
    }
    names->job = NULL;
    names->slow_source = sd_event_source_disable_unref(names->slow_source);
    names->has_answered = names_job->result >= 0;
    if (names->has_complained && names_job->result >= 0) {
        log_info("Xenstore answers again.");
        names->has_complained = false;
    }
    is_changed = names_merge(names, names_job);
    if (names_job->result < 0)
        names_retry_later(names);
    free(names_job);
    if (names->is_outdated)
        names_begin_reading(names);
    if (is_changed && names->changed)
        names->changed(names->userdata);
}

/* Without memory the old names are better than none. */
static void names_begin_reading(struct domain_names *names)
{
    size_t domains_bytes = names->count * sizeof(names->domains[0]);
    struct names_job *job = malloc(sizeof(*job) + domains_bytes);

    names->is_outdated = false;
    if (!job)
        return;
    *job = (struct names_job){
        .job = {.run = run_names_job, .done = names_job_done},
        .names = names,
        .count = names->count,
    };
    memcpy(job->domains, names->domains, domains_bytes);
    names->job = job;
    worker_send(names->worker, &job->job);
    /* Without memory for a timer the log lacks a line. */
    (void)sd_event_add_time_relative(names->event, &names->slow_source, CLOCK_MONOTONIC, SLOW_USEC,
                                     SLACK_USEC, names_handle_slow, names);
}

/* Whether STATE has a UUID that is not known yet of a domain of that id. */
static bool has_new_uuid(const struct domain_names *names, const struct xen_domain_state *state)
{
    static const uint8_t none[DOMAIN_UUID_BYTES];
    const struct xen_domain *known = domain_names_find(names, state->domid);

    return memcmp(state->uuid, known ? known->uuid : none, DOMAIN_UUID_BYTES) != 0;
}

void domain_names_refresh(struct domain_names *names)
{
    int n = xen_host_list_domain_states(names->xen, names->states, MAX_DOMAINS);
    struct xen_domain *running;
    bool is_changed = n >= 0 && (unsigned int)n < names->count; /* one has gone */

    if (n < 0)
        return; /* the names that are known stay known */
    running = calloc((size_t)n + 1, sizeof(*running));
    if (!running)
        return;
    for (int i = 0; i < n; i++) {
        running[i].domid = names->states[i].domid;
        memcpy(running[i].uuid, names->states[i].uuid, DOMAIN_UUID_BYTES);
        is_changed = is_changed || has_new_uuid(names, &names->states[i]);
        (void)snprintf(running[i].name, sizeof(running[i].name), "%s",
                       domain_names_of(names, running[i].domid));
    }
    memcpy(names->domains, running, (size_t)n * sizeof(*running));
    names->count = (unsigned int)n;
    free(running);
    if (names->job)
        names->is_outdated = true;
    else
        names_begin_reading(names);
    if (is_changed && names->changed)
        names->changed(names->userdata);
}

/* --- What is known. --- */

unsigned int domain_names_read(const struct domain_names *names,
                               const struct xen_domain **ret_domains)
{
    *ret_domains = names->domains;
    return names->count;
}

const char *domain_names_of(const struct domain_names *names, uint32_t domid)
{
    const struct xen_domain *domain = domain_names_find(names, domid);

    return domain ? domain->name : "";
}

bool domain_names_are_available(const struct domain_names *names)
{
    return names->has_answered;
}

void domain_names_listen(struct domain_names *names, void (*changed)(void *userdata),
                         void *userdata)
{
    names->changed = changed;
    names->userdata = userdata;
}

void domain_names_send(struct domain_names *names, struct job *job)
{
    worker_send(names->worker, job);
}

/* --- Construction. --- */

int domain_names_new(struct sd_event *event, struct workers *workers, struct xen_host *xen,
                     struct domain_names **ret_names)
{
    struct domain_names *names = calloc(1, sizeof(*names));
    int r;

    if (!names)
        return -ENOMEM;
    r = worker_new(workers, "xenstore", &names->worker);
    if (r < 0) {
        free(names);
        return r;
    }
    names->event = sd_event_ref(event);
    names->xen = xen;
    *ret_names = names;
    return 0;
}

struct domain_names *domain_names_free(struct domain_names *names)
{
    if (!names)
        return NULL;
    if (names->job)
        names->job->names = NULL;
    names->retry_source = sd_event_source_disable_unref(names->retry_source);
    names->slow_source = sd_event_source_disable_unref(names->slow_source);
    sd_event_unref(names->event);
    worker_free(names->worker);
    free(names);
    return NULL;
}
