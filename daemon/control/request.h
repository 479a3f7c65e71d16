/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The calls that have options, read from their messages. Main thread.
 */

#include "daemon/config/config.h"
#include "daemon/base/failure.h"
#include "daemon/session/session.h"
#include "daemon/session/snapshot.h"

struct sd_bus_message;

/* Strings are the message's, and so are descriptors, which are stand-ins (passed.h). */
struct start_request {
    const char *name; /* "": to be made up */
    struct session_options options;
    int discard, keep_enabled, start_disabled; /* D-Bus booleans are ints: copied to the options */
    int persist;
    int attached;     /* the session ends when the client goes */
    bool has_options; /* any, whatever their values */
};

/* Vacuum's: what is not given is not limited; without any limit: as the configuration says. */
struct clean_request {
    struct disk_limits limits;
    bool dry_run;
};

/* Likewise. */
struct snapshot_request {
    const char *session; /* "": manager_find_ring() decides */
    struct snapshot_options options;
};

/* What is not said is as CONFIG says. Any error sets FAILURE; the request has the descriptors that
 * were read until then. */
int request_read_start(struct sd_bus_message *call, const struct config *config,
                       struct start_request *ret_request, struct failure *failure);
int request_read_clean(struct sd_bus_message *call, const struct config *config,
                       struct clean_request *ret_request, struct failure *failure);
int request_read_snapshot(struct sd_bus_message *call, const struct config *config,
                          struct snapshot_request *ret_request, struct failure *failure);
