/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Maps domain ids to domains for the time of a session. Records contain only ids, and a domain may
 * no longer exist when the trace is read. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/host/xenstore.h"

struct domain_names;

/* A domain under one name: when it is renamed, a new entry begins. */
struct domain_seen {
    struct xen_domain domain;
    uint64_t first_seen_ns; /* CLOCK_REALTIME */
    uint64_t
        last_seen_ns; /* when it was last seen, or once IS_GONE, when it was found to be gone */
    bool is_gone;     /* or renamed */
};

struct domains {
    struct domain_seen *seen;
    size_t count;
};

/*
 * Enters the domains that NAMES lists as running at NOW_NS: call domain_names_refresh() before, for
 * those of now. An entry without a name is given its name when that becomes known. Domains that are
 * not listed any more are gone. The oldest of these make room for new ones; an entry for which
 * there is no memory is left out.
 */
void domains_update(struct domains *domains, const struct domain_names *names, uint64_t now_ns);
void domains_done(struct domains *domains);
