// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libzstd's streaming interface: it never allocates more than a frame's window, whatever sizes the
 * frame's header has. The table is compared with each frame's end: a frame that is unpacked after
 * a seek is where the table says, or the file is damaged there.
 */

#include "common/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "common/seek-table.h"
#include "common/util.h"

#define BUFFER_BYTES    ((size_t)128 * 1024)
#define WINDOW_LOG_MAX  27
#define SKIP_BYTES      ((size_t)64 * 1024)
#define SKIPPABLE_FIRST 0x184d2a50u
#define SKIPPABLE_MASK  0xfffffff0u

_Static_assert(UNPACK_WINDOW_BYTES == UINT64_C(1) << WINDOW_LOG_MAX, "the same limit");

struct unpack {
    int fd;          /* -1: memory */
    uint64_t start;  /* of fd: where the compressed file begins */
    bool is_file;    /* it is read at positions */
    uint64_t fetch;  /* the position in the compressed file of the end of `in` */
    uint64_t length; /* of a file and memory: of the compressed file */
    const uint8_t *data;

    uint8_t *buffer;
    ZSTD_inBuffer in;
    ZSTD_DStream *stream;

    struct seek_table table; /* without frames: there is none */
    size_t frame;            /* the one that is being read, if there is a table */
    uint64_t plain;          /* how much of the content was read: where it is */
    uint64_t begun;          /* where the frame begins that is being read, in the file */
    bool is_in_frame;
    enum unpack_damage damage;
};

bool unpack_is_packed(const void *p, size_t bytes)
{
    uint32_t magic;

    if (bytes < sizeof(magic))
        return false;
    memcpy(&magic, p, sizeof(magic));
    return magic == ZSTD_MAGICNUMBER || (magic & SKIPPABLE_MASK) == SKIPPABLE_FIRST;
}

struct unpack *unpack_free(struct unpack *unpack)
{
    if (!unpack)
        return NULL;
    (void)ZSTD_freeDStream(unpack->stream);
    seek_table_done(&unpack->table);
    free(unpack->buffer);
    free(unpack);
    return NULL;
}

