// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * While the kernel populates, locks or unmaps memory it holds the lock of the process's address
 * space, and every thread that maps memory waits for it: malloc(3) on the main thread, too. For a
 * GiB that is most of a second. All three are therefore done in steps, between which other threads
 * can continue.
 */

#include "collector/memory.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/util.h"

#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)
#define STEP_BYTES      (UINT64_C(16) << 20) /* some milliseconds */

/* Addresses for it that a huge page may begin at; what is over goes back. NULL: errno says why. */
static uint8_t *reserve(uint64_t bytes)
{
    uint64_t end = align_up(bytes, PAGE_BYTES);
    uint8_t *begin = mmap(NULL, end + HUGE_PAGE_BYTES, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t lead;

    if (begin == MAP_FAILED)
        return NULL;
    lead = align_up((uintptr_t)begin, HUGE_PAGE_BYTES) - (uintptr_t)begin;
    if (lead > 0)
        (void)munmap(begin, lead);
    (void)munmap(begin + lead + end, HUGE_PAGE_BYTES - lead);
    return begin + lead;
}

static int populate_step(uint8_t *base, uint64_t bytes)
{
    if (madvise(base, bytes, MADV_POPULATE_WRITE) >= 0)
        return 0;
    if (errno != EINVAL)
        return -errno;
    for (uint64_t i = 0; i < bytes; i += PAGE_BYTES) /* before Linux 5.14 */
        __atomic_fetch_or(base + i, 0, __ATOMIC_RELAXED);
    return 0;
}

int memory_populate(void *base, uint64_t bytes)
{
    uint64_t end = align_up(bytes, PAGE_BYTES);

    for (uint64_t i = 0; i < end; i += STEP_BYTES) {
        int r = populate_step((uint8_t *)base + i, min_u64(end - i, STEP_BYTES));

        if (r < 0)
            return r;
    }
    return 0;
}

static int map_at(uint8_t *base, int memfd, uint64_t bytes, uint64_t touched_bytes)
{
    int flags = MAP_FIXED | (memfd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED);

    if (mmap(base, bytes, PROT_READ | PROT_WRITE, flags, memfd, 0) == MAP_FAILED)
        return -errno;
    (void)madvise(base, bytes, MADV_HUGEPAGE); /* small ones do, too */
    return memory_populate(base, touched_bytes);
}

int memory_map(int memfd, uint64_t bytes, uint64_t touched_bytes, void **ret_base)
{
    uint8_t *base = reserve(bytes);
    int r;

    if (!base)
        return -errno;
    r = map_at(base, memfd, bytes, touched_bytes);
    if (r < 0) {
        memory_unmap(base, bytes);
        return r;
    }
    *ret_base = base;
    return 0;
}

void memory_return(void *base, uint64_t bytes, bool shared)
{
    uint64_t end = align_up(bytes, PAGE_BYTES);

    for (uint64_t i = 0; i < end; i += STEP_BYTES) {
        uint8_t *step = (uint8_t *)base + i;
        uint64_t step_bytes = min_u64(end - i, STEP_BYTES);

        (void)munlock(step, step_bytes); /* the kernel takes nothing back that is locked */
        (void)madvise(step, step_bytes, shared ? MADV_REMOVE : MADV_DONTNEED);
    }
}

void memory_unmap(void *base, uint64_t bytes)
{
    uint64_t end = align_up(bytes, PAGE_BYTES);

    for (uint64_t i = 0; base && i < end; i += STEP_BYTES)
        (void)munmap((uint8_t *)base + i, min_u64(end - i, STEP_BYTES));
}

/* --- Locking. --- */

static bool lock_failed; /* atomic */

static int lock_steps(uint8_t *begin, const uint8_t *end)
{
    for (; begin < end; begin += STEP_BYTES)
        if (mlock(begin, min_u64((uint64_t)(end - begin), STEP_BYTES)) < 0)
            return -errno;
    return 0;
}

int memory_lock(const void *base, uint64_t bytes)
{
    uint8_t *begin = (uint8_t *)base - (uintptr_t)base % PAGE_BYTES;
    const uint8_t *end = (const uint8_t *)base + bytes;
    int r = lock_steps(begin, end); /* of pages that it has a part of, the whole */

    if (r < 0)
        __atomic_store_n(&lock_failed, true, __ATOMIC_RELAXED);
    return r;
}

void *memory_alloc(size_t count, size_t bytes)
{
    void *object = calloc(count, bytes);

    if (object)
        (void)memory_lock(object, count * bytes); /* if not, it is reported: memory_is_locked() */
    return object;
}

bool memory_is_locked(void)
{
    return !__atomic_load_n(&lock_failed, __ATOMIC_RELAXED);
}

/* By the beginning of their file's name; the program itself has none, and the vDSO is no file. */
static bool runs_in_collector(const char *path)
{
    static const char *const libraries[] = {"ld-linux", "libc.so", "liburing", "libxenevtchn"};
    const char *slash = strrchr(path, '/');

    if (path[0] == '\0')
        return true;
    for (size_t i = 0; slash && i < ARRAY_SIZE(libraries); i++)
        if (strncmp(slash + 1, libraries[i], strlen(libraries[i])) == 0)
            return true;
    return false;
}

static int lock_object(struct dl_phdr_info *info, size_t size, void *userdata)
{
    int *result = userdata;

    (void)size;
    if (!runs_in_collector(info->dlpi_name))
        return 0;
    for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const void *base = (const void *)(info->dlpi_addr + segment->p_vaddr);
        int r = segment->p_type == PT_LOAD ? memory_lock(base, segment->p_memsz) : 0;

        if (r < 0)
            *result = r;
    }
    return 0; /* the next one */
}

int memory_lock_code(void)
{
    int r = 0;

    (void)dl_iterate_phdr(lock_object, &r);
    return r;
}

int memory_lock_stack(void)
{
    pthread_attr_t attributes;
    size_t bytes;
    void *base;
    int r;

    r = -pthread_getattr_np(pthread_self(), &attributes);
    if (r < 0)
        return r;
    (void)pthread_attr_getstack(&attributes, &base, &bytes); /* neither can fail */
    (void)pthread_attr_destroy(&attributes);
    return memory_lock(base, bytes);
}
