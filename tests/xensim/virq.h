/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * VIRQ_TBUF and the /dev/xen/evtchn that delivers it. A handle is a FIFO of the run's directory: a
 * descriptor open for reading *is* the handle, so it may be kept, passed and inherited, and the
 * binding lives as long as anybody holds it, as with the real device.
 */

#include "sim.h"

/* Opens a handle: its descriptor. FLAGS: O_CLOEXEC or 0. Negative errno. */
int virq_open_handle(struct sim *sim, int flags);

/* Number of the handle that FD belongs to, -EBADF if it is none. */
int virq_handle_of_fd(const struct sim *sim, int fd);

/* Binds VIRQ_TBUF. The port, or -EEXIST, -EBUSY. */
int virq_bind(struct sim *sim, int handle);

/* Does anybody who is alive hold VIRQ_TBUF? */
bool virq_is_bound(const struct sim *sim);

int virq_unbind(struct sim *sim, int handle, uint32_t port);

/* read(2) of one event of FD: the port, or -EAGAIN and what else read(2) returns. */
int virq_read(struct sim *sim, int handle, int fd);

/* Lets the port fire again; at once if it was raised meanwhile. */
int virq_unmask(struct sim *sim, int handle, uint32_t port);

/* A holder notifies: without effect on a VIRQ. -ENOTCONN: the port is not this handle's. */
int virq_notify(const struct sim *sim, int handle, uint32_t port);

/* The hypervisor sends VIRQ_TBUF, and waits for nobody. Not for threads that die of SIGPIPE. */
void virq_raise(struct sim *sim);
