// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libxenevtchn over the FIFOs of virq.c. A handle knows nothing but its descriptor, so one that was
 * kept elsewhere (systemd's fd store, a fork) and comes back by xenevtchn_fdopen() goes on.
 */

#include "preload.h"
#include "virq.h"

#include <errno.h>
#include <fcntl.h>

#include <xen/xen.h>
#include <xenevtchn.h>

struct xenevtchn_handle {
    struct sim *sim;
    int fd;
    int handle;
};

static xenevtchn_handle *new_handle(struct sim *sim, int fd)
{
    int handle = virq_handle_of_fd(sim, fd);
    xenevtchn_handle *xce;

    if (handle < 0) {
        errno = -handle;
        return NULL;
    }
    xce = malloc(sizeof(*xce));
    if (xce)
        *xce = (xenevtchn_handle){.sim = sim, .fd = fd, .handle = handle};
    return xce;
}

EXPORT xenevtchn_handle *xenevtchn_open(struct xentoollog_logger *logger, unsigned int flags)
{
    struct sim *sim = preload_open();
    xenevtchn_handle *xce;
    int fd;

    (void)logger;
    if (!sim)
        return NULL;
    if (sim_has_fault(sim, SIM_FAULT_NO_EVTCHN)) {
        errno = ENOENT;
        return NULL;
    }
    fd = virq_open_handle(sim, flags & XENEVTCHN_NO_CLOEXEC ? 0 : O_CLOEXEC);
    if (fd < 0) {
        errno = -fd;
        return NULL;
    }
    xce = new_handle(sim, fd);
    if (!xce)
        fd_close(&fd);
    return xce;
}

EXPORT xenevtchn_handle *xenevtchn_fdopen(struct xentoollog_logger *logger, int fd,
                                          unsigned int open_flags)
{
    struct sim *sim = preload_sim();

    (void)logger;
    if (!sim)
        return NULL;
    if (open_flags) {
        errno = EINVAL;
        return NULL;
    }
    return new_handle(sim, fd);
}

EXPORT int xenevtchn_close(xenevtchn_handle *xce)
{
    if (!xce)
        return 0;
    fd_close(&xce->fd);
    free(xce);
    return 0;
}

EXPORT int xenevtchn_fd(xenevtchn_handle *xce)
{
    return xce->fd;
}

EXPORT xenevtchn_port_or_error_t xenevtchn_bind_virq(xenevtchn_handle *xce, unsigned int virq)
{
    return preload_result(virq == VIRQ_TBUF ? virq_bind(xce->sim, xce->handle) : -EINVAL);
}

EXPORT int xenevtchn_unbind(xenevtchn_handle *xce, evtchn_port_t port)
{
    return preload_result(virq_unbind(xce->sim, xce->handle, port));
}

EXPORT xenevtchn_port_or_error_t xenevtchn_pending(xenevtchn_handle *xce)
{
    return preload_result(virq_read(xce->sim, xce->handle, xce->fd));
}

EXPORT int xenevtchn_unmask(xenevtchn_handle *xce, evtchn_port_t port)
{
    return preload_result(virq_unmask(xce->sim, xce->handle, port));
}

EXPORT int xenevtchn_notify(xenevtchn_handle *xce, evtchn_port_t port)
{
    return preload_result(virq_notify(xce->sim, xce->handle, port));
}

EXPORT int xenevtchn_restrict(xenevtchn_handle *xce, domid_t domid)
{
    (void)xce;
    (void)domid;
    return 0;
}
