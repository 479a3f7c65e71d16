/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The plainest storage: one file, or a stream, which the collector writes itself. Main thread;
 * nothing here waits.
 */

#include "daemon/session/storage.h"

/*
 * A storage for what OPTIONS ask for. Returns 0, or -EINVAL or -ENOMEM and FAILURE; nothing is
 * touched yet.
 */
int file_storage_new(struct session *session, const struct session_options *options,
                     struct storage **ret_storage, struct failure *failure);
