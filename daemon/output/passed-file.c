// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A server of a FUSE file system that never answers would hold the worker for good, and with it one
 * of the few captures that there may be. So the type is read with AT_STATX_DONT_SYNC, for which no
 * server is asked, and the device is looked up among the mounts before the file system is asked
 * anything. A mount in a namespace that we do not see is found by fstatfs(2): the kernel does not
 * ask a server for a process that its files are not for, and other mounts there are root's.
 *
 * Sources: statx(2), fstatfs(2), proc(5) for mountinfo, fs/fuse/dir.c and inode.c of Linux 6.1.
 */

#include "daemon/output/passed-file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "common/memory-file.h"
#include "common/protocol.h"

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546 /* <linux/magic.h>, since 5.10 */
#endif

#define NULL_MAJOR 1u /* /dev/null: Linux' Documentation/admin-guide/devices.txt */
#define NULL_MINOR 3u

/* What is being checked. */
struct passed_file {
    int fd;
    bool is_sidecar;
    bool by_root;
    const char *name; /* for people */
    struct statx status;
};

static const char *name_for_people(const char *path)
{
    return strcmp(path, "-") == 0 ? "Standard output" : path;
}

static const char *accepted_files(const struct passed_file *file)
{
    if (file->is_sidecar)
        return "A sidecar must be a regular file.";
    if (file->by_root)
        return "The output must be a regular file, a pipe or a block device.";
    return "The output must be a regular file or a pipe (for root, also a block device).";
}

static int refuse(const struct passed_file *file, int error, const char *what,
                  struct failure *failure)
{
    return failure_set(failure, error, ERROR_OUTPUT, "%s%s is %s. %s",
                       file->is_sidecar ? "The sidecar " : "", file->name, what,
                       accepted_files(file));
}

static const char *describe_type(const struct passed_file *file)
{
    switch (file->status.stx_mode & S_IFMT) {
    case S_IFREG:
        return "a regular file";
    case S_IFIFO:
        return "a pipe";
    case S_IFSOCK:
        return "a socket";
    case S_IFDIR:
        return "a directory";
    case S_IFBLK:
        return "a block device";
    case S_IFCHR:
        return isatty(file->fd) ? "a terminal" : "a character device";
    default:
        return "not a file";
    }
}

/* Also of a descriptor that was opened with O_PATH, or with neither right (access mode 3). */
static int check_access_mode(const struct passed_file *file, struct failure *failure)
{
    int flags = fcntl(file->fd, F_GETFL);

    if (flags < 0)
        return failure_set(failure, -errno, ERROR_OUTPUT, "%s cannot be examined: %s.", file->name,
                           strerror(errno));
    if (!(flags & O_PATH) && ((flags & O_ACCMODE) == O_WRONLY || (flags & O_ACCMODE) == O_RDWR))
        return 0;
    return refuse(file, -EBADF, "not open for writing", failure);
}

static int read_status(struct passed_file *file, struct failure *failure)
{
    if (statx(file->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &file->status) == 0)
        return 0;
    return failure_set(failure, -errno, ERROR_OUTPUT, "%s cannot be examined: %s. %s", file->name,
                       strerror(errno), accepted_files(file));
}

static bool is_null_device(const struct passed_file *file)
{
    return S_ISCHR(file->status.stx_mode) && file->status.stx_rdev_major == NULL_MAJOR &&
           file->status.stx_rdev_minor == NULL_MINOR;
}

/* --- File systems. --- */

static bool is_mount_of(const char *line, const struct statx *status)
{
    unsigned int major, minor;

    return sscanf(line, "%*u %*u %u:%u", &major, &minor) == 2 && major == status->stx_dev_major &&
           minor == status->stx_dev_minor;
}

/* Whether the file system with that device is FUSE: 1 or 0; -ENOENT: we do not see its mount. */
static int find_fuse_mount(const struct statx *status)
{
    _cleanup_file_ FILE *mounts = fopen("/proc/self/mountinfo", "re");
    _cleanup_free_ char *line = NULL;
    size_t bytes = 0;

    while (mounts && getline(&line, &bytes, mounts) > 0) {
        const char *type = strstr(line, " - "); /* after fields whose number varies */

        if (type && is_mount_of(line, status))
            return strncmp(type + 3, "fuse", 4) == 0;
    }
    return -ENOENT;
}

static bool has_content(const struct statx *status)
{
    return S_ISREG(status->stx_mode) || S_ISDIR(status->stx_mode);
}

bool passed_file_is_on_fuse(int fd)
{
    struct statx status;
    struct statfs fs;
    int r;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) < 0)
        return errno == EACCES; /* it shows its files to nobody but the user who mounted it */
    if (!has_content(&status))
        return false; /* a FIFO is the kernel's, wherever its name is */
    r = find_fuse_mount(&status);
    return r >= 0 ? r : fstatfs(fd, &fs) == 0 && fs.f_type == FUSE_SUPER_MAGIC;
}

