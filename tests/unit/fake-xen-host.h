/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Of collector/xen.h, what the collector's thread calls: an eventfd in place of the event channel.
 * In front of Xen's own in the link, so included once in a program.
 */

#include <stdint.h>
#include <sys/eventfd.h>

#include "collector/xen.h"

struct xen_host {
    int virq_fd;
};

int xen_host_virq_fd(const struct xen_host *host)
{
    return host->virq_fd;
}

bool xen_host_virq_rearm(struct xen_host *host)
{
    eventfd_t count;

    return eventfd_read(host->virq_fd, &count) == 0;
}
