/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The trace buffer of one CPU, from the consumer's side: its fill level, copying records, returning
 * the space to Xen.
 *
 * Source: struct t_buf in <xen/trace.h>; Xen's common/trace.c. The memory is shared with the
 * hypervisor: `prod` is loaded and checked once per access; `cons` is kept here and only written to
 * the shared memory. Collector thread only; nothing allocates, nothing blocks.
 */

#include <stdbool.h>
#include <stdint.h>

struct t_buf;

struct tbuf {
    struct t_buf *shared;   /* NULL: this CPU has no buffer */
    uint32_t data_bytes;    /* of the data area */
    uint32_t cons;          /* as it was last stored for Xen, in [0, 2 * data_bytes) */
    uint64_t drained_bytes; /* consumed since tbuf_init(); also read by the main thread */
    bool set_aside;         /* prod was impossible, or the records made no sense: touched no more */
    bool unsettled;         /* Xen may have lost records that it has not reported yet */
    uint32_t unsettled_prod; /* ... it reports them with the first record after this */
};

/* SHARED is mapped, PAGES long. Takes over at the buffer's own cons. -EBADMSG: it is impossible. */
int tbuf_init(struct tbuf *tbuf, struct t_buf *shared, uint32_t pages);

/*
 * How many bytes wait to be consumed. Returns 0, or -EBADMSG for an impossible prod: the caller
 * sets the buffer aside.
 */
int tbuf_peek(const struct tbuf *tbuf, uint32_t *ret_bytes);

/* Copies BYTES of what waits, from OFFSET on, to DESTINATION; at most what tbuf_peek() said. */
void tbuf_copy(const struct tbuf *tbuf, uint32_t offset, uint32_t bytes, void *destination);

/* What cons will be once the first BYTES of what waits are consumed. */
uint32_t tbuf_cons_behind(const struct tbuf *tbuf, uint32_t bytes);

/*
 * Continues at CONS, which is at or after where the buffer's consumer was when tbuf_init() was
 * called: what lies between was read already, but not published to Xen. -EBADMSG: that is
 * impossible.
 */
int tbuf_resume(struct tbuf *tbuf, uint32_t cons);

/*
 * Gives the first BYTES of what waits back to Xen, after they were copied. Also notes whether the
 * buffer was so full that Xen may have dropped records before it knew.
 */
void tbuf_consume(struct tbuf *tbuf, uint32_t bytes);

/* Whether Xen may hold back a count of lost records: true until a record comes after the loss. */
bool tbuf_is_unsettled(const struct tbuf *tbuf);

/* How full it is as of now, 0 to 100. Any thread. */
unsigned int tbuf_fill_percent(const struct tbuf *tbuf);
