/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The file of the state directory in which the usage of a day's limits (budget.h) outlasts the
 * daemon and the host's reboot. Read and written on a worker of its own; replaced as a whole. Main
 * thread; nothing here waits.
 */

#include <stddef.h>

#define USAGE_FILE "users.usage"

struct usage_file;
struct workers;

/*
 * LOADED is called once, later, with what is in the file: any bytes, up to MAX_BYTES, from whoever
 * wrote it; LENGTH 0: it is not there, or is no file of ours. WORKERS is borrowed, DIRECTORY_FD is
 * copied. Returns 0 or a negative errno.
 */
int usage_file_new(struct workers *workers, int directory_fd, size_t max_bytes,
                   void (*loaded)(void *userdata, const void *bytes_untrusted, size_t length),
                   void *userdata, struct usage_file **ret_file);
/* Whatever was given to usage_file_write() is still written. Takes NULL; returns NULL. */
struct usage_file *usage_file_free(struct usage_file *file);

/* Takes over BYTES, to be written instead of those that are not yet. After LOADED was called. */
void usage_file_write(struct usage_file *file, void *bytes, size_t length);
