/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Programs that read Xen's trace buffers, of which Xen allows one at a time: xentrace, xenbaked,
 * and xentraced itself. Found by their names in /proc. Any thread.
 */

#include <stdbool.h>

#define TRACER_TEXT_MAX 64

/*
 * Whether one of them runs here, other than this process and, with OF_OTHERS, than any xentraced:
 * "xentrace (PID 123)".
 */
bool tracer_find(bool of_others, char who[static TRACER_TEXT_MAX]);
