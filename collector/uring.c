// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests are only queued by uring_poll(), uring_write() and uring_cancel(); uring_wait() submits
 * them, waits and reaps in one io_uring_enter(2).
 *
 * SINGLE_ISSUER and DEFER_TASKRUN (Linux 6.1) keep completions from interrupting the drain; kernels
 * that do not know them refuse with EINVAL, and the ring works the same without. What is deferred
 * does not make the ring's descriptor readable: a ring that is polled does without.
 */

#include "collector/uring.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/uio.h>

#include <liburing.h>

#include "common/units.h"

#define TAG_INTERNAL UINT64_MAX /* completions of cancellations: nobody asked for them */

struct uring {
    struct io_uring ring;
    const uint8_t *fixed_base;
    uint64_t fixed_bytes;
};

int uring_new(unsigned int entries, bool is_polled, struct uring **ret_uring)
{
    const unsigned int waited_in = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    struct io_uring_params params = {
        .flags = IORING_SETUP_CQSIZE | (is_polled ? 0 : waited_in),
        .cq_entries = entries * 4, /* multishot polls may complete often between two waits */
    };
    struct uring *uring;
    int r;

    uring = calloc(1, sizeof(*uring));
    if (!uring)
        return -ENOMEM;
    r = io_uring_queue_init_params(entries, &uring->ring, &params);
    if (r == -EINVAL) {
        params = (struct io_uring_params){
            .flags = IORING_SETUP_CQSIZE,
            .cq_entries = entries * 4,
        };
        r = io_uring_queue_init_params(entries, &uring->ring, &params);
    }
    if (r < 0) {
        free(uring);
        return r;
    }
    *ret_uring = uring;
    return 0;
}

struct uring *uring_free(struct uring *uring)
{
    if (!uring)
        return NULL;
    io_uring_queue_exit(&uring->ring);
    free(uring);
    return NULL;
}

int uring_register_buffer(struct uring *uring, void *base, uint64_t bytes)
{
    struct iovec iov = {.iov_base = base, .iov_len = bytes};
    int r;

    r = io_uring_register_buffers(&uring->ring, &iov, 1);
    if (r < 0)
        return r;
    uring->fixed_base = base;
    uring->fixed_bytes = bytes;
    return 0;
}

int uring_poll(struct uring *uring, int fd, uint64_t tag)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

    if (!sqe)
        return -EBUSY;
    io_uring_prep_poll_multishot(sqe, fd, POLLIN);
    io_uring_sqe_set_data64(sqe, tag);
    return 0;
}

static bool is_fixed(const struct uring *uring, const void *data, uint32_t bytes)
{
    const uint8_t *p = data;

    return uring->fixed_base && p >= uring->fixed_base &&
           p + bytes <= uring->fixed_base + uring->fixed_bytes;
}

int uring_write(struct uring *uring, int fd, const void *data, uint32_t bytes, uint64_t offset,
                uint64_t tag)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

    if (!sqe)
        return -EBUSY;
    if (is_fixed(uring, data, bytes))
        io_uring_prep_write_fixed(sqe, fd, data, bytes, offset, 0);
    else
        io_uring_prep_write(sqe, fd, data, bytes, offset);
    io_uring_sqe_set_data64(sqe, tag);
    return 0;
}

int uring_fd(const struct uring *uring)
{
    return uring->ring.ring_fd;
}

int uring_cancel(struct uring *uring, uint64_t tag)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

    if (!sqe)
        return -EBUSY;
    io_uring_prep_cancel64(sqe, tag, IORING_ASYNC_CANCEL_ALL);
    io_uring_sqe_set_data64(sqe, TAG_INTERNAL);
    return 0;
}

static int submit_and_wait(struct uring *uring, uint64_t timeout_usec)
{
    struct __kernel_timespec timeout;
    struct io_uring_cqe *cqe;
    int r;

    if (timeout_usec == 0) {
        /* Also runs what DEFER_TASKRUN put off. */
        r = io_uring_submit_and_get_events(&uring->ring);
    } else if (timeout_usec == URING_FOREVER) {
        r = io_uring_submit_and_wait(&uring->ring, 1);
    } else {
        timeout.tv_sec = (long long)(timeout_usec / USEC_PER_SEC);
        timeout.tv_nsec = (long long)(timeout_usec % USEC_PER_SEC * NSEC_PER_USEC);
        /* Its return value does not tell a timeout once something was submitted: the completion
         * queue, looked at below, does. */
        r = io_uring_submit_and_wait_timeout(&uring->ring, &cqe, 1, &timeout, NULL);
    }
    /* EBUSY, EAGAIN: the completion queue must be emptied first, which is what comes next. */
    if (r < 0 && r != -ETIME && r != -EINTR && r != -EBUSY && r != -EAGAIN)
        return r;
    return 0;
}

int uring_wait(struct uring *uring, uint64_t timeout_usec, struct uring_event *ret_events,
               unsigned int max)
{
    struct io_uring_cqe *cqe;
    unsigned int head, seen = 0, n = 0;
    int r;

    r = submit_and_wait(uring, timeout_usec);
    if (r < 0)
        return r;
    io_uring_for_each_cqe(&uring->ring, head, cqe)
    {
        if (n == max)
            break;
        seen++;
        if (cqe->user_data == TAG_INTERNAL)
            continue;
        ret_events[n++] = (struct uring_event){
            .tag = cqe->user_data,
            .result = cqe->res,
            .more = cqe->flags & IORING_CQE_F_MORE,
        };
    }
    io_uring_cq_advance(&uring->ring, seen);
    return (int)n;
}
