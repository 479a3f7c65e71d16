/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The control socket: Varlink calls from clients. docs/control-protocol.md.
 * Main thread.
 */

#include "daemon/base/failure.h"

struct config_source;
struct control;
struct manager;
struct signalfd_siginfo;

/*
 * Listens on the manager's socket path. A socket that a dead daemon left is replaced; one that
 * answers is an error, as FAILURE says. MANAGER is borrowed, and reports its sessions' changes
 * here. SOURCE, borrowed too, is what a reload reads.
 */
int control_new(struct manager *manager, const struct config_source *source,
                struct control **ret_control, struct failure *failure);

/*
 * The sender of SIGNAL wants the configuration to be read again, or a snapshot of all that the
 * recorder holds. Who that is, and how it went, is in the audit trail.
 */
void control_reload(struct control *control, const struct signalfd_siginfo *signal);
void control_take_snapshot(struct control *control, const struct signalfd_siginfo *signal);

/* Disconnects everybody. */
struct control *control_free(struct control *control);
