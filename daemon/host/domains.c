// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The list is updated when domains are created, destroyed or renamed, and also every few seconds,
 * in case xenstore does not report it. A domain is identified by its id and its UUID, because ids
 * are reused.
 */

#include "daemon/host/domains.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/host/domain-names.h"

#define FIRST_SEEN 16u
#define MAX_SEEN   16384u /* over the time of a session; 2 MB */

static bool is_same(const struct xen_domain *a, const struct xen_domain *b)
{
    return a->domid == b->domid && memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0;
}

static bool is_listed(const struct xen_domain *domain, const struct xen_domain *running,
                      unsigned int n)
{
    for (unsigned int i = 0; i < n; i++)
        if (is_same(&running[i], domain))
            return true;
    return false;
}

/* The entry of a domain that is not gone. */
static struct domain_seen *find(struct domains *domains, const struct xen_domain *domain)
{
    for (size_t i = domains->count; i-- > 0;) { /* the newest are last */
        struct domain_seen *seen = &domains->seen[i];

        if (!seen->is_gone && is_same(&seen->domain, domain))
            return seen;
    }
    return NULL;
}

static void forget_oldest(struct domains *domains)
{
    size_t i = 0;

    while (i < domains->count && !domains->seen[i].is_gone)
        i++;
    if (i == domains->count)
        return;
    domains->count--;
    memmove(&domains->seen[i], &domains->seen[i + 1],
            (domains->count - i) * sizeof(domains->seen[0]));
}

/* Room for one more: doubled at powers of two. */
static bool make_room(struct domains *domains)
{
    size_t count = domains->count;
    struct domain_seen *seen;

    if (count > 0 && (count < FIRST_SEEN || (count & (count - 1)) != 0))
        return true;
    seen = reallocarray(domains->seen, count > 0 ? 2 * count : FIRST_SEEN, sizeof(*seen));
    if (!seen)
        return false;
    domains->seen = seen;
    return true;
}

static struct domain_seen *add(struct domains *domains, uint64_t now_ns)
{
    struct domain_seen *seen;

    if (domains->count == MAX_SEEN)
        forget_oldest(domains);
    if (domains->count == MAX_SEEN)
        return NULL;
    if (!make_room(domains))
        return NULL;
    seen = &domains->seen[domains->count++];
    *seen = (struct domain_seen){.first_seen_ns = now_ns};
    return seen;
}

static void leave(struct domain_seen *seen, uint64_t now_ns)
{
    seen->is_gone = true;
    seen->last_seen_ns = now_ns;
}

static void enter(struct domains *domains, const struct xen_domain *domain, uint64_t now_ns)
{
    struct domain_seen *seen = find(domains, domain);

    if (seen && seen->domain.name[0] && strcmp(seen->domain.name, domain->name) != 0) {
        leave(seen, now_ns);
        seen = NULL;
    }
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

    for (size_t i = 0; i < domains->count; i++)
        if (!domains->seen[i].is_gone && !is_listed(&domains->seen[i].domain, running, n))
            leave(&domains->seen[i], now_ns);
    for (unsigned int i = 0; i < n; i++)
        enter(domains, &running[i], now_ns);
}

void domains_done(struct domains *domains)
{
    free(domains->seen);
    *domains = (struct domains){0};
}
