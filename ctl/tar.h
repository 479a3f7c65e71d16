/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Archives as tar(1) reads them: POSIX.1-2001, that is ustar, with an extended header for what does
 * not fit into it (a size from 8 GiB on, a long name, one that is not ASCII).
 */

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define TAR_BLOCK_BYTES 512u
#define TAR_NAME_MAX    255u

/* A regular file in an archive. */
struct tar_member {
    const char *name; /* without a slash at its beginning; up to TAR_NAME_MAX bytes */
    uint64_t size;
    uint32_t mode, uid, gid;
    time_t mtime;
};

#define TAR_HEADER_MAX (4 * TAR_BLOCK_BYTES)

/* Writes the headers of MEMBER to BUFFER, and returns their bytes: whole blocks. */
size_t tar_format_header(const struct tar_member *member, uint8_t buffer[static TAR_HEADER_MAX]);

/*
 * Writes FD, a regular file, from its beginning to its end to ARCHIVE_FD, under NAME. Returns 0 or
 * a negative errno; -EIO also if it is cut while it is read.
 */
int tar_write_file(int archive_fd, const char *name, int fd);

/* Writes the archive's end. */
int tar_write_end(int archive_fd);
