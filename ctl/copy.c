// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The thread has all signals blocked: they are the main thread's, and a reader that has gone is
 * EPIPE rather than SIGPIPE. Both descriptors are closed as soon as it ends, so that the writer
 * notices at once.
 */

#include "ctl/copy.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/util.h"
#include "common/write-all.h"

#define COPY_BYTES 65536u /* what a pipe holds */

struct copy {
    pthread_t thread;
    int from_fd, to_fd;
    uint64_t reserve_bytes;
    int error;
    uint8_t buffer[COPY_BYTES];
};

/* A system call for each 64 KiB: a file in memory takes part of what everything else runs in. */
static bool copy_leaves_reserve(const struct copy *copy, size_t bytes)
{
    struct statvfs st;

    return !copy->reserve_bytes || fstatvfs(copy->to_fd, &st) < 0 ||
           (uint64_t)st.f_bavail * st.f_frsize >= copy->reserve_bytes + bytes;
}

static int copy_all(struct copy *copy)
{
    for (;;) {
        ssize_t n = read(copy->from_fd, copy->buffer, sizeof(copy->buffer));
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        if (!copy_leaves_reserve(copy, (size_t)n))
            return -ENOSPC;
        r = write_all(copy->to_fd, copy->buffer, (size_t)n);
        if (r < 0)
            return r;
    }
}

static void *copy_run(void *argument)
{
    struct copy *copy = argument;

    copy->error = copy_all(copy);
    fd_close(&copy->from_fd);
    fd_close(&copy->to_fd);
    return NULL;
}

static int copy_start(struct copy *copy)
{
    sigset_t all, before;
    int r;

    (void)sigfillset(&all);
    r = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (r != 0)
        return -r;
    r = pthread_create(&copy->thread, NULL, copy_run, copy);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

int copy_new(int from_fd, int to_fd, uint64_t reserve_bytes, struct copy **ret_copy)
{
    struct copy *copy = calloc(1, sizeof(*copy));
    int r;

    if (!copy) {
        fd_close(&from_fd);
        fd_close(&to_fd);
        return -ENOMEM;
    }
    copy->from_fd = from_fd;
    copy->to_fd = to_fd;
    copy->reserve_bytes = reserve_bytes;
    r = copy_start(copy);
    if (r < 0) {
        fd_close(&copy->from_fd);
        fd_close(&copy->to_fd);
        free(copy);
        return r;
    }
    *ret_copy = copy;
    return 0;
}

uint64_t copy_reserve_bytes(const struct copy *copy)
{
    return copy ? copy->reserve_bytes : 0;
}

/* Whoever does not read may do so for ever: nobody looks at signals while we wait for that. */
static void let_signals_end_us(void)
{
    sigset_t ends;

    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGTERM);
    (void)pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
}

int copy_finish(struct copy *copy)
{
    int r;

    if (!copy)
        return 0;
    let_signals_end_us();
    (void)pthread_join(copy->thread, NULL); /* it is ours, and joinable */
    r = copy->error;
    free(copy);
    return r;
}

void copy_abandon(struct copy *copy)
{
    if (copy)
        (void)pthread_detach(copy->thread); /* it still uses the memory */
}
