// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A watch has a bit for each domain id, but domain= is about names and UUIDs: so the bits follow
 * the list of domains.
 */

#include "daemon/triggers/domain-filter.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "collector/watch.h"
#include "common/util.h"

#define UUID_TEXT_BYTES 37u
#define UNKNOWN_DOMAIN  "(unknown)"

/* As `xl list -v` shows it. */
static const char *format_uuid(char text[static UUID_TEXT_BYTES],
                               const uint8_t uuid[static DOMAIN_UUID_BYTES])
{
    size_t length = 0;

    for (size_t i = 0; i < DOMAIN_UUID_BYTES; i++)
        length += (size_t)snprintf(text + length, UUID_TEXT_BYTES - length, "%s%02x",
                                   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    return text;
}

static bool has_uuid(const struct xen_domain *domain)
{
    static const uint8_t none[DOMAIN_UUID_BYTES];

    return memcmp(domain->uuid, none, sizeof(none)) != 0;
}

bool domain_matches(const char *pattern, const struct xen_domain *domain)
{
    char uuid[UUID_TEXT_BYTES];

    if (!pattern[0])
        return true;
    if (has_uuid(domain) && strcasecmp(pattern, format_uuid(uuid, domain->uuid)) == 0)
        return true;
    return domain->name[0] && fnmatch(pattern, domain->name, 0) == 0;
}

struct trigger_domain domain_of(const struct xen_domain *domain)
{
    struct trigger_domain of = {0};

    if (has_uuid(domain))
        (void)format_uuid(of.uuid, domain->uuid);
    if (domain->name[0])
        (void)snprintf(of.name, sizeof(of.name), "%s", domain->name);
    else if (!of.uuid[0])
        (void)snprintf(of.name, sizeof(of.name), UNKNOWN_DOMAIN);
    return of;
}

static bool filter_has_muted(const struct domain_filter *filter, uint32_t domid)
{
    for (size_t i = 0; i < filter->nr_muted; i++)
        if (filter->muted[i].domid == domid)
            return true;
    return false;
}

/* Of domains that are gone nothing comes; ids are not used again soon. */
void domain_filter_update(struct domain_filter *filter, const struct domain_names *names)
{
    const struct xen_domain *domains;
    unsigned int n;

    if (!filter->set || !filter->pattern[0])
        return; /* all are wanted, but for the muted ones */
    n = domain_names_read(names, &domains);
    for (unsigned int i = 0; i < n; i++)
        watch_want_domain(filter->set, filter->watch, domains[i].domid,
                          domain_matches(filter->pattern, &domains[i]) &&
                              !filter_has_muted(filter, domains[i].domid));
}

bool domain_filter_mute(struct domain_filter *filter, uint32_t domid, uint64_t end_usec)
{
    if (!filter->set || filter->nr_muted == DOMAIN_FILTER_MUTED_MAX)
        return false;
    filter->muted[filter->nr_muted].domid = domid;
    filter->muted[filter->nr_muted++].end_usec = end_usec;
    watch_want_domain(filter->set, filter->watch, domid, false);
    return true;
}

/* It was wanted when it was muted. */
static void filter_unmute(struct domain_filter *filter, size_t i, const struct domain_names *names)
{
    uint32_t domid = filter->muted[i].domid;
    const struct xen_domain *domain;

    filter->muted[i] = filter->muted[--filter->nr_muted];
    domain = filter->pattern[0] ? domain_names_find(names, domid) : NULL;
    if (!filter->pattern[0] || (domain && domain_matches(filter->pattern, domain)))
        watch_want_domain(filter->set, filter->watch, domid, true);
}

uint64_t domain_filter_advance(struct domain_filter *filter, const struct domain_names *names,
                               uint64_t now_usec)
{
    uint64_t next_usec = DOMAIN_FILTER_NO_TIME;

    for (size_t i = filter->nr_muted; i-- > 0;)
        if (filter->muted[i].end_usec <= now_usec)
            filter_unmute(filter, i, names);
    for (size_t i = 0; i < filter->nr_muted; i++)
        next_usec = min_u64(next_usec, filter->muted[i].end_usec);
    return next_usec;
}
