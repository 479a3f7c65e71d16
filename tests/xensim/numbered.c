/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbered records. Which event a record has is a fixed function of how many its CPU has made, so
 * that runs are alike; the CPUs start at different places of the table.
 */

#include "numbered.h"

#include <errno.h>

#include "common/record.h"

const uint32_t numbered_default_kinds[] = {
    0x00021f01, /* sched-min */
    0x00028f02, /* sched-verbose */
    0x0010ff03, /* mem */
    0x00802f04, /* hw-irq */
    0x00081f05, /* hvm-entryexit */
    0x00082f06, /* hvm-handler */
    0x00022f07, /* sched-class */
    0x00201f08, /* pv-entry */
    0x00801f09, /* hw-pm */
    0x00041f0a, /* dom0op */
    0x0040ff0b, /* shadow */
    0x00084f0c, /* hvm-emul */
};
const uint32_t numbered_default_kinds_count = ARRAY_SIZE(numbered_default_kinds);

enum tbuf_result numbered_insert(struct sim *sim, unsigned int cpu, uint64_t *bytes)
{
    struct sim_cpu *c = &sim->shared->cpus[cpu];
    uint32_t kind = (uint32_t)((c->generated + cpu) % sim->shared->nr_kinds);
    uint32_t event = sim->shared->kinds[kind];
    uint32_t words = numbered_extra_words(event);
    uint32_t extra[4] = {
        (uint32_t)c->next_number,
        (uint32_t)(c->next_number >> 32 & 0xffff) | cpu << 16,
        c->next_kind_number[kind],
    };
    const struct tbuf_event e = {
        .event = (uint32_t)(event | TRC_HD_CYCLE_FLAG),
        .extra_words = words,
        .extra = extra,
    };
    enum tbuf_result result;

    extra[3] = extra[0] ^ extra[1] ^ extra[2];
    result = tbuf_insert(sim, cpu, &e);
    if (result == TBUF_DISABLED)
        return result;
    c->generated++;
    *bytes += 12 + words * 4;
    if (result != TBUF_FILTERED) {
        c->next_number++;
        c->next_kind_number[kind]++;
    }
    return result;
}

int numbered_parse(const uint32_t *p, struct numbered_record *ret_record)
{
    uint32_t event = record_event(p[0]);
    uint32_t words = numbered_extra_words(event);

    if (p[0] != (event | words << TRACE_EXTRA_SHIFT | (uint32_t)TRC_HD_CYCLE_FLAG))
        return -EBADMSG;
    if (words == 4 && p[6] != (p[3] ^ p[4] ^ p[5]))
        return -EBADMSG;
    ret_record->number = p[3] | (uint64_t)(p[4] & 0xffff) << 32;
    ret_record->cpu = p[4] >> 16;
    ret_record->kind_number = p[5];
    return 0;
}
