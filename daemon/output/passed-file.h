/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Checks the descriptors that clients pass as output or sidecar: file type, access mode and file
 * system, regardless of the path that the client names. The daemon writes as root, where the client
 * may have no permission.
 *
 *              output                                   sidecar
 *   anybody    a regular file, a pipe, /dev/null        a regular file
 *   root       a block device, too                      a regular file
 *
 * Only root may pass files on a FUSE file system, because a process of the user serves it, and may
 * never answer. Files of proc(5), sysfs and similar file systems are not accepted, and neither are
 * files in memory, whose pages would be charged to the daemon for as long as the client keeps them:
 * with a memory limit, the kernel would kill the daemon. xentracectl copies to such files itself.
 *
 * Called on a worker unless stated otherwise, because the file system may block.
 */

#include <stdbool.h>

#include "daemon/base/failure.h"

/*
 * FD as an output, opened for writing; PATH is what the client calls it, "-" for its standard
 * output. BY_ROOT: root has passed it. Returns 0 and whether it is written as it comes, without
 * offsets; or a negative errno, and FAILURE says what was passed and what is accepted.
 */
int passed_file_check_output(int fd, const char *path, bool by_root, bool *ret_is_stream,
                             struct failure *failure);

/*
 * Any thread; does not wait. Whether FD is on a FUSE file system: then anything that is done with
 * it may wait for a process of the user, close(2) included.
 */
bool passed_file_is_on_fuse(int fd);

/*
 * Likewise, for what a user other than root has passed, before anything is done with it: -EPERM and
 * FAILURE if FD is on such a file system. NAME is for the sentence; "-" as above.
 */
int passed_file_check_mount(int fd, const char *name, struct failure *failure);

/* FD as the sidecar PATH: a regular file, empty, that is written at offsets from now on. */
int passed_file_check_sidecar(int fd, const char *path, bool by_root, struct failure *failure);
