// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A list that is brought up to date every few seconds. A domain that lives between two updates is
 * missed; one that is renamed (as a migration does at its end) has an entry for each name.
 */

#include "daemon/host/domains.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/host/domain-names.h"

#define MAX_SEEN 65536u /* over the time of a session */

static struct domain_seen *find(struct domains *domains, uint32_t domid, const char *name)
{
    for (size_t i = 0; i < domains->count; i++) {
        struct domain_seen *seen = &domains->seen[i];

        if (seen->domain.domid == domid && strcmp(seen->domain.name, name) == 0)
            return seen;
    }
    return NULL;
}

static struct domain_seen *add(struct domains *domains, uint64_t now_ns)
{
    struct domain_seen *seen;

    if (domains->count == MAX_SEEN)
        return NULL;
    seen = reallocarray(domains->seen, domains->count + 1, sizeof(*seen));
    if (!seen)
        return NULL;
    domains->seen = seen;
    seen = &domains->seen[domains->count++];
    *seen = (struct domain_seen){.first_seen_ns = now_ns};
    return seen;
}

static void enter(struct domains *domains, const struct xen_domain *domain, uint64_t now_ns)
{
    struct domain_seen *seen = find(domains, domain->domid, domain->name);

    if (!seen)
        seen = find(domains, domain->domid, ""); /* its name has become known */
    if (!seen)
        seen = add(domains, now_ns);
    if (!seen)
        return;
    seen->domain = *domain;
    seen->last_seen_ns = now_ns;
}

void domains_update(struct domains *domains, const struct domain_names *names, uint64_t now_ns)
{
    const struct xen_domain *running;
    unsigned int n = domain_names_read(names, &running);

    for (unsigned int i = 0; i < n; i++)
        enter(domains, &running[i], now_ns);
}

void domains_done(struct domains *domains)
{
    free(domains->seen);
    *domains = (struct domains){0};
}
