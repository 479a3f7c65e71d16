/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The running domains and their names. Xen reports who runs, with one system call; the names are
 * xenstore's, which a worker reads, because a xenstored that hangs or does not run may keep it
 * waiting for ever. Therefore, nothing here waits, and a name may become known later than its
 * domain.
 *
 * Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/host/xenstore.h"

struct domain_names;
struct job;
struct sd_event;
struct workers;
struct xen_host;

/* XEN is borrowed. Nobody is known until domain_names_refresh(). -ENOMEM, -EAGAIN. */
int domain_names_new(struct sd_event *event, struct workers *workers, struct xen_host *xen,
                     struct domain_names **ret_names);

/*
 * Takes NULL; returns NULL. Does not wait for the worker, which keeps what it uses. Whoever uses
 * domain_names_send() must have been freed before.
 */
struct domain_names *domain_names_free(struct domain_names *names);

/*
 * Has CHANGED called whenever a name has become known or has changed, and whenever a UUID is known
 * that was not, of a domain that has come, and when a domain has gone. There is one listener;
 * USERDATA must outlive NAMES.
 */
void domain_names_listen(struct domain_names *names, void (*changed)(void *userdata),
                         void *userdata);

/*
 * Asks Xen who runs, and has the worker read the names. If it is reading already, it reads once
 * more afterwards, however often this was called. Where xenstored cannot be reached, it is asked
 * again every few seconds. A xenstored that does not answer for 5 s is reported in the log, once.
 */
void domain_names_refresh(struct domain_names *names);

/*
 * The domains that ran at the last refresh, by ascending ids; returns how many. A name that
 * xenstore does not have any more is kept for as long as the domain lives. *RET_DOMAINS is valid
 * until the event loop runs again or domain_names_refresh() is called.
 */
unsigned int domain_names_read(const struct domain_names *names,
                               const struct xen_domain **ret_domains);

/* "" if there is no such domain or its name is not known. As valid as domain_names_read()'s. */
const char *domain_names_of(const struct domain_names *names, uint32_t domid);

/* NULL if there is no such domain. As valid as domain_names_read()'s. */
const struct xen_domain *domain_names_find(const struct domain_names *names, uint32_t domid);

/* Whether xenstore has answered when it was asked last: without it, names are missing or old. */
bool domain_names_are_available(const struct domain_names *names);

/* Runs JOB on the worker that asks xenstore, after what it has to do already (worker_send()). */
void domain_names_send(struct domain_names *names, struct job *job);
