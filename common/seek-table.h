/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The seek table at the end of a compressed trace: where each frame begins, in the file and in what
 * it holds. It is zstd's "seekable format" 0.1.0: a skippable frame, which `zstd -d` passes over.
 *
 * The file is untrusted. A table that contradicts itself or the file's size is no table; whether it
 * is true is found out when the frames are read (unpack.h). Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a frame begins. */
struct seek_frame {
    uint64_t stored; /* in the file */
    uint64_t plain;  /* in what it holds */
};

struct seek_table {
    size_t nr_frames;
    struct seek_frame *frames; /* [nr_frames + 1]: the last one is the end of all */
};

#define SEEK_TABLE_FOOTER_BYTES 9u
/* More frames than that, and a table is not used: 1 TiB of frames of 256 KiB. */
#define SEEK_TABLE_FRAMES_MAX (UINT32_C(1) << 22)

/*
 * The bytes of the table that ends with the file's last SEEK_TABLE_FOOTER_BYTES, FOOTER, of a file
 * of FILE_BYTES; 0: there is none.
 */
size_t seek_table_measure(const void *footer, uint64_t file_bytes);
/*
 * Reads the table in the last BYTES, which seek_table_measure() returned, of a file of FILE_BYTES.
 * 0; -EBADMSG: there is none, or it does not add up; -ENOMEM.
 */
int seek_table_parse(const void *table, size_t bytes, uint64_t file_bytes,
                     struct seek_table *ret_table);
void seek_table_done(struct seek_table *table);

/* The frame that holds the byte OFFSET of the content, or else the last one. */
size_t seek_table_find(const struct seek_table *table, uint64_t offset);

/* --- Writing. --- */

/* A frame of STORED bytes that holds PLAIN. 0; -EFBIG: too large, or too many; -ENOMEM. */
int seek_table_add(struct seek_table *table, uint64_t stored, uint64_t plain);
/* The bytes of the table on the disk, with NR_FRAMES. */
size_t seek_table_bytes(size_t nr_frames);
/* The table as bytes, to be freed. NULL: no memory. */
void *seek_table_make(const struct seek_table *table, size_t *ret_bytes);
