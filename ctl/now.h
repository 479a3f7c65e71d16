/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the flight recorder holds at the moment, for a command that reads traces: a snapshot through
 * a pipe, which leaves no file in the state directory. It is kept in files without a name, which
 * end with the command. One thread.
 */

#include <stdbool.h>

/*
 * Takes it from the daemon at SOCKET. *RET_TRACE and *RET_SIDECAR are descriptors, to be closed. 0;
 * a negative errno with a sentence in *RET_ERROR (free it); -ENOMEM.
 */
int now_take(const char *socket, int *ret_trace, int *ret_sidecar, char **ret_error);

/* All of the pipe FD, which is closed, in a file without a name. 0, or of open(2) or read(2). */
int now_keep_pipe(int fd, int *ret_fd);

/*
 * Keeps the content of the compressed file FD, which is closed. It ends at a damage, with four zero
 * bytes, which are no window; with RESUME, the next frames that can be unpacked follow. Returns as
 * now_keep_pipe().
 */
int now_keep_unpacked(int fd, bool resume, int *ret_fd);
