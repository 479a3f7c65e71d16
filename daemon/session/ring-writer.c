// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pieces are written several at once and retired in order. A piece is a chunk, or a copy of the
 * part of it that belongs to the snapshot: of the first one, since O_DIRECT wants aligned memory,
 * and of the last one, which the collector is still filling.
 *
 * The io_uring is the worker's own: several O_DIRECT writes at once are faster than one after the
 * other, and a write into a pipe can be cancelled. Writes that block inside the kernel block this
 * worker and the kernel's threads for it, nobody else's.
 *
 * Only the pin's beginning is moved here. The main thread decides whether a pin is taken, so giving
 * it up is left to that thread.
 */

#include "daemon/session/ring-writer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/pool.h"
#include "collector/ring.h"
#include "collector/uring.h"
#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/output/output-file.h"

#define PIECES_MAX        8u /* being written at once */
#define ABORT_PERIOD_USEC (150 * USEC_PER_MSEC)
#define RETRY_MSEC        10 /* after EAGAIN of a file, which poll(2) cannot wait for */

enum piece_state { PIECE_QUEUED, PIECE_WRITING, PIECE_WRITTEN };

struct piece {
    enum piece_state state;
    const struct chunk *chunk;
    const uint8_t *data;
    uint32_t bytes;
    uint32_t written_bytes;
    uint64_t offset;
};

struct ring_writer {
    struct ring_write *write;
    const struct output_file *file;
    struct uring *uring;
    uint8_t *first_copy; /* page aligned; NULL: none is needed */
    uint8_t *last_copy;
    const struct chunk *next;        /* to become a piece; NULL: all have */
    struct piece pieces[PIECES_MAX]; /* a queue: in order, from `head` on */
    unsigned int head;
    unsigned int nr_pieces;
    unsigned int nr_writing;
    uint64_t end_offset;     /* after the last piece */
    uint64_t retired_offset; /* up to here everything is written */
    bool must_pause;         /* a write came back with EAGAIN */
    bool is_cancelled;
    int error;
};

/* --- What both threads use. --- */

void ring_write_abort(struct ring_write *write)
{
    __atomic_store_n(&write->is_aborted, true, __ATOMIC_RELAXED); /* nothing is handed over */
}

uint64_t ring_write_progress_bytes(const struct ring_write *write)
{
    return __atomic_load_n(&write->progress_bytes, __ATOMIC_RELAXED); /* a figure, no hand-over */
}

uint64_t ring_write_progress_usec(const struct ring_write *write)
{
    return __atomic_load_n(&write->progress_usec, __ATOMIC_RELAXED); /* likewise */
}

static void ring_write_note_progress(struct ring_write *write, uint64_t bytes)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    __atomic_store_n(&write->progress_bytes, write->progress_bytes + bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&write->progress_usec,
                     (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC,
                     __ATOMIC_RELAXED);
}

static bool ring_write_is_aborted(const struct ring_write *write)
{
    return __atomic_load_n(&write->is_aborted, __ATOMIC_RELAXED);
}

/* --- Pieces. --- */

static struct piece *ring_writer_piece(struct ring_writer *writer, unsigned int i)
{
    return &writer->pieces[(writer->head + i) % PIECES_MAX];
}

static void ring_writer_add_piece(struct ring_writer *writer, const struct chunk *chunk,
                                  const uint8_t *data, uint32_t bytes)
{
    *ring_writer_piece(writer, writer->nr_pieces++) = (struct piece){
        .chunk = chunk,
        .data = data,
        .bytes = bytes,
        .offset = writer->end_offset,
    };
    writer->end_offset += bytes;
}

static void ring_writer_submit_piece(struct ring_writer *writer, struct piece *piece)
{
    uint64_t offset = URING_NO_OFFSET;

    if (!writer->file->is_stream)
        offset = piece->offset + piece->written_bytes;
    /* The ring has room: it has two entries for each piece, the other one to cancel it. */
    if (uring_write(writer->uring, writer->file->fd, piece->data + piece->written_bytes,
                    piece->bytes - piece->written_bytes, offset, (uintptr_t)piece) < 0)
        return;
    piece->state = PIECE_WRITING;
    writer->nr_writing++;
}

