/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The domains that there are, and who watches them come and go: what xenstored knows of
 * @introduceDomain and @releaseDomain. Results are 0 or a negative errno. Any process of the run.
 */

#include "sim.h"

struct domains_event {
    char path[32];
    char token[SIM_TOKEN_BYTES];
};

/* The domains when the run begins: 0 to 2. */
void domains_init(struct sim *sim);

/* Copies the table, in the order of ids; how many there are. */
uint32_t domains_list(struct sim *sim, struct sim_domain ret_domains[static SIM_MAX_DOMAINS]);

/* -EEXIST, -ENOSPC, -ENAMETOOLONG. Fires @introduceDomain. */
int domains_add(struct sim *sim, uint32_t domid, const char *name);

/* The domain shuts down, for a SHUTDOWN_* reason. -ESRCH, -EALREADY. Fires @releaseDomain. */
int domains_shut_down(struct sim *sim, uint32_t domid, uint32_t reason);

/* It is destroyed. -ESRCH. Fires @releaseDomain. */
int domains_remove(struct sim *sim, uint32_t domid);

/* Xenstored hangs no longer: what it has not fired meanwhile, it fires now. */
void domains_fire_held(struct sim *sim);

/* A connection on which events come: its descriptor, and its number. */
int domains_connect(struct sim *sim, uint32_t *ret_connection);

/* Events of PATH come on CONNECTION, one at once. -EEXIST: it has the same. */
int domains_watch(struct sim *sim, uint32_t connection, const char *path, const char *token);

/* -ENOENT. What has fired stays. */
int domains_unwatch(struct sim *sim, uint32_t connection, const char *path, const char *token);

/*
 * For MSEC, the first vCPU of DOMID is to wait for its CPU, where two of BY run instead: `sched`
 * does it. -ESRCH; -EINVAL: they are the same.
 */
int domains_starve(struct sim *sim, uint32_t domid, uint32_t by, uint32_t msec);
