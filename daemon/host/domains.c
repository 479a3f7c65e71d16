// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A list that is looked at every few seconds. A domain that lives between two looks is missed; one
 * that is renamed (as a migration does at its end) has an entry for each name.
 */

#include "daemon/host/domains.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define MAX_DOMAINS 1024u  /* running at once */
#define MAX_SEEN    65536u /* over the time of a session */

static struct domain_seen *find(struct domains *domains, const struct xen_domain *domain)
{
    for (size_t i = 0; i < domains->count; i++) {
        struct domain_seen *seen = &domains->seen[i];

        if (seen->domain.domid == domain->domid && strcmp(seen->domain.name, domain->name) == 0)
            return seen;
    }
    return NULL;
}

static void enter(struct domains *domains, const struct xen_domain *domain, uint64_t now_ns)
{
    struct domain_seen *seen = find(domains, domain);

    if (!seen) {
        if (domains->count == MAX_SEEN)
            return;
        seen = reallocarray(domains->seen, domains->count + 1, sizeof(*seen));
        if (!seen)
            return;
        domains->seen = seen;
        seen = &domains->seen[domains->count++];
        *seen = (struct domain_seen){.domain = *domain, .first_seen_ns = now_ns};
    }
    seen->last_seen_ns = now_ns;
}

void domains_update(struct domains *domains, struct xen_host *host, uint64_t now_ns)
{
    struct xen_domain *running = calloc(MAX_DOMAINS, sizeof(*running));
    int n;

    if (!running)
        return;
    n = xen_host_list_domains(host, running, MAX_DOMAINS);
    for (int i = 0; i < n; i++)
        enter(domains, &running[i], now_ns);
    free(running);
}

void domains_done(struct domains *domains)
{
    free(domains->seen);
    *domains = (struct domains){0};
}
