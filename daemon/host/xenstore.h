/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Xenstore: the names of domains, and when they come and go. The only module that knows
 * libxenstore.
 *
 * Source: <xenstore.h>; the special watches in Xen's docs/misc/xenstore.txt. xenstored fires
 * @releaseDomain when a domain has shut down or crashed, and again when it is gone.
 *
 * All functions except xenstore_watch_fd() and xenstore_watch_read() may block forever, because
 * libxenstore waits for a xenstored that hangs, and, in the kernel, for one that is not running.
 * They are called on a worker (domain-names.h has one). libxenstore has a thread for each watch,
 * which queues events; xs_check_watch() only reads this queue, so that xenstore_watch_read() never
 * waits for xenstored.
 */

#include <stdint.h>

#define DOMAIN_UUID_BYTES 16u

/* A domain, as `xl list` shows it. */
struct xen_domain {
    uint32_t domid;
    uint8_t uuid[DOMAIN_UUID_BYTES]; /* Xen's, not xenstore's; all 0: it has none */
    char name[64];                   /* valid UTF-8 without control characters; "": not known */
};

/*
 * Fills in the names of N DOMAINS; "" where xenstore has none. Returns 0, or a negative errno if
 * xenstored cannot be reached or the connection broke: the names that are missing then are "".
 */
int xenstore_name_domains(struct xen_domain *domains, unsigned int n);

struct xenstore_watch;

/*
 * Watches domains come and go. Returns 0 or a negative errno: -ENOENT, -ECONNREFUSED: no xenstored.
 * A xenstored that ends later goes unnoticed: libxenstore does not report it, and Xen does not
 * restart it.
 */
int xenstore_watch_new(struct xenstore_watch **ret_watch);
struct xenstore_watch *xenstore_watch_free(struct xenstore_watch *watch);

/* Readable when a domain has come or gone, and once in the beginning. Belongs to the watch. */
int xenstore_watch_fd(const struct xenstore_watch *watch);

/*
 * Takes all events that have arrived, without waiting; then the descriptor is no longer readable.
 * Returns the number of events, or a negative errno if the connection is lost.
 */
int xenstore_watch_read(struct xenstore_watch *watch);
