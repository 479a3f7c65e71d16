/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The sidecar: the session's document as a file beside the capture. Complete at any time: written
 * when the session starts, and again when it has ended. Main thread.
 */

#include "daemon/base/failure.h"

struct json_object;

/*
 * The sidecar that a client opened as FD, beside its OUTPUT_PATH: a descriptor of our own in
 * *RET_FD, and its path in *RET_PATH, to be freed. With FD < 0 there is none, and both stay.
 * Returns 0, or a negative errno and FAILURE.
 */
int sidecar_adopt(int fd, const char *output_path, int *ret_fd, char **ret_path,
                  struct failure *failure);

/*
 * Writes DOCUMENT, which is given away. With FD >= 0, a sidecar that a client opened: overwritten
 * with a single write, for it is the client's directory. Else NAME.json in DIRECTORY_FD, replaced
 * atomically. Returns 0 or a negative errno, the old content being still there.
 */
int sidecar_write(int directory_fd, const char *name, int fd, struct json_object *document);
