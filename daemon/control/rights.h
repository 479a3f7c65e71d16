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

/* The rights. A call has several if they depend on its options. */
enum right {
    RIGHT_STATUS,
    RIGHT_TRIGGER,            /* fire a manual trigger */
    RIGHT_SNAPSHOT,           /* into the state directory */
    RIGHT_SNAPSHOT_LIVE,      /* of the newest records, into a pipe that the caller opened */
    RIGHT_SNAPSHOT_OUTPUT,    /* into an output that the caller opened */
    RIGHT_FILES,              /* list what is in the state directory */
    RIGHT_VACUUM,             /* remove what is old there */
    RIGHT_REMOVE,             /* remove something there by name */
    RIGHT_START_OUTPUT,       /* a capture into an output that the caller opened */
    RIGHT_START_STATE_DIR,    /* a capture into the state directory: segments, too */
    RIGHT_START_KEEP_ENABLED, /* a capture after which Xen continues to trace */
    RIGHT_START_BUFFER_PAGES, /* a capture that chooses the size of Xen's buffers, until a boot */
    RIGHT_STOP,               /* a capture: Stop */
    RIGHT_ABORT,              /* a capture: Abort */
    RIGHT_ROTATE,             /* a capture's segment */
    RIGHT_RELOAD,             /* the configuration */
    RIGHT_START_RECORDER,
    RIGHT_STOP_RECORDER,
};
#define RIGHTS 18u

/*
 * Checks whether ROLE has RIGHT. IS_OWN: for a capture that the same user started; ignored for
 * rights without an owner. Returns 0; or -EPERM and FAILURE, which names the required role.
 */
int rights_check(enum role role, enum right right, bool is_own, struct failure *failure);

const char *role_name(enum role role); /* "none", "view", "operate", "root" */
