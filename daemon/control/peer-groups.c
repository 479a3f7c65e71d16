// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/control/peer-groups.h"

#include <errno.h>
#include <grp.h>

#include "common/protocol.h"
#include "daemon/host/view-group.h"

static bool find_group(const char *name, gid_t *ret_gid)
{
    const struct group *group = getgrnam(name); /* one thread asks, at start */

    if (group)
        *ret_gid = group->gr_gid;
    return group;
}

int peer_groups_read(struct peer_groups *ret_groups, const char *control_group,
                     struct failure *failure)
{
    struct peer_groups groups = {0};

    groups.has_view_group = find_group(VIEW_GROUP, &groups.view_gid);
    groups.has_operate_group = control_group[0] && find_group(control_group, &groups.operate_gid);
    if (control_group[0] && !groups.has_operate_group)
        return failure_set(failure, -ENOENT, ERROR_CONFIG,
                           "control-group=%s: this group does not exist. Create it (groupadd "
                           "--system %s) or remove the key.",
                           control_group, control_group);
    *ret_groups = groups;
    return 0;
}

bool peer_groups_have(const struct peer_groups *groups, gid_t gid)
{
    return (groups->has_view_group && gid == groups->view_gid) ||
           (groups->has_operate_group && gid == groups->operate_gid);
}
