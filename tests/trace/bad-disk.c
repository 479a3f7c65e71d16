// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A disk that fails, for test-shorter: preloaded, it makes read number BAD_DISK_AT of the file
 * BAD_DISK_FILE fail with EIO, and all that follow; or with BAD_DISK_BYTES the file is cut to that
 * many bytes just before.
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static long nr_reads;

static bool is_the_file(int fd)
{
    const char *path = getenv("BAD_DISK_FILE");
    struct stat a, b;

    return path && fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Whether the read fails. */
static bool fails(int fd)
{
    const char *at = getenv("BAD_DISK_AT"), *bytes = getenv("BAD_DISK_BYTES");

    if (!at || !is_the_file(fd) || ++nr_reads < atol(at))
        return false;
    if (bytes)
        return truncate(getenv("BAD_DISK_FILE"), atol(bytes)) < 0;
    errno = EIO;
    return true;
}

ssize_t read(int fd, void *p, size_t bytes)
{
    ssize_t (*next)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");

    return fails(fd) ? -1 : next(fd, p, bytes);
}

ssize_t pread(int fd, void *p, size_t bytes, off_t offset)
{
    ssize_t (*next)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread64");

    return fails(fd) ? -1 : next(fd, p, bytes, offset);
}

ssize_t pread64(int fd, void *p, size_t bytes, off_t offset)
{
    return pread(fd, p, bytes, offset);
}
