/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The socket that clients connect to. Main thread, but for listener_restrict().
 */

#include "daemon/base/failure.h"

struct peer_groups;

/*
 * Listens at PATH, for root and GROUPS. The ACL of the socket makes the kernel refuse all other
 * users, so that they use no resources. On a file system without ACLs, all users may connect, and
 * only peer.c decides who is served. Replaces the socket of a daemon that has ended; a socket that
 * answers, or any other file, is an error. On success, *RET_FD is non-blocking and owned by the
 * caller, which also unlinks PATH in the end.
 */
int listener_open(const char *path, const struct peer_groups *groups, int *ret_fd,
                  struct failure *failure);

/* GROUPS are others now: may wait for the file system of PATH. Any thread. */
int listener_restrict(const char *path, const struct peer_groups *groups, struct failure *failure);
