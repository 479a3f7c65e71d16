// SPDX-License-Identifier: GPL-2.0-or-later

#include "collector/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/util.h"

#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

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

static int populate(uint8_t *base, uint64_t bytes)
{
    if (madvise(base, align_up(bytes, PAGE_BYTES), MADV_POPULATE_WRITE) >= 0)
        return 0;
    if (errno != EINVAL)
        return -errno;
    for (uint64_t i = 0; i < bytes; i += PAGE_BYTES) /* before Linux 5.14 */
        __atomic_fetch_or(base + i, 0, __ATOMIC_RELAXED);
    return 0;
}

int memory_map(int memfd, uint64_t bytes, void **ret_base)
{
    int flags = MAP_FIXED | (memfd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
    uint8_t *base = reserve(bytes);
    int r = 0;

    if (!base)
        return -errno;
    if (mmap(base, bytes, PROT_READ | PROT_WRITE, flags, memfd, 0) == MAP_FAILED)
        r = -errno;
    (void)madvise(base, bytes, MADV_HUGEPAGE); /* small ones do, too */
    if (r >= 0)
        r = populate(base, bytes);
    if (r < 0) {
        memory_unmap(base, bytes);
        return r;
    }
    *ret_base = base;
    return 0;
}

void memory_unmap(void *base, uint64_t bytes)
{
    if (base)
        (void)munmap(base, align_up(bytes, PAGE_BYTES));
}
