/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the configuration. Any thread; waits for the disk. */

#include "daemon/config/config-files.h"
#include "daemon/config/config-reading.h"

/*
 * Reads all files on top of the defaults, and continues after errors, so that all of them are
 * reported (config-reading.h). Waits for the disk. Returns 0 even if the files have errors, or
 * -ENOMEM.
 */
int config_read(const struct config_source *source, struct config_reading **ret_reading);