/* The chunk after CHUNK, if the plan goes on to it. */
static const struct chunk *ring_writer_chunk_after(const struct ring_writer *writer,
                                                   const struct chunk *chunk)
{
    const struct ring_write *write = writer->write;
    const struct snapshot_plan *plan = &write->plan;

    if (chunk == plan->end)
        return NULL;
    chunk = ring_pin_next(write->ring, write->pin, chunk);
    return chunk == plan->end && plan->end_offset == 0 ? NULL : chunk;
}

/* CHUNK from OFFSET to where the plan ends, in whole pages. */
static uint32_t ring_writer_copy(const struct ring_writer *writer, const struct chunk *chunk,
                                 uint32_t offset, uint8_t *buffer)
{
    const struct snapshot_plan *plan = &writer->write->plan;
    uint32_t end = chunk == plan->end ? plan->end_offset : UINT32_MAX;

    return ring_copy_windows(writer->write->ring, chunk, offset, end, buffer);
}

static void ring_writer_submit(struct ring_writer *writer)
{
    const struct ring_write *write = writer->write;
    /* Into a stream one after the other, for they have no offsets. */
    unsigned int max = writer->file->is_stream ? 1 : PIECES_MAX;

    while (writer->next && writer->nr_pieces < max) {
        const struct chunk *chunk = writer->next;

        writer->next = ring_writer_chunk_after(writer, chunk);
        if (chunk == write->plan.end || ring_must_copy_chunk(write->ring, chunk))
            ring_writer_add_piece(writer, chunk, writer->last_copy,
                                  ring_writer_copy(writer, chunk, 0, writer->last_copy));
        else
            ring_writer_add_piece(writer, chunk, chunk->data, chunk->fill_bytes);
    }
    for (unsigned int i = 0; i < writer->nr_pieces && writer->nr_writing < max; i++)
        if (ring_writer_piece(writer, i)->state == PIECE_QUEUED)
            ring_writer_submit_piece(writer, ring_writer_piece(writer, i));
}

static const struct chunk *ring_writer_unwritten(struct ring_writer *writer)
{
    return writer->nr_pieces > 0 ? ring_writer_piece(writer, 0)->chunk : writer->next;
}

/* Gives up the pins of everything that is written without a gap. */
static void ring_writer_retire(struct ring_writer *writer)
{
    const struct chunk *unwritten;

    while (writer->nr_pieces > 0 && ring_writer_piece(writer, 0)->state == PIECE_WRITTEN) {
        writer->retired_offset += ring_writer_piece(writer, 0)->bytes;
        writer->head = (writer->head + 1) % PIECES_MAX;
        writer->nr_pieces--;
    }
    unwritten = ring_writer_unwritten(writer);
    if (unwritten)
        ring_advance_pin(writer->write->ring, writer->write->pin, unwritten);
}

static void ring_writer_note_result(struct ring_writer *writer, struct piece *piece, int result)
{
    uint32_t align_bytes = writer->file->is_direct ? PAGE_BYTES : 1;
    int64_t written = uring_write_progress(result, piece->bytes, piece->written_bytes, align_bytes);

    writer->nr_writing--;
    piece->state = PIECE_QUEUED;
    if (result == -EAGAIN)
        writer->must_pause = true;
    if (written < 0) {
        if (!writer->error)
            writer->error = (int)written;
        return;
    }
    if (written > piece->written_bytes)
        ring_write_note_progress(writer->write, (uint64_t)written - piece->written_bytes);
    piece->written_bytes = (uint32_t)written;
    if (piece->written_bytes == piece->bytes)
        piece->state = PIECE_WRITTEN;
}

/* --- Writing. --- */

/* Whether no completion is awaited, and nothing is left to be submitted. */
static bool ring_writer_is_done(const struct ring_writer *writer)
{
    return writer->nr_writing == 0 && (writer->error || (writer->nr_pieces == 0 && !writer->next));
}

static void ring_writer_check_abort(struct ring_writer *writer)
{
    if (writer->is_cancelled || !ring_write_is_aborted(writer->write))
        return;
    writer->is_cancelled = true;
    if (!writer->error)
        writer->error = -ECANCELED;
    for (unsigned int i = 0; i < writer->nr_pieces; i++)
        if (ring_writer_piece(writer, i)->state == PIECE_WRITING)
            (void)uring_cancel(writer->uring, (uintptr_t)ring_writer_piece(writer, i));
}

