// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hypervisor's trace buffers.
 *
 * Two things differ from Xen, both invisible to a consumer: the caller takes the CPU's lock, so
 * that a batch needs it once, and a record that meets a disable() half-way reports that it is gone
 * (TBUF_DISABLED), so that its number is not used up. All else follows Xen: the dry run of the room
 * that lost, wrap and record need, the wrap record of what is left, the check for impossible
 * indices that switches tracing off for everybody, the interrupt on crossing one half upwards only.
 *
 * Shared with the consumer: cons (we acquire it, pairing with the consumer's release after its
 * copy) and prod (we release it after the record, pairing with the consumer's acquire).
 */

#include "tbuf.h"
#include "virq.h"

#include <errno.h>
#include <string.h>

#include "common/record.h"

struct indices {
    uint32_t prod;
    uint32_t cons;
};

static uint32_t word_offset_of_first_list(const struct sim *sim)
{
    size_t table =
        offsetof(struct t_info, mfn_offset) + sim->shared->nr_cpus_config * sizeof(uint16_t);

    return (uint32_t)((table + sizeof(uint32_t) - 1) / sizeof(uint32_t));
}

/* The list of the last possible CPU must start within the 16 bits of mfn_offset. */
static uint32_t reduce_to_limit(const struct sim *sim, uint32_t pages)
{
    uint32_t others = sim->shared->nr_cpus - 1;
    uint32_t most = UINT16_MAX; /* t_info's tbuf_size */

    if (others)
        most = (uint32_t)min_u64(most, (UINT16_MAX - word_offset_of_first_list(sim)) / others);
    return (uint32_t)min_u64(pages, most);
}

static uint32_t greatest_common_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/*
 * Page NUMBER of TOTAL, permuted: neighbours in a buffer must not be neighbours in memory. Very
 * large buffers keep runs of pages together, because the consumer's mappings are limited in number
 * (vm.max_map_count).
 */
static uint32_t permute_page(uint32_t number, uint32_t total)
{
    uint32_t run = total / 16384 + 1;
    uint32_t runs = (total + run - 1) / run;
    uint32_t stride = runs * 5 / 13 + 1;

    while (greatest_common_divisor(stride, runs) != 1)
        stride++;
    return (uint32_t)((uint64_t)(number / run) * stride % runs) * run + number % run;
}

static void fill_t_info(struct sim *sim, uint32_t pages)
{
    struct sim_shared *s = sim->shared;
    struct t_info *t_info = (struct t_info *)(sim->memory + (size_t)sim->t_info_page * PAGE_BYTES);
    uint32_t *list = (uint32_t *)t_info;
    uint32_t online = 0, next = 0;

    for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++)
        online += s->cpus[cpu].online;
    t_info->tbuf_size = (uint16_t)pages;
    for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++) {
        uint32_t offset = word_offset_of_first_list(sim) + cpu * pages;

        if (!s->cpus[cpu].online)
            continue;
        t_info->mfn_offset[cpu] = (uint16_t)offset;
        for (uint32_t i = 0; i < pages; i++)
            list[offset + i] =
                sim_page_to_mfn(sim->pool_page + permute_page(next++, online * pages));
        s->cpus[cpu].has_buffer = 1;
    }
}

static int alloc_trace_bufs(struct sim *sim, uint32_t pages)
{
    struct sim_shared *s = sim->shared;
    uint32_t words;

    if (s->t_info_pages)
        return -EBUSY;
    if (pages == 0)
        return -EINVAL;
    pages = reduce_to_limit(sim, pages);
    if (s->max_pages && pages > s->max_pages)
        return -ENOMEM;
    if (sim_has_fault(sim, SIM_FAULT_NO_MEMORY) && s->fault_hits) {
        if (s->fault_hits != UINT32_MAX)
            s->fault_hits--;
        return -ENOMEM;
    }
    words = word_offset_of_first_list(sim) + s->nr_cpus * pages;
    s->t_info_pages = (uint32_t)(align_up((uint64_t)words * 4, PAGE_BYTES) / PAGE_BYTES);
    fill_t_info(sim, pages);
    s->data_size = pages * PAGE_BYTES - (uint32_t)sizeof(struct t_buf);
    s->highwater = s->data_size >> 1;
    s->opt_tbuf_size = pages;
    /* Pairs with tbuf_is_enabled(): who sees tracing on sees the buffers. */
    __atomic_store_n(&s->tb_init_done, 1, __ATOMIC_RELEASE);
    return 0;
}

static int set_size(struct sim *sim, uint32_t pages)
{
    uint32_t old = sim->shared->opt_tbuf_size;

    if (old && pages != old)
        return -EINVAL;
    return alloc_trace_bufs(sim, pages);
}

