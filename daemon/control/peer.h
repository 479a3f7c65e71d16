/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The peer of a connection, as reported by the kernel (SO_PEERCRED, SO_PEERGROUPS), and its role.
 * Main thread.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/failure.h"
#include "daemon/base/requester.h"
#include "daemon/control/rights.h"

/* The groups that matter; a group that does not exist has no members. */
struct peer_groups {
    bool has_view_group; /* "xentrace" */
    gid_t view_gid;
    bool has_operate_group; /* control-group= */
    gid_t operate_gid;
};

struct peer {
    uid_t uid;
    pid_t pid; /* when it connected; 0: of another PID namespace */
    enum role role;
};

/* Looks the groups up. CONTROL_GROUP "" is none; one that does not exist is an error. */
int peer_groups_read(struct peer_groups *ret_groups, const char *control_group,
                     struct failure *failure);

/* Returns 0 or a negative errno; *RET_PEER is then nobody. */
int peer_read(int fd, const struct peer_groups *groups, struct peer *ret_peer);

#define PEER_COMM_MAX REQUESTER_COMM_MAX

/*
 * The name of the process that has PEER's PID now, as valid UTF-8 of PEER_COMM_MAX bytes at most;
 * "" if it cannot be read. For display only, because a process may choose any name. Returns COMM.
 */
const char *peer_read_comm(const struct peer *peer, char comm[static PEER_COMM_MAX]);

/* PEER as it asks for something now, with its comm. */
struct requester peer_requester(const struct peer *peer);
