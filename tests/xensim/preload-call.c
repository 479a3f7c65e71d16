// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libxencall: buffers and the one hypercall that tracing makes. Other hypercalls: ENOSYS.
 */

#include "preload.h"
#include "sysctl.h"

#include <errno.h>
#include <string.h>

#include <xencall.h>

struct xencall_handle {
    struct sim *sim;
};

EXPORT xencall_handle *xencall_open(struct xentoollog_logger *logger, unsigned int open_flags)
{
    struct sim *sim = preload_open();
    xencall_handle *xcall;

    (void)logger;
    (void)open_flags;
    if (!sim)
        return NULL;
    xcall = malloc(sizeof(*xcall));
    if (xcall)
        xcall->sim = sim;
    return xcall;
}

EXPORT int xencall_close(xencall_handle *xcall)
{
    free(xcall);
    return 0;
}

EXPORT int xencall_fd(xencall_handle *xcall)
{
    return xcall->sim->fd;
}

/* Zeroed, in whole pages. */
EXPORT void *xencall_alloc_buffer_pages(xencall_handle *xcall, size_t nr_pages)
{
    void *p;

    (void)xcall;
    if (posix_memalign(&p, PAGE_BYTES, nr_pages * PAGE_BYTES) != 0) {
        errno = ENOMEM;
        return NULL;
    }
    return memset(p, 0, nr_pages * PAGE_BYTES);
}

EXPORT void xencall_free_buffer_pages(xencall_handle *xcall, void *p, size_t nr_pages)
{
    (void)xcall;
    (void)nr_pages;
    free(p);
}

EXPORT void *xencall_alloc_buffer(xencall_handle *xcall, size_t size)
{
    return xencall_alloc_buffer_pages(xcall, size / PAGE_BYTES + 1);
}

EXPORT void xencall_free_buffer(xencall_handle *xcall, void *p)
{
    (void)xcall;
    free(p);
}

EXPORT int xencall_buffers_never_fault(xencall_handle *xcall)
{
    (void)xcall;
    return 1;
}

EXPORT int xencall1(xencall_handle *xcall, unsigned int op, uint64_t arg1)
{
    if (op != __HYPERVISOR_sysctl)
        return preload_result(-ENOSYS);
    return preload_result(sysctl_call(xcall->sim, (struct xen_sysctl *)(uintptr_t)arg1));
}

EXPORT int xencall0(xencall_handle *xcall, unsigned int op)
{
    (void)xcall;
    (void)op;
    return preload_result(-ENOSYS);
}

EXPORT int xencall2(xencall_handle *xcall, unsigned int op, uint64_t arg1, uint64_t arg2)
{
    (void)arg1;
    (void)arg2;
    return xencall0(xcall, op);
}
