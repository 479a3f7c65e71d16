// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attaching to the run, lazily: programs that never ask for Xen (the shells and sleeps of a test)
 * must not notice that they are preloaded. The attachment is kept for the life of the process: a
 * daemon that gives up its rights afterwards keeps what it has opened, as with the real devices.
 */

#include "preload.h"
#include "sysctl.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static struct sim sim;
static int sim_error;
static pthread_once_t sim_once = PTHREAD_ONCE_INIT;

static void attach(void)
{
    sim_error = sim_attach(&sim);
}

struct sim *preload_sim(void)
{
    (void)pthread_once(&sim_once, attach); /* fails for a bad control only */
    if (sim_error < 0) {
        errno = -sim_error;
        return NULL;
    }
    return &sim;
}

struct sim *preload_open(void)
{
    struct sim *s = preload_sim();
    int r;

    if (!s)
        return NULL;
    r = sysctl_may_open(s);
    if (r < 0) {
        errno = -r;
        return NULL;
    }
    return s;
}

int preload_result(int result)
{
    if (result >= 0)
        return result;
    errno = -result;
    return -1;
}
