/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A call of Start, read from its message. Main thread.
 */

#include "daemon/config.h"
#include "daemon/failure.h"
#include "daemon/session.h"

struct sd_bus_message;

/* Strings and descriptors are the message's. */
struct start_request {
    const char *name; /* "": to be made up */
    struct session_options options;
    int discard, keep_enabled, start_disabled; /* D-Bus booleans are ints: copied to the options */
    int attached;                              /* the session ends when the client goes */
};

/* What is not said is as CONFIG says. Any error sets FAILURE. */
int start_request_read(struct sd_bus_message *call, const struct config *config,
                       struct start_request *ret_request, struct failure *failure);
