// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests are only queued by uring_poll(), uring_write(), uring_wake() and uring_cancel();
 * uring_wait() submits them, waits and reaps in one io_uring_enter(2).
 *
 * SINGLE_ISSUER and DEFER_TASKRUN (Linux 6.1) keep completions from interrupting the drain; kernels
 * that do not know them refuse with EINVAL, and the ring works the same without.
 *
 * Outputs must not wait for each other's disks, which takes two things beside the queue:
 *
 * Writes to outputs carry IOSQE_ASYNC: a worker of the thread's io-wq makes them from the
 * beginning. Otherwise they are tried in io_uring_enter(2), and go to a worker only if they would
 * block. Before Linux 6.12 that try blocks itself while the file system is being frozen: a direct
 * write waits for the freeze protection (sb_start_write) without regard to IOCB_NOWAIT. And a write
 * that goes to a worker only after the try waits in one of 64 lists, by its inode, unless its file
 * system writes directly in parallel: on one that does not, a write to another disk may be queued
 * after it. The try is in vain for a file that grows, so nothing is lost without it. In a pipe it
 * waits for the pipe's lock, which a process of its user holds for as long as it likes: it calls
 * write(2) with memory whose pages do not come. A worker that finds the pipe full only has it
 * polled. The eventfd is the daemon's own.
 *
 * All rings of a thread share its io-wq, in which a limited number of workers may be blocked in
 * files at once: by default 4 per processor, or the queue's length if that is less. Eight writes to
 * a frozen file system took all of them in a dom0 with 2 vCPUs. Whether writes with IOSQE_ASYNC
 * count there depends on the kernel, so the limit is raised as well: URING_WORKERS.
 */

#include "collector/uring.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/uio.h>

#include <liburing.h>

#include "collector/memory.h"
#include "common/units.h"

#define TAG_INTERNAL UINT64_MAX /* completions that nobody asked for */

#define RETRY_USEC     (10 * USEC_PER_MSEC) /* before requests are submitted again */
#define RETRY_MIN_USEC USEC_PER_MSEC        /* ... while there are rounds to make */

struct uring {
    struct io_uring ring;
    const uint8_t *fixed_base;
    uint64_t fixed_bytes;
};

static int uring_set_up(struct uring *uring, unsigned int entries)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
        .cq_entries = entries * 4, /* multishot polls may complete often between two waits */
    };
    int r;

    r = io_uring_queue_init_params(entries, &uring->ring, &params);
    if (r != -EINVAL)
        return r;
    params = (struct io_uring_params){
        .flags = IORING_SETUP_CQSIZE,
        .cq_entries = entries * 4,
    };
    return io_uring_queue_init_params(entries, &uring->ring, &params);
}

/* Fails before Linux 5.15; without it everything works while no file system is stuck. */
static void uring_raise_workers(struct uring *uring)
{
    unsigned int limits[2] = {0}; /* of files, and of all else; 0: only asks for it */

    if (io_uring_register_iowq_max_workers(&uring->ring, limits) < 0 || limits[0] >= URING_WORKERS)
        return;
    limits[0] = URING_WORKERS;
    limits[1] = 0;
    (void)io_uring_register_iowq_max_workers(&uring->ring, limits);
}

int uring_new(unsigned int entries, struct uring **ret_uring)
{
    struct uring *uring;
    int r;

    uring = memory_alloc(1, sizeof(*uring));
    if (!uring)
        return -ENOMEM;
    r = uring_set_up(uring, entries);
    if (r < 0) {
        free(uring);
        return r;
    }
    uring_raise_workers(uring);
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

static bool uring_is_fixed(const struct uring *uring, const void *data, uint32_t bytes)
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
    if (uring_is_fixed(uring, data, bytes))
        io_uring_prep_write_fixed(sqe, fd, data, bytes, offset, 0);
    else
        io_uring_prep_write(sqe, fd, data, bytes, offset);
    io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
    io_uring_sqe_set_data64(sqe, tag);
    return 0;
}

int uring_wake(struct uring *uring, int eventfd)
{
    static const uint64_t one = 1;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

    if (!sqe)
        return -EBUSY;
    io_uring_prep_write(sqe, eventfd, &one, sizeof(one), URING_NO_OFFSET);
    io_uring_sqe_set_data64(sqe, TAG_INTERNAL);
    return 0;
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

static void uring_sleep(struct uring *uring, uint64_t usec)
{
    struct __kernel_timespec timeout = {
        .tv_sec = (long long)(usec / USEC_PER_SEC),
        .tv_nsec = (long long)(usec % USEC_PER_SEC * NSEC_PER_USEC),
    };
    struct io_uring_cqe *cqe;

    (void)io_uring_wait_cqe_timeout(&uring->ring, &cqe, &timeout); /* submits nothing */
}

static int uring_submit_and_wait(struct uring *uring, uint64_t timeout_usec)
{
    struct __kernel_timespec timeout;
    struct io_uring_cqe *cqe;

    if (timeout_usec == 0) /* also runs what DEFER_TASKRUN put off */
        return io_uring_submit_and_get_events(&uring->ring);
    if (timeout_usec == URING_FOREVER)
        return io_uring_submit_and_wait(&uring->ring, 1);
    timeout.tv_sec = (long long)(timeout_usec / USEC_PER_SEC);
    timeout.tv_nsec = (long long)(timeout_usec % USEC_PER_SEC * NSEC_PER_USEC);
    /* Its result does not distinguish a timeout once something was submitted: the completion
     * queue, which the caller looks at, does. */
    return io_uring_submit_and_wait_timeout(&uring->ring, &cqe, 1, &timeout, NULL);
}

int uring_wait(struct uring *uring, uint64_t timeout_usec, struct uring_event *ret_events,
               unsigned int max)
{
    struct io_uring_cqe *cqe;
    unsigned int head, seen = 0, n = 0;
    int r;

    r = uring_submit_and_wait(uring, timeout_usec);
    if (r == -EAGAIN || r == -EBUSY)
        /* No memory, or the completion queue is to be emptied first, which comes next. Without a
         * completion this would be a busy loop, at real-time priority. */
        uring_sleep(uring, max_u64(min_u64(timeout_usec, RETRY_USEC), RETRY_MIN_USEC));
    else if (r < 0 && r != -ETIME && r != -EINTR)
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
