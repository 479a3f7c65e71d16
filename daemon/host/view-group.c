// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/host/view-group.h"

#include <errno.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

int view_group_own_files(void)
{
    const struct group *group = getgrnam(VIEW_GROUP); /* one thread asks, at start */

    (void)umask(0027); /* whatever started us: 0640 is meant where it is said */
    if (!group || getegid() == group->gr_gid)
        return 0;
    return setegid(group->gr_gid) < 0 ? -errno : 0;
}
