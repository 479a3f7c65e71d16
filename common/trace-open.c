// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * open(2) of a FIFO without O_NONBLOCK waits for a writer. With it, open(2) succeeds at once, and
 * read(2) would report the end before the writer has come. tee(2) tells the two apart, and takes no
 * bytes: 0 without a writer, EAGAIN with one that has written nothing yet. The pipes of a shell,
 * which it names /dev/fd/63, have writers from the beginning, or have ended.
 */

#include "common/trace-open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"

#define PIPEFS_MAGIC   0x50495045 /* of <linux/magic.h>: pipes that have no name */
#define WRITER_STEPS   200u       /* of 10 ms */
#define WRITER_STEP_NS (10 * NSEC_PER_SEC / 1000)

static int judge_type(mode_t mode)
{
    if (S_ISDIR(mode))
        return -EISDIR;
    if (S_ISSOCK(mode))
        return -ENOTSOCK;
    return S_ISCHR(mode) || S_ISBLK(mode) ? -ENOTTY : 0;
}

static int wait_for_writer(int fd)
{
    const struct timespec step = {.tv_nsec = WRITER_STEP_NS};
    _cleanup_fd_ int in = -1, out = -1;
    struct statfs fs;
    int pipe_fds[2];

    if (fstatfs(fd, &fs) < 0)
        return -errno;
    if (fs.f_type == PIPEFS_MAGIC)
        return 0;
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -errno;
    in = pipe_fds[0];
    out = pipe_fds[1];
    for (unsigned int i = 0; i < WRITER_STEPS; i++) {
        if (tee(fd, out, 1, SPLICE_F_NONBLOCK) != 0)
            return 0; /* there are bytes, or EAGAIN; read(2) reports anything else */
        (void)nanosleep(&step, NULL);
    }
    return -ENXIO;
}

int trace_open(const char *path)
{
    _cleanup_fd_ int fd = -1;
    struct stat status;
    int r;

    /* Before open(2), which may wind a tape back. */
    r = stat(path, &status) < 0 ? -errno : judge_type(status.st_mode);
    if (r < 0)
        return r;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    r = judge_type(status.st_mode);
    if (r < 0)
        return r;
    if (S_ISFIFO(status.st_mode))
        r = wait_for_writer(fd);
    if (r < 0)
        return r;
    if (fcntl(fd, F_SETFL, 0) < 0)
        return -errno;
    return fd_take(&fd);
}

const char *trace_open_problem(int error)
{
    switch (error) {
    case -ENOTSOCK:
        return "it is a socket";
    case -ENOTTY:
        return "it is a device";
    case -ENXIO:
        return "it is a FIFO that no program writes to. Start its writer first";
    default:
        return strerror(-error);
    }
}
