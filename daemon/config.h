/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The configuration file: INI, described in xentraced(8) and conf/xentraced.conf. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

struct config {
    uint64_t pool_bytes;    /* [daemon] pool= */
    char control_group[64]; /* [daemon] control-group=, "" for none but root */
    uint32_t buffer_pages;  /* [capture] buffer-pages=: if Xen's buffers are not allocated yet */
    uint64_t reserve_bytes; /* [capture] reserve=: of captures that do not say */
};

/*
 * Reads PATH over the defaults. A missing file is an error only if REQUIRED. Returns 0, or a
 * negative errno with one sentence that names file, line and key in *RET_ERROR (free it).
 */
int config_load(const char *path, bool required, struct config *ret_config, char **ret_error);
