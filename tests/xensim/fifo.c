// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether anybody still holds a handle is asked of the kernel: opening a FIFO for writing without
 * waiting fails with ENXIO when it has no reader.
 */

#include "fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/util.h"

static void get_path(char ret_path[static 320], const char *directory, const char *kind,
                     unsigned int number)
{
    (void)snprintf(ret_path, 320, "%s/%s.%u", directory, kind, number);
}

int fifo_create(const char *directory, const char *kind, unsigned int number, int *ret_writer,
                uint64_t *ret_inode)
{
    _cleanup_fd_ int both = -1;
    char path[320];
    struct stat st;
    int writer;

    get_path(path, directory, kind, number);
    if (mkfifo(path, 0666) < 0 || chmod(path, 0666) < 0)
        return -errno;
    /* Only with a reader there can a writer open without waiting; the reader goes again. */
    both = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (both < 0 || fstat(both, &st) < 0)
        return -errno;
    writer = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (writer < 0)
        return -errno;
    *ret_writer = writer;
    *ret_inode = st.st_ino;
    return 0;
}

int fifo_open(const char *directory, const char *kind, unsigned int number, int flags)
{
    char path[320];
    int fd;

    get_path(path, directory, kind, number);
    fd = open(path, flags);
    return fd < 0 ? -errno : fd;
}

bool fifo_is_held(const char *directory, const char *kind, unsigned int number)
{
    _cleanup_fd_ int fd = fifo_open(directory, kind, number, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

    return fd >= 0;
}

void fifo_drain(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char bytes[4096];

    while (poll(&p, 1, 0) > 0 && read(fd, bytes, sizeof(bytes)) > 0)
        ;
}

void fifo_remove(const char *directory, const char *kind, unsigned int number)
{
    char path[320];

    get_path(path, directory, kind, number);
    (void)unlink(path); /* what is left over is seen: its directory is, too */
}
