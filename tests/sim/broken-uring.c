// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Preloaded into xentraced: as soon as the file that BROKEN_URING names exists, io_uring fails for
 * good on the thread "collector". See restart.sh.
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <liburing.h>

#define EXPORT __attribute__((visibility("default")))

/* liburing's own, or exit: without it the test means nothing. */
static void *next(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (!function)
        _exit(127);
    return function;
}

static int is_broken(void)
{
    const char *path = getenv("BROKEN_URING");
    char name[16] = "";

    (void)prctl(PR_GET_NAME, name); /* cannot fail with this buffer */
    return strcmp(name, "collector") == 0 && path && access(path, F_OK) == 0;
}

EXPORT int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
                                            unsigned int nr, struct __kernel_timespec *timeout,
                                            sigset_t *signals)
{
    int (*real)(struct io_uring *, struct io_uring_cqe **, unsigned int, struct __kernel_timespec *,
                sigset_t *) = next("io_uring_submit_and_wait_timeout");

    return is_broken() ? -EIO : real(ring, cqe, nr, timeout, signals);
}

EXPORT int io_uring_submit_and_wait(struct io_uring *ring, unsigned int nr)
{
    int (*real)(struct io_uring *, unsigned int) = next("io_uring_submit_and_wait");

    return is_broken() ? -EIO : real(ring, nr);
}

EXPORT int io_uring_submit_and_get_events(struct io_uring *ring)
{
    int (*real)(struct io_uring *) = next("io_uring_submit_and_get_events");

    return is_broken() ? -EIO : real(ring);
}
