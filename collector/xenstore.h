/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Xenstore: what domains are called, and when they come and go. The only module that knows
 * libxenstore.
 *
 * Source: <xenstore.h>; the special watches in Xen's docs/misc/xenstore.txt. xenstored fires
 * @releaseDomain when a domain has shut down or crashed, and again when it is gone.
 *
 * Main thread. It is asked only through its socket, so that nothing waits for a xenstored that is
 * not there; one that does not answer holds up the caller. libxenstore has a thread of its own for
 * each watch.
 */

#include "collector/xen.h"

/* Fills in the names of N DOMAINS; "" where xenstore tells none. */
void xenstore_name_domains(struct xen_domain *domains, unsigned int n);

struct xenstore_watch;

/*
 * Watches domains come and go. Returns 0 or a negative errno: -ENOENT, -ECONNREFUSED: no xenstored.
 * A xenstored that ends later is not noticed (libxenstore tells nobody); Xen does not restart it.
 */
int xenstore_watch_new(struct xenstore_watch **ret_watch);
struct xenstore_watch *xenstore_watch_free(struct xenstore_watch *watch);

/* Readable when a domain has come or gone, and once in the beginning. Belongs to the watch. */
int xenstore_watch_fd(const struct xenstore_watch *watch);

/*
 * Takes all that has happened, without waiting; the descriptor is quiet then. Returns how many
 * events there were, or a negative errno if the connection is lost.
 */
int xenstore_watch_read(struct xenstore_watch *watch);
