/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * io_uring, as far as the collector needs it: the only module that includes liburing.
 *
 * Source: io_uring(7), io_uring_setup(2), io_uring_enter(2). One ring, made, used and freed by the
 * collector thread alone. After uring_new() nothing allocates and nothing but uring_wait() enters
 * the kernel.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uring;

struct uring_event {
    uint64_t tag;
    int result; /* as of the system call it stands for: bytes, poll events or a negative errno */
    bool more;  /* a multishot request goes on; if false it has to be armed again */
};

#define URING_FOREVER UINT64_MAX

/* ENTRIES requests may be under way at once. Returns 0 or a negative errno of io_uring_setup(2). */
int uring_new(unsigned int entries, struct uring **ret_uring);
struct uring *uring_free(struct uring *uring);

/*
 * Makes BASE..BASE+BYTES a fixed buffer, from which uring_write() then writes without mapping it
 * each time. Fails with -ENOMEM beyond RLIMIT_MEMLOCK: writing works all the same, with a little
 * more CPU.
 */
int uring_register_buffer(struct uring *uring, void *base, uint64_t bytes);

/* Tells each time FD becomes readable. -EBUSY: too many requests under way. */
int uring_poll(struct uring *uring, int fd, uint64_t tag);

#define URING_NO_OFFSET UINT64_MAX /* a pipe: writes where it stands */

/* Writes. DATA stays untouched until the event comes. -EBUSY as above. */
int uring_write(struct uring *uring, int fd, const void *data, uint32_t bytes, uint64_t offset,
                uint64_t tag);

/* Cancels what was started with TAG, as far as the kernel can; its event comes in any case. */
int uring_cancel(struct uring *uring, uint64_t tag);

/*
 * Submits what was asked for, and waits until something happened or TIMEOUT_USEC is over (0: does
 * not wait; URING_FOREVER). Returns the number of events in RET_EVENTS, at most MAX; 0 on timeout
 * or signal; a negative errno if the ring is unusable.
 */
int uring_wait(struct uring *uring, uint64_t timeout_usec, struct uring_event *ret_events,
               unsigned int max);
