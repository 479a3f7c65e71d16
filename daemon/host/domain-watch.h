/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reports domains that crash. Main thread; nothing here waits for xenstored.
 *
 * The toolstack is notified of a crash at the same time, and may destroy the domain within
 * milliseconds. If the main thread is later than that, the crash is missed.
 */

struct domain_names;
struct domain_watch;
struct sd_event;
struct xen_domain;
struct xen_host;

/*
 * DOMAIN has the UUID that Xen has, and the name that xenstore has or had; "" if that is not known
 * (yet). It is valid during the call.
 */
typedef void (*domain_crashed_fn)(void *userdata, const struct xen_domain *domain);

/*
 * Watches from now on, and calls CRASHED once for each domain that crashes; domains that crashed
 * before and are kept are not reported. HOST and NAMES are borrowed; NAMES are refreshed whenever a
 * domain comes or goes. Where xenstored cannot be watched, the log reports it once, and the watch
 * tries again now and then. -ENOMEM, or an error of the event loop's.
 */
int domain_watch_new(struct sd_event *event, struct xen_host *host, struct domain_names *names,
                     domain_crashed_fn crashed, void *userdata, struct domain_watch **ret_watch);

/* Before its NAMES are freed. CRASHED is not called any more. Takes NULL; returns NULL. */
struct domain_watch *domain_watch_free(struct domain_watch *watch);
