/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Writes a pinned ring to an output. ring_write_run() is one request to the output (output_run()):
 * it plans, takes the space, and writes, oldest chunk first, on the output's worker. The collector
 * is not involved. Pins are given up while the chunks are written, so that the ring regains its
 * memory early.
 *
 * The main thread sets up a struct ring_write, and leaves it, the ring and the pin alone until the
 * request is done, but for the functions marked "any thread". Afterwards it reads the result, and
 * gives up the rest of the pin: ring_advance_pin(ring, pin, NULL).
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/failure.h"
#include "daemon/session/snapshot-plan.h"

struct chunk;
struct output_file;
struct ring;

struct ring_write {
    /* What to write; all else is 0 before it is begun. */
    struct ring *ring; /* lent, pinned as PIN */
    int pin;
    unsigned int nr_cpus;
    struct snapshot_bounds bounds; /* max_bytes: of the output */
    uint64_t allowed_bytes;        /* a longer plan is not carried out; 0: any is */
    bool is_packed;                /* compressed with zstd */

    /* ring-writer.c's own; both threads use them while it is under way. */
    bool is_aborted;
    uint64_t total_bytes;
    uint64_t progress_bytes;
    uint64_t progress_usec;

    /* The result. */
    bool is_planned; /* `plan` is valid */
    struct snapshot_plan plan;
    bool is_too_long;       /* than allowed_bytes: nothing was written, or not all */
    uint64_t written_bytes; /* without a gap, in whole windows, or frames: a file is cut to that */
    uint64_t plain_bytes;   /* that it holds then */
    const struct chunk *unwritten; /* the first one that is not written whole; NULL: all are */
    bool is_partly_written;        /* ... but up to its first round */
};

/*
 * Worker; an argument for output_run(). ARGUMENT is a struct ring_write. Writes all that
 * `bounds` ask for to FILE, from its beginning. Returns 0 or a negative errno:
 *
 *   - is_planned is false: what snapshot_make_plan() says, -ENODATA or -EFBIG; nothing was written;
 *   - is_too_long is true: -EFBIG;
 *   - FAILURE is set: there is no space (ERROR_NO_SPACE) or no memory (ERROR_NO_MEMORY) for it;
 *   - else writing failed (explain_write()), with -ECANCELED after ring_write_abort().
 */
int ring_write_run(struct output_file *file, void *argument, struct failure *failure);

/*
 * Any thread. Gives up: writes into a stream are cancelled within 0.2 s; into a file, writes that
 * the disk has are waited for.
 */
void ring_write_abort(struct ring_write *write);

/* Any thread. Bytes written so far, those of chunks that are not complete included. */
uint64_t ring_write_progress_bytes(const struct ring_write *write);
/* Any thread. Bytes that will be written; 0: not known, or they are compressed. */
uint64_t ring_write_total_bytes(const struct ring_write *write);
/* Any thread. Time (CLOCK_MONOTONIC, in microseconds) of the last progress; 0: not begun. */
uint64_t ring_write_progress_usec(const struct ring_write *write);
