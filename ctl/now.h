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

/*
 * All of the pipe FD, which is closed, in a file without a name in $TMPDIR (/var/tmp). There, 10 %
 * of the disk or 1 GiB stay free. NAME is that of the trace for people. Returns as now_take().
 */
int now_keep_pipe(int fd, const char *name, int *ret_fd, char **ret_error);

/*
 * The same of the content of the compressed file FD, which is closed, as far as it is windows. At a
 * damage it ends with four zero bytes, which are no window. With RESUME, the next frames that can
 * be unpacked follow, and what is no window is kept, too, up to 1 MiB in a row.
 */
int now_keep_unpacked(int fd, bool resume, const char *name, int *ret_fd, char **ret_error);
