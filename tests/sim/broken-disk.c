// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Preloaded into xentraced: calls on files fail or take long, as files in the directory that
 * BROKEN_DISK names say. CALL holds "ERRNO COUNT": the next COUNT calls fail. CALL is renameat2,
 * fallocate, ftruncate, unlinkat, fsync (of a file) or fsync-directory. Beside them, if they exist:
 * slow-fallocate holds microseconds, slow-sweep the same for each entry that the thread "sweep"
 * reads, even-seconds means that the file system's times are such. See broken-disk.sh.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The C library's own, or exit: without it the test means nothing. */
static void *next(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (!function)
        _exit(127);
    return function;
}

static int open_order(const char *name, int flags)
{
    const char *directory = getenv("BROKEN_DISK");
    char path[4096];

    if (!directory)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    return open(path, flags | O_CLOEXEC);
}

/* Up to two numbers; returns how many there are. */
static int read_order(int fd, int *first, int *second)
{
    char text[64];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return sscanf(text, "%d %d", first, second);
}

/* Sets errno if this call of NAME is to fail. */
static int fails(const char *name)
{
    int fd, error = 0, count = 0, is_due;
    char text[64];

    (void)pthread_mutex_lock(&mutex);
    fd = open_order(name, O_RDWR);
    is_due = fd >= 0 && read_order(fd, &error, &count) == 2 && count > 0;
    if (is_due) {
        int length = snprintf(text, sizeof(text), "%d %-10d\n", error, count - 1);

        is_due = pwrite(fd, text, (size_t)length, 0) == length;
    }
    if (fd >= 0)
        (void)close(fd);
    (void)pthread_mutex_unlock(&mutex);
    if (is_due)
        errno = error;
    return is_due;
}

static void slow_down(const char *name)
{
    int fd = open_order(name, O_RDONLY), usec = 0, none;

    if (fd < 0)
        return;
    if (read_order(fd, &usec, &none) >= 1)
        (void)usleep((useconds_t)usec);
    (void)close(fd);
}

EXPORT int renameat2(int old_fd, const char *old, int new_fd, const char *new, unsigned int flags)
{
    int (*real)(int, const char *, int, const char *, unsigned int) = next("renameat2");

    return fails("renameat2") ? -1 : real(old_fd, old, new_fd, new, flags);
}

EXPORT int unlinkat(int fd, const char *name, int flags)
{
    int (*real)(int, const char *, int) = next("unlinkat");

    return fails("unlinkat") ? -1 : real(fd, name, flags);
}

EXPORT int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    int (*real)(int, int, off_t, off_t) = next("fallocate");

    if (fails("fallocate"))
        return -1;
    slow_down("slow-fallocate");
    return real(fd, mode, offset, bytes);
}

EXPORT int ftruncate(int fd, off_t bytes)
{
    int (*real)(int, off_t) = next("ftruncate");

    return fails("ftruncate") ? -1 : real(fd, bytes);
}

EXPORT int fsync(int fd)
{
    int (*real)(int) = next("fsync");
    struct stat st;

    if (fails(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? "fsync-directory" : "fsync"))
        return -1;
    return real(fd);
}

EXPORT int fstatat(int fd, const char *name, struct stat *st, int flags)
{
    int (*real)(int, const char *, struct stat *, int) = next("fstatat");
    int r = real(fd, name, st, flags), order = r < 0 ? -1 : open_order("even-seconds", O_RDONLY);

    if (order < 0)
        return r;
    (void)close(order);
    st->st_ctim.tv_nsec = st->st_mtim.tv_nsec = 0;
    st->st_ctim.tv_sec &= ~(time_t)1; /* as FAT's */
    st->st_mtim.tv_sec &= ~(time_t)1;
    return r;
}

EXPORT struct dirent *readdir(DIR *directory)
{
    struct dirent *(*real)(DIR *) = next("readdir");
    char name[16] = "";

    if (access(getenv("BROKEN_DISK"), F_OK) == 0)
        (void)usleep(20000);        /* a new thread may have no name yet */
    (void)prctl(PR_GET_NAME, name); /* cannot fail with this buffer */
    if (strcmp(name, "sweep") == 0)
        slow_down("slow-sweep");
    return real(directory);
}
