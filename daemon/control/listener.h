/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The socket that clients connect to. Main thread, but for listener_restrict().
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

/* What the ACL says of a user, whatever groups it has. */
struct listener_user {
    uid_t uid;
    bool may_connect;
};

#define LISTENER_USERS_MAX 4096u /* a page of entries; an ACL has room for twice as many */

/*
 * Sets who may connect: USERS, in ascending order, as they say; then GROUPS. NULL: no groups. On a
 * file system without ACLs: all, or root alone if there are USERS or no groups. May wait for the
 * file system of PATH. Any thread.
 */
int listener_restrict(const char *path, const struct peer_groups *groups,
                      const struct listener_user *users, size_t nr_users, struct failure *failure);
