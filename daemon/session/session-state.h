/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What session.c and session-options.c share privately. Main thread. */

#include "daemon/session/session.h"

/*
 * Fills in the settings and the selection from OPTIONS, checked. Returns 0, or -EINVAL or -ENOMEM
 * and FAILURE; session_free() takes back what was filled in.
 */
int session_take_options(struct session *session, const struct session_options *options,
                         struct failure *failure);
