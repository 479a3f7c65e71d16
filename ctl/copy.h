/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Copies everything from one descriptor to another on a thread of its own, while the main thread
 * waits for the daemon: for outputs that the daemon does not take, such as a socket or a file in
 * memory, and for daemons that take none.
 */

#include <stdint.h>

struct copy;

/*
 * Takes over FROM_FD and TO_FD, also on failure. Returns 0 or a negative errno. The copy ends with
 * -ENOSPC rather than leave less than RESERVE_BYTES free on the file system of TO_FD (0: any).
 */
int copy_new(int from_fd, int to_fd, uint64_t reserve_bytes, struct copy **ret_copy);

/* Returns what copy_new() was given; NULL: 0. */
uint64_t copy_reserve_bytes(const struct copy *copy);

/*
 * Waits for the end of FROM_FD; SIGINT and SIGTERM end the process from now on. Returns 0, or a
 * negative errno if the copy ended early and its writer received a broken pipe. Frees COPY; NULL:
 * returns 0.
 */
int copy_finish(struct copy *copy);

/* Does not wait: the thread goes on until the process ends. Takes NULL. */
void copy_abandon(struct copy *copy);
