/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

/*
 * Writes all BYTES of DATA to FD, as write(2) does, and waits for a descriptor that another process
 * has made non-blocking. Returns 0 or a negative errno; then a part may be written. May block: not
 * for the main thread of the daemon. Any thread.
 */
int write_all(int fd, const void *data, size_t bytes);
