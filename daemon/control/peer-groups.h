/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The groups whose members have access. */

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/failure.h"

/* The groups that matter; a group that does not exist has no members. */
struct peer_groups {
    bool has_view_group; /* "xentrace" */
    gid_t view_gid;
    bool has_operate_group; /* control-group= */
    gid_t operate_gid;
};

/* Looks the groups up. CONTROL_GROUP "" is none; one that does not exist is an error. */
int peer_groups_read(struct peer_groups *ret_groups, const char *control_group,
                     struct failure *failure);

/* Whether the members of group GID have access. */
bool peer_groups_have(const struct peer_groups *groups, gid_t gid);
