/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads a file that is compressed with zstd as the bytes that it holds: xentraced's own, with a
 * seek table, and those of zstd(1). Memory does not depend on the file: a frame that needs more
 * than UNPACK_WINDOW_BYTES is damage, as are bytes that are no frame, a checksum that does not fit
 * and a seek table that lies. What comes before the damage is read.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* zstd(1) itself reads no more without --long; xentraced's frames need 2 MiB. */
#define UNPACK_WINDOW_BYTES (UINT64_C(128) << 20)

#define UNPACK_MAGIC_BYTES 4u

struct seek_table;
struct unpack;

enum unpack_damage {
    UNPACK_SOUND,
    UNPACK_TORN,    /* the file ends within a frame */
    UNPACK_CORRUPT, /* no frame, or not what was compressed */
    UNPACK_WINDOW,  /* a frame that needs too much memory */
    UNPACK_TABLE,   /* frames are not where the seek table has them */
};

/* Whether a file that begins with BYTES at P is a compressed one. */
bool unpack_is_packed(const void *p, size_t bytes);

/*
 * FD, borrowed, is read from where it stands, after HEAD_BYTES that were read before and are at
 * HEAD. Its own position is not to be used meanwhile. 0; -ENOMEM; or what read(2) says.
 */
int unpack_new_fd(int fd, const void *head, size_t head_bytes, struct unpack **ret_unpack);
/* The same of BYTES at DATA, which are borrowed. */
int unpack_new_memory(const void *data, uint64_t bytes, struct unpack **ret_unpack);
/* Takes NULL; returns NULL. */
struct unpack *unpack_free(struct unpack *unpack);

static inline void unpack_freep(struct unpack **unpack)
{
    *unpack = unpack_free(*unpack);
}

/*
 * Reads BYTES to P. Returns how many there were: fewer at the end and at a damage; or a negative
 * errno, -EIO also if the file has become shorter.
 */
ssize_t unpack_read(struct unpack *unpack, void *p, size_t bytes);
/* After it has returned less. */
enum unpack_damage unpack_damage(const struct unpack *unpack);
/* DAMAGE as half a sentence for people. Static. */
const char *unpack_damage_text(enum unpack_damage damage);

/* Of the compressed file, read up to now. */
uint64_t unpack_stored_bytes(const struct unpack *unpack);
/*
 * Reads from the beginning to the end, or the first damage. RET_TABLE is a seek table of the whole
 * frames before that, up to the first one that holds nothing, as a seek table does; to be freed
 * with seek_table_done(). 0; -EFBIG, -ENOMEM, or what read(2) says.
 */
int unpack_list_frames(struct unpack *unpack, struct seek_table *ret_table);

/* --- With a seek table. --- */

bool unpack_can_seek(const struct unpack *unpack);
/* Of the content, as the table has it. */
uint64_t unpack_bytes(const struct unpack *unpack);
/* Where the first frame begins from OFFSET of the content on; the end of the content: none. */
uint64_t unpack_next_frame(const struct unpack *unpack, uint64_t offset);
/* Continues at OFFSET of the content: all of its frame before it is unpacked. 0 or -errno. */
int unpack_seek(struct unpack *unpack, uint64_t offset);

/* --- Damaged files. --- */

/*
 * After a damage: continues with the next frame that may be one, by the table, or at the next bytes
 * that begin one. False: there is none. Not for pipes.
 */
bool unpack_resume(struct unpack *unpack);