int tbuf_boot(struct sim *sim, uint32_t pages, uint32_t mask)
{
    int r = alloc_trace_bufs(sim, pages);

    if (r == 0 && mask)
        sim->shared->tb_event_mask = mask;
    return r;
}

/* A mask of any width: what it leaves out is cleared, what Xen does not have is ignored. */
static int set_cpu_mask(struct sim *sim, const struct xenctl_bitmap *bitmap)
{
    uint64_t *mask = sim->shared->tb_cpu_mask;
    const uint8_t *bytes = bitmap->bitmap.p;

    if (!bytes && bitmap->nr_bits)
        return -EFAULT;
    memset(mask, 0, sizeof(sim->shared->tb_cpu_mask));
    for (uint32_t cpu = 0; cpu < min_u64(bitmap->nr_bits, sim->shared->nr_cpus); cpu++)
        if (bytes[cpu / 8] >> (cpu % 8) & 1)
            mask[cpu / 64] |= UINT64_C(1) << (cpu % 64);
    return 0;
}

/* Losses that no record has told yet are forgotten, as in Xen. */
static void disable(struct sim *sim)
{
    struct sim_shared *s = sim->shared;

    __atomic_store_n(&s->tb_init_done, 0, __ATOMIC_SEQ_CST);
    for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++) {
        sim_lock(&s->cpus[cpu].lock);
        s->cpus[cpu].counts.vanished += s->cpus[cpu].lost_records;
        s->cpus[cpu].lost_records = 0;
        sim_unlock(&s->cpus[cpu].lock);
    }
}

static int control(struct sim *sim, struct xen_sysctl_tbuf_op *op)
{
    struct sim_shared *s = sim->shared;

    switch (op->cmd) {
    case XEN_SYSCTL_TBUFOP_get_info:
        op->evt_mask = s->tb_event_mask;
        op->buffer_mfn = s->t_info_pages ? sim_page_to_mfn(sim->t_info_page) : 0;
        op->size = s->t_info_pages * PAGE_BYTES;
        return 0;
    case XEN_SYSCTL_TBUFOP_set_cpu_mask:
        return set_cpu_mask(sim, &op->cpu_mask);
    case XEN_SYSCTL_TBUFOP_set_evt_mask:
        __atomic_store_n(&s->tb_event_mask, op->evt_mask, __ATOMIC_RELAXED);
        return 0;
    case XEN_SYSCTL_TBUFOP_set_size:
        return set_size(sim, op->size);
    case XEN_SYSCTL_TBUFOP_enable:
        if (s->opt_tbuf_size == 0)
            return -EINVAL;
        __atomic_store_n(&s->tb_init_done, 1, __ATOMIC_RELEASE);
        return 0;
    case XEN_SYSCTL_TBUFOP_disable:
        disable(sim);
        return 0;
    default:
        return -EINVAL;
    }
}

int tbuf_control(struct sim *sim, struct xen_sysctl_tbuf_op *op)
{
    int r;

    sim_lock(&sim->shared->control_lock);
    r = control(sim, op);
    sim_unlock(&sim->shared->control_lock);
    sim_wake(sim);
    return r;
}

bool tbuf_passes(const struct sim *sim, unsigned int cpu, uint32_t event)
{
    const struct sim_shared *s = sim->shared;
    uint32_t mask = __atomic_load_n(&s->tb_event_mask, __ATOMIC_RELAXED);

    if ((mask & event) == 0)
        return false;
    if (((mask >> TRC_CLS_SHIFT) & (event >> TRC_CLS_SHIFT)) == 0)
        return false;
    if (((mask >> TRC_SUBCLS_SHIFT) & (event >> TRC_SUBCLS_SHIFT) & 0xf) == 0)
        return false;
    return s->tb_cpu_mask[cpu / 64] >> (cpu % 64) & 1;
}

static const uint32_t *mfn_list(const struct sim *sim, unsigned int cpu)
{
    const struct t_info *t_info = sim_t_info(sim);

    return (const uint32_t *)t_info + t_info->mfn_offset[cpu];
}

unsigned char *tbuf_byte(const struct sim *sim, unsigned int cpu, uint32_t offset)
{
    uint32_t mfn = mfn_list(sim, cpu)[offset / PAGE_BYTES];

    return sim->memory + (size_t)(mfn - SIM_MFN_BASE) * PAGE_BYTES + offset % PAGE_BYTES;
}

struct t_buf *tbuf_of_cpu(const struct sim *sim, unsigned int cpu)
{
    if (!sim->shared->t_info_pages || !sim_t_info(sim)->mfn_offset[cpu])
        return NULL;
    return (struct t_buf *)tbuf_byte(sim, cpu, 0);
}

