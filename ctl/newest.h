/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The trace that a command reads if none is named: the newest snapshot in the state directory of
 * which the user may read the trace and the sidecar. The daemon at SOCKET is asked for the
 * directory, but need not be there. One thread.
 */

/* Its path, to be freed. 0; -ENOENT, -EACCES with a sentence in *RET_ERROR (free it); -ENOMEM. */
int newest_find(const char *socket, char **ret_path, char **ret_error);
