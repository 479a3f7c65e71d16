/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reloads the configuration while the daemon is running: applies all changes that a reload may
 * make, or none if a file has an error. On a worker, files are read, groups are looked up, and the
 * ACL of the control socket is set. Main thread.
 */

#include "daemon/base/failure.h"
#include "daemon/control/peer.h"

struct config_source;
struct json_object;
struct manager;
struct reload;

struct reload_result {
    unsigned int number; /* of the reading: reload_request() */
    /* What has changed, borrowed (control-protocol.md); NULL: nothing, and FAILURE says why. */
    struct json_object *document;
    const struct failure *failure;
    const struct peer_groups *groups; /* as control-group= now says; if it was not refused */
};

/* SOURCE and MANAGER are borrowed. DONE is called from the event loop after each reading. -ENOMEM.
 */
int reload_new(struct manager *manager, const struct config_source *source,
               void (*done)(void *userdata, const struct reload_result *result), void *userdata,
               struct reload **ret_reload);
/* A reading that has begun is abandoned. Takes NULL; returns NULL. */
struct reload *reload_free(struct reload *reload);

/*
 * Starts a reading of the files. Returns the number of the reading that DONE will report, which is
 * never one that began earlier.
 */
unsigned int reload_request(struct reload *reload);
