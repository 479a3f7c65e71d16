// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prod and cons run over [0, 2 * data_bytes): equal means empty, a distance of data_bytes means
 * full (<xen/trace.h>). Only Xen writes prod, only we write cons.
 *
 * Barriers: the acquire load of prod pairs with smp_wmb() before `buf->prod = next` in Xen's
 * __insert_record(): records up to prod are whole. The store of cons (release, and more) pairs with
 * Xen's read of cons in calc_unconsumed_bytes(), on which its next writes depend: all copying is
 * done before Xen may overwrite.
 */

#include "collector/tbuf.h"

#include <errno.h>
#include <string.h>

#include <xen/trace.h>

#include "common/record.h"
#include "common/util.h"

/*
 * Xen needs room for a lost_records record and a record, each possibly after a wrap record, so
 * with less than this it may drop one: 4 records of the largest size, rounded up.
 */
#define NEARLY_FULL_BYTES 160u

#define COPY_STEP_BYTES 64u

static uint32_t load_prod(const struct tbuf *tbuf)
{
    return __atomic_load_n(&tbuf->shared->prod, __ATOMIC_ACQUIRE);
}

static bool offset_possible(const struct tbuf *tbuf, uint32_t offset)
{
    return offset % 4 == 0 && offset < 2 * tbuf->data_bytes;
}

/* From cons to PROD. */
static uint32_t distance(const struct tbuf *tbuf, uint32_t prod)
{
    return prod >= tbuf->cons ? prod - tbuf->cons : prod + 2 * tbuf->data_bytes - tbuf->cons;
}

int tbuf_init(struct tbuf *tbuf, struct t_buf *shared, uint32_t pages)
{
    *tbuf = (struct tbuf){
        .shared = shared,
        .data_bytes = pages * PAGE_BYTES - (uint32_t)sizeof(struct t_buf),
    };
    tbuf->cons = __atomic_load_n(&shared->cons, __ATOMIC_RELAXED);
    if (!offset_possible(tbuf, tbuf->cons)) {
        tbuf->set_aside = true;
        return -EBADMSG;
    }
    return 0;
}

int tbuf_peek(const struct tbuf *tbuf, uint32_t *ret_bytes)
{
    uint32_t prod_untrusted = load_prod(tbuf);

    if (!offset_possible(tbuf, prod_untrusted) || distance(tbuf, prod_untrusted) > tbuf->data_bytes)
        return -EBADMSG;
    *ret_bytes = distance(tbuf, prod_untrusted);
    return 0;
}

/*
 * memcpy() in steps of a constant size, which the compiler turns into plain loads and stores. The
 * library copies this size with "rep movsb", which may leave the data outside the caches; walking
 * it would then cost more than the copy.
 */
static void copy_to_walk(uint8_t *destination, const uint8_t *source, uint32_t bytes)
{
    for (; bytes >= COPY_STEP_BYTES; bytes -= COPY_STEP_BYTES) {
        memcpy(destination, source, COPY_STEP_BYTES);
        destination += COPY_STEP_BYTES;
        source += COPY_STEP_BYTES;
    }
    memcpy(destination, source, bytes);
}

void tbuf_copy(const struct tbuf *tbuf, uint32_t offset, uint32_t bytes, void *destination)
{
    const uint8_t *data = (const uint8_t *)tbuf->shared + sizeof(struct t_buf);
    uint32_t start = (tbuf->cons + offset) % tbuf->data_bytes;
    uint32_t to_end = tbuf->data_bytes - start;

    if (bytes <= to_end) {
        copy_to_walk(destination, data + start, bytes);
    } else {
        copy_to_walk(destination, data + start, to_end);
        copy_to_walk((uint8_t *)destination + to_end, data, bytes - to_end);
    }
}

uint32_t tbuf_cons_behind(const struct tbuf *tbuf, uint32_t bytes)
{
    return (tbuf->cons + bytes) % (2 * tbuf->data_bytes);
}

int tbuf_resume(struct tbuf *tbuf, uint32_t cons)
{
    uint32_t waiting;

    if (tbuf->set_aside || tbuf_peek(tbuf, &waiting) < 0)
        return 0; /* as before: nothing is done with it */
    if (!offset_possible(tbuf, cons) || distance(tbuf, cons) > waiting)
        return -EBADMSG;
    tbuf_consume(tbuf, distance(tbuf, cons));
    return 0;
}

void tbuf_consume(struct tbuf *tbuf, uint32_t bytes)
{
    uint32_t next = tbuf_cons_behind(tbuf, bytes);
    uint32_t prod;

    __atomic_store_n(&tbuf->shared->cons, next, __ATOMIC_SEQ_CST);

    /* Loaded after cons was published, hence no weaker order above: what Xen dropped before it saw
     * room shows as a full buffer at the old cons, and the first record after prod reports it. */
    prod = __atomic_load_n(&tbuf->shared->prod, __ATOMIC_SEQ_CST);
    if (distance(tbuf, prod) + NEARLY_FULL_BYTES > tbuf->data_bytes) {
        tbuf->unsettled = true;
        tbuf->unsettled_prod = prod;
    } else if (tbuf->unsettled && prod != tbuf->unsettled_prod) {
        tbuf->unsettled = false;
    }
    tbuf->cons = next;
    __atomic_store_n(&tbuf->drained_bytes, tbuf->drained_bytes + bytes, __ATOMIC_RELAXED);
}

bool tbuf_is_unsettled(const struct tbuf *tbuf)
{
    return tbuf->unsettled && load_prod(tbuf) == tbuf->unsettled_prod;
}

unsigned int tbuf_fill_percent(const struct tbuf *tbuf)
{
    /* Xen's copy of cons: ours may be moving. */
    uint32_t cons = __atomic_load_n(&tbuf->shared->cons, __ATOMIC_RELAXED);
    uint32_t prod = load_prod(tbuf);
    uint64_t bytes = prod >= cons ? prod - cons : prod + UINT64_C(2) * tbuf->data_bytes - cons;

    return (unsigned int)min_u64(bytes * 100 / tbuf->data_bytes, 100);
}
