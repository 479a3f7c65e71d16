// SPDX-License-Identifier: GPL-2.0-or-later

#include "tests/unit/fake-uring.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

int uring_write(struct uring *uring, int fd, const void *data, uint32_t bytes, uint64_t offset,
                uint64_t tag)
{
    if (uring->nr_writes == uring->max_writes)
        return -EBUSY;
    uring->writes[uring->nr_writes++] = (struct fake_write){
        .fd = fd,
        .data = data,
        .bytes = bytes,
        .offset = offset,
        .tag = tag,
    };
    return 0;
}

int uring_cancel(struct uring *uring, uint64_t tag)
{
    if (uring->refuses_cancels)
        return -EBUSY;
    for (unsigned int i = 0; i < uring->nr_writes; i++)
        if (uring->writes[i].tag == tag)
            uring->writes[i].cancelled = true;
    return 0;
}

struct fake_write fake_uring_take(struct uring *uring, unsigned int index)
{
    struct fake_write taken = uring->writes[index];

    uring->nr_writes--;
    memmove(&uring->writes[index], &uring->writes[index + 1],
            (uring->nr_writes - index) * sizeof(taken));
    return taken;
}

int uring_wake(struct uring *uring, int eventfd)
{
    (void)uring;
    return eventfd_write(eventfd, 1) < 0 ? -errno : 0;
}
