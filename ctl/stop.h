/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Ending a capture and waiting for its file, as stop and record both do.
 */

#include "ctl/client.h"

/*
 * Stops the session NAME ("": the only capture) and waits until its file is finished. While the
 * disk does not answer, one line on stderr reports so, with the command that ends the wait.
 * Returns as client_call().
 */
int stop_session(struct client *client, const char *name, struct json_object **ret_session,
                 char **ret_error);
