/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Stands in for collector/uring.c: writes wait here until the test says how they end, in the order
 * that it chooses. Nothing enters the kernel.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/uring.h"

#define FAKE_MAX_WRITES 64u

struct fake_write {
    int fd;
    const uint8_t *data;
    uint32_t bytes;
    uint64_t offset;
    uint64_t tag;
    bool cancelled;
};

struct uring {
    unsigned int max_writes; /* uring_write() is -EBUSY beyond; FAKE_MAX_WRITES at most */
    bool refuses_cancels;    /* uring_cancel() is -EBUSY */
    unsigned int nr_writes;
    struct fake_write writes[FAKE_MAX_WRITES]; /* under way, the oldest first */
};

/* Takes the write at INDEX out: the test carries it out, or not, and tells the sink. */
struct fake_write fake_uring_take(struct uring *uring, unsigned int index);
