// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A file is read by blocks (trace/blocks.h): first the headers of its windows, and then their
 * records, a piece at a time: a window may be larger than memory. If so many CPUs have windows at
 * once that all blocks are in use, the others get small pieces of their own.
 *
 * Of a stream, and of what is compressed, each window is read into memory of its own, which the
 * reader gives back: windows of foreign files may begin in one frame and end in another.
 */

#include "trace/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/record.h"
#include "common/unpack.h"
#include "common/util.h"
#include "trace/blocks.h"

/* So many headers in a row are no accident. */
#define CHAIN_WINDOWS 4u

#define STREAM_BUFFER_BYTES (256u * 1024u)

/* With 16384 CPUs, 128 MiB. */
#define PIECE_BYTES (8u * 1024u)

/* In xentraced's files each frame begins with a window. Others may have none for a while. */
#define SEEK_FRAMES_MAX 64u

struct source {
    int fd;              /* -1: memory */
    uint64_t file_bytes; /* when it was opened; of no file: 0 */
    bool is_pipe;
    const uint8_t *data; /* of memory */
    uint64_t bytes;      /* of the content; of a stream: read so far */
    uint64_t offset, start;
    struct unpack *unpack; /* it is compressed, and read through this; NULL: it is not */
    bool is_damaged;
    bool has_ended;
    int error; /* the first one of reading */

    struct blocks *blocks; /* of a file that is not compressed; NULL: none */

    uint8_t *buffer; /* of a stream: what was read and not used */
    size_t buffered, used;
    uint64_t held_bytes; /* of a stream's windows that were not released */
};

static int source_new(struct source **ret_source)
{
    struct source *source = calloc(1, sizeof(*source));

    if (!source)
        return -ENOMEM;
    source->fd = -1;
    *ret_source = source;
    return 0;
}

struct source *source_free(struct source *source)
{
    if (!source)
        return NULL;
    blocks_free(source->blocks);
    fd_close(&source->fd);
    unpack_free(source->unpack);
    free(source->buffer);
    free(source);
    return NULL;
}

static void source_freep(struct source **source)
{
    source_free(*source);
}

/* Continues with what UNPACK has. */
static void source_note_packing(struct source *source)
{
    source->offset = source->start = 0;
    source->bytes = unpack_can_seek(source->unpack) ? unpack_bytes(source->unpack) : 0;
}

int source_new_memory(const void *data, uint64_t bytes, struct source **ret_source)
{
    _cleanup_(source_freep) struct source *source = NULL;
    int r = source_new(&source);

    if (r < 0)
        return r;
    source->data = data;
    source->bytes = bytes;
    if (unpack_is_packed(data, min_u64(bytes, UNPACK_MAGIC_BYTES))) {
        source->buffer = malloc(STREAM_BUFFER_BYTES);
        if (!source->buffer)
            return -ENOMEM;
        r = unpack_new_memory(data, bytes, &source->unpack);
        if (r < 0)
            return r;
        source_note_packing(source);
    }
    *ret_source = TAKE_PTR(source);
    return 0;
}

static int source_begin_file(struct source *source, int fd, uint64_t bytes)
{
    off_t at = lseek(fd, 0, SEEK_CUR);
    uint8_t magic[UNPACK_MAGIC_BYTES];
    ssize_t n;
    int r;

    source->bytes = source->file_bytes = bytes;
    source->offset = source->start = at > 0 ? min_u64((uint64_t)at, bytes) : 0;
    do
        n = pread(fd, magic, sizeof(magic), (off_t)source->start);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    if (!unpack_is_packed(magic, (size_t)n))
        return blocks_new(fd, &source->blocks);
    source->buffer = malloc(STREAM_BUFFER_BYTES);
    if (!source->buffer)
        return -ENOMEM;
    r = unpack_new_fd(fd, NULL, 0, &source->unpack);
    if (r < 0)
        return r;
    source_note_packing(source);
    return 0;
}

/* Reads what decides whether a pipe's bytes are compressed. */
static int source_begin_stream(struct source *source, int fd)
{
    int r;

    source->buffer = malloc(STREAM_BUFFER_BYTES);
    if (!source->buffer)
        return -ENOMEM;
    while (source->buffered < UNPACK_MAGIC_BYTES) {
        ssize_t n =
            read(fd, source->buffer + source->buffered, STREAM_BUFFER_BYTES - source->buffered);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        source->buffered += (size_t)n;
    }
    if (!unpack_is_packed(source->buffer, source->buffered))
        return 0;
    r = unpack_new_fd(fd, source->buffer, source->buffered, &source->unpack);
    source->buffered = 0;
    return r;
}

