/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The free space of a file system. A file system that does not answer (NFS, frozen) must not block
 * a command, so a child process calls statvfs(3). Main thread.
 */

#include <stdint.h>

struct disk {
    uint64_t free_bytes; /* for users other than root, as df(1) shows it */
    uint64_t bytes;
};

/*
 * Returns 0, -ETIMEDOUT if there was no answer after TIMEOUT_USEC, or what statvfs(3) says. A child
 * that is blocked by a dead disk is abandoned.
 */
int disk_read(const char *path, uint64_t timeout_usec, struct disk *ret_disk);
