/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What clients may pass as an output or a sidecar. The descriptor itself is examined, whatever the
 * client calls it: its type, how it was opened, and the file system that it is on. The daemon
 * writes with root's rights where the client may have none.
 *
 *              output                                   sidecar
 *   anybody    a regular file, a pipe, /dev/null        a regular file
 *   root       a block device, too                      a regular file
 *
 * Files of a FUSE file system are root's to pass: a process of the user answers for it, or never
 * does. Files of proc(5), sysfs and their like are not accepted from anybody.
 *
 * On a worker, if nothing else is said: the file system is asked, and may wait.
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

/* FD as the sidecar PATH: a regular file, empty, that is written at offsets from now on. */
int passed_file_check_sidecar(int fd, const char *path, bool by_root, struct failure *failure);
