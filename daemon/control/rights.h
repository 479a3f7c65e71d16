/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who may do what: one table of calls and roles, which xentraced(8) shows under PERMISSIONS.
 * A caller's role is that of its connection (peer.h). Main thread.
 */

#include <stdbool.h>

#include "daemon/base/failure.h"

enum role {
    ROLE_NONE,    /* not served */
    ROLE_VIEW,    /* group xentrace */
    ROLE_OPERATE, /* group of control-group= */
    ROLE_ROOT,
};
#define ROLES 4u

/* What can be asked for. A call whose options matter is several of them. */
enum right {
    RIGHT_STATUS,
    RIGHT_TRIGGER,         /* fire a manual trigger */
    RIGHT_SNAPSHOT,        /* into the state directory */
    RIGHT_SNAPSHOT_LIVE,   /* of the newest records, into a pipe that the caller opened */
    RIGHT_SNAPSHOT_OUTPUT, /* into an output that the caller opened */
    RIGHT_FILES,           /* list what is in the state directory */
    RIGHT_VACUUM,          /* remove what is old there */
    RIGHT_REMOVE,          /* remove something there by name */
    RIGHT_START_OUTPUT,    /* a capture into an output that the caller opened */
    RIGHT_START_STATE_DIR, /* a capture into the state directory: segments, too */
    RIGHT_STOP,            /* a capture: Stop */
    RIGHT_ABORT,           /* a capture: Abort */
    RIGHT_ROTATE,          /* a capture's segment */
    RIGHT_RELOAD,          /* the configuration */
    RIGHT_START_RECORDER,
    RIGHT_STOP_RECORDER,
};
#define RIGHTS 16u

/*
 * Whether ROLE may do it. IS_OWN: to a capture that the same user started; it makes no difference
 * where nobody owns anything. Returns 0, or -EPERM and FAILURE, whose sentence names the role that
 * may.
 */
int rights_check(enum role role, enum right right, bool is_own, struct failure *failure);

/* How many descriptors one message of such a client may carry. */
unsigned int rights_max_descriptors(enum role role);

const char *role_name(enum role role); /* "none", "view", "operate", "root" */
