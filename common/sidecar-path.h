/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where the sidecar of a capture is. The client opens it there, the daemon names it, `info` finds
 * it. Any thread.
 */

/* "f.xentrace" -> "f.json", "f" -> "f.json". Free it; NULL: out of memory. */
char *sidecar_path_of(const char *trace_path);
