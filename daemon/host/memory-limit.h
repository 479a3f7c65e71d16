/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How much memory the control groups (version 2) of this process allow it. Beyond that the kernel
 * kills it, whatever the host has. Source: Documentation/admin-guide/cgroup-v2.rst, "memory.max";
 * systemd sets it with MemoryMax=, also of slices.
 */

#include <stdint.h>

struct memory_limit {
    uint64_t max_bytes;  /* the smallest of all groups above; UINT64_MAX: none has a limit */
    uint64_t left_bytes; /* before the first of them is reached; UINT64_MAX likewise */
};

/* ROOT is "", or a test's directory that has `proc` and `sys`. Reads files of the kernel only. */
struct memory_limit memory_limit_read(const char *root);