static int refuse_mount(const char *before, const char *name, struct failure *failure)
{
    return failure_set(failure, -EPERM, ERROR_OUTPUT,
                       "%s%s is on a FUSE file system, which may never answer: only root may write "
                       "to one. Choose a directory on a disk, or write to a pipe (-o -).",
                       before, name);
}

int passed_file_check_mount(int fd, const char *name, struct failure *failure)
{
    return passed_file_is_on_fuse(fd) ? refuse_mount("", name_for_people(name), failure) : 0;
}

static int check_mount(const struct passed_file *file, struct failure *failure)
{
    if (file->by_root || !passed_file_is_on_fuse(file->fd))
        return 0;
    return refuse_mount(file->is_sidecar ? "The sidecar " : "", file->name, failure);
}

static int check_file_system(const struct passed_file *file, struct failure *failure)
{
    struct statfs fs;

    if (fstatfs(file->fd, &fs) < 0)
        return failure_set(failure, -errno, ERROR_OUTPUT, "%s cannot be examined: %s.", file->name,
                           strerror(errno));
    if (fs.f_type == FUSE_SUPER_MAGIC)
        return 0; /* root's */
    if (memory_file_is(file->fd))
        return failure_set(failure, -EINVAL, ERROR_OUTPUT,
                           "%s%s is in memory (such as tmpfs), which would be charged to "
                           "xentraced. Choose a file on a disk, or pass a pipe and copy it: "
                           "xentracectl record -o - | cat >FILE",
                           file->is_sidecar ? "The sidecar " : "", file->name);
    if (fs.f_blocks > 0)
        return 0;
    /* proc, sysfs, debugfs and their like have no blocks. */
    return refuse(file, -EINVAL, "a file of the kernel, not a file on a disk", failure);
}

/* Writes go to offsets, several at once; with O_APPEND they would land at the end. */
static int stop_appending(const struct passed_file *file, struct failure *failure)
{
    int flags = fcntl(file->fd, F_GETFL);

    if (flags >= 0 && (!(flags & O_APPEND) || fcntl(file->fd, F_SETFL, flags & ~O_APPEND) == 0))
        return 0;
    return refuse(file, -errno, "an append-only file", failure);
}

/* A regular file on a file system that was found to answer. */
static int check_empty(const struct passed_file *file, struct failure *failure)
{
    struct stat st;

    if (fstat(file->fd, &st) < 0)
        return failure_set(failure, -errno, ERROR_OUTPUT, "%s cannot be examined: %s.", file->name,
                           strerror(errno));
    if (st.st_size == 0)
        return 0;
    return failure_set(failure, -EEXIST, ERROR_OUTPUT,
                       "%s is not empty, and %s are never overwritten.", file->name,
                       file->is_sidecar ? "sidecars" : "captures");
}

/* In this order: nothing is asked of a file system that may not answer. */
static int examine(struct passed_file *file, struct failure *failure)
{
    int r = check_access_mode(file, failure);

    if (r < 0)
        return r;
    r = check_mount(file, failure);
    return r < 0 ? r : read_status(file, failure);
}

/* --- The two. --- */

int passed_file_check_output(int fd, const char *path, bool by_root, bool *ret_is_stream,
                             struct failure *failure)
{
    bool is_stdout = strcmp(path, "-") == 0;
    struct passed_file file = {.fd = fd, .by_root = by_root, .name = name_for_people(path)};
    int r;

    r = examine(&file, failure);
    if (r < 0)
        return r;
    if (S_ISFIFO(file.status.stx_mode) || is_null_device(&file) ||
        (by_root && S_ISBLK(file.status.stx_mode))) {
        *ret_is_stream = true;
        return 0;
    }
    if (!S_ISREG(file.status.stx_mode))
        return refuse(&file, -EINVAL, describe_type(&file), failure);
    r = check_file_system(&file, failure);
    if (r < 0)
        return r;
    *ret_is_stream = is_stdout; /* appended to whatever is in it */
    if (is_stdout)
        return 0;
    r = stop_appending(&file, failure);
    return r < 0 ? r : check_empty(&file, failure);
}

int passed_file_check_sidecar(int fd, const char *path, bool by_root, struct failure *failure)
{
    struct passed_file file = {.fd = fd, .is_sidecar = true, .by_root = by_root, .name = path};
    int r;

    r = examine(&file, failure);
    if (r < 0)
        return r;
    if (!S_ISREG(file.status.stx_mode))
        return refuse(&file, -EINVAL, describe_type(&file), failure);
    r = check_file_system(&file, failure);
    if (r < 0)
        return r;
    r = stop_appending(&file, failure);
    return r < 0 ? r : check_empty(&file, failure);
}
