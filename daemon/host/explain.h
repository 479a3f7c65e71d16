/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Turns what Xen and the disk said into one sentence for people: what happened, and what to do.
 * Main thread.
 */

#include "collector/xen.h"
#include "daemon/base/failure.h"

/* ERROR (negative) came at STEP. Sets FAILURE (ERROR_XEN; ERROR_NO_CONTROL_DOMAIN: no
 * start can ever succeed here) and returns ERROR. */
int explain_xen(struct failure *failure, enum xen_step step, int error);

/* The meaning of a write error: half a sentence, "the disk is full". Static. */
const char *explain_write(int error);
