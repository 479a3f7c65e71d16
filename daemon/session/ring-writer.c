// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pieces are written several at once and retired in order; a piece is a chunk, or, if the snapshot
 * begins inside one, a copy of its rest: O_DIRECT wants aligned memory.
 */

#include "daemon/session/ring-writer.h"

#include <errno.h>
#include <stdlib.h>

#include <systemd/sd-event.h>

#include "collector/pool.h"
#include "collector/ring.h"
#include "collector/uring.h"
#include "daemon/session/snapshot-plan.h"

#define PIECES_MAX 8u /* being written at once */

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
    struct ring_writer_config config;
    struct uring *uring;
    struct sd_event_source *source;
    uint8_t *copy;                   /* of the first chunk's rest, page aligned */
    const struct chunk *next;        /* to become a piece; NULL: all have */
    struct piece pieces[PIECES_MAX]; /* a queue: in order, from `head` on */
    unsigned int head;
    unsigned int nr_pieces;
    unsigned int nr_writing;
    uint64_t end_offset;     /* behind the last piece */
    uint64_t retired_offset; /* behind what is written without a gap */
    int error;
};

static struct piece *piece_at(struct ring_writer *writer, unsigned int i)
{
    return &writer->pieces[(writer->head + i) % PIECES_MAX];
}

static struct piece *add_piece(struct ring_writer *writer, const struct chunk *chunk,
                               const uint8_t *data, uint32_t bytes)
{
    struct piece *piece = piece_at(writer, writer->nr_pieces++);

    *piece = (struct piece){
        .chunk = chunk,
        .data = data,
        .bytes = bytes,
        .offset = writer->end_offset,
    };
    writer->end_offset += bytes;
    return piece;
}

static void submit_piece(struct ring_writer *writer, struct piece *piece)
{
    uint64_t offset = URING_NO_OFFSET;

    if (!writer->config.is_stream)
        offset = piece->offset + piece->written_bytes;
    /* The ring has room: it has an entry for each piece. */
    if (uring_write(writer->uring, writer->config.fd, piece->data + piece->written_bytes,
                    piece->bytes - piece->written_bytes, offset, (uintptr_t)piece) < 0)
        return;
    piece->state = PIECE_WRITING;
    writer->nr_writing++;
}

static void submit(struct ring_writer *writer)
{
    unsigned int max = writer->config.is_stream ? 1 : PIECES_MAX;

    while (writer->next && writer->nr_pieces < max) {
        const struct chunk *chunk = writer->next;

        writer->next = ring_pin_next(writer->config.ring, writer->config.pin, chunk);
        (void)add_piece(writer, chunk, chunk->data, chunk->fill_bytes);
    }
    for (unsigned int i = 0; i < writer->nr_pieces && writer->nr_writing < max; i++)
        if (piece_at(writer, i)->state == PIECE_QUEUED)
            submit_piece(writer, piece_at(writer, i));
}

/* Gives up the pins of what is written without a gap. */
static void retire(struct ring_writer *writer)
{
    while (writer->nr_pieces > 0 && piece_at(writer, 0)->state == PIECE_WRITTEN) {
        writer->retired_offset += piece_at(writer, 0)->bytes;
        writer->head = (writer->head + 1) % PIECES_MAX;
        writer->nr_pieces--;
    }
    if (ring_writer_unwritten(writer))
        ring_advance_pin(writer->config.ring, writer->config.pin, ring_writer_unwritten(writer));
}

static void note_result(struct ring_writer *writer, struct piece *piece, int result)
{
    int64_t written = uring_write_progress(result, piece->bytes, piece->written_bytes,
                                           writer->config.align_bytes);

    writer->nr_writing--;
    piece->state = PIECE_QUEUED;
    if (written < 0) {
        if (!writer->error)
            writer->error = (int)written;
        return;
    }
    piece->written_bytes = (uint32_t)written;
    if (piece->written_bytes == piece->bytes)
        piece->state = PIECE_WRITTEN;
}

