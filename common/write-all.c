// SPDX-License-Identifier: GPL-2.0-or-later

#include "common/write-all.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

int write_all(int fd, const void *data, size_t bytes)
{
    const uint8_t *p = data;

    while (bytes > 0) {
        ssize_t n = write(fd, p, bytes);

        if (n < 0 && errno == EAGAIN)
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR)
            return -errno;
        if (n < 0)
            continue;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}
