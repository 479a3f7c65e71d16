/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The hypervisor's trace buffers: what XEN_SYSCTL_tbuf_op does, and how a CPU inserts a record.
 * The model is Xen 4.17's common/trace.c; every rule a consumer can observe is kept.
 */

#ifndef __XEN_TOOLS__
#define __XEN_TOOLS__ 1 /* as <xenctrl.h> does */
#endif

#include "sim.h"

#include <xen/xen.h>
#include <xen/sysctl.h>

enum tbuf_result {
    TBUF_INSERTED,
    TBUF_LOST,     /* did not fit: counted */
    TBUF_FILTERED, /* a mask, or a CPU without a buffer: as if it had never been */
    TBUF_DISABLED, /* tracing is off */
};

struct tbuf_event {
    uint32_t event; /* with TRC_HD_CYCLE_FLAG if it has a TSC; no number of extra words */
    uint32_t extra_words;
    uint64_t tsc; /* 0: what the TSC says when it is inserted */
    const uint32_t *extra;
};

/* XEN_SYSCTL_tbuf_op. 0 or a negative errno. */
int tbuf_control(struct sim *sim, struct xen_sysctl_tbuf_op *op);

/* Buffers as at boot with tbuf_size=PAGES and, if not 0, tevt_mask=MASK. */
int tbuf_boot(struct sim *sim, uint32_t pages, uint32_t mask);

static inline bool tbuf_is_enabled(const struct sim *sim)
{
    return __atomic_load_n(&sim->shared->tb_init_done, __ATOMIC_ACQUIRE);
}

/* Would a record of EVENT be attempted on CPU? EVENT as in struct tbuf_event. */
bool tbuf_passes(const struct sim *sim, unsigned int cpu, uint32_t event);

/* Inserts one record for CPU, whose lock the caller holds. */
enum tbuf_result tbuf_insert(struct sim *sim, unsigned int cpu, const struct tbuf_event *event);

/*
 * Room for records in a row of which each would be inserted with nothing beside it: no loss to
 * tell, no wrap record, no interrupt. Returns where to write and how many bytes at most in
 * *RET_BYTES; NULL: it is tbuf_insert()'s turn. The caller holds CPU's lock until tbuf_end_run(),
 * which makes COUNT records of BYTES visible at once: records that are made in no time are seen in
 * no time.
 */
unsigned char *tbuf_begin_run(struct sim *sim, unsigned int cpu, uint32_t *ret_bytes);
void tbuf_end_run(struct sim *sim, unsigned int cpu, uint32_t count, uint32_t bytes);

/* CPU's cons and prod, NULL if it never had a buffer. */
struct t_buf *tbuf_of_cpu(const struct sim *sim, unsigned int cpu);

/* Where byte OFFSET of CPU's buffer (header included) stands; the buffer must exist. */
unsigned char *tbuf_byte(const struct sim *sim, unsigned int cpu, uint32_t offset);
