/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The policy for a system call on an output that fails: whether it is repeated, for how long, and
 * when the error is final. Every call that creates, allocates, cuts, syncs, names or removes a file
 * is made through DISK_CALL(). (Writes of records are the collector's: uring_is_transient().)
 *
 * - EINTR, and an error that may pass (disk_error_may_pass()): the call is repeated up to
 * DISK_TRIES times, after pauses that double: about 1.3 s in all.
 * - Any other error is the answer.
 *
 * fsync(2) of a file is repeated after EINTR only, with DISK_SYNC(): the kernel reports an error of
 * writing back once, and forgets the pages. A second call would succeed although data is missing.
 * A directory is different: its entries are in the file system's journal, which fails for good.
 *
 * May wait: belongs to a worker.
 */

#include <errno.h>
#include <stdbool.h>

#define DISK_TRIES 7u

/* Whether the call may succeed if it is repeated, of a negative errno. Any thread. */
bool disk_error_may_pass(int error);

/* Whether to repeat a call that failed with ERROR, *TRIES times before; has waited then. */
bool disk_call_again(unsigned int *tries, int error);

/* The result of CALL, a function that sets errno: what it returned, or a negative errno. */
#define DISK_CALL(call)                                                                            \
    ({                                                                                             \
        unsigned int tries_ = 0;                                                                   \
        int r_;                                                                                    \
                                                                                                   \
        do                                                                                         \
            r_ = (call) < 0 ? -errno : 0;                                                          \
        while (disk_call_again(&tries_, r_));                                                      \
        r_;                                                                                        \
    })

/* The same for fsync(2) of a file. */
#define DISK_SYNC(fd)                                                                              \
    ({                                                                                             \
        int r_;                                                                                    \
                                                                                                   \
        do                                                                                         \
            r_ = fsync(fd) < 0 ? -errno : 0;                                                       \
        while (r_ == -EINTR);                                                                      \
        r_;                                                                                        \
    })
