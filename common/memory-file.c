// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A stacked file system has a magic number of its own, and its mount may be in another namespace.
 * It passes FS_IOC_FIEMAP on to the file below it, which only file systems with extents on a device
 * answer: a file system that refuses it counts as memory. (fs/overlayfs/inode.c of Linux 6.1.)
 */

#include "common/memory-file.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

static bool has_extents(int fd)
{
    struct fiemap map = {.fm_length = FIEMAP_MAX_OFFSET}; /* only counts them */

    return ioctl(fd, FS_IOC_FIEMAP, &map) == 0;
}

bool memory_file_is(int fd)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return false;
    switch ((unsigned int)fs.f_type) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case HUGETLBFS_MAGIC:
        return true;
    case OVERLAYFS_SUPER_MAGIC:
    case ECRYPTFS_SUPER_MAGIC:
        return !has_extents(fd);
    default:
        return false;
    }
}
