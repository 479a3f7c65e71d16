// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Level 1: docs/BENCHMARKS.md compares it. The fastest one looks for next to nothing, so what it
 * makes is what it was given, in raw blocks; the checksum takes most of its time. Each frame has a
 * checksum, with which readers find out that what they unpacked is what was recorded.
 */

#include "daemon/output/pack.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "common/seek-table.h"
#include "common/util.h"

#define LEVEL 1

struct pack {
    ZSTD_CCtx *context;
    ZSTD_outBuffer out;
    struct seek_table table;
    uint64_t frame_plain;  /* of the frame that has not ended */
    uint64_t frame_stored; /* ... in buffers before this one */
    size_t frame_begin;    /* ... and from there on in this one */
    uint8_t *table_bytes;  /* NULL: not yet */
    size_t table_length, table_written;
    int error;
};

struct pack *pack_free(struct pack *pack)
{
    if (!pack)
        return NULL;
    (void)ZSTD_freeCCtx(pack->context); /* NULL is fine */
    seek_table_done(&pack->table);
    free(pack->table_bytes);
    free(pack);
    return NULL;
}

int pack_new(struct pack **ret_pack)
{
    _cleanup_(pack_freep) struct pack *pack = calloc(1, sizeof(*pack));

    if (!pack)
        return -ENOMEM;
    pack->context = ZSTD_createCCtx();
    if (!pack->context ||
        ZSTD_isError(ZSTD_CCtx_setParameter(pack->context, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(pack->context, ZSTD_c_checksumFlag, 1)))
        return -ENOMEM;
    *ret_pack = TAKE_PTR(pack);
    return 0;
}

void pack_set_output(struct pack *pack, uint8_t *buffer, size_t bytes)
{
    pack->frame_stored += pack->out.pos - pack->frame_begin;
    pack->frame_begin = 0;
    pack->out = (ZSTD_outBuffer){.dst = buffer, .size = bytes};
}

size_t pack_output_bytes(const struct pack *pack)
{
    return pack->out.pos;
}

/* Returns what is left to be flushed; 0 also after an error. */
static size_t pack_step(struct pack *pack, ZSTD_inBuffer *in, ZSTD_EndDirective directive)
{
    size_t left;

    if (pack->error < 0)
        return 0;
    left = ZSTD_compressStream2(pack->context, &pack->out, in, directive);
    if (!ZSTD_isError(left))
        return left;
    pack->error = -EIO;
    return 0;
}

size_t pack_add(struct pack *pack, const void *p, size_t bytes)
{
    ZSTD_inBuffer in = {.src = p, .size = bytes};

    while (in.pos < in.size && pack->out.pos < pack->out.size && pack->error == 0)
        (void)pack_step(pack, &in, ZSTD_e_continue);
    pack->frame_plain += in.pos;
    return in.pos;
}

uint64_t pack_frame_bytes(const struct pack *pack)
{
    return pack->frame_plain;
}

void pack_set_fast(struct pack *pack, bool is_fast)
{
    assert(pack->frame_plain == 0);
    if (ZSTD_isError(ZSTD_CCtx_setParameter(pack->context, ZSTD_c_compressionLevel,
                                            is_fast ? ZSTD_minCLevel() : LEVEL)))
        pack->error = -EIO;
}

bool pack_end_frame(struct pack *pack)
{
    ZSTD_inBuffer nothing = {0};
    int r;

    if (pack->frame_plain == 0)
        return true;
    if (pack_step(pack, &nothing, ZSTD_e_end) > 0)
        return false;
    r = seek_table_add(&pack->table, pack->frame_stored + pack->out.pos - pack->frame_begin,
                       pack->frame_plain);
    if (r < 0 && pack->error == 0)
        pack->error = r;
    pack->frame_plain = 0;
    pack->frame_stored = 0;
    pack->frame_begin = pack->out.pos;
    return true;
}

bool pack_end(struct pack *pack)
{
    size_t bytes;

    assert(pack->frame_plain == 0);
    if (!pack->table_bytes)
        pack->table_bytes = seek_table_make(&pack->table, &pack->table_length);
    if (!pack->table_bytes) {
        pack->error = -ENOMEM;
        return true;
    }
    bytes = min_u64(pack->table_length - pack->table_written, pack->out.size - pack->out.pos);
    memcpy((uint8_t *)pack->out.dst + pack->out.pos, pack->table_bytes + pack->table_written,
           bytes);
    pack->out.pos += bytes;
    pack->table_written += bytes;
    return pack->table_written == pack->table_length;
}

int pack_error(const struct pack *pack)
{
    return pack->error;
}

size_t pack_frames(const struct pack *pack)
{
    return pack->table.nr_frames;
}

uint64_t pack_stored_before(const struct pack *pack, size_t i)
{
    return pack->table.frames ? pack->table.frames[i].stored : 0;
}

uint64_t pack_plain_before(const struct pack *pack, size_t i)
{
    return pack->table.frames ? pack->table.frames[i].plain : 0;
}

size_t pack_table_bytes(const struct pack *pack)
{
    return seek_table_bytes(pack->table.nr_frames);
}
