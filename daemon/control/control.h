/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The control socket: D-Bus messages from clients, without a bus daemon. docs/control-protocol.md.
 * Main thread.
 */

#include "daemon/base/failure.h"

struct control;
struct manager;

/*
 * Listens on the manager's socket path. A socket that a dead daemon left is replaced; one that
 * answers is an error, as FAILURE says. MANAGER is borrowed, and reports its sessions' changes
 * here.
 */
int control_new(struct manager *manager, struct control **ret_control, struct failure *failure);
/* Disconnects everybody. */
struct control *control_free(struct control *control);