int source_new_fd(int fd, struct source **ret_source)
{
    _cleanup_(source_freep) struct source *source = NULL;
    _cleanup_fd_ int owned = fd;
    struct stat status;
    int r;

    r = source_new(&source);
    if (r < 0)
        return r;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    if (S_ISREG(status.st_mode)) {
        r = source_begin_file(source, fd, (uint64_t)status.st_size);
    } else {
        source->is_pipe = true;
        r = source_begin_stream(source, fd);
    }
    if (r < 0)
        return r;
    source->fd = fd_take(&owned);
    *ret_source = TAKE_PTR(source);
    return 0;
}

bool source_is_stream(const struct source *source)
{
    return source->is_pipe || (source->unpack && !unpack_can_seek(source->unpack));
}

bool source_is_packed(const struct source *source)
{
    return source->unpack;
}

bool source_keeps_windows(const struct source *source)
{
    return !source->is_pipe && !source->unpack;
}

/* --- A file, or memory. --- */

/* Notes the first error. Returns R. */
static int source_note_error(struct source *source, int r)
{
    if (r < 0 && source->error == 0)
        source->error = r;
    return r;
}

/* The bytes at OFFSET, at least BYTES, which the file had; until the next call. NULL: an error. */
static const uint8_t *look_at(struct source *source, uint64_t offset, uint32_t bytes,
                              uint32_t *ret_bytes)
{
    const uint8_t *p;

    if (source->blocks)
        return source_note_error(source,
                                 blocks_look(source->blocks, offset, bytes, &p, ret_bytes)) < 0
                   ? NULL
                   : p;
    *ret_bytes = (uint32_t)min_u64(source->bytes - offset, UINT32_MAX);
    return source->data + offset;
}

/* Copies the header at OFFSET. What was looked at stays. False: the content ends before; an error.
 */
static bool read_header(struct source *source, uint64_t offset, uint8_t p[WINDOW_HEADER_BYTES])
{
    if (source->bytes - offset < WINDOW_HEADER_BYTES)
        return false;
    if (source->blocks)
        return source_note_error(source,
                                 blocks_copy(source->blocks, offset, WINDOW_HEADER_BYTES, p)) >= 0;
    memcpy(p, source->data + offset, WINDOW_HEADER_BYTES);
    return true;
}

/* The window at OFFSET, whose header is at P. False: there is none. */
static bool window_of(const struct source *source, uint64_t offset, const uint8_t *p,
                      struct source_window *ret_window)
{
    struct window_header header;

    if (!window_parse(p, &header) || header.bytes > source->bytes - offset - WINDOW_HEADER_BYTES)
        return false;
    *ret_window = (struct source_window){
        .offset = offset,
        .cpu = header.cpu,
        .bytes = header.bytes,
        .records = source->data ? source->data + offset + WINDOW_HEADER_BYTES : NULL,
    };
    return true;
}

/* Whether a window begins at OFFSET, and after it others, or the file ends. */
static bool begins_windows(struct source *source, uint64_t offset)
{
    for (unsigned int i = 0; i < CHAIN_WINDOWS; i++) {
        uint8_t header[WINDOW_HEADER_BYTES];
        struct source_window window;

        if (offset == source->bytes)
            return i > 0;
        if (!read_header(source, offset, header) || !window_of(source, offset, header, &window))
            return false;
        offset += WINDOW_HEADER_BYTES + window.bytes;
    }
    return true;
}

/* The first offset from FROM on at which windows begin; the end: none. */
static uint64_t find_windows(struct source *source, uint64_t from)
{
    struct source_window window;

    from = align_up(from, 4);
    while (from < source->bytes && source->bytes - from >= WINDOW_HEADER_BYTES) {
        uint32_t bytes;
        const uint8_t *p = look_at(source, from, WINDOW_HEADER_BYTES, &bytes);

        for (; p && bytes >= WINDOW_HEADER_BYTES; p += 4, bytes -= 4, from += 4)
            if (window_of(source, from, p, &window) && begins_windows(source, from))
                return from;
        if (!p)
            break;
    }
    return source->bytes;
}

