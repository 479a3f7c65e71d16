/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The option `compress`: of a request, and of the configuration. Any thread.
 */

#include <stdbool.h>

#include "daemon/base/failure.h"

/* "zstd", "no"; NULL or "": no. 0, or -EINVAL and FAILURE. */
int compression_parse(const char *text, bool *ret_is_packed, struct failure *failure);

/* As in documents and the configuration: "zstd", "no". Static. */
const char *compression_name(bool is_packed);
