/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The live picture of `monitor` and `top` on the terminal. Main thread. */

#include <stdint.h>

#include "common/units.h"
#include "ctl/monitor.h"

struct ctl;

#define MONITOR_INTERVAL_MIN_USEC (100 * USEC_PER_MSEC)

/* Shows it, beginning with VIEW, until the user has enough of it. Returns an enum ctl_exit. */
int monitor_loop(struct ctl *ctl, const struct monitor_view *view, uint64_t interval_usec);
