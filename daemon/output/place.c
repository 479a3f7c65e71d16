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
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/output/disk-call.h"

static int place_by_link(int directory_fd, const char *hidden, const char *name)
{
    if (linkat(directory_fd, hidden, directory_fd, name, 0) < 0)
        return -errno;
    (void)DISK_CALL(unlinkat(directory_fd, hidden, 0)); /* swept at the next start if it stays */
    return 0;
}

static int place_by_rename(int directory_fd, const char *hidden, const char *name)
{
    if (faccessat(directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(directory_fd, hidden, directory_fd, name) < 0 ? -errno : 0;
}

static int place_once(int directory_fd, const char *hidden, const char *name)
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

/*
 * Whether NAME is the file of ST: an attempt that was reported as failed may have been carried out,
 * and a crash may have left the second name of a link.
 */
static bool is_placed(int directory_fd, const char *name, const struct stat *st)
{
    struct stat now;

    return DISK_CALL(fstatat(directory_fd, name, &now, AT_SYMLINK_NOFOLLOW)) == 0 &&
           now.st_dev == st->st_dev && now.st_ino == st->st_ino;
}

int place_file(int directory_fd, const char *hidden, const char *name)
{
    unsigned int tries = 0;
    struct stat st;
    int r;

    r = DISK_CALL(fstatat(directory_fd, hidden, &st, AT_SYMLINK_NOFOLLOW));
    if (r < 0)
        return r;
    do
        r = place_once(directory_fd, hidden, name);
    while (disk_call_again(&tries, r));
    if (r >= 0 || !is_placed(directory_fd, name, &st))
        return r;
    (void)DISK_CALL(unlinkat(directory_fd, hidden, 0)); /* there may be none any more */
    return 0;
}
