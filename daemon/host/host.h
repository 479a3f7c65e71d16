/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Facts about this machine that a reader of a trace needs and Xen does not know. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

struct host {
    char hostname[256];
    char boot_id[33];    /* as sd-id128(3) prints it: of this boot of dom0 */
    char cpu_vendor[64]; /* without it VM exit reasons cannot be decoded */
    char cpu_model[128];
};

/* Unknown facts stay empty. All of it is valid UTF-8 without control characters. */
void host_read(struct host *ret_host);

/* All memory of dom0, or what control groups allow this process; 0: unknown. */
uint64_t host_total_bytes(void);

/* How much of that can be spared now, as the kernel estimates it; 0: unknown. */
uint64_t host_available_bytes(void);

/* Whether BYTES are no more than PERCENT of that, or it is unknown. */
bool host_can_spare(uint64_t bytes, uint32_t percent);
