/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Walks a trace file by the strict rules of Xen's readers: it starts with a cpu_change, windows and
 * records are whole, nothing else is in it. Shares with the daemon what a record looks like
 * (common/record.h), and no code that walks over records, on purpose.
 */

#include <stdint.h>
#include <stddef.h>

struct walk_file {
    const unsigned char *data;
    size_t bytes;
    size_t offset;     /* of the next window */
    const char *error; /* what is wrong at `offset`, after -EBADMSG */
    const char *rule;  /* in one word */
};

struct walk_window {
    size_t offset; /* of its cpu_change */
    uint32_t cpu;
    uint32_t bytes;
    const unsigned char *records;
};

/* Reads the file at PATH whole into memory, through zstd if its name ends in .zst. */
int walk_open(const char *path, struct walk_file *ret_file);
void walk_close(struct walk_file *file);

/* 1 and the next window, 0 at the end, -EBADMSG. */
int walk_next(struct walk_file *file, struct walk_window *ret_window);

/*
 * Copies the record at *OFFSET of the window and moves on: 1, 0 at the end of the window, -EBADMSG
 * if it is not whole. RET_RECORD has room for 10 words.
 */
int walk_record(const struct walk_window *window, uint32_t *offset, uint32_t *ret_record,
                uint32_t *ret_bytes);
