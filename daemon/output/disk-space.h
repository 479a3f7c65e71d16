/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The space that the outputs of this process take on one file system. Free space is looked at and
 * taken with the lock held: otherwise several outputs would each take what is above the reserve.
 * Space that was granted without being allocated is not missing in the free space yet, so its sum
 * is kept here.
 *
 * The lock is held while fallocate(2) runs, which may take long. It belongs to workers, and is of
 * one file system: a worker waits for a disk that it waits for anyway.
 */

#include <stdint.h>
#include <sys/types.h>

struct disk_space;

/* That of the file system DEVICE, shared by all that ask; NULL: no memory. To be unreferenced. */
struct disk_space *disk_space_ref(dev_t device);
/* Takes NULL; returns NULL. */
struct disk_space *disk_space_unref(struct disk_space *space);

void disk_space_lock(struct disk_space *space);
void disk_space_unlock(struct disk_space *space);

/* Granted and neither allocated nor written, by all outputs. */
uint64_t disk_space_loose_bytes(const struct disk_space *space);
/* One output's part of it changes from *PART_BYTES to BYTES, which are noted there. */
void disk_space_set_loose(struct disk_space *space, uint64_t *part_bytes, uint64_t bytes);
