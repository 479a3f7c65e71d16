/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The socket that clients connect to. Main thread.
 */

#include "daemon/base/failure.h"

struct peer_groups;

/*
 * Listens at PATH, for root and GROUPS: the kernel refuses everybody else, by the socket's ACL, so
 * that they cost nobody anything. On a file system without ACLs everybody may connect, and peer.c
 * alone decides who is served. Replaces a socket that a dead daemon left; one that answers is an
 * error, and so is anything else there. On success *RET_FD is non-blocking and the caller's; it
 * unlinks PATH in the end.
 */
int listener_open(const char *path, const struct peer_groups *groups, int *ret_fd,
                  struct failure *failure);
