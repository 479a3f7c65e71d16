// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace/domains.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

static void domains_freep(struct domains **domains)
{
    domains_free(*domains);
}

static int compare(const void *a, const void *b)
{
    const struct domain *x = a, *y = b;

    return (x->domid > y->domid) - (x->domid < y->domid);
}

struct domain *domains_find(struct domains *domains, uint32_t domid)
{
    const struct domain key = {.domid = domid};

    return bsearch(&key, domains->list, domains->nr, sizeof(key), compare);
}

/* An entry for each domain that has a vCPU. */
static int find_domains(struct domains *domains, const struct measures *measures)
{
    unsigned int nr_vcpus = measures->state.nr_vcpus;
    size_t nr = 0;

    domains->list = calloc(nr_vcpus + 1, sizeof(*domains->list));
    if (!domains->list)
        return -ENOMEM;
    for (unsigned int i = 0; i < nr_vcpus; i++) {
        uint32_t domid = measures->state.vcpus[i]->key >> 16;

        if (domid != STATE_DOMAIN_IDLE && domid != STATE_DOMAIN_DEFAULT &&
            measures_shows_vcpu(measures, measures->state.vcpus[i]))
            domains->list[nr++].domid = domid;
    }
    qsort(domains->list, nr, sizeof(*domains->list), compare);
    for (size_t i = 0; i < nr; i++)
        if (domains->nr == 0 || domains->list[domains->nr - 1].domid != domains->list[i].domid)
            domains->list[domains->nr++] = domains->list[i];
    return 0;
}

static int domain_add(struct domain *domain, const struct state_vcpu *vcpu,
                      struct sample_budget *budget)
{
    struct measures_vcpu *measured = measures_of(vcpu);
    int r = 0;

    domain->nr_vcpus++;
    for (unsigned int i = 0; i < STATE_RUNSTATES; i++)
        domain->cycles[i] += vcpu->cycles[i];
    domain->switches_in += vcpu->switches_in;
    domain->migrations += vcpu->migrations;
    if (!measured)
        return 0;
    domain->wakes += measured->waits[STATE_WAKE].count;
    for (unsigned int i = 0; i < STATE_WAITS && r == 0; i++)
        r = sample_move(&domain->waits, budget, &measured->waits[i]);
    return r;
}

static void add_exits(struct domains *domains, const struct measures *measures)
{
    size_t nr = 0;
    struct tally *tallies = measures_tallies(measures, TALLY_EXIT, &nr);

    for (size_t i = 0; tallies && i < nr; i++) {
        struct domain *domain = domains_find(domains, tallies[i].who >> 16);

        if (domain)
            domain->exits += tallies[i].count;
    }
    free(tallies);
}

int domains_new(struct measures *measures, struct domains **ret_domains)
{
    _cleanup_(domains_freep) struct domains *domains = calloc(1, sizeof(*domains));
    int r;

    if (!domains)
        return -ENOMEM;
    r = find_domains(domains, measures);
    for (unsigned int i = 0; i < measures->state.nr_vcpus && r == 0; i++) {
        const struct state_vcpu *vcpu = measures->state.vcpus[i];
        struct domain *domain = domains_find(domains, vcpu->key >> 16);

        if (domain && measures_shows_vcpu(measures, vcpu))
            r = domain_add(domain, vcpu, &measures->budget);
    }
    if (r < 0)
        return r;
    add_exits(domains, measures);
    *ret_domains = TAKE_PTR(domains);
    return 0;
}

struct domains *domains_free(struct domains *domains)
{
    if (!domains)
        return NULL;
    for (size_t i = 0; i < domains->nr; i++)
        sample_done(&domains->list[i].waits);
    free(domains->list);
    free(domains);
    return NULL;
}
