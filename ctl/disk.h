/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How full a file system is. One that does not answer (NFS, frozen) must not hold up a command, so
 * a child process asks. Main thread.
 */

#include <stdint.h>

struct disk {
    uint64_t free_bytes; /* for users other than root, as df(1) shows it */
    uint64_t bytes;
};

/*
 * Returns 0, -ETIMEDOUT if there was no answer after TIMEOUT_USEC, or what statvfs(3) says. A child
 * that waits for a dead disk for ever is left alone.
 */
int disk_read(const char *path, uint64_t timeout_usec, struct disk *ret_disk);
