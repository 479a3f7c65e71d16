/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tells when a domain crashes. Main thread.
 *
 * The toolstack hears of a crash when we do, and may destroy the domain within milliseconds: a main
 * thread that comes later than that finds nothing, and tells nothing.
 */

#include <stdint.h>

struct domain_watch;
struct sd_event;
struct xen_host;

/* NAME: as xenstore has it or had it; "" if it never told. */
typedef void (*domain_crashed_fn)(void *userdata, uint32_t domid, const char *name);

/*
 * Watches from now on, and calls CRASHED once for each domain that crashes; domains that have
 * crashed before and are kept are not told. HOST is borrowed. Where there is no xenstored it says
 * so in the log and tries again now and then. -ENOMEM, or an error of the event loop's.
 */
int domain_watch_new(struct sd_event *event, struct xen_host *host, domain_crashed_fn crashed,
                     void *userdata, struct domain_watch **ret_watch);
struct domain_watch *domain_watch_free(struct domain_watch *watch);

/* The name of a domain that was there at the last look; "" if it is not known. */
const char *domain_watch_name(const struct domain_watch *watch, uint32_t domid);