/* Whether nothing more will come. */
static bool is_done(const struct ring_writer *writer)
{
    return writer->nr_writing == 0 && (writer->error || (writer->nr_pieces == 0 && !writer->next));
}

static void go_on(struct ring_writer *writer)
{
    struct uring_event events[PIECES_MAX];
    int n;

    do {
        if (!writer->error)
            submit(writer);
        n = uring_wait(writer->uring, 0, events, PIECES_MAX);
        for (int i = 0; i < n; i++)
            note_result(writer, (struct piece *)(uintptr_t)events[i].tag, events[i].result);
        if (n < 0 && !writer->error)
            writer->error = n;
        retire(writer);
    } while (n > 0 && !is_done(writer));
    /* An io_uring that is out of order completes nothing any more. */
    if (!is_done(writer) && n >= 0)
        return;
    writer->source = sd_event_source_disable_unref(writer->source);
    ring_advance_pin(writer->config.ring, writer->config.pin, NULL);
    writer->config.done(writer->config.userdata, writer->error); /* may free the writer */
}

static int handle_completions(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    (void)source, (void)fd, (void)revents;
    go_on(userdata);
    return 0;
}

/* From the event loop, so that `done` never comes before ring_writer_new() has returned. */
static int handle_start(sd_event_source *source, void *userdata)
{
    struct ring_writer *writer = userdata;
    int r;

    (void)source;
    writer->source = sd_event_source_disable_unref(writer->source);
    r = sd_event_add_io(writer->config.event, &writer->source, uring_fd(writer->uring), EPOLLIN,
                        handle_completions, writer);
    if (r < 0)
        writer->error = r;
    go_on(writer);
    return 0;
}

static int set_up(struct ring_writer *writer, const struct snapshot_plan *plan)
{
    int r;

    r = uring_new(PIECES_MAX * 2, true, &writer->uring);
    if (r < 0)
        return r;
    writer->next = plan->first;
    if (plan->first_offset > 0) {
        writer->copy = aligned_alloc(PAGE_BYTES, ring_chunk_bytes(writer->config.ring));
        if (!writer->copy)
            return -ENOMEM;
        (void)add_piece(writer, plan->first, writer->copy, snapshot_copy_first(plan, writer->copy));
        writer->next = ring_pin_next(writer->config.ring, writer->config.pin, plan->first);
    }
    retire(writer); /* what lies before the beginning is not needed */
    r = sd_event_add_defer(writer->config.event, &writer->source, handle_start, writer);
    return r;
}

int ring_writer_new(const struct ring_writer_config *config, const struct snapshot_plan *plan,
                    struct ring_writer **ret_writer)
{
    struct ring_writer *writer = calloc(1, sizeof(*writer));
    int r;

    if (!writer)
        return -ENOMEM;
    writer->config = *config;
    r = set_up(writer, plan);
    if (r < 0) {
        ring_writer_free(writer);
        return r;
    }
    *ret_writer = writer;
    return 0;
}

struct ring_writer *ring_writer_free(struct ring_writer *writer)
{
    if (!writer)
        return NULL;
    sd_event_source_disable_unref(writer->source);
    uring_free(writer->uring);
    free(writer->copy);
    free(writer);
    return NULL;
}

void ring_writer_abort(struct ring_writer *writer)
{
    if (!writer->error)
        writer->error = -ECANCELED;
    for (unsigned int i = 0; i < writer->nr_pieces; i++)
        if (piece_at(writer, i)->state == PIECE_WRITING)
            (void)uring_cancel(writer->uring, (uintptr_t)piece_at(writer, i));
    go_on(writer);
}

uint64_t ring_writer_bytes(const struct ring_writer *writer)
{
    return writer->retired_offset;
}

const struct chunk *ring_writer_unwritten(const struct ring_writer *writer)
{
    return writer->nr_pieces > 0 ? writer->pieces[writer->head].chunk : writer->next;
}
