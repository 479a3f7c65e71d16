// SPDX-License-Identifier: GPL-2.0-or-later
/* SIGKILL ends a child in the kernel only when the disk answers, so nobody waits for it. */

#include "ctl/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "common/units.h"
#include "common/util.h"

struct answer {
    int error; /* 0 or an errno */
    struct disk disk;
};

_Noreturn static void ask(const char *path, int fd)
{
    struct answer answer = {0};
    struct statvfs st;

    if (statvfs(path, &st) < 0) {
        answer.error = errno;
    } else {
        answer.disk.free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
        answer.disk.bytes = (uint64_t)st.f_blocks * st.f_frsize;
    }
    (void)!write(fd, &answer, sizeof(answer)); /* then there is no answer */
    _exit(0);
}

int disk_read(const char *path, uint64_t timeout_usec, struct disk *ret_disk)
{
    struct pollfd poll_fd = {.events = POLLIN};
    _cleanup_fd_ int from = -1, to = -1;
    struct answer answer;
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    from = fds[0];
    to = fds[1];
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        ask(path, to);
    fd_close(&to);
    poll_fd.fd = from;
    if (poll(&poll_fd, 1, (int)(timeout_usec / USEC_PER_MSEC)) <= 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, WNOHANG); /* it may be stuck */
        return -ETIMEDOUT;
    }
    if (read(from, &answer, sizeof(answer)) != sizeof(answer))
        answer = (struct answer){.error = EIO};
    (void)waitpid(pid, NULL, 0); /* it has answered and exits */
    if (answer.error)
        return -answer.error;
    *ret_disk = answer.disk;
    return 0;
}
