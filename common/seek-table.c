// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Source: zstd, contrib/seekable_format/zstd_seekable_compression_format.md. All numbers are
 * little-endian, as everywhere in a trace.
 *
 *   4 bytes 0x184d2a5e, 4 bytes: how many follow            a skippable frame
 *   for each frame: 4 bytes stored, 4 bytes plain, 4 bytes checksum if the descriptor has bit 7
 *   4 bytes: how many frames, 1 byte descriptor, 4 bytes 0x8f92eab1
 */

#include "common/seek-table.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPABLE_MAGIC 0x184d2a5eu
#define SEEKABLE_MAGIC  0x8f92eab1u
#define HEADER_BYTES    8u

#define DESCRIPTOR_CHECKSUMS 0x80u
#define DESCRIPTOR_RESERVED  0x7cu

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "numbers are copied as they are");

static uint32_t read_u32(const uint8_t *p)
{
    uint32_t value;

    memcpy(&value, p, sizeof(value));
    return value;
}

static uint8_t *write_u32(uint8_t *p, uint32_t value)
{
    memcpy(p, &value, sizeof(value));
    return p + sizeof(value);
}

static size_t entry_bytes(uint8_t descriptor)
{
    return descriptor & DESCRIPTOR_CHECKSUMS ? 12 : 8;
}

size_t seek_table_measure(const void *footer, uint64_t file_bytes)
{
    const uint8_t *p = footer;
    uint32_t nr_frames = read_u32(p);
    uint8_t descriptor = p[4];
    uint64_t bytes;

    if (read_u32(p + 5) != SEEKABLE_MAGIC || descriptor & DESCRIPTOR_RESERVED ||
        nr_frames > SEEK_TABLE_FRAMES_MAX)
        return 0;
    bytes = HEADER_BYTES + nr_frames * entry_bytes(descriptor) + SEEK_TABLE_FOOTER_BYTES;
    return bytes <= file_bytes ? (size_t)bytes : 0;
}

static int read_frames(struct seek_table *table, const uint8_t *p, size_t each)
{
    struct seek_frame at = {0};

    table->frames = calloc(table->nr_frames + 1, sizeof(*table->frames));
    if (!table->frames)
        return -ENOMEM;
    for (size_t i = 0; i < table->nr_frames; i++, p += each) {
        table->frames[i] = at;
        if (read_u32(p) == 0)
            return -EBADMSG;
        at.stored += read_u32(p);
        at.plain += read_u32(p + 4);
    }
    table->frames[table->nr_frames] = at;
    return 0;
}

int seek_table_parse(const void *table_untrusted, size_t bytes, uint64_t file_bytes,
                     struct seek_table *ret_table)
{
    const uint8_t *p = table_untrusted, *footer = p + bytes - SEEK_TABLE_FOOTER_BYTES;
    struct seek_table table = {.nr_frames = read_u32(footer)};
    int r;

    if (seek_table_measure(footer, file_bytes) != bytes || read_u32(p) != SKIPPABLE_MAGIC ||
        read_u32(p + 4) != bytes - HEADER_BYTES)
        return -EBADMSG;
    r = read_frames(&table, p + HEADER_BYTES, entry_bytes(footer[4]));
    if (r == 0 && table.frames[table.nr_frames].stored != file_bytes - bytes)
        r = -EBADMSG;
    if (r < 0) {
        seek_table_done(&table);
        return r;
    }
    *ret_table = table;
    return 0;
}

void seek_table_done(struct seek_table *table)
{
    free(table->frames);
    *table = (struct seek_table){0};
}

size_t seek_table_find(const struct seek_table *table, uint64_t offset)
{
    size_t low = 0, high = table->nr_frames;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (table->frames[middle].plain <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* --- Writing. --- */

/* Room for one more frame and the end: doubled at powers of two. */
static int make_room(struct seek_table *table)
{
    size_t nr = table->nr_frames;
    struct seek_frame *frames;

    if (table->frames && (nr < 8 || (nr & (nr - 1)) != 0))
        return 0;
    frames = reallocarray(table->frames, 2 * (nr < 8 ? 8 : nr) + 1, sizeof(*frames));
    if (!frames)
        return -ENOMEM;
    if (nr == 0)
        frames[0] = (struct seek_frame){0};
    table->frames = frames;
    return 0;
}

int seek_table_add(struct seek_table *table, uint64_t stored, uint64_t plain)
{
    struct seek_frame at;
    int r;

    if (stored > UINT32_MAX || plain > UINT32_MAX || table->nr_frames == SEEK_TABLE_FRAMES_MAX)
        return -EFBIG;
    r = make_room(table);
    if (r < 0)
        return r;
    at = table->frames[table->nr_frames++];
    table->frames[table->nr_frames] =
        (struct seek_frame){.stored = at.stored + stored, .plain = at.plain + plain};
    return 0;
}

size_t seek_table_bytes(size_t nr_frames)
{
    return HEADER_BYTES + nr_frames * entry_bytes(0) + SEEK_TABLE_FOOTER_BYTES;
}

void *seek_table_make(const struct seek_table *table, size_t *ret_bytes)
{
    size_t bytes = seek_table_bytes(table->nr_frames);
    uint8_t *made = malloc(bytes), *p = made;

    if (!made)
        return NULL;
    p = write_u32(p, SKIPPABLE_MAGIC);
    p = write_u32(p, (uint32_t)(bytes - HEADER_BYTES));
    for (size_t i = 0; i < table->nr_frames; i++) {
        const struct seek_frame *frame = &table->frames[i];

        p = write_u32(p, (uint32_t)(frame[1].stored - frame->stored));
        p = write_u32(p, (uint32_t)(frame[1].plain - frame->plain));
    }
    p = write_u32(p, (uint32_t)table->nr_frames);
    *p++ = 0;
    (void)write_u32(p, SEEKABLE_MAGIC);
    *ret_bytes = bytes;
    return made;
}
