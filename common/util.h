/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Small helpers that every folder uses: array sizes, alignment, and cleanup attributes for the
 * things that are opened and closed. Header only; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define _cleanup_(f)   __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))

#define PAGE_BYTES 4096u /* Xen's page, and the unit of O_DIRECT that suits every disk */

static inline uint64_t align_up(uint64_t value, uint64_t power_of_two)
{
    return (value + power_of_two - 1) & ~(power_of_two - 1);
}

static inline uint64_t align_down(uint64_t value, uint64_t power_of_two)
{
    return value & ~(power_of_two - 1);
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Closes *FD if it is open and marks it closed. For _cleanup_ and for destructors. */
static inline void fd_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing can be done about an error any more */
    *fd = -1;
}

/* Gives the pointer P away: its value, and NULL is left. */
#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })

/* Gives *FD away: returns it and leaves -1. */
static inline int fd_take(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

static inline void free_charp(char **p)
{
    free(*p);
    *p = NULL;
}

static inline void file_closep(FILE **f)
{
    if (*f)
        (void)fclose(*f); /* read-only streams, or already flushed and checked */
    *f = NULL;
}

#define _cleanup_fd_   _cleanup_(fd_close)
#define _cleanup_free_ _cleanup_(free_charp)
#define _cleanup_file_ _cleanup_(file_closep)
