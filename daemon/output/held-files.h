/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Traces that were removed while another process had them open: their space is free when that
 * process closes them. Until then they are counted, and after HELD_FILES_USEC they are cut to
 * nothing: a reader that keeps every trace open delays the end of its space, and no more.
 *
 * Any thread; all may wait for the disk, so the main thread only makes and frees the list.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct held_files;

#define HELD_FILES_MAX  64u /* descriptors; one more, and the oldest is cut at once */
#define HELD_FILES_USEC UINT64_C(600000000)

/*
 * Whether another process has the file of FD open, or mapped, or another descriptor of ours is
 * open. On a file system without leases: no.
 */
bool held_file_is_shared(int fd);

struct held_sum {
    size_t files;
    uint64_t bytes; /* on the disk */
};

/* -ENOMEM. */
int held_files_new(struct held_files **ret_held);

/*
 * A job that uses the list has a reference: it may be stuck when all else has ended. With the last
 * one the list is freed; what is held is not cut. Main thread. Both take NULL; unref returns it.
 */
struct held_files *held_files_ref(struct held_files *held);
struct held_files *held_files_unref(struct held_files *held);

/* Takes over FD, open for writing, whose name was removed. HELD NULL: closes it. */
void held_files_add(struct held_files *held, int fd);

/*
 * Forgets those that nobody has open any more, and cuts those that were held for HELD_FILES_USEC
 * since the first look. NOW_USEC is CLOCK_BOOTTIME.
 */
void held_files_look(struct held_files *held, uint64_t now_usec, struct held_sum *ret_held,
                     struct held_sum *ret_cut);
