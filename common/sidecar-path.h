/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where the sidecar of a capture is. The client opens it there, the daemon names it, `info` finds
 * it. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#define TRACE_SUFFIX        ".xentrace"
#define TRACE_SUFFIX_PACKED ".zst" /* after it, if the trace is compressed */

/* The length of PATH without the suffix of a trace: "f" of "f.xentrace", "f.xentrace.zst", "f". */
size_t trace_path_stem(const char *path);
/* Whether PATH has that suffix. */
bool trace_path_is_trace(const char *path);

/*
 * "f.xentrace" -> "f.json", "f.xentrace.zst" -> "f.json", "f" -> "f.json". Free it; NULL: out of
 * memory.
 */
char *sidecar_path_of(const char *trace_path);
