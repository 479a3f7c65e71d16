// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/output/disk-call.h"

#include <stdint.h>
#include <time.h>

#define FIRST_PAUSE_NS 10000000L

bool disk_error_may_pass(int error)
{
    switch (-error) {
    case EAGAIN:
    case EBUSY:
    case EINTR:
    case EIO:
    case ENOBUFS:
    case ENOMEM:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

bool disk_call_again(unsigned int *tries, int error)
{
    int64_t pause_ns = FIRST_PAUSE_NS << *tries;
    const struct timespec pause = {
        .tv_sec = (time_t)(pause_ns / 1000000000),
        .tv_nsec = (long)(pause_ns % 1000000000),
    };

    if (!disk_error_may_pass(error) || *tries == DISK_TRIES)
        return false;
    if (*tries > 0 || error != -EINTR) /* once at once */
        (void)nanosleep(&pause, NULL); /* a shorter pause does no harm */
    (*tries)++;
    return true;
}