/* Both indices, read once. False: impossible, and tracing is off for everybody. */
static bool read_indices(struct sim *sim, unsigned int cpu, const struct t_buf *buf,
                         struct indices *ret)
{
    struct sim_shared *s = sim->shared;
    struct indices i = {
        .prod = __atomic_load_n(&buf->prod, __ATOMIC_RELAXED), /* ours */
        .cons =
            __atomic_load_n(&buf->cons, __ATOMIC_ACQUIRE), /* pairs with the consumer's release */
    };

    if (((i.prod | i.cons) & 3) || i.prod >= 2 * s->data_size || i.cons >= 2 * s->data_size) {
        __atomic_store_n(&s->tb_init_done, 0, __ATOMIC_RELEASE);
        s->bogus_cpu = cpu + 1;
        return false;
    }
    *ret = i;
    return true;
}

static uint32_t unconsumed_bytes(const struct sim_shared *s, struct indices i)
{
    return i.prod >= i.cons ? i.prod - i.cons : i.prod + 2 * s->data_size - i.cons;
}

static uint32_t bytes_to_wrap(const struct sim_shared *s, struct indices i)
{
    return (i.prod < s->data_size ? s->data_size : 2 * s->data_size) - i.prod;
}

/* Bytes that RECORD_BYTES need here: itself, and the wrap record if the data area ends before. */
static uint32_t advance(const struct sim_shared *s, uint32_t *to_wrap, uint32_t bytes)
{
    uint32_t used = bytes;

    if (bytes > *to_wrap) {
        used += *to_wrap;
        *to_wrap = s->data_size;
    }
    *to_wrap -= bytes;
    if (*to_wrap == 0)
        *to_wrap = s->data_size;
    return used;
}

/* Pairs with the consumer's acquire of prod: the records are there before their index is. */
static void publish(struct sim *sim, unsigned int cpu, struct t_buf *buf, uint32_t bytes)
{
    uint32_t prod = buf->prod + bytes;

    if (prod >= 2 * sim->shared->data_size)
        prod -= 2 * sim->shared->data_size;
    __atomic_store_n(&buf->prod, prod, __ATOMIC_RELEASE);
    sim->shared->cpus[cpu].counts.inserted_bytes += bytes;
}

/* Writes BYTES at prod (they end within the data area) and publishes them. */
static void put(struct sim *sim, unsigned int cpu, struct t_buf *buf, const uint32_t *record,
                uint32_t bytes)
{
    struct sim_shared *s = sim->shared;
    uint32_t prod = buf->prod;
    uint32_t x = (prod >= s->data_size ? prod - s->data_size : prod) + (uint32_t)sizeof(*buf);
    uint32_t remaining = PAGE_BYTES - x % PAGE_BYTES;
    unsigned char *to = tbuf_byte(sim, cpu, x);

    if (bytes <= remaining) {
        memcpy(to, record, bytes);
    } else {
        memcpy(to, record, remaining);
        memcpy(tbuf_byte(sim, cpu, x + remaining), (const char *)record + remaining,
               bytes - remaining);
    }
    publish(sim, cpu, buf, bytes);
}

static void put_event(struct sim *sim, unsigned int cpu, struct t_buf *buf,
                      const struct tbuf_event *e)
{
    uint32_t record[RECORD_MAX_BYTES / 4];
    uint32_t n = 0;

    record[n++] = e->event | e->extra_words << TRACE_EXTRA_SHIFT;
    if (e->event & TRC_HD_CYCLE_FLAG) {
        uint64_t tsc = e->tsc ? e->tsc : sim_tsc();

        record[n++] = (uint32_t)tsc;
        record[n++] = (uint32_t)(tsc >> 32);
    }
    for (uint32_t i = 0; i < e->extra_words; i++)
        record[n++] = e->extra ? e->extra[i] : 0;
    put(sim, cpu, buf, record, n * 4);
}

/* A record of nothing that fills the data area to its end; never 0 bytes. */
static void put_wrap(struct sim *sim, unsigned int cpu, struct t_buf *buf, uint32_t bytes,
                     uint64_t tsc)
{
    struct tbuf_event e = {
        .event = TRC_TRACE_WRAP_BUFFER, .extra_words = bytes / 4 - 1, .tsc = tsc};

    if (e.extra_words > TRACE_EXTRA_MAX) {
        e.event = (uint32_t)(e.event | TRC_HD_CYCLE_FLAG);
        e.extra_words -= 2;
    }
    put_event(sim, cpu, buf, &e);
    sim->shared->cpus[cpu].counts.wrap_records++;
}

