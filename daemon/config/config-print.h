/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What `xentraced --check-config` and `--print-config` write. Main thread. */

#include <stdio.h>

#include "daemon/config/config-reading.h"

/* A line for each problem, errors and warnings, and which files were read. */
void config_print_check(FILE *file, const struct config_reading *reading);

/*
 * All sections with all keys, as a configuration file: the value in force, and in a comment where
 * it comes from and whether a reload applies a change.
 */
void config_print(FILE *file, const struct config_reading *reading);
