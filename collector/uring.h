/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * io_uring, as far as xentraced needs it: the only module that includes liburing.
 *
 * Source: io_uring(7), io_uring_setup(2), io_uring_enter(2). One thread makes, uses and frees it:
 * the collector thread has one, and so has each worker that writes a ring. After uring_new()
 * nothing allocates and nothing but uring_wait() enters the kernel.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/util.h"

struct uring;

/*
 * Writes of one thread that may be stuck in the kernel at once, on all its rings, before they hold
 * up the others. Each costs a kernel thread only while it is stuck.
 */
#define URING_WORKERS 256u

struct uring_event {
    uint64_t tag;
    int result; /* as of the system call it stands for: bytes, poll events or a negative errno */
    bool more;  /* a multishot request continues; if false it has to be armed again */
};

#define URING_FOREVER UINT64_MAX

/*
 * ENTRIES requests may be under way at once. Returns 0 or a negative errno of io_uring_setup(2).
 *
 * Raises the calling thread's limit of io_uring workers to URING_WORKERS, so that writes that are
 * stuck on one file system do not hold up writes to another.
 */
int uring_new(unsigned int entries, struct uring **ret_uring);
struct uring *uring_free(struct uring *uring);

/*
 * Makes BASE..BASE+BYTES a fixed buffer, from which uring_write() then writes without mapping it
 * each time. Fails with -ENOMEM beyond RLIMIT_MEMLOCK: writing works all the same, with a little
 * more CPU.
 */
int uring_register_buffer(struct uring *uring, void *base, uint64_t bytes);

/* An event each time FD becomes readable. -EBUSY: the submission queue is full. */
int uring_poll(struct uring *uring, int fd, uint64_t tag);

#define URING_NO_OFFSET UINT64_MAX /* not a file on a file system: a pipe, an eventfd */

/*
 * Starts a write. DATA must not change until its event. Writes to files are passed directly to a
 * kernel worker, so that the calling thread never waits for the file system. -EBUSY as above.
 */
int uring_write(struct uring *uring, int fd, const void *data, uint32_t bytes, uint64_t offset,
                uint64_t tag);

/* Has an eventfd's reader woken. There is no event. -EBUSY as above. */
int uring_wake(struct uring *uring, int eventfd);

/*
 * Cancels the requests started with TAG, if the kernel can; each still has its event. -EBUSY as
 * above.
 */
int uring_cancel(struct uring *uring, uint64_t tag);

/*
 * Whether a write with that RESULT is to be tried again, after a moment. -ECANCELED of a write that
 * was not canceled: the kernel could not start a worker for it (pids.max, RLIMIT_NPROC).
 */
static inline bool uring_is_transient(int result)
{
    return result == -EINTR || result == -EAGAIN || result == -ECANCELED;
}

/*
 * How much of a buffer of TOTAL_BYTES is written after a write that ended with RESULT, if
 * WRITTEN_BYTES were written before it. The next write begins at a multiple of ALIGN_BYTES. Returns
 * the bytes written so far, or a negative errno if there is no point in writing the rest.
 */
static inline int64_t uring_write_progress(int result, uint32_t total_bytes, uint32_t written_bytes,
                                           uint32_t align_bytes)
{
    uint32_t now_bytes;

    if (uring_is_transient(result))
        return written_bytes;
    if (result < 0)
        return result;
    if (result == 0)
        return -ENOSPC; /* write(2) of more than nothing gives 0 only where nothing fits */
    now_bytes = written_bytes + (uint32_t)result;
    if (now_bytes == total_bytes)
        return now_bytes;
    /* Short: continue from the last whole block. Where not even one fits, none ever will. */
    now_bytes = (uint32_t)align_down(now_bytes, align_bytes);
    return now_bytes == written_bytes ? -ENOSPC : (int64_t)now_bytes;
}

/*
 * Submits the queued requests, and waits until there is an event or TIMEOUT_USEC is over (0: does
 * not wait; URING_FOREVER). Returns the number of events in RET_EVENTS, at most MAX; 0 on timeout,
 * signal, or if the kernel took no requests for now; a negative errno if the ring is unusable.
 */
int uring_wait(struct uring *uring, uint64_t timeout_usec, struct uring_event *ret_events,
               unsigned int max);
