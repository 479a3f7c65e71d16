/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The domains for which a trigger fires: those that match domain=, except those that are
 * temporarily muted. Passes them to the trigger's watch, if there is one. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/host/domain-names.h"
#include "daemon/triggers/trigger.h"

#define DOMAIN_FILTER_MUTED_MAX 32u
#define DOMAIN_FILTER_NO_TIME   UINT64_MAX

struct watch_set;

struct domain_filter {
    const char *pattern;   /* domain=, borrowed; "": all */
    struct watch_set *set; /* borrowed; NULL: there is no watch */
    size_t watch;          /* in it: one that tells domains apart */
    struct {
        uint32_t domid;
        uint64_t end_usec;
    } muted[DOMAIN_FILTER_MUTED_MAX];
    size_t nr_muted;
};

/* Whether PATTERN means DOMAIN: its UUID, its name, or a glob(7) of its name; "": any. */
bool domain_matches(const char *pattern, const struct xen_domain *domain);

/*
 * Whose budget it is: DOMAIN's. All domains without a UUID and a name share one: a number would be a
 * new domain after each restart.
 */
struct trigger_domain domain_of(const struct xen_domain *domain);

/* Domains have come, or names have become known: the watch learns who is meant. */
void domain_filter_update(struct domain_filter *filter, const struct domain_names *names);

/*
 * The watch does not come true for DOMID until END_USEC. Returns false if there is no watch, or too
 * many are muted.
 */
bool domain_filter_mute(struct domain_filter *filter, uint32_t domid, uint64_t end_usec);

/* Time has passed. Returns when this wants to be called next; DOMAIN_FILTER_NO_TIME: not yet. */
uint64_t domain_filter_advance(struct domain_filter *filter, const struct domain_names *names,
                               uint64_t now_usec);
