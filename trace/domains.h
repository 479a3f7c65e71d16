/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The measures of each domain: the sums over those of its vCPUs that are shown. The idle domain and
 * the default domain are none. One thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "trace/measures.h"

struct domain {
    uint32_t domid;
    unsigned int nr_vcpus;
    uint64_t cycles[STATE_RUNSTATES];
    uint64_t wakes; /* waits after a wake-up */
    uint64_t switches_in;
    uint64_t migrations;
    uint64_t exits;      /* 0 without DETAILS_EXITS */
    struct sample waits; /* of all kinds; empty without MEASURES_WAITS */
};

struct domains {
    struct domain *list; /* [nr], by domid */
    size_t nr;
};

/*
 * The samples of waits are moved from the vCPUs of MEASURES to their domains, so that they are in
 * memory only once: the vCPUs' are empty afterwards. 0 or -ENOMEM.
 */
int domains_new(struct measures *measures, struct domains **ret_domains);
/* Takes NULL; returns NULL. */
struct domains *domains_free(struct domains *domains);

/* NULL: it has no vCPU. */
struct domain *domains_find(struct domains *domains, uint32_t domid);
