/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Parts of a regular file that are read into memory, a block at a time. A mapping of the file would
 * be a signal when a disk fails, or the file becomes shorter. It costs a fault for each page, too,
 * and where the hypervisor keeps shadow page tables one more, which takes longer than all that is
 * done with the page's records. pread(2) of a block costs 1/7 of it.
 *
 * A block begins where it was asked for. It stays until nothing that was taken from it is in use
 * and others are needed more. Memory is bounded: what does not fit is not taken. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

struct blocks;

#define BLOCK_BYTES (256u * 1024u)

/* Of the file FD, borrowed. 0 or -ENOMEM. */
int blocks_new(int fd, struct blocks **ret_blocks);
/* Takes NULL; returns NULL. */
struct blocks *blocks_free(struct blocks *blocks);

/*
 * BYTES, at most BLOCK_BYTES, at OFFSET of the file, until blocks_release() of just that pointer.
 * 1; 0: too many blocks are in use; -EIO: the file ends before; or what read(2) says.
 */
int blocks_take(struct blocks *blocks, uint64_t offset, uint32_t bytes, const uint8_t **ret);
/* Does nothing if TAKEN is not from a block. */
void blocks_release(struct blocks *blocks, const uint8_t *taken);

/*
 * For looking ahead: the file's bytes from OFFSET on, at least BYTES and at most BLOCK_BYTES of
 * them, which stay until the next call of either function. 0, or as blocks_take().
 */
int blocks_look(struct blocks *blocks, uint64_t offset, uint32_t bytes, const uint8_t **ret,
                uint32_t *ret_bytes);
/* Copies BYTES at OFFSET to P, and leaves the blocks as they are. As blocks_look(). */
int blocks_copy(struct blocks *blocks, uint64_t offset, uint32_t bytes, void *p);
