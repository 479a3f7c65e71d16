// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The windows of the original are not kept: the records come in the order of time over all CPUs,
 * and go into a buffer for each CPU. When the buffers are full together, each becomes a window, and
 * all of them a round. So rounds are in the order of time, whatever the original's are.
 *
 * A reader knows a record's effective time from its TSC and those before it. What was before is not
 * in the part: the first record of each window has a TSC, and each TSC is the effective time.
 */

#include "trace/cut.h"

#include <errno.h>
#include <stdlib.h>

#include "common/record.h"
#include "common/util.h"
#include "common/write-all.h"

/* The records of a round. Readers of a pipe keep three of them. */
#define ROUND_BYTES (256u * 1024u)

/* What is to be written of a CPU. */
struct cut_cpu {
    uint32_t cpu;
    uint8_t *data; /* a window: its header, and records */
    size_t used, max;
    bool is_blind; /* a loss has begun: */
    uint64_t blind_from;
    struct lost_record lost;
};

struct cut {
    struct merge_part part;
    int fd;
    struct cut_cpu *cpus; /* [nr_cpus], by number of the stream */
    uint32_t *order;      /* [nr_cpus]: numbers, by CPU */
    unsigned int nr_cpus;
    size_t round_bytes;
    struct cut_result *result;
};

static int compare_cpus(const void *a, const void *b, void *context)
{
    const struct cut_cpu *cpus = context;
    uint32_t x = cpus[*(const uint32_t *)a].cpu, y = cpus[*(const uint32_t *)b].cpu;

    return (x > y) - (x < y);
}

/* There are more streams. */
static int cut_grow(struct cut *cut, const struct merge *merge)
{
    unsigned int nr = merge_streams(merge);
    struct cut_cpu *cpus = reallocarray(cut->cpus, nr + 1, sizeof(*cpus));
    uint32_t *order;

    if (!cpus)
        return -ENOMEM;
    cut->cpus = cpus;
    order = reallocarray(cut->order, nr + 1, sizeof(*order));
    if (!order)
        return -ENOMEM;
    cut->order = order;
    for (; cut->nr_cpus < nr; cut->nr_cpus++) {
        cpus[cut->nr_cpus] = (struct cut_cpu){.cpu = merge_cpu_of(merge, cut->nr_cpus)};
        order[cut->nr_cpus] = cut->nr_cpus;
    }
    qsort_r(order, nr, sizeof(*order), compare_cpus, cpus);
    return 0;
}

static void cut_done(struct cut *cut)
{
    for (unsigned int i = 0; i < cut->nr_cpus; i++)
        free(cut->cpus[i].data);
    free(cut->cpus);
    free(cut->order);
}

/* --- Writing. --- */

static int cut_write_round(struct cut *cut)
{
    int r = 0;

    for (unsigned int i = 0; i < cut->nr_cpus && r >= 0; i++) {
        struct cut_cpu *cpu = &cut->cpus[cut->order[i]];
        struct window_header header = {WINDOW_HEADER, cpu->cpu, 0};

        if (cpu->used == 0)
            continue;
        header.bytes = (uint32_t)(cpu->used - sizeof(header));
        memcpy(cpu->data, &header, sizeof(header));
        r = write_all(cut->fd, cpu->data, cpu->used);
        cut->result->bytes += r < 0 ? 0 : cpu->used;
        cpu->used = 0;
    }
    cut->round_bytes = 0;
    return r;
}

/* Room for a record at the end of CPU's window, which begins if there is none. NULL: no memory. */
static uint8_t *cut_make_room(struct cut_cpu *cpu)
{
    if (cpu->max - cpu->used < WINDOW_HEADER_BYTES + RECORD_MAX_BYTES) {
        size_t max = cpu->max ? cpu->max * 2 : PAGE_BYTES;
        uint8_t *data = realloc(cpu->data, max);

        if (!data)
            return NULL;
        cpu->data = data;
        cpu->max = max;
    }
    if (cpu->used == 0)
        cpu->used = WINDOW_HEADER_BYTES;
    return cpu->data + cpu->used;
}

/* The BYTES that were put at its end belong to CPU's window. */
static int cut_add_bytes(struct cut *cut, struct cut_cpu *cpu, size_t bytes)
{
    cpu->used += bytes;
    cut->round_bytes += bytes;
    return cut->round_bytes < ROUND_BYTES ? 0 : cut_write_round(cut);
}

