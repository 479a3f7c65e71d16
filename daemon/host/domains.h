/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which domain id was which domain, over the time of a session: ids in records mean nothing without
 * it, and a domain may be gone before the trace is read. Main thread.
 */

#include <stdint.h>

#include "collector/xen.h"

struct domain_seen {
    struct xen_domain domain;
    uint64_t first_seen_ns; /* CLOCK_REALTIME */
    uint64_t last_seen_ns;
};

struct domains {
    struct domain_seen *seen;
    size_t count;
};

/* Enters who runs now. What cannot be asked or remembered is left out: it is an extra. */
void domains_update(struct domains *domains, struct xen_host *host, uint64_t now_ns);
void domains_done(struct domains *domains);
