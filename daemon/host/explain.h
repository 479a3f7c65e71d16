/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Turns what Xen and the disk said into one sentence for people: what happened, and what to do.
 * Main thread.
 */

#include <stdbool.h>

#include "collector/xen.h"
#include "daemon/base/failure.h"

/* ERROR (negative) came at STEP. Sets FAILURE (ERROR_XEN) and returns ERROR. */
int explain_xen(struct failure *failure, enum xen_step step, int error);

#define CONSUMER_TEXT_MAX 64

/* Whether somebody else who reads trace buffers runs here, by its name: "xentrace (PID 123)". */
bool explain_consumer(char who[static CONSUMER_TEXT_MAX]);

/* The meaning of a write error: half a sentence, "the disk is full". Static. */
const char *explain_write(int error);
