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
 * If it is compressed, a piece is a buffer of output: one is filled while the ones before it are
 * written. A frame begins where a chunk's first round does. Pins are kept from the chunk on in
 * which the frame began, since libzstd holds back a part of it. Space is taken as it is needed: how
 * much that is, is not known beforehand; where there is a limit, the plan is made by trying.
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
#include "daemon/output/pack.h"

#define PIECES_MAX        8u /* being written at once */
#define ABORT_PERIOD_USEC (150 * USEC_PER_MSEC)
#define RETRY_MSEC        10 /* after EAGAIN of a file, which poll(2) cannot wait for */

/* Of what is compressed: so many pieces, of such size; and how long a frame is, at least. */
#define PACKED_PIECES_MAX  4u
#define PACKED_PIECE_BYTES ((uint32_t)512 << 10)
#define FRAME_MIN_BYTES    (UINT64_C(1) << 20)
/* As long as that only if no round begins: then it ends with a window. The seek table has 32 bits.
 */
#define FRAME_MAX_BYTES (UINT64_C(512) << 20)
#define PACK_AT_ONCE    (256u << 10) /* between looks at whether it was aborted */
#define USUAL_RATIO     4u           /* of records to what they take compressed: a first guess */

enum piece_state { PIECE_QUEUED, PIECE_WRITING, PIECE_WRITTEN };

struct piece {
    enum piece_state state;
    const struct chunk *chunk;
    const uint8_t *data;
    uint32_t bytes;
    uint32_t written_bytes;
    uint64_t offset;
};

enum packing_stage { PACKING_CHUNKS, PACKING_LAST_FRAME, PACKING_TABLE, PACKING_DONE };

/* Where a frame ended: the next one begins in CHUNK. */
struct frame_end {
    const struct chunk *chunk; /* NULL: there is none */
    bool from_round;           /* with its first round; else with its first window */
};

struct packing {
    struct pack *pack;
    enum packing_stage stage;
    uint8_t *buffers[PACKED_PIECES_MAX];
    const struct chunk *chunk; /* whose content is being added; NULL: the next one's */
    const uint8_t *data;
    uint32_t added_bytes, bytes; /* of the content */
    uint32_t round;              /* where in it a frame may begin; 0: nowhere, or that is over */
    const struct chunk *frame_chunk; /* where the frame began; NULL: none has */
    struct frame_end *ends;          /* one for each frame */
    size_t max_ends;
};

