// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rename(2) with RENAME_NOREPLACE where the file system has it. Where it has not, link(2) fails
 * just as surely if the name is in use, and the old name goes afterwards: a crash in between leaves
 * two names of a complete file, and the hidden one is swept. File systems without links (FAT) have
 * neither; there the name is looked for a moment before.
 */

#include "daemon/output/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int place_by_link(int directory_fd, const char *hidden, const char *name)
{
    if (linkat(directory_fd, hidden, directory_fd, name, 0) < 0)
        return -errno;
    (void)unlinkat(directory_fd, hidden, 0); /* swept at the next start if it stays */
    return 0;
}

static int place_by_rename(int directory_fd, const char *hidden, const char *name)
{
    if (faccessat(directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(directory_fd, hidden, directory_fd, name) < 0 ? -errno : 0;
}

int place_file(int directory_fd, const char *hidden, const char *name)
{
    int r;

    if (renameat2(directory_fd, hidden, directory_fd, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    r = place_by_link(directory_fd, hidden, name);
    if (r != -EPERM && r != -EOPNOTSUPP && r != -ENOSYS)
        return r;
    return place_by_rename(directory_fd, hidden, name);
}