static void put_lost(struct sim *sim, unsigned int cpu, struct t_buf *buf, uint64_t tsc)
{
    struct sim_cpu *c = &sim->shared->cpus[cpu];
    const uint32_t extra[] = {
        (uint32_t)c->lost_records,
        cpu << 16 | DOMID_IDLE, /* who ran: the idle domain's vCPU of this CPU */
        (uint32_t)c->lost_records_first_tsc,
        (uint32_t)(c->lost_records_first_tsc >> 32),
    };
    const struct tbuf_event e = {
        .event = TRC_LOST_RECORDS | (uint32_t)TRC_HD_CYCLE_FLAG,
        .extra_words = ARRAY_SIZE(extra),
        .tsc = tsc,
        .extra = extra,
    };

    c->counts.told += c->lost_records;
    c->counts.lost_records++;
    c->lost_records = 0;
    put_event(sim, cpu, buf, &e);
}

/* Everything is known to fit. */
static void put_all(struct sim *sim, unsigned int cpu, struct t_buf *buf, uint32_t to_wrap,
                    const struct tbuf_event *event, uint32_t bytes)
{
    struct sim_shared *s = sim->shared;

    if (s->cpus[cpu].lost_records) {
        uint32_t left = to_wrap;

        if (LOST_RECORD_BYTES > left)
            put_wrap(sim, cpu, buf, left, event->tsc);
        put_lost(sim, cpu, buf, event->tsc);
        (void)advance(s, &to_wrap, LOST_RECORD_BYTES); /* the total was checked before */
    }
    if (bytes > to_wrap)
        put_wrap(sim, cpu, buf, to_wrap, event->tsc);
    put_event(sim, cpu, buf, event);
    s->cpus[cpu].counts.inserted++;
}

static enum tbuf_result lose(struct sim_cpu *c, const struct tbuf_event *event)
{
    if (++c->lost_records == 1)
        c->lost_records_first_tsc = event->tsc ? event->tsc : sim_tsc();
    c->counts.lost++;
    return TBUF_LOST;
}

enum tbuf_result tbuf_insert(struct sim *sim, unsigned int cpu, const struct tbuf_event *event)
{
    struct sim_shared *s = sim->shared;
    struct sim_cpu *c = &s->cpus[cpu];
    struct t_buf *buf;
    struct indices i;
    uint32_t bytes, used, to_wrap, needed = 0;

    if (!tbuf_is_enabled(sim))
        return TBUF_DISABLED;
    if (!tbuf_passes(sim, cpu, event->event) || !c->has_buffer)
        return TBUF_FILTERED;
    buf = (struct t_buf *)tbuf_byte(sim, cpu, 0);
    if (!read_indices(sim, cpu, buf, &i))
        return TBUF_DISABLED;
    bytes = 4 + event->extra_words * 4 + (event->event & TRC_HD_CYCLE_FLAG ? 8 : 0);
    used = unconsumed_bytes(s, i);
    to_wrap = bytes_to_wrap(s, i);
    c->counts.attempted++;

    if (c->lost_records)
        needed += advance(s, &to_wrap, LOST_RECORD_BYTES);
    needed += advance(s, &to_wrap, bytes);
    if (used > s->data_size || needed > s->data_size - used)
        return lose(c, event);

    put_all(sim, cpu, buf, bytes_to_wrap(s, i), event, bytes);
    if (used < s->highwater && read_indices(sim, cpu, buf, &i) &&
        unconsumed_bytes(s, i) >= s->highwater)
        virq_raise(sim);
    return TBUF_INSERTED;
}

unsigned char *tbuf_begin_run(struct sim *sim, unsigned int cpu, uint32_t *ret_bytes)
{
    const struct sim_shared *s = sim->shared;
    const struct sim_cpu *c = &s->cpus[cpu];
    struct indices i;
    struct t_buf *buf;
    uint32_t x, used, until;

    if (!tbuf_is_enabled(sim) || !c->has_buffer || c->lost_records)
        return NULL;
    buf = (struct t_buf *)tbuf_byte(sim, cpu, 0);
    if (!read_indices(sim, cpu, buf, &i))
        return NULL;
    x = (i.prod >= s->data_size ? i.prod - s->data_size : i.prod) + (uint32_t)sizeof(*buf);
    used = unconsumed_bytes(s, i);
    if (used > s->data_size)
        return NULL;
    /* Below the mark, at most to in front of it: what crosses it raises the interrupt. */
    until = used < s->highwater ? s->highwater - 1 : s->data_size;
    *ret_bytes =
        (uint32_t)min_u64(until - used, min_u64(PAGE_BYTES - x % PAGE_BYTES, bytes_to_wrap(s, i)));
    return tbuf_byte(sim, cpu, x);
}

void tbuf_end_run(struct sim *sim, unsigned int cpu, uint32_t count, uint32_t bytes)
{
    struct sim_counts *counts = &sim->shared->cpus[cpu].counts;

    publish(sim, cpu, (struct t_buf *)tbuf_byte(sim, cpu, 0), bytes);
    counts->attempted += count;
    counts->inserted += count;
}