struct ring_writer {
    struct ring_write *write;
    struct output_file *file;
    struct failure *failure;
    struct packing packing; /* without `pack`: it is not compressed */
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
    uint32_t padding_bytes;  /* of the last piece: not the file's */
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

uint64_t ring_write_total_bytes(const struct ring_write *write)
{
    return __atomic_load_n(&write->total_bytes, __ATOMIC_RELAXED); /* likewise */
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

/* The next chunk's content. Returns its bytes. */
static uint32_t ring_writer_take_chunk(struct ring_writer *writer, const struct chunk **ret_chunk,
                                       const uint8_t **ret_data)
{
    const struct ring_write *write = writer->write;
    const struct chunk *chunk = writer->next;
    bool is_first = chunk == write->plan.first && write->plan.first_offset > 0;
    uint8_t *copy = is_first ? writer->first_copy : writer->last_copy;

    writer->next = ring_writer_chunk_after(writer, chunk);
    *ret_chunk = chunk;
    *ret_data = chunk->data;
    if (!is_first && chunk != write->plan.end && !ring_must_copy_chunk(write->ring, chunk))
        return chunk->fill_bytes;
    *ret_data = copy;
    return ring_writer_copy(writer, chunk, is_first ? write->plan.first_offset : 0, copy);
}

/* --- Compressed pieces. --- */

static void packing_begin_chunk(struct ring_writer *writer)
{
    struct packing *packing = &writer->packing;
    struct ring_chunk_info info;

    packing->bytes = ring_writer_take_chunk(writer, &packing->chunk, &packing->data);
    packing->added_bytes = 0;
    ring_read_chunk(writer->write->ring, packing->chunk, &info);
    packing->round = UINT32_MAX;
    if (packing->chunk != writer->write->plan.first && info.first_round < packing->bytes)
        packing->round = info.first_round;
}

static int packing_note_end(struct packing *packing, struct frame_end end)
{
    size_t nr = pack_frames(packing->pack);

    if (nr > packing->max_ends) {
        size_t max = 2 * nr + 64;
        struct frame_end *ends = reallocarray(packing->ends, max, sizeof(*ends));

        if (!ends)
            return -ENOMEM;
        packing->ends = ends;
        packing->max_ends = max;
    }
    if (nr > 0)
        packing->ends[nr - 1] = end;
    packing->frame_chunk = end.chunk;
    return 0;
}

/* Ends the frame; the next one begins in END.chunk. False: the buffer is full. */
static bool packing_end_frame(struct ring_writer *writer, struct frame_end end)
{
    int r;

    if (!pack_end_frame(writer->packing.pack))
        return false;
    r = packing_note_end(&writer->packing, end);
    if (r < 0 && !writer->error)
        writer->error = r;
    return true;
}

/* Adds some of the chunk, up to where a frame may begin. False: the buffer is full. */
static bool packing_add(struct ring_writer *writer)
{
    struct packing *packing = &writer->packing;
    uint32_t at = packing->added_bytes, until = packing->bytes;
    uint64_t frame_bytes = pack_frame_bytes(packing->pack);

    if (at == packing->round && frame_bytes >= FRAME_MIN_BYTES &&
        !packing_end_frame(writer, (struct frame_end){packing->chunk, at > 0}))
        return false;
    if (at == 0 && pack_frame_bytes(packing->pack) >= FRAME_MAX_BYTES &&
        !packing_end_frame(writer, (struct frame_end){packing->chunk, false}))
        return false;
    if (!packing->frame_chunk)
        packing->frame_chunk = packing->chunk;
    if (at < packing->round)
        until = (uint32_t)min_u64(until, packing->round);
    packing->added_bytes +=
        (uint32_t)pack_add(packing->pack, packing->data + at, min_u64(until - at, PACK_AT_ONCE));
    if (packing->added_bytes == packing->bytes)
        packing->chunk = NULL;
    return pack_output_bytes(packing->pack) < PACKED_PIECE_BYTES;
}

/* One step to the end of the file. False: the buffer is full. */
static bool packing_step(struct ring_writer *writer)
{
    struct packing *packing = &writer->packing;
    bool has_room = true;

    switch (packing->stage) {
    case PACKING_CHUNKS:
        if (!packing->chunk && !writer->next) {
            packing->stage = PACKING_LAST_FRAME;
            break;
        }
        if (!packing->chunk)
            packing_begin_chunk(writer);
        has_room = packing_add(writer);
        break;
    case PACKING_LAST_FRAME:
        has_room = packing_end_frame(writer, (struct frame_end){0});
        packing->stage += has_room;
        break;
    case PACKING_TABLE:
        has_room = pack_end(packing->pack);
        packing->stage += has_room;
        break;
    case PACKING_DONE:
        break;
    }
    if (pack_error(packing->pack) < 0 && !writer->error)
        writer->error = pack_error(packing->pack);
    return has_room;
}

/* The limit of the user, and the space on the disk. */
static int ring_writer_check_space(struct ring_writer *writer, uint64_t bytes)
{
    struct ring_write *write = writer->write;

    write->is_too_long = write->allowed_bytes && bytes > write->allowed_bytes;
    if (write->is_too_long) {
        write->plan.bytes = bytes;
        return -EFBIG;
    }
    return writer->file->is_stream ? 0 : output_file_require(writer->file, bytes, writer->failure);
}

/* Fills BUFFER, unless the file ends before, or it is given up. */
static void ring_writer_pack(struct ring_writer *writer, uint8_t *buffer)
{
    struct packing *packing = &writer->packing;

    pack_set_output(packing->pack, buffer, PACKED_PIECE_BYTES);
    while (packing->stage < PACKING_DONE && !writer->error && packing_step(writer) &&
           !ring_write_is_aborted(writer->write))
        continue;
}

/* Fills a buffer, which becomes a piece: of whole pages, as files with O_DIRECT want it. */
static void ring_writer_pack_piece(struct ring_writer *writer)
{
    struct packing *packing = &writer->packing;
    const struct chunk *pinned = packing->frame_chunk ? packing->frame_chunk : writer->next;
    uint8_t *buffer = packing->buffers[(writer->head + writer->nr_pieces) % PACKED_PIECES_MAX];
    uint32_t bytes, padding = 0;
    int r;

    ring_writer_pack(writer, buffer);
    if (writer->error || ring_write_is_aborted(writer->write))
        return;
    ring_write_note_progress(writer->write, 0);
    bytes = (uint32_t)pack_output_bytes(packing->pack);
    if (writer->file->is_direct)
        padding = (uint32_t)align_up(bytes, PAGE_BYTES) - bytes;
    memset(buffer + bytes, 0, padding);
    r = ring_writer_check_space(writer, writer->end_offset + bytes + padding);
    if (r < 0) {
        writer->error = r;
        return;
    }
    ring_writer_add_piece(writer, pinned, buffer, bytes + padding);
    writer->padding_bytes = padding;
}

/* How many pieces may be under way. */
static unsigned int ring_writer_max(const struct ring_writer *writer)
{
    if (writer->file->is_stream) /* one after the other, for they have no offsets */
        return 1;
    return writer->packing.pack ? PACKED_PIECES_MAX : PIECES_MAX;
}

static bool ring_writer_has_more(const struct ring_writer *writer)
{
    if (writer->packing.pack)
        return writer->packing.stage < PACKING_DONE;
    return writer->next;
}

static void ring_writer_add_next(struct ring_writer *writer)
{
    const struct chunk *chunk;
    const uint8_t *data;
    uint32_t bytes;

    if (writer->packing.pack) {
        ring_writer_pack_piece(writer);
        return;
    }
    bytes = ring_writer_take_chunk(writer, &chunk, &data);
    ring_writer_add_piece(writer, chunk, data, bytes);
}

static void ring_writer_submit(struct ring_writer *writer)
{
    unsigned int max = ring_writer_max(writer);

    while (ring_writer_has_more(writer) && writer->nr_pieces < max && !writer->error &&
           !ring_write_is_aborted(writer->write))
        ring_writer_add_next(writer);
    for (unsigned int i = 0; i < writer->nr_pieces && writer->nr_writing < max; i++)
        if (ring_writer_piece(writer, i)->state == PIECE_QUEUED)
            ring_writer_submit_piece(writer, ring_writer_piece(writer, i));
}

static const struct chunk *ring_writer_unwritten(struct ring_writer *writer)
{
    if (writer->nr_pieces > 0)
        return ring_writer_piece(writer, 0)->chunk;
    return writer->packing.frame_chunk ? writer->packing.frame_chunk : writer->next;
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
    if (uring_is_transient(result))
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
    return writer->nr_writing == 0 &&
           (writer->error || (writer->nr_pieces == 0 && !ring_writer_has_more(writer)));
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

static int packing_set_up(struct packing *packing)
{
    int r = pack_new(&packing->pack);

    if (r < 0)
        return r;
    for (unsigned int i = 0; i < PACKED_PIECES_MAX; i++) {
        packing->buffers[i] = aligned_alloc(PAGE_BYTES, PACKED_PIECE_BYTES);
        if (!packing->buffers[i])
            return -ENOMEM;
    }
    return 0;
}

static void packing_done(struct packing *packing)
{
    pack_free(packing->pack);
    for (unsigned int i = 0; i < PACKED_PIECES_MAX; i++)
        free(packing->buffers[i]);
    free(packing->ends);
}

/* The memory for writing, and for measuring. */
static int ring_writer_allocate(struct ring_writer *writer)
{
    const struct ring_write *write = writer->write;

    writer->last_copy = aligned_alloc(PAGE_BYTES, ring_chunk_bytes(write->ring));
    if (!writer->last_copy)
        return -ENOMEM;
    if (write->plan.first_offset > 0) {
        writer->first_copy = aligned_alloc(PAGE_BYTES, ring_chunk_bytes(write->ring));
        if (!writer->first_copy)
            return -ENOMEM;
    }
    return write->is_packed ? packing_set_up(&writer->packing) : 0;
}

static int ring_writer_set_up(struct ring_writer *writer)
{
    int r;

    r = ring_writer_allocate(writer);
    if (r < 0)
        return r;
    r = uring_new(PIECES_MAX * 2, &writer->uring);
    if (r < 0)
        return r;
    ring_writer_retire(writer); /* everything before the beginning is not needed */
    return 0;
}

/* First the io_uring, which reads the copies. */
static void ring_writer_done(struct ring_writer *writer)
{
    uring_free(writer->uring);
    packing_done(&writer->packing);
    free(writer->first_copy);
    free(writer->last_copy);
}

/* Notes which part of the file is valid, and where the records begin that are not in it. */
static void ring_writer_note_end(struct ring_writer *writer, int error)
{
    struct ring_write *write = writer->write;
    const struct pack *pack = writer->packing.pack;
    size_t nr;

    write->written_bytes = write->plain_bytes = writer->retired_offset;
    write->unwritten = error < 0 ? ring_writer_unwritten(writer) : NULL;
    if (!pack)
        return;
    if (error == 0) {
        write->written_bytes -= writer->padding_bytes;
        write->plain_bytes = pack_plain_before(pack, pack_frames(pack));
        return;
    }
    for (nr = pack_frames(pack); pack_stored_before(pack, nr) > writer->retired_offset; nr--)
        continue;
    write->written_bytes = pack_stored_before(pack, nr);
    write->plain_bytes = pack_plain_before(pack, nr);
    write->unwritten = nr > 0 ? writer->packing.ends[nr - 1].chunk : write->plan.first;
    write->is_partly_written = nr > 0 && writer->packing.ends[nr - 1].from_round;
}

static int explain_set_up(const struct output_file *file, int error, struct failure *failure)
{
    return failure_set(failure, error, ERROR_NO_MEMORY, "Cannot write %s: %s.", file->path,
                       strerror(-error));
}

static int ring_write_content(struct ring_write *write, struct output_file *file,
                              struct failure *failure)
{
    _cleanup_(ring_writer_done) struct ring_writer writer = {
        .write = write,
        .file = file,
        .failure = failure,
        .next = write->plan.first,
    };
    int r;

    r = ring_writer_set_up(&writer);
    if (r < 0)
        (void)explain_set_up(file, r, failure);
    else
        r = ring_writer_write(&writer);
    ring_writer_note_end(&writer, r);
    return r;
}

/* --- A limit of what is stored. --- */

/* How long the plan becomes by compression; and how long the newest frames of it that fit into the
 * limit are without; 0: none fits. */
struct measured {
    uint64_t stored_bytes;
    uint64_t fitting_bytes;
};

static int ring_writer_pack_all(struct ring_writer *writer)
{
    struct packing *packing = &writer->packing;

    while (packing->stage < PACKING_DONE && !writer->error) {
        if (ring_write_is_aborted(writer->write))
            return -ECANCELED;
        ring_writer_pack(writer, packing->buffers[0]);
        ring_write_note_progress(writer->write, 0);
    }
    return writer->error;
}

static struct measured packing_measured(const struct pack *pack, uint64_t max_bytes)
{
    size_t nr = pack_frames(pack), first = 0;
    uint64_t table_bytes = pack_table_bytes(pack);
    uint64_t end = pack_stored_before(pack, nr) + table_bytes;

    while (first < nr && end - pack_stored_before(pack, first) > max_bytes)
        first++;
    return (struct measured){
        .stored_bytes = end,
        .fitting_bytes = pack_plain_before(pack, nr) - pack_plain_before(pack, first),
    };
}

static int ring_write_measure(struct ring_write *write, const struct output_file *file,
                              struct measured *ret_measured, struct failure *failure)
{
    _cleanup_(ring_writer_done) struct ring_writer writer = {
        .write = write,
        .next = write->plan.first,
    };
    int r;

    r = ring_writer_allocate(&writer);
    if (r < 0)
        return explain_set_up(file, r, failure);
    r = ring_writer_pack_all(&writer);
    if (r < 0)
        return r;
    *ret_measured = packing_measured(writer.packing.pack, write->bounds.max_bytes);
    return 0;
}

static int ring_write_plan(struct ring_write *write, uint64_t max_bytes)
{
    struct snapshot_bounds bounds = write->bounds;
    int r;

    bounds.max_bytes = max_bytes;
    r = snapshot_make_plan(write->ring, write->pin, &bounds, write->nr_cpus, &write->plan);
    write->is_planned = r >= 0;
    if (write->is_planned && !write->is_packed)
        __atomic_store_n(&write->total_bytes, write->plan.bytes, __ATOMIC_RELAXED);
    return r;
}

/* The limit of the next plan, before compression, if this one turned out to be too long. */
static uint64_t shorten_plan(const struct ring_write *write, const struct measured *measured)
{
    double part = (double)write->bounds.max_bytes / (double)measured->stored_bytes;

    if (measured->fitting_bytes > 0)
        return measured->fitting_bytes;
    return max_u64((uint64_t)((double)write->plan.bytes * part * 0.9), 1);
}

/* Plans for LIMIT before compression, and measures that plan. */
static int ring_write_try(struct ring_write *write, uint64_t limit, const struct output_file *file,
                          struct measured *ret_measured, struct failure *failure)
{
    int r;

    r = ring_write_plan(write, limit);
    if (r < 0)
        return r;
    return ring_write_measure(write, file, ret_measured, failure);
}

/*
 * How long records turn out to be is known when they are compressed. So they are, and nothing is
 * kept: more and more of the newest ones until they are too long, then fewer until they fit.
 * Written, they are as long as they were measured.
 */
static int ring_write_plan_packed(struct ring_write *write, const struct output_file *file,
                                  struct failure *failure)
{
    uint64_t max_bytes = write->bounds.max_bytes;
    uint64_t limit = max_bytes > UINT64_MAX / USUAL_RATIO ? 0 : max_bytes * USUAL_RATIO;
    struct measured measured = {0};
    uint64_t all_bytes;
    int r;

    r = ring_write_plan(write, 0);
    if (r < 0)
        return r;
    all_bytes = write->plan.bytes;
    for (; measured.stored_bytes <= max_bytes; limit *= 2) {
        if (limit > all_bytes)
            limit = 0; /* no limit */
        r = ring_write_try(write, limit, file, &measured, failure);
        if (r < 0 && r != -EFBIG) /* compressed, a round may fit */
            return r;
        if (limit == 0 && measured.stored_bytes <= max_bytes)
            return r;
    }
    while (measured.stored_bytes > max_bytes) {
        r = ring_write_try(write, shorten_plan(write, &measured), file, &measured, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

int ring_write_run(struct output_file *file, void *argument, struct failure *failure)
{
    struct ring_write *write = argument;
    int r;

    ring_write_note_progress(write, 0);
    if (write->is_packed && write->bounds.max_bytes)
        r = ring_write_plan_packed(write, file, failure);
    else
        r = ring_write_plan(write, write->bounds.max_bytes);
    if (write->is_planned)
        write->unwritten = write->plan.first;
    if (r < 0)
        return r;
    write->is_too_long =
        !write->is_packed && write->allowed_bytes && write->plan.bytes > write->allowed_bytes;
    if (write->is_too_long)
        return -EFBIG;
    ring_write_note_progress(write, 0);
    if (!file->is_stream && !write->is_packed) {
        r = output_file_require(file, write->plan.bytes, failure);
        if (r < 0)
            return r;
        ring_write_note_progress(write, 0);
    }
    return ring_write_content(write, file, failure);
}
