/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which domain id was which domain, over the time of a session: ids in records mean nothing without
 * it, and a domain may be gone before the trace is read. Main thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/host/xenstore.h"

struct domain_names;

struct domain_seen {
    struct xen_domain domain;
    uint64_t first_seen_ns; /* CLOCK_REALTIME */
    uint64_t last_seen_ns;
};

struct domains {
    struct domain_seen *seen;
    size_t count;
};

/*
 * Enters the domains that NAMES lists as running at NOW_NS: call domain_names_refresh() before, for
 * those of now. An entry without a name is given its name when that becomes known. An entry for
 * which there is no memory is left out.
 */
void domains_update(struct domains *domains, const struct domain_names *names, uint64_t now_ns);
void domains_done(struct domains *domains);
