/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Parts of a regular file that are read into memory, a block at a time. A file that is mapped costs
 * a fault for each of its pages, and where the hypervisor keeps shadow page tables one more, which
 * takes longer than all that is done with the page's records. pread(2) of a block costs 1/7 of it.
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
 * BYTES at OFFSET of the file, until blocks_release() of just that pointer. NULL: they are none,
 * more than BLOCK_BYTES, too many blocks are in use, or the file cannot be read there.
 */
const uint8_t *blocks_take(struct blocks *blocks, uint64_t offset, uint32_t bytes);
/* Of what is not from a block, nothing is done. */
void blocks_release(struct blocks *blocks, const uint8_t *taken);

/*
 * For looking ahead: the file's bytes from OFFSET on, at least BYTES and at most BLOCK_BYTES of
 * them, which stay until the next call. NULL: there are fewer, or they cannot be read.
 */
const uint8_t *blocks_look(struct blocks *blocks, uint64_t offset, uint32_t bytes,
                           uint32_t *ret_bytes);
