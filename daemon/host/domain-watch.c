// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When xenstore says that some domain came or went, Xen is asked at once, with one system call, who
 * has crashed, and that is told before anybody asks for names: xenstore takes its time, and the
 * name is known from an earlier look.
 */

#include "daemon/host/domain-watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "collector/xen.h"
#include "collector/xenstore.h"
#include "common/units.h"
#include "daemon/base/log.h"

#define MAX_DOMAINS 1024u /* as domains.c; Xen may have more, later ones are not watched */
#define RETRY_USEC  (30 * USEC_PER_SEC)
#define SLACK_USEC  (5 * USEC_PER_SEC)

struct domain_watch {
    struct sd_event *event;
    struct xen_host *host;
    domain_crashed_fn crashed;
    void *userdata;

    struct xenstore_watch *store;
    struct sd_event_source *store_source;
    struct sd_event_source *retry_source;
    bool has_complained;

    bool has_looked;
    size_t nr_states;
    struct xen_domain_state states[MAX_DOMAINS]; /* at the last look, ascending */
    struct xen_domain_state fresh[MAX_DOMAINS];
    size_t nr_known;
    struct xen_domain known[MAX_DOMAINS]; /* with their names */
};

static const struct xen_domain_state *find_state(const struct domain_watch *watch, uint32_t domid)
{
    for (size_t i = 0; i < watch->nr_states; i++)
        if (watch->states[i].domid == domid)
            return &watch->states[i];
    return NULL;
}

const char *domain_watch_name(const struct domain_watch *watch, uint32_t domid)
{
    for (size_t i = 0; i < watch->nr_known; i++)
        if (watch->known[i].domid == domid)
            return watch->known[i].name;
    return "";
}

static void tell_crash(struct domain_watch *watch, uint32_t domid)
{
    struct xen_domain domain = {.domid = domid};

    (void)snprintf(domain.name, sizeof(domain.name), "%s", domain_watch_name(watch, domid));
    if (domain.name[0] == '\0')
        xenstore_name_domains(&domain, 1);
    watch->crashed(watch->userdata, domid, domain.name);
}

/* Asks for everybody's name; a name that xenstore does not have any more is kept. */
static void learn_names(struct domain_watch *watch)
{
    struct xen_domain *named = calloc(MAX_DOMAINS, sizeof(*named));

    if (!named)
        return; /* the old names are better than none */
    for (size_t i = 0; i < watch->nr_states; i++)
        named[i].domid = watch->states[i].domid;
    xenstore_name_domains(named, (unsigned int)watch->nr_states);
    for (size_t i = 0; i < watch->nr_states; i++)
        if (named[i].name[0] == '\0')
            (void)snprintf(named[i].name, sizeof(named[i].name), "%s",
                           domain_watch_name(watch, named[i].domid));
    memcpy(watch->known, named, watch->nr_states * sizeof(*named));
    watch->nr_known = watch->nr_states;
    free(named);
}

static void look(struct domain_watch *watch)
{
    int n = xen_host_list_domain_states(watch->host, watch->fresh, MAX_DOMAINS);

    if (n < 0) {
        log_warning("Xen did not list its domains: %s. A crash may have gone unnoticed.",
                    strerror(-n));
        return;
    }
    for (int i = 0; watch->has_looked && i < n; i++) {
        const struct xen_domain_state *before = find_state(watch, watch->fresh[i].domid);

        if (watch->fresh[i].crashed && !(before && before->crashed))
            tell_crash(watch, watch->fresh[i].domid);
    }
    memcpy(watch->states, watch->fresh, (size_t)n * sizeof(watch->fresh[0]));
    watch->nr_states = (size_t)n;
    watch->has_looked = true;
    learn_names(watch);
}

/* --- The connection to xenstore. --- */

static int connect_store(struct domain_watch *watch);

static void disconnect_store(struct domain_watch *watch)
{
    watch->store_source = sd_event_source_disable_unref(watch->store_source);
    watch->store = xenstore_watch_free(watch->store);
}

static int handle_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct domain_watch *watch = userdata;

    (void)source;
    (void)usec;
    watch->retry_source = sd_event_source_disable_unref(watch->retry_source);
    return connect_store(watch);
}

/* Xenstore cannot be watched because of ERROR: says so once, and tries again later. */
static int retry_later(struct domain_watch *watch, int error)
{
    if (!watch->has_complained)
        log_warning("Xenstore cannot be watched: %s. Until it can, crashes of domains fire no "
                    "trigger.",
                    strerror(-error));
    watch->has_complained = true;
    return sd_event_add_time_relative(watch->event, &watch->retry_source, CLOCK_MONOTONIC,
                                      RETRY_USEC, SLACK_USEC, handle_retry, watch);
}

static int handle_store(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct domain_watch *watch = userdata;
    int n = xenstore_watch_read(watch->store);

    (void)source;
    (void)fd;
    (void)revents;
    if (n > 0)
        look(watch);
    if (n >= 0)
        return 0;
    disconnect_store(watch);
    return retry_later(watch, n);
}

/* A domain that crashes before the first look counts as one that had crashed before. */
static int connect_store(struct domain_watch *watch)
{
    int r;

    r = xenstore_watch_new(&watch->store);
    if (r < 0)
        return retry_later(watch, r);
    r = sd_event_add_io(watch->event, &watch->store_source, xenstore_watch_fd(watch->store),
                        EPOLLIN, handle_store, watch);
    if (r >= 0) /* in a moment the crashed domain is gone: everything else can wait */
        r = sd_event_source_set_priority(watch->store_source, SD_EVENT_PRIORITY_IMPORTANT);
    if (r < 0)
        return r;
    if (watch->has_complained)
        log_info("Xenstore is watched for crashes of domains again.");
    watch->has_complained = false;
    look(watch);
    return 0;
}

int domain_watch_new(struct sd_event *event, struct xen_host *host, domain_crashed_fn crashed,
                     void *userdata, struct domain_watch **ret_watch)
{
    struct domain_watch *watch = calloc(1, sizeof(*watch));
    int r;

    if (!watch)
        return -ENOMEM;
    watch->event = sd_event_ref(event);
    watch->host = host;
    watch->crashed = crashed;
    watch->userdata = userdata;
    r = connect_store(watch);
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
    disconnect_store(watch);
    watch->retry_source = sd_event_source_disable_unref(watch->retry_source);
    sd_event_unref(watch->event);
    free(watch);
    return NULL;
}
