/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Compresses a trace as docs/file-format.md describes it: frames of zstd, and a seek table at the
 * end. The caller decides where a frame ends, and has the output written.
 *
 * Output goes to a buffer of the caller's, pack_set_output(). A function that returns false has
 * filled it: it is called again with the next one. Errors are kept, and found by pack_error().
 *
 * It takes processor time: for workers. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack;

/* Returns 0 or -ENOMEM. */
int pack_new(struct pack **ret_pack);
/* Takes NULL; returns NULL. */
struct pack *pack_free(struct pack *pack);

static inline void pack_freep(struct pack **pack)
{
    *pack = pack_free(*pack);
}

void pack_set_output(struct pack *pack, uint8_t *buffer, size_t bytes);
/* The bytes in the buffer. */
size_t pack_output_bytes(const struct pack *pack);

/* Takes of the BYTES at P as many as it can, and returns how many: fewer if the buffer is full. */
size_t pack_add(struct pack *pack, const void *p, size_t bytes);
/* How much the frame holds that has not ended. */
uint64_t pack_frame_bytes(const struct pack *pack);
/* Of the next frame: how fast is more than how small, so that it holds nearly what it was given. */
void pack_set_fast(struct pack *pack, bool is_fast);
/* Ends it; a frame that holds nothing is none. */
bool pack_end_frame(struct pack *pack);
/* Writes the seek table. No frame is under way. */
bool pack_end(struct pack *pack);

/* -ENOMEM, -EFBIG: too many frames; -EIO: libzstd failed. 0: no error. */
int pack_error(const struct pack *pack);

/*
 * Frames that have ended, and where frame I, or the one after the last, begins in the output and in
 * what it holds.
 */
size_t pack_frames(const struct pack *pack);
uint64_t pack_stored_before(const struct pack *pack, size_t i);
uint64_t pack_plain_before(const struct pack *pack, size_t i);
/* The bytes of the seek table if that were all. */
size_t pack_table_bytes(const struct pack *pack);
