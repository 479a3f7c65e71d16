/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the configuration. Any thread; waits for the disk. */

#include "daemon/config/config-files.h"
#include "daemon/config/config-reading.h"

/*
 * Reads all files over the defaults, and goes on after an error, so that all of them are known
 * (config-reading.h). Waits for the disk. Returns 0, whatever the files say, or -ENOMEM.
 */
int config_read(const struct config_source *source, struct config_reading **ret_reading);
