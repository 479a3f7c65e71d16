/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The status document for commands that continue without it, and wait only briefly. One thread.
 */

#include "ctl/client.h"

/*
 * As client_status() of the whole, but waits for TIMEOUT_USEC only. *CLIENT is connected to PATH if
 * it is NULL, and NULL after a failure but -ETIMEDOUT: a daemon that hangs would not accept a new
 * connection either, and that wait is longer.
 */
int ask_status(struct client **client, const char *path, uint64_t timeout_usec,
               struct json_object **ret_doc, char **ret_error);
