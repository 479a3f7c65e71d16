/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Descriptors whose owner closes them on the main thread, as sd-bus does with those of a message
 * that it frees. close(2) of a file asks its file system to flush it: a server of FUSE or NFS that
 * does not answer would be waited for. Main thread; nothing here waits.
 */

#include <stddef.h>

struct workers;

#define VACATE_MAX 8u

/*
 * Has the files of the N descriptors FDS (at most VACATE_MAX; those < 0 are passed over) closed on
 * a worker. The numbers stay open, and refer to /dev/null from then on. DONE is called from the
 * event loop when their owner may close them; never, if a file system does not answer. -ENOMEM,
 * -EAGAIN: nothing is under way, and DONE is not called.
 */
int vacate_descriptors(struct workers *workers, const int *fds, size_t n,
                       void (*done)(void *userdata), void *userdata);

/*
 * Takes over the N descriptors FDS (at most VACATE_MAX), which are nobody else's, and has them
 * closed on a worker. Without memory or a thread for that they are closed here.
 */
void vacate_close(struct workers *workers, const int *fds, size_t n);
