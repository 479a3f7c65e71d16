// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * io_uring refuses to be entered: while it has no memory, or its completion queue is full, that is
 * no error for the collector, which would end because of it, and no busy loop at real-time priority
 * either. The linker has uring.c call what stands here: --wrap in local.mk.
 */

#include "collector/uring.h"

#include <time.h>

#include <liburing.h>

#include "common/units.h"
#include "tests/unit/test.h"

#define TURNS 50u

static int result; /* of every attempt */

int __wrap_io_uring_submit_and_get_events(struct io_uring *ring);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned int nr);
int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
                                            unsigned int nr, struct __kernel_timespec *timeout,
                                            sigset_t *signals);

int __wrap_io_uring_submit_and_get_events(struct io_uring *ring)
{
    (void)ring;
    return result;
}

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned int nr)
{
    (void)ring, (void)nr;
    return result;
}

int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
                                            unsigned int nr, struct __kernel_timespec *timeout,
                                            sigset_t *signals)
{
    (void)ring, (void)cqe, (void)nr, (void)timeout, (void)signals;
    return result;
}

static uint64_t monotonic_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC;
}

int main(void)
{
    static const struct {
        const char *name;
        int result;
        uint64_t timeout_usec;
        int expected;
        bool pauses;
    } cases[] = {
        {"no memory, and something is to be done at once", -EAGAIN, 0, 0, true},
        {"no memory, and nothing to do for a while", -EAGAIN, USEC_PER_SEC, 0, true},
        {"no memory, and nothing to do at all", -EAGAIN, URING_FOREVER, 0, true},
        {"the completion queue is full, and something is to be done", -EBUSY, 0, 0, true},
        {"the completion queue is full", -EBUSY, USEC_PER_SEC, 0, true},
        {"a signal", -EINTR, USEC_PER_SEC, 0, false},
        {"nothing came in time", -ETIME, USEC_PER_SEC, 0, false},
        {"a failure", -EIO, USEC_PER_SEC, -EIO, false},
        {"a failure, and something is to be done at once", -EIO, 0, -EIO, false},
    };
    struct uring *uring;

    if (uring_new(8, &uring) < 0) {
        (void)puts("# no io_uring here");
        return TEST_SKIPPED;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t begin_usec = monotonic_usec();

        test_case(cases[i].name);
        result = cases[i].result;
        for (unsigned int turn = 0; turn < TURNS; turn++) {
            struct uring_event events[4];

            CHECK_INT(uring_wait(uring, cases[i].timeout_usec, events, 4), cases[i].expected);
        }
        if (cases[i].pauses)
            CHECK(monotonic_usec() - begin_usec >= TURNS * USEC_PER_MSEC);
    }
    uring_free(uring);
    return test_end();
}
