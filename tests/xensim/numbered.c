// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbered records. Which event a record has is a fixed function of how many its CPU has made, so
 * that runs are alike; the CPUs start at different places of the table.
 */

#include "numbered.h"

#include <errno.h>
#include <string.h>

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

/* CPU's next record. */
struct next {
    uint32_t kind;
    uint32_t event; /* with its flag */
    uint32_t words;
    uint32_t extra[NUMBERED_EXTRA_MAX];
};

static struct next next_of(const struct sim *sim, unsigned int cpu)
{
    const struct sim_cpu *c = &sim->shared->cpus[cpu];
    uint32_t kind = (uint32_t)((c->generated + cpu) % sim->shared->nr_kinds);
    uint32_t event = sim->shared->kinds[kind];
    struct next next = {
        .kind = kind,
        .event = (uint32_t)(event | TRC_HD_CYCLE_FLAG),
        .words = numbered_extra_words(event),
        .extra =
            {
                (uint32_t)c->next_number,
                (uint32_t)(c->next_number >> 32 & 0xffff) | cpu << 16,
                c->next_kind_number[kind],
            },
    };

    next.extra[3] = next.extra[0] ^ next.extra[1] ^ next.extra[2];
    return next;
}

static uint32_t bytes_of(const struct next *next)
{
    return 12 + next->words * 4;
}

/* It is made; it has taken its numbers, unless a mask held it back. */
static void pass(struct sim *sim, unsigned int cpu, const struct next *next, bool filtered)
{
    struct sim_cpu *c = &sim->shared->cpus[cpu];

    c->generated++;
    if (filtered)
        return;
    c->next_number++;
    c->next_kind_number[next->kind]++;
}

enum tbuf_result numbered_insert(struct sim *sim, unsigned int cpu, uint64_t *bytes)
{
    struct next next = next_of(sim, cpu);
    const struct tbuf_event e = {
        .event = next.event,
        .extra_words = next.words,
        .extra = next.extra,
    };
    enum tbuf_result result = tbuf_insert(sim, cpu, &e);

    if (result == TBUF_DISABLED)
        return result;
    pass(sim, cpu, &next, result == TBUF_FILTERED);
    *bytes += bytes_of(&next);
    return result;
}

static void write_record(unsigned char *to, const struct next *next)
{
    uint64_t tsc = sim_tsc();
    const uint32_t record[3 + NUMBERED_EXTRA_MAX] = {
        next->event | next->words << TRACE_EXTRA_SHIFT,
        (uint32_t)tsc,
        (uint32_t)(tsc >> 32),
        next->extra[0],
        next->extra[1],
        next->extra[2],
        next->extra[3],
    };

    memcpy(to, record, bytes_of(next));
}

void numbered_insert_run(struct sim *sim, unsigned int cpu, uint64_t target, uint64_t *bytes)
{
    uint32_t room, used = 0, count = 0;
    unsigned char *to = tbuf_begin_run(sim, cpu, &room);

    while (to && *bytes < target) {
        struct next next = next_of(sim, cpu);
        bool filtered = !tbuf_passes(sim, cpu, next.event);

        if (!filtered && bytes_of(&next) > room - used)
            break;
        if (!filtered) {
            write_record(to + used, &next);
            used += bytes_of(&next);
            count++;
        }
        pass(sim, cpu, &next, filtered);
        *bytes += bytes_of(&next);
    }
    if (count > 0)
        tbuf_end_run(sim, cpu, count, used);
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
