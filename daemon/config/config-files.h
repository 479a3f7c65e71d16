/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Which files the configuration consists of. Any thread; waits for the disk. */

#include "daemon/config/config-reading.h"

#define CONFIG_DIRECTORIES_MAX 2u

/* Where the configuration is. */
struct config_source {
    const char *file;
    bool is_required; /* FILE must exist */
    /*
     * Directories of drop-ins, NAME.conf. If several have a drop-in of the same name, only that of
     * the first directory is read. NULL: end of the list.
     */
    const char *directories[CONFIG_DIRECTORIES_MAX];
    int log_level; /* instead of log-level=; -1: the files decide */
};

/* FILE and the drop-ins in FILE.d; of the system's own file also the vendor's. */
#define CONFIG_DROP_INS        ".d"
#define CONFIG_VENDOR_DROP_INS XENTRACED_VENDOR_DIR "/xentraced.conf.d"

/*
 * Calls READ for the file of SOURCE, unless it is missing and may be, and then for its drop-ins in
 * the order of their names, whatever their directories. A drop-in that is a link to /dev/null is
 * skipped, and hides the drop-in of the same name in a later directory. A file that cannot be read
 * is a problem of READING.
 */
void config_visit_files(struct config_reading *reading, const struct config_source *source,
                        void (*read)(struct config_reading *reading, const char *path, FILE *file));
