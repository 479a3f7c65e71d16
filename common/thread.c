// SPDX-License-Identifier: GPL-2.0-or-later

#include "common/thread.h"

#include <signal.h>
#include <stdio.h>

#define NAME_BYTES 16u /* TASK_COMM_LEN: pthread_setname_np(3) takes no more */

int thread_start(pthread_t *ret_thread, const char *name, size_t stack_bytes,
                 void *(*run)(void *argument), void *argument)
{
    char comm[NAME_BYTES];
    pthread_attr_t attributes;
    sigset_t all, before;
    int r;

    (void)pthread_attr_init(&attributes); /* neither can fail, with glibc and such sizes */
    (void)pthread_attr_setstacksize(&attributes, stack_bytes);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = -pthread_create(ret_thread, &attributes, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (r < 0)
        return r;
    (void)snprintf(comm, sizeof(comm), "%s", name);
    (void)pthread_setname_np(*ret_thread, comm); /* for people only */
    return 0;
}