static int unpack_new(struct unpack **ret_unpack)
{
    _cleanup_(unpack_freep) struct unpack *unpack = calloc(1, sizeof(*unpack));

    if (!unpack)
        return -ENOMEM;
    unpack->fd = -1;
    unpack->stream = ZSTD_createDStream();
    if (!unpack->stream ||
        ZSTD_isError(ZSTD_DCtx_setParameter(unpack->stream, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
        return -ENOMEM;
    *ret_unpack = TAKE_PTR(unpack);
    return 0;
}

/* --- The compressed file. --- */

/* Reads BYTES at OFFSET of the file. Returns how many there were. */
static ssize_t read_at(const struct unpack *unpack, void *p, size_t bytes, uint64_t offset)
{
    ssize_t n;

    if (unpack->fd < 0) {
        bytes = min_u64(bytes, unpack->length - min_u64(offset, unpack->length));
        memcpy(p, unpack->data + offset, bytes);
        return (ssize_t)bytes;
    }
    do
        n = unpack->is_file ? pread(unpack->fd, p, bytes, (off_t)(unpack->start + offset))
                            : read(unpack->fd, p, bytes);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* Makes `in` hold something. 1; 0: the file has ended; or -errno. */
static int unpack_fetch(struct unpack *unpack)
{
    ssize_t n;

    if (unpack->in.pos < unpack->in.size)
        return 1;
    if (unpack->fd < 0) {
        n = (ssize_t)(unpack->length - unpack->fetch);
        unpack->in = (ZSTD_inBuffer){.src = unpack->data + unpack->fetch, .size = (size_t)n};
    } else {
        n = read_at(unpack, unpack->buffer, BUFFER_BYTES, unpack->fetch);
        if (n < 0)
            return (int)n;
        unpack->in = (ZSTD_inBuffer){.src = unpack->buffer, .size = (size_t)n};
    }
    unpack->fetch += (uint64_t)n;
    if (n == 0 && unpack->is_file && unpack->fetch < unpack->length)
        return -EIO;
    return n > 0;
}

/* Where the next byte comes from. */
static uint64_t unpack_at(const struct unpack *unpack)
{
    return unpack->fetch - (unpack->in.size - unpack->in.pos);
}

/* Continues at OFFSET of the file, where a frame is to begin. */
static void unpack_go(struct unpack *unpack, uint64_t offset)
{
    (void)ZSTD_DCtx_reset(unpack->stream, ZSTD_reset_session_only);
    unpack->in = (ZSTD_inBuffer){0};
    unpack->fetch = offset;
    unpack->begun = offset;
    unpack->is_in_frame = false;
    unpack->damage = UNPACK_SOUND;
}

/* Of a pipe, or a file whose end is no table, none is read. */
static int unpack_read_table(struct unpack *unpack)
{
    uint8_t footer[SEEK_TABLE_FOOTER_BYTES];
    _cleanup_free_ char *bytes = NULL;
    size_t length;
    int r;

    if (unpack->length < sizeof(footer) ||
        read_at(unpack, footer, sizeof(footer), unpack->length - sizeof(footer)) !=
            (ssize_t)sizeof(footer))
        return 0;
    length = seek_table_measure(footer, unpack->length);
    if (length == 0)
        return 0;
    bytes = malloc(length);
    if (!bytes)
        return -ENOMEM;
    if (read_at(unpack, bytes, length, unpack->length - length) != (ssize_t)length)
        return 0;
    r = seek_table_parse(bytes, length, unpack->length, &unpack->table);
    return r == -ENOMEM ? r : 0;
}

int unpack_new_memory(const void *data, uint64_t bytes, struct unpack **ret_unpack)
{
    _cleanup_(unpack_freep) struct unpack *unpack = NULL;
    int r = unpack_new(&unpack);

    if (r < 0)
        return r;
    unpack->data = data;
    unpack->length = bytes;
    r = unpack_read_table(unpack);
    if (r < 0)
        return r;
    *ret_unpack = TAKE_PTR(unpack);
    return 0;
}

int unpack_new_fd(int fd, const void *head, size_t head_bytes, struct unpack **ret_unpack)
{
    _cleanup_(unpack_freep) struct unpack *unpack = NULL;
    off_t at = lseek(fd, 0, SEEK_CUR);
    struct stat status;
    int r = unpack_new(&unpack);

    if (r < 0)
        return r;
    if (fstat(fd, &status) < 0)
        return -errno;
    unpack->fd = fd;
    unpack->buffer = malloc(max_u64(BUFFER_BYTES, head_bytes));
    if (!unpack->buffer)
        return -ENOMEM;
    unpack->is_file = S_ISREG(status.st_mode) && at >= (off_t)head_bytes;
    if (!unpack->is_file) {
        if (head_bytes > 0)
            memcpy(unpack->buffer, head, head_bytes);
        unpack->in = (ZSTD_inBuffer){.src = unpack->buffer, .size = head_bytes};
        unpack->fetch = head_bytes;
        *ret_unpack = TAKE_PTR(unpack);
        return 0;
    }
    unpack->start = (uint64_t)at - head_bytes;
    if ((uint64_t)status.st_size > unpack->start)
        unpack->length = (uint64_t)status.st_size - unpack->start;
    r = unpack_read_table(unpack);
    if (r < 0)
        return r;
    *ret_unpack = TAKE_PTR(unpack);
    return 0;
}

/* --- The content. --- */

static int unpack_damaged(struct unpack *unpack, enum unpack_damage damage)
{
    unpack->damage = damage;
    return 0;
}

/* After the end of a frame, PLAIN bytes into the content: whether the table has it there. */
static bool table_agrees(struct unpack *unpack, uint64_t plain)
{
    const struct seek_frame *next;
    uint64_t at = unpack_at(unpack);

    if (unpack->frame >= unpack->table.nr_frames)
        return true; /* no table, or the table itself */
    next = &unpack->table.frames[unpack->frame + 1];
    if (at < next->stored)
        return true;
    unpack->frame++;
    return at == next->stored && plain == next->plain;
}

/* The most that may come before the frame's end. */
static uint64_t plain_left(const struct unpack *unpack)
{
    if (unpack->frame < unpack->table.nr_frames)
        return unpack->table.frames[unpack->frame + 1].plain - unpack->plain;
    return unpack->table.nr_frames > 0 ? 0 : UINT64_MAX;
}

/* Unpacks to OUT. 1; 0: the end, or a damage; or -errno. */
static int unpack_step(struct unpack *unpack, ZSTD_outBuffer *out)
{
    size_t before = out->pos, hint;
    int r = unpack_fetch(unpack);

    if (r < 0)
        return r;
    if (r == 0 && !unpack->is_in_frame)
        return 0;
    if (!unpack->is_in_frame)
        unpack->begun = unpack_at(unpack);
    unpack->is_in_frame = true;
    hint = ZSTD_decompressStream(unpack->stream, out, &unpack->in);
    if (ZSTD_isError(hint)) {
        out->pos = before;
        if (ZSTD_getErrorCode(hint) == ZSTD_error_frameParameter_windowTooLarge)
            return unpack_damaged(unpack, UNPACK_WINDOW);
        return unpack_damaged(unpack, UNPACK_CORRUPT);
    }
    if (out->pos - before > plain_left(unpack)) {
        out->pos = before;
        return unpack_damaged(unpack, UNPACK_TABLE);
    }
    if (r == 0 && hint > 0 && out->pos == before)
        return unpack_damaged(unpack, UNPACK_TORN);
    unpack->plain += out->pos - before;
    if (hint > 0)
        return 1;
    unpack->is_in_frame = false;
    return table_agrees(unpack, unpack->plain) ? 1 : unpack_damaged(unpack, UNPACK_TABLE);
}

ssize_t unpack_read(struct unpack *unpack, void *p, size_t bytes)
{
    ZSTD_outBuffer out = {.dst = p, .size = bytes};

    while (out.pos < bytes && unpack->damage == UNPACK_SOUND) {
        int r = unpack_step(unpack, &out);

        if (r < 0)
            return r;
        if (r == 0)
            break;
    }
    return (ssize_t)out.pos;
}

enum unpack_damage unpack_damage(const struct unpack *unpack)
{
    return unpack->damage;
}

const char *unpack_damage_text(enum unpack_damage damage)
{
    switch (damage) {
    case UNPACK_SOUND:
        return "every frame is whole";
    case UNPACK_TORN:
        return "the last compressed frame is cut off";
    case UNPACK_CORRUPT:
        return "a compressed frame is damaged";
    case UNPACK_WINDOW:
        return "a compressed frame needs more than 128 MiB of memory";
    case UNPACK_TABLE:
        return "the seek table does not match the compressed frames";
    }
    return "the damage is unknown";
}

uint64_t unpack_stored_bytes(const struct unpack *unpack)
{
    return unpack_at(unpack);
}

int unpack_list_frames(struct unpack *unpack, struct seek_table *ret_table)
{
    _cleanup_(seek_table_done) struct seek_table table = {0};
    _cleanup_free_ char *nowhere = malloc(SKIP_BYTES);
    int r;

    if (!nowhere)
        return -ENOMEM;
    for (;;) {
        ZSTD_outBuffer out = {.dst = nowhere, .size = SKIP_BYTES};
        uint64_t plain;

        r = unpack_step(unpack, &out);
        if (r < 0)
            return r;
        if (r == 0)
            break;
        if (unpack->is_in_frame)
            continue;
        plain = unpack->plain - (table.frames ? table.frames[table.nr_frames].plain : 0);
        if (plain == 0)
            break;
        r = seek_table_add(&table, unpack_at(unpack) - unpack->begun, plain);
        if (r < 0)
            return r;
    }
    *ret_table = table;
    table = (struct seek_table){0};
    return 0;
}

/* --- With a seek table. --- */

bool unpack_can_seek(const struct unpack *unpack)
{
    return unpack->table.nr_frames > 0;
}

uint64_t unpack_bytes(const struct unpack *unpack)
{
    return unpack->table.frames[unpack->table.nr_frames].plain;
}

uint64_t unpack_next_frame(const struct unpack *unpack, uint64_t offset)
{
    size_t i = seek_table_find(&unpack->table, offset);

    if (unpack->table.frames[i].plain < offset)
        i++;
    return unpack->table.frames[i].plain;
}

static int unpack_skip(struct unpack *unpack, uint64_t bytes)
{
    _cleanup_free_ char *nowhere = malloc(SKIP_BYTES);

    if (!nowhere)
        return -ENOMEM;
    while (bytes > 0) {
        ssize_t n = unpack_read(unpack, nowhere, min_u64(bytes, SKIP_BYTES));

        if (n <= 0)
            return (int)n;
        bytes -= (uint64_t)n;
    }
    return 0;
}

int unpack_seek(struct unpack *unpack, uint64_t offset)
{
    unpack->frame = seek_table_find(&unpack->table, offset);
    if (offset >= unpack_bytes(unpack))
        unpack->frame = unpack->table.nr_frames;
    unpack->plain = unpack->table.frames[unpack->frame].plain;
    unpack_go(unpack, unpack->table.frames[unpack->frame].stored);
    return offset > unpack->plain ? unpack_skip(unpack, offset - unpack->plain) : 0;
}

/* --- Damaged files. --- */

/* The first bytes from OFFSET of the file on that begin a frame; the file's end: none. */
static uint64_t find_frame(struct unpack *unpack, uint64_t offset)
{
    static const uint32_t magic = ZSTD_MAGICNUMBER;
    _cleanup_free_ char *buffer = malloc(BUFFER_BYTES);

    while (buffer && offset + sizeof(magic) <= unpack->length) {
        ssize_t n = read_at(unpack, buffer, BUFFER_BYTES, offset);
        const char *p;

        if (n < (ssize_t)sizeof(magic))
            break;
        p = memmem(buffer, (size_t)n, &magic, sizeof(magic));
        if (p)
            return offset + (uint64_t)(p - buffer);
        offset += (uint64_t)n - (sizeof(magic) - 1);
    }
    return unpack->length;
}

bool unpack_resume(struct unpack *unpack)
{
    uint64_t next;

    if (unpack->damage == UNPACK_TABLE) /* then it is of no use */
        seek_table_done(&unpack->table);
    if (unpack->frame + 1 < unpack->table.nr_frames) {
        unpack->frame++;
        unpack->plain = unpack->table.frames[unpack->frame].plain;
        unpack_go(unpack, unpack->table.frames[unpack->frame].stored);
        return true;
    }
    if (unpack->table.nr_frames > 0)
        return false;
    next = find_frame(unpack, unpack->begun + 1);
    unpack_go(unpack, next);
    return next < unpack->length;
}
