/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How the fake daemon reads the options of Start and Snapshot. All return 0 or more, or a negative
 * errno.
 */

#include <stddef.h>
#include <systemd/sd-bus.h>

#include "tests/ctl/fake-recorder.h"

/* Reads a{sv} with TAKE, which reads one value or skips it. */
int fake_read_options(sd_bus_message *message,
                      int (*take)(void *context, sd_bus_message *message, const char *key),
                      void *context);

/* Reads a text. */
int fake_take_text(sd_bus_message *message, char *buffer, size_t bytes);

/* Reads a descriptor: a duplicate, as the message's own is closed with it. */
int fake_take_file(sd_bus_message *message, int *ret_fd);

/* Reads an option about where records are kept; -ENOENT: KEY is another one. */
int fake_take_storage(struct fake_storage *storage, sd_bus_message *message, const char *key);
