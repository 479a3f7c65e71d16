/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Preloaded into xentraced: once the file that LATE_CLOCK names exists, what xentraced itself reads
 * from CLOCK_MONOTONIC is a minute later. Libraries, and so the event loop, read the true time. See
 * silent.sh.
 */

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define LATE_SEC 60

/* Whether ADDRESS is in the program itself. */
static int is_program(const void *address)
{
    const void *entry = (const void *)getauxval(AT_ENTRY);
    Dl_info here, program;

    return dladdr(address, &here) && dladdr(entry, &program) && here.dli_fbase == program.dli_fbase;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
    const char *path = getenv("LATE_CLOCK");
    int r = (int)syscall(SYS_clock_gettime, clock, time);

    if (r == 0 && clock == CLOCK_MONOTONIC && path && is_program(__builtin_return_address(0)) &&
        access(path, F_OK) == 0)
        time->tv_sec += LATE_SEC;
    return r;
}
