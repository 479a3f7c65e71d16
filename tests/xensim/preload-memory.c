// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libxenforeignmemory, and libxenctrl's older calls for the same: pages of the memfd, put side by
 * side with MAP_FIXED over a reservation. Xen shares t_info read-only, so asking for more fails.
 */

#define XC_WANT_COMPAT_MAP_FOREIGN_API

#include "preload.h"

#include <errno.h>
#include <sys/mman.h>

#include <xenctrl.h>
#include <xenforeignmemory.h>

struct xenforeignmemory_handle {
    struct sim *sim;
};

static int check_page(const struct sim *sim, int prot, unsigned long mfn)
{
    uint64_t page = mfn - SIM_MFN_BASE;

    if (sim_has_fault(sim, SIM_FAULT_MAP_DENIED))
        return -EPERM;
    if (!sim->shared->t_info_pages || !sim_mfn_to_page(sim, mfn))
        return -EINVAL;
    if (page < sim->pool_page)
        return page < sim->t_info_page + sim->shared->t_info_pages
                   ? (prot & PROT_WRITE ? -EPERM : 0)
                   : -EINVAL;
    return 0;
}

static int map_run(const struct sim *sim, unsigned char *to, int prot, size_t pages,
                   unsigned long mfn)
{
    off_t offset = (off_t)(mfn - SIM_MFN_BASE) * (off_t)PAGE_BYTES;

    return mmap(to, pages * PAGE_BYTES, prot, MAP_SHARED | MAP_FIXED, sim->fd, offset) == MAP_FAILED
               ? -errno
               : 0;
}

/* Runs of neighbouring MFNs take one mapping: the kernel would join them too. */
static int map_pages(const struct sim *sim, unsigned char *to, int prot, size_t count,
                     const unsigned long *mfns, int *err)
{
    int result = 0;

    for (size_t i = 0, n; i < count; i += n) {
        int r = check_page(sim, prot, mfns[i]);

        n = 1;
        while (r == 0 && i + n < count && mfns[i + n] == mfns[i] + n &&
               check_page(sim, prot, mfns[i + n]) == 0)
            n++;
        if (r == 0)
            r = map_run(sim, to + i * PAGE_BYTES, prot, n, mfns[i]);
        for (size_t j = 0; err && j < n; j++)
            err[i + j] = r;
        if (r < 0)
            result = r;
    }
    return result;
}

void *preload_map(void *address, int prot, size_t count, const unsigned long *mfns, int *err)
{
    struct sim *sim = preload_sim();
    void *p;
    int r;

    if (!sim)
        return NULL;
    p = mmap(address, count * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    r = map_pages(sim, p, prot, count, mfns, err);
    if (r < 0 && !err) {
        (void)munmap(p, count * PAGE_BYTES); /* it was mapped just now */
        errno = -r;
        return NULL;
    }
    return p;
}

EXPORT xenforeignmemory_handle *xenforeignmemory_open(xentoollog_logger *logger,
                                                      unsigned int open_flags)
{
    struct sim *sim = preload_open();
    xenforeignmemory_handle *fmem;

    (void)logger;
    (void)open_flags;
    if (!sim)
        return NULL;
    fmem = malloc(sizeof(*fmem));
    if (fmem)
        fmem->sim = sim;
    return fmem;
}

EXPORT int xenforeignmemory_close(xenforeignmemory_handle *fmem)
{
    free(fmem);
    return 0;
}

EXPORT void *xenforeignmemory_map2(xenforeignmemory_handle *fmem, uint32_t dom, void *addr,
                                   int prot, int flags, size_t pages, const xen_pfn_t *arr,
                                   int *err)
{
    (void)fmem;
    (void)flags;
    if (dom != DOMID_XEN) {
        errno = ESRCH;
        return NULL;
    }
    return preload_map(addr, prot, pages, arr, err);
}

EXPORT void *xenforeignmemory_map(xenforeignmemory_handle *fmem, uint32_t dom, int prot,
                                  size_t pages, const xen_pfn_t *arr, int *err)
{
    return xenforeignmemory_map2(fmem, dom, NULL, prot, 0, pages, arr, err);
}

EXPORT int xenforeignmemory_unmap(xenforeignmemory_handle *fmem, void *addr, size_t pages)
{
    (void)fmem;
    return munmap(addr, pages * PAGE_BYTES);
}

EXPORT int xenforeignmemory_restrict(xenforeignmemory_handle *fmem, domid_t domid)
{
    (void)fmem;
    (void)domid;
    return preload_result(-EOPNOTSUPP);
}

EXPORT void *xc_map_foreign_pages(xc_interface *xch, uint32_t dom, int prot, const xen_pfn_t *arr,
                                  int num)
{
    (void)xch;
    return xenforeignmemory_map2(NULL, dom, NULL, prot, 0, (size_t)num, arr, NULL);
}

EXPORT void *xc_map_foreign_range(xc_interface *xch, uint32_t dom, int size, int prot,
                                  unsigned long mfn)
{
    size_t pages = ((size_t)size + PAGE_BYTES - 1) / PAGE_BYTES;
    xen_pfn_t *arr = calloc(pages + !pages, sizeof(*arr));
    void *p;

    if (!arr)
        return NULL;
    for (size_t i = 0; i < pages; i++)
        arr[i] = mfn + i;
    p = xc_map_foreign_pages(xch, dom, prot, arr, (int)pages);
    free(arr);
    return p;
}
