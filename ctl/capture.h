/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Starting a capture, as start and record both do.
 */

#include "ctl/client.h"
#include "ctl/options.h"
#include "ctl/target.h"

/*
 * Opens the output that OPTIONS name, asks the daemon to start, and lets the files stand or removes
 * them again. CPUs that cannot be recorded are reported on stderr.
 *
 * RET_TARGET NULL: the caller does not wait for the end of the capture. Else the capture ends with
 * this connection, and the caller calls target_finish() then, and target_done(). Returns as
 * client_call(); and negative errnos of opening files.
 */
int capture_start(struct client *client, const struct capture_options *options,
                  struct target *ret_target, struct json_object **ret_session, char **ret_error);