static int cut_add_loss(struct cut *cut, struct cut_cpu *cpu, uint64_t until)
{
    uint64_t from = cpu->is_blind ? cpu->blind_from : until;
    struct cut_result *result = cut->result;
    uint8_t *p = cut_make_room(cpu);

    if (!p)
        return -ENOMEM;
    cpu->lost.header = LOST_RECORD_HEADER;
    cpu->lost.tsc[0] = (uint32_t)until;
    cpu->lost.tsc[1] = (uint32_t)(until >> 32);
    cpu->lost.first_tsc[0] = (uint32_t)from;
    cpu->lost.first_tsc[1] = (uint32_t)(from >> 32);
    cpu->is_blind = false;
    memcpy(p, &cpu->lost, sizeof(cpu->lost));
    if (result->nr_gaps < CUT_GAPS_MAX)
        result->gaps[result->nr_gaps] = (struct cut_gap){cpu->cpu, cpu->lost.count, from, until};
    result->nr_gaps++;
    result->lost += cpu->lost.count;
    return cut_add_bytes(cut, cpu, sizeof(cpu->lost));
}

static int cut_add_record(struct cut *cut, struct cut_cpu *cpu, const struct merge_record *record)
{
    uint32_t header = record->header, low = (uint32_t)record->tsc;
    uint32_t high = (uint32_t)(record->tsc >> 32);
    size_t words_bytes = (size_t)4 * merge_words(record);
    uint8_t *p, *begin;

    if (header == 0 || record_event(header) == TRC_TRACE_CPU_CHANGE) {
        cut->result->left_out++;
        return 0;
    }
    if (cpu->used == 0)
        header |= UINT32_C(1) << 31;
    begin = p = cut_make_room(cpu);
    if (!p)
        return -ENOMEM;
    memcpy(p, &header, sizeof(header));
    p += sizeof(header);
    if (record_has_tsc(header)) {
        memcpy(p, &low, sizeof(low));
        memcpy(p + sizeof(low), &high, sizeof(high));
        p += sizeof(low) + sizeof(high);
    }
    memcpy(p, record->words, words_bytes);
    p += words_bytes;
    if (cut->result->records == 0)
        cut->result->first_tsc = record->tsc;
    cut->result->last_tsc = record->tsc;
    cut->result->records++;
    return cut_add_bytes(cut, cpu, (size_t)(p - begin));
}

/* --- Reading. --- */

/* What a loss is about, but for its times. */
static void cut_begin_blind(struct cut *cut, struct cut_cpu *cpu, const struct merge_record *record)
{
    uint32_t who = merge_word(record, 1);

    cpu->is_blind = true;
    cpu->blind_from = max_u64(record->tsc, cut->part.from);
    cpu->lost = (struct lost_record){
        .count = merge_word(record, 0),
        .domid = (uint16_t)who,
        .vcpu = (uint16_t)(who >> 16),
    };
}

static int cut_add_item(struct cut *cut, int item, const struct merge_record *record)
{
    struct cut_cpu *cpu = &cut->cpus[record->stream];

    if (item == MERGE_BLIND) {
        cut_begin_blind(cut, cpu, record);
        return 0;
    }
    if (record->tsc < cut->part.from) {
        cpu->is_blind = cpu->is_blind && !record_is_lost(record->header);
        return 0;
    }
    if (record_is_lost(record->header))
        return cut_add_loss(cut, cpu, record->tsc);
    return cut_add_record(cut, cpu, record);
}

/* The losses that are not over when the part ends are over then. */
static int cut_end_losses(struct cut *cut)
{
    int r = 0;

    for (unsigned int i = 0; i < cut->nr_cpus && r >= 0; i++) {
        struct cut_cpu *cpu = &cut->cpus[cut->order[i]];

        if (cpu->is_blind)
            r = cut_add_loss(cut, cpu, cut->part.until - 1);
    }
    return r;
}

static int cut_run(struct cut *cut, struct merge *merge)
{
    struct merge_record record;
    int item, r = 0;

    while (r >= 0 && (item = merge_next(merge, &record)) != MERGE_END) {
        if (record.tsc >= cut->part.until)
            break;
        if (record.stream >= cut->nr_cpus)
            r = cut_grow(cut, merge);
        if (r >= 0)
            r = cut_add_item(cut, item, &record);
    }
    if (r >= 0)
        r = merge->error;
    if (r >= 0)
        r = cut_end_losses(cut);
    return r < 0 ? r : cut_write_round(cut);
}

int cut_write(struct merge *merge, struct merge_part part, int fd, struct cut_result *ret_result)
{
    struct cut cut = {.part = part, .fd = fd, .result = ret_result};
    int r;

    *ret_result = (struct cut_result){0};
    r = cut_run(&cut, merge);
    cut_done(&cut);
    return r;
}
