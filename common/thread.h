/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Starts threads. Signals are the main thread's: all are blocked in the others. */

#include <pthread.h>
#include <stddef.h>

/*
 * Starts a thread that runs RUN(ARGUMENT) on a stack of STACK_BYTES, to be joined or detached.
 * NAME, of which 15 bytes are used, is what ps(1) and top(1) show. Any thread. Returns 0, or the
 * negative error of pthread_create(3).
 */
int thread_start(pthread_t *ret_thread, const char *name, size_t stack_bytes,
                 void *(*run)(void *argument), void *argument);
