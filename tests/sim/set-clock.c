/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Preloaded into xentraced: once the file that SET_CLOCK names exists, what xentraced itself reads
 * from CLOCK_REALTIME is an hour later, as if somebody had set the clock. A timer that is cancelled
 * when that happens, which cannot be had without setting the machine's clock, expires each second
 * instead. See clock.sh.
 */

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define LATE_SEC 3600

/* Whether ADDRESS is in the program itself. */
static int is_program(const void *address)
{
    const void *entry = (const void *)getauxval(AT_ENTRY);
    Dl_info here, program;

    return dladdr(address, &here) && dladdr(entry, &program) && here.dli_fbase == program.dli_fbase;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
    const char *path = getenv("SET_CLOCK");
    int r = (int)syscall(SYS_clock_gettime, clock, time);

    if (r == 0 && clock == CLOCK_REALTIME && path && is_program(__builtin_return_address(0)) &&
        access(path, F_OK) == 0)
        time->tv_sec += LATE_SEC;
    return r;
}

EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *value,
                           struct itimerspec *old_value)
{
    struct itimerspec soon = {.it_value.tv_sec = 1};

    if ((flags & TFD_TIMER_CANCEL_ON_SET) && (value->it_value.tv_sec || value->it_value.tv_nsec))
        return (int)syscall(SYS_timerfd_settime, fd, 0, &soon, old_value);
    return (int)syscall(SYS_timerfd_settime, fd, flags, value, old_value);
}