/* Of a stream with O_NONBLOCK: not every kernel and device has io_uring wait for that one. */
static void ring_writer_pause(struct ring_writer *writer)
{
    struct pollfd poll_fd = {.fd = writer->file->fd, .events = POLLOUT};

    writer->must_pause = false;
    if (writer->file->is_stream)
        (void)poll(&poll_fd, 1, ABORT_PERIOD_USEC / USEC_PER_MSEC);
    else
        (void)poll(NULL, 0, RETRY_MSEC);
}

static int ring_writer_wait(struct ring_writer *writer)
{
    uint64_t timeout_usec = writer->file->is_stream ? ABORT_PERIOD_USEC : URING_FOREVER;
    struct uring_event events[PIECES_MAX];
    int n;

    n = uring_wait(writer->uring, timeout_usec, events, PIECES_MAX);
    for (int i = 0; i < n; i++)
        ring_writer_note_result(writer, (struct piece *)(uintptr_t)events[i].tag, events[i].result);
    return n;
}

static int ring_writer_write(struct ring_writer *writer)
{
    int r;

    for (;;) {
        ring_writer_check_abort(writer);
        if (!writer->error)
            ring_writer_submit(writer);
        if (ring_writer_is_done(writer))
            return writer->error;
        r = ring_writer_wait(writer);
        if (r < 0) /* the io_uring completes nothing any more */
            return writer->error ? writer->error : r;
        ring_writer_retire(writer);
        if (writer->must_pause)
            ring_writer_pause(writer);
    }
}

static int ring_writer_set_up(struct ring_writer *writer)
{
    const struct ring_write *write = writer->write;
    const struct snapshot_plan *plan = &write->plan;
    int r;

    r = uring_new(PIECES_MAX * 2, &writer->uring);
    if (r < 0)
        return r;
    writer->last_copy = aligned_alloc(PAGE_BYTES, ring_chunk_bytes(write->ring));
    if (!writer->last_copy)
        return -ENOMEM;
    if (plan->first_offset > 0) {
        writer->first_copy = aligned_alloc(PAGE_BYTES, ring_chunk_bytes(write->ring));
        if (!writer->first_copy)
            return -ENOMEM;
        ring_writer_add_piece(
            writer, plan->first, writer->first_copy,
            ring_writer_copy(writer, plan->first, plan->first_offset, writer->first_copy));
        writer->next = ring_writer_chunk_after(writer, plan->first);
    }
    ring_writer_retire(writer); /* everything before the beginning is not needed */
    return 0;
}

/* First the io_uring, which reads the copies. */
static void ring_writer_done(struct ring_writer *writer)
{
    uring_free(writer->uring);
    free(writer->first_copy);
    free(writer->last_copy);
}

static int ring_write_content(struct ring_write *write, const struct output_file *file,
                              struct failure *failure)
{
    struct ring_writer writer = {.write = write, .file = file, .next = write->plan.first};
    int r;

    r = ring_writer_set_up(&writer);
    if (r < 0)
        (void)failure_set(failure, r, ERROR_NO_MEMORY, "Cannot write %s: %s.", file->path,
                          strerror(-r));
    else
        r = ring_writer_write(&writer);
    write->written_bytes = writer.retired_offset;
    write->unwritten = r < 0 ? ring_writer_unwritten(&writer) : NULL;
    ring_writer_done(&writer);
    return r;
}

int ring_write_run(struct output_file *file, void *argument, struct failure *failure)
{
    struct ring_write *write = argument;
    int r;

    ring_write_note_progress(write, 0);
    r = snapshot_make_plan(write->ring, write->pin, &write->bounds, write->nr_cpus, &write->plan);
    if (r < 0)
        return r;
    write->is_planned = true;
    write->unwritten = write->plan.first;
    write->is_too_long = write->allowed_bytes && write->plan.bytes > write->allowed_bytes;
    if (write->is_too_long)
        return -EFBIG;
    ring_write_note_progress(write, 0);
    if (!file->is_stream) {
        r = output_file_require(file, write->plan.bytes, failure);
        if (r < 0)
            return r;
        ring_write_note_progress(write, 0);
    }
    return ring_write_content(write, file, failure);
}
