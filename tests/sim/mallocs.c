// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Preloaded into xentraced: counts allocations, those of the thread "collector" and those of all
 * others, as two 64-bit numbers in the file that MALLOCS names. See steady.sh.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* What the C library's own are called when others stand in front of them. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);
extern void __libc_free(void *p);

static uint64_t *counts; /* of the collector, of the others; NULL: not counting yet */
static __thread int is_collector;

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("MALLOCS");
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    void *map = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, 2 * sizeof(*counts)) == 0)
        map = mmap(NULL, 2 * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED)
        counts = map;
    if (fd >= 0)
        (void)close(fd);
}

static void count(void)
{
    char name[16];

    if (!counts)
        return;
    /* A thread gets its name after it has begun. */
    if (!is_collector && prctl(PR_GET_NAME, name) == 0)
        is_collector = strcmp(name, "collector") == 0;
    (void)__atomic_add_fetch(&counts[is_collector ? 0 : 1], 1, __ATOMIC_RELAXED);
}

EXPORT void *malloc(size_t bytes)
{
    count();
    return __libc_malloc(bytes);
}

EXPORT void *calloc(size_t n, size_t bytes)
{
    count();
    return __libc_calloc(n, bytes);
}

EXPORT void *realloc(void *p, size_t bytes)
{
    count();
    return __libc_realloc(p, bytes);
}

EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
    count();
    return __libc_memalign(align, bytes);
}

EXPORT void free(void *p)
{
    count();
    __libc_free(p);
}