static int next_in_file(struct source *source, struct source_window *ret_window)
{
    const uint8_t *p = NULL;
    uint32_t bytes;

    if (source->offset == source->bytes)
        return 0;
    if (source->bytes - source->offset >= WINDOW_HEADER_BYTES) {
        p = look_at(source, source->offset, WINDOW_HEADER_BYTES, &bytes);
        if (!p)
            return source->error;
    }
    if (!p || !window_of(source, source->offset, p, ret_window)) {
        source->is_damaged = true;
        return 0;
    }
    source->offset += WINDOW_HEADER_BYTES + ret_window->bytes;
    return 1;
}

/* --- A stream, or compressed. --- */

/* Fills the buffer, of which all is used. 1; 0: there is no more; or -errno. */
static int fill_buffer(struct source *source)
{
    ssize_t n;

    if (source->unpack) {
        n = unpack_read(source->unpack, source->buffer, STREAM_BUFFER_BYTES);
    } else {
        do
            n = read(source->fd, source->buffer, STREAM_BUFFER_BYTES);
        while (n < 0 && errno == EINTR);
        n = n < 0 ? -errno : n;
    }
    source->used = 0;
    source->buffered = n > 0 ? (size_t)n : 0;
    return n < 0 ? source_note_error(source, (int)n) : n > 0;
}

/* Reads BYTES into P. Returns how many there were: fewer at the end only. */
static ssize_t read_stream(struct source *source, uint8_t *p, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        size_t length = min_u64(bytes - done, source->buffered - source->used);
        int r;

        if (length > 0) {
            memcpy(p + done, source->buffer + source->used, length);
            source->used += length;
            done += length;
            continue;
        }
        r = fill_buffer(source);
        if (r < 0)
            return r;
        if (r == 0)
            break;
    }
    return (ssize_t)done;
}

/* The records of a window, which may say that it is larger than all that is left: memory grows as
 * they come. */
static int read_records(struct source *source, uint32_t bytes, uint8_t **ret_records)
{
    _cleanup_free_ char *records = NULL;
    uint32_t done = 0;

    while (done < bytes || !records) {
        uint32_t part = (uint32_t)min_u64(bytes - done, done + STREAM_BUFFER_BYTES);
        char *more = realloc(records, done + part + 1);
        ssize_t n;

        if (!more)
            return -ENOMEM;
        records = more;
        n = read_stream(source, (uint8_t *)records + done, part);
        if (n < 0)
            return (int)n;
        if ((uint32_t)n < part)
            return 0;
        done += part;
    }
    *ret_records = (uint8_t *)TAKE_PTR(records);
    return 1;
}

static int next_streamed(struct source *source, struct source_window *ret_window)
{
    uint8_t bytes[WINDOW_HEADER_BYTES];
    struct window_header header;
    uint8_t *records = NULL;
    ssize_t n;
    int r;

    n = read_stream(source, bytes, sizeof(bytes));
    if (n < 0)
        return (int)n;
    if (n == 0) {
        source->is_damaged = source->unpack && unpack_damage(source->unpack) != UNPACK_SOUND;
        return 0;
    }
    source->is_damaged = true;
    if ((size_t)n < sizeof(bytes) || !window_parse(bytes, &header))
        return 0;
    if (header.bytes > SOURCE_HELD_MAX_BYTES - source->held_bytes)
        return -EFBIG;
    r = read_records(source, header.bytes, &records);
    if (r <= 0)
        return r;
    source->is_damaged = false;
    source->held_bytes += header.bytes;
    *ret_window = (struct source_window){
        .offset = source->offset, .cpu = header.cpu, .bytes = header.bytes, .records = records};
    source->offset += WINDOW_HEADER_BYTES + header.bytes;
    if (source_is_stream(source))
        source->bytes = source->offset;
    return 1;
}

/* Continues at OFFSET of what is compressed. */
static int seek_packed(struct source *source, uint64_t offset)
{
    source->offset = offset;
    source->used = source->buffered = 0;
    return source_note_error(source, unpack_seek(source->unpack, offset));
}

/* Whether what comes next begins with a window's header. */
static bool begins_window(struct source *source)
{
    struct window_header header;

    return fill_buffer(source) > 0 && source->buffered >= WINDOW_HEADER_BYTES &&
           window_parse(source->buffer, &header);
}

