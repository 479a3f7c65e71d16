/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * FIFOs of a run's directory: DIRECTORY/KIND.NUMBER. A descriptor that is open for reading *is* the
 * handle that a library gave out (an event channel's, xenstore's), so it may be kept, passed and
 * inherited, and what hangs on it lives as long as anybody holds it.
 */

#include <stdbool.h>
#include <stdint.h>

/* Makes it, with a write end that keeps it from ever being at its end. 0 or a negative errno. */
int fifo_create(const char *directory, const char *kind, unsigned int number, int *ret_writer,
                uint64_t *ret_inode);

/* Its descriptor, or a negative errno. */
int fifo_open(const char *directory, const char *kind, unsigned int number, int flags);

/* Does anybody have it open for reading? */
bool fifo_is_held(const char *directory, const char *kind, unsigned int number);

/* Throws away what an earlier holder left unread. */
void fifo_drain(int fd);

void fifo_remove(const char *directory, const char *kind, unsigned int number);
