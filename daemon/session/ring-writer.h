/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Writes a pinned ring to a file with an io_uring of the main thread's own: the collector has
 * nothing to do with it. As chunks are written, oldest first, their pins are given up. Main thread,
 * from the event loop; nothing here waits.
 */

#include <stdbool.h>
#include <stdint.h>

struct ring;
struct ring_writer;
struct sd_event;
struct snapshot_plan;

struct ring_writer_config {
    struct sd_event *event;
    struct ring *ring; /* pinned as PIN; both are borrowed */
    int pin;
    int fd;               /* borrowed */
    bool is_stream;       /* one write after the other, without offsets */
    uint32_t align_bytes; /* what a write that came back short goes on at */

    /* Called once, when all is written or, with a negative errno, cannot be; PIN is given up. */
    void (*done)(void *userdata, int error);
    void *userdata;
};

/* Begins to write what PLAN says. Returns 0, -ENOMEM, or what io_uring_setup(2) says. */
int ring_writer_new(const struct ring_writer_config *config, const struct snapshot_plan *plan,
                    struct ring_writer **ret_writer);
/* After `done`, or when the event loop has ended. */
struct ring_writer *ring_writer_free(struct ring_writer *writer);

/* Gives up: `done` comes with -ECANCELED. For a reader that does not read. */
void ring_writer_abort(struct ring_writer *writer);

/* Written without a gap, in whole windows; and the first chunk that is not. NULL: all are. */
uint64_t ring_writer_bytes(const struct ring_writer *writer);
const struct chunk *ring_writer_unwritten(const struct ring_writer *writer);