static bool seek_window_packed(struct source *source, uint64_t offset)
{
    for (unsigned int i = 0; i < SEEK_FRAMES_MAX; i++) {
        offset = unpack_next_frame(source->unpack, offset);
        if (offset >= source->bytes)
            break;
        if (seek_packed(source, offset) == 0 && begins_window(source))
            return true;
        offset++;
    }
    (void)seek_packed(source, source->bytes);
    return false;
}

int source_next(struct source *source, struct source_window *ret_window)
{
    int r;

    if (source->error < 0)
        return source->error;
    if (source->has_ended)
        return 0;
    r = source_keeps_windows(source) ? next_in_file(source, ret_window)
                                     : next_streamed(source, ret_window);
    source->has_ended = r <= 0;
    return source_note_error(source, r);
}

void source_release(struct source *source, const struct source_window *window)
{
    if (source_keeps_windows(source))
        return;
    source->held_bytes -= window->bytes;
    free((void *)(uintptr_t)window->records);
}

/* --- Records. --- */

const uint8_t *source_look(struct source *source, const struct source_window *window, uint32_t skip,
                           uint32_t *ret_bytes)
{
    uint32_t left = window->bytes - skip, bytes;
    const uint8_t *p;

    *ret_bytes = left;
    if (window->records)
        return window->records + skip;
    p = look_at(source, window->offset + WINDOW_HEADER_BYTES + skip,
                (uint32_t)min_u64(left, RECORD_MAX_BYTES), &bytes);
    *ret_bytes = (uint32_t)min_u64(left, bytes);
    return p;
}

int source_take(struct source *source, const struct source_window *window, uint32_t skip,
                struct source_piece *ret_piece)
{
    struct source_piece piece = {.bytes = window->bytes - skip};
    uint64_t offset = window->offset + WINDOW_HEADER_BYTES + skip;
    int r;

    if (window->records || piece.bytes == 0) {
        *ret_piece = (struct source_piece){
            window->records ? window->records + skip : (const uint8_t *)source, piece.bytes, NULL};
        return 0;
    }
    piece.bytes = (uint32_t)min_u64(piece.bytes, BLOCK_BYTES);
    r = blocks_take(source->blocks, offset, piece.bytes, &piece.p);
    if (r == 0) {
        piece.bytes = (uint32_t)min_u64(piece.bytes, PIECE_BYTES);
        piece.p = piece.allocated = malloc(piece.bytes);
        r = piece.p ? blocks_copy(source->blocks, offset, piece.bytes, piece.allocated) : -ENOMEM;
    }
    if (r < 0) {
        free(piece.allocated);
        return source_note_error(source, r);
    }
    *ret_piece = piece;
    return 0;
}

void source_release_piece(struct source *source, struct source_piece *piece)
{
    if (source->blocks && !piece->allocated)
        blocks_release(source->blocks, piece->p);
    free(piece->allocated);
    *piece = (struct source_piece){0};
}

/* --- Seeking. --- */

bool source_seek(struct source *source, uint64_t offset)
{
    source->has_ended = false;
    source->is_damaged = false;
    if (source->unpack && offset > 0)
        return seek_window_packed(source, offset);
    if (offset <= source->start) {
        source->offset = source->start;
        if (source->unpack)
            (void)seek_packed(source, 0); /* nothing is unpacked for it */
        return source->offset < source->bytes;
    }
    source->offset = find_windows(source, offset);
    return source->offset < source->bytes;
}

void source_return(struct source *source, uint64_t offset)
{
    source->has_ended = false;
    source->is_damaged = false;
    source->offset = offset;
    if (source->unpack)
        (void)seek_packed(source, offset); /* source_next() finds the error, or the damage */
}

uint64_t source_offset(const struct source *source)
{
    return source->offset;
}

struct source_damage source_damage(const struct source *source)
{
    return (struct source_damage){source->is_damaged, source->offset};
}

uint64_t source_bytes(const struct source *source)
{
    return source->bytes;
}

int source_error(const struct source *source)
{
    return source->error;
}

bool source_is_shorter(const struct source *source)
{
    struct stat status;

    return source->file_bytes > 0 && fstat(source->fd, &status) == 0 &&
           (uint64_t)status.st_size < source->file_bytes;
}
