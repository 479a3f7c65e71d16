// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Windows fill a chunk. A full one belongs to the ring (ring.c), or is queued to be written
 * (sink-write.c) or to be given to a thread that does so (sink-handoff.c).
 *
 * Invariants: a chunk holds whole windows only, and in the output it begins where the one before
 * ended, so that the output can be cut before any chunk. A closed chunk is padded to the
 * output's alignment with wrap_buffer records inside its last window: O_DIRECT wants whole blocks,
 * readers want nothing but records, and so the output is sound up to each chunk's end at any time.
 *
 * Dropped records are reported as Xen reports its losses: by a lost_records record before the next
 * records of that CPU.
 */

#include "collector/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/account.h"
#include "collector/handoff.h"
#include "collector/memory.h"
#include "collector/pool.h"
#include "collector/ring.h"
#include "collector/sink-state.h"
#include "collector/watch.h"
#include "collector/xen.h"
#include "common/record.h"
#include "common/util.h"

/* A chunk whose rest is smaller than this is closed rather than filled with a cut window. */
#define WORTHWHILE_BYTES (16u * 1024u)

unsigned int sink_notes(unsigned int nr_cpus)
{
    return MARK_DELIVERED + nr_cpus;
}

static int sink_set_up(struct sink *sink)
{
    const struct sink_config *config = &sink->config;

    sink->gaps = memory_alloc(config->nr_cpus, sizeof(*sink->gaps));
    if (!sink->gaps)
        return -ENOMEM;
    sink->end_offset = SINK_NO_LIMIT;
    if (config->max_bytes != SINK_NO_LIMIT)
        sink->config.max_bytes = align_down(config->max_bytes, config->align_bytes);
    walk_filter_init(&sink->filter, &config->events);
    if (sink->ring)
        return 0;
    sink->ledger = memory_alloc(config->nr_cpus, sizeof(*sink->ledger));
    if (!sink->ledger)
        return -ENOMEM;
    return pool_reserve_notes(sink->pool, sink_notes(config->nr_cpus));
}

static int sink_new_into(const struct sink_config *config, struct pool *pool, struct ring *ring,
                         struct sink **ret_sink)
{
    struct sink *sink = memory_alloc(1, sizeof(*sink));
    int r;

    if (!sink)
        return -ENOMEM;
    sink->config = *config;
    sink->pool = pool;
    sink->ring = ring;
    r = sink_set_up(sink);
    if (r < 0) {
        sink->config.handoff = NULL; /* it stays the caller's */
        sink_free(sink);
        return r;
    }
    *ret_sink = sink;
    return 0;
}

int sink_new(const struct sink_config *config, struct pool *pool, struct sink **ret_sink)
{
    return sink_new_into(config, pool, NULL, ret_sink);
}

int sink_new_ring(const struct sink_config *config, struct ring *ring, struct sink **ret_sink)
{
    struct sink_config ring_config = *config;

    ring_config.fd = -1;
    ring_config.align_bytes = PAGE_BYTES;
    ring_config.granted_bytes = SINK_NO_LIMIT;
    ring_config.max_bytes = SINK_NO_LIMIT;
    ring_set_events(ring, &config->events);
    return sink_new_into(&ring_config, NULL, ring, ret_sink);
}

struct sink *sink_free(struct sink *sink)
{
    struct chunk *next;

    if (!sink)
        return NULL;
    /* Nothing, unless the collector thread died. */
    if (sink->filling && sink->pool)
        pool_give(sink->pool, sink->filling);
    for (struct chunk *chunk = sink->queue_head; chunk; chunk = next) {
        next = chunk->next;
        pool_give(sink->pool, chunk);
    }
    handoff_free(sink->config.handoff);
    free(sink->gaps);
    free(sink->ledger);
    free(sink);
    return NULL;
}

void sink_release_writer(struct sink *sink)
{
    sink->config.handoff = handoff_free(sink->config.handoff);
}

void sink_release_ring(struct sink *sink)
{
    struct ring *ring = sink->ring;

    sink->ledger = calloc(sink->config.nr_cpus, sizeof(*sink->ledger));
    for (unsigned int cpu = 0; sink->ledger && cpu < sink->config.nr_cpus; cpu++)
        sink->ledger[cpu] = *ring_ledger(ring, cpu);
    sink->totals.windows = *ring_windows(ring);
    memcpy(sink->totals.class_records, ring_class_records(ring),
           sizeof(sink->totals.class_records));
    ring_read_drops(ring, sink->totals.drops);
    sink->ring = NULL;
}

static struct ledger *sink_ledger_of(const struct sink *sink, unsigned int cpu)
{
    if (sink->ring)
        return ring_ledger(sink->ring, cpu);
    return sink->ledger ? &sink->ledger[cpu] : NULL;
}

void sink_read_ledger(const struct sink *sink, unsigned int cpu, struct ledger *ret_ledger)
{
    const struct ledger *ledger = sink_ledger_of(sink, cpu);

    *ret_ledger = (struct ledger){0};
    if (!ledger)
        return;
    *ret_ledger = (struct ledger){
        .produced = ledger_observe(&ledger->produced),
        .delivered = ledger_observe(&ledger->delivered),
        .lost = ledger_observe(&ledger->lost),
        .dropped = ledger_observe(&ledger->dropped),
        .evicted = ledger_observe(&ledger->evicted),
        .first_tsc = ledger_observe(&ledger->first_tsc),
        .last_tsc = ledger_observe(&ledger->last_tsc),
    };
}

static uint64_t *sink_windows(const struct sink *sink)
{
    return sink->ring ? ring_windows(sink->ring) : (uint64_t *)&sink->totals.windows;
}

static uint64_t *sink_class_records(const struct sink *sink)
{
    return sink->ring ? ring_class_records(sink->ring) : (uint64_t *)sink->totals.class_records;
}

static void sink_read_drops(const struct sink *sink, uint64_t drops[static DROP_CAUSES])
{
    if (sink->ring) {
        ring_read_drops(sink->ring, drops);
        return;
    }
    for (unsigned int i = 0; i < DROP_CAUSES; i++)
        drops[i] = ledger_observe(&sink->totals.drops[i]);
}

void sink_read_totals(const struct sink *sink, struct sink_totals *ret_totals)
{
    struct sink_totals totals = {
        .output_bytes = ledger_observe(&sink->totals.output_bytes),
        .plain_bytes = ledger_observe(&sink->totals.plain_bytes),
        .raw_bytes = ledger_observe(&sink->totals.raw_bytes),
        .queued_bytes = ledger_observe(&sink->totals.queued_bytes),
        .windows = ledger_observe(sink_windows(sink)),
        .held_bytes = ledger_observe(&sink->totals.held_bytes),
        .writing_since_usec = ledger_observe(&sink->totals.writing_since_usec),
        .progress_usec = ledger_observe(&sink->totals.progress_usec),
        .complete_from_tsc = ledger_observe(&sink->totals.complete_from_tsc),
        .last_loss_tsc = ledger_observe(&sink->totals.last_loss_tsc),
    };

    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        totals.class_records[i] = ledger_observe(&sink_class_records(sink)[i]);
    sink_read_drops(sink, totals.drops);
    *ret_totals = totals;
}

const struct cpu_set *sink_unsettled(const struct sink *sink)
{
    return &sink->unsettled;
}

void sink_set_unsettled(struct sink *sink, const struct cpu_set *cpus)
{
    sink->unsettled = *cpus;
}

const struct sink_config *sink_config(const struct sink *sink)
{
    return &sink->config;
}

const struct walk_filter *sink_filter(const struct sink *sink)
{
    return &sink->filter;
}

struct ring *sink_ring(const struct sink *sink)
{
    return sink->ring;
}

void sink_set_share(struct sink *sink, uint64_t promised_bytes, uint64_t left_bytes)
{
    sink->promised_bytes = promised_bytes;
    sink->left_bytes = left_bytes;
}

uint64_t sink_used_bytes(const struct sink *sink)
{
    return sink->closed_bytes + (sink->filling ? sink->filling->fill_bytes : 0);
}

bool sink_is_full(const struct sink *sink)
{
    uint64_t used = align_up(sink_used_bytes(sink), sink->config.align_bytes);

    return sink->config.rotate_bytes && used > 0 &&
           sink_length_guess(sink, used + sink->longest_round) > sink->config.rotate_bytes;
}

/* --- Chunks. --- */

/* Whether a chunk of BYTES is within its share of the pool. */
static bool sink_may_hold(const struct sink *sink, uint64_t bytes)
{
    return sink->totals.held_bytes + bytes <= sink->promised_bytes ||
           pool_free_bytes(sink->pool) >= sink->left_bytes + bytes;
}

/* Whether a chunk larger than the smallest one is the right thing. */
static bool sink_may_take_large(const struct sink *sink, uint64_t bytes)
{
    return sink_may_hold(sink, bytes) && bytes <= pool_free_bytes(sink->pool) / 8 &&
           sink_length_at_most(sink, sink->closed_bytes + bytes) <= sink->config.granted_bytes;
}

/*
 * Large chunks when many records come, because each chunk costs a write. Small ones when few come,
 * or when little is left of the pool or of the grant, for the other sinks and the output's end.
 */
static struct chunk *sink_take_from_pool(struct sink *sink, uint32_t wanted_bytes)
{
    unsigned int order = sink->order;
    struct chunk *chunk;

    while (order < CHUNK_ORDER_MAX && CHUNK_BYTES << order < wanted_bytes)
        order++;
    while (order > 0 && !sink_may_take_large(sink, (uint64_t)CHUNK_BYTES << order))
        order--;
    if (!sink_may_hold(sink, (uint64_t)CHUNK_BYTES << order))
        return NULL;
    chunk = pool_take(sink->pool, order);
    if (chunk)
        ledger_add(&sink->totals.held_bytes, chunk->bytes);
    return chunk;
}

/* The size of the next chunk: twice that of the last one if that was FULL, else its content's. */
static void sink_set_order(struct sink *sink, const struct chunk *last, bool full)
{
    if (full)
        sink->order = last->order < CHUNK_ORDER_MAX ? last->order + 1 : CHUNK_ORDER_MAX;
    else
        for (sink->order = 0; CHUNK_BYTES << sink->order < last->fill_bytes;)
            sink->order++;
}

/* Notes the figures for the case that the output ends before CHUNK: see sink-write.c. */
static void sink_mark_figures(const struct sink *sink, const struct chunk *chunk)
{
    uint64_t *marks = pool_notes(sink->pool, chunk);

    marks[MARK_WINDOWS] = sink->totals.windows;
    memcpy(&marks[MARK_CLASSES], sink->totals.class_records, sizeof(sink->totals.class_records));
    for (unsigned int cpu = 0; cpu < sink->config.nr_cpus; cpu++)
        marks[MARK_DELIVERED + cpu] = sink->ledger[cpu].delivered;
}

static struct chunk *sink_take_chunk(struct sink *sink, uint32_t wanted_bytes)
{
    struct chunk *chunk;

    chunk = sink->ring ? ring_fill(sink->ring) : sink_take_from_pool(sink, wanted_bytes);
    if (!chunk)
        return NULL;
    chunk->sink = sink;
    if (!sink->ring)
        sink_mark_figures(sink, chunk);
    return chunk;
}

void sink_give_chunk(struct sink *sink, struct chunk *chunk)
{
    ledger_publish(&sink->totals.held_bytes, sink->totals.held_bytes - chunk->bytes);
    pool_give(sink->pool, chunk);
}

static void pad_chunk(struct chunk *chunk, uint32_t align_bytes)
{
    uint32_t padding = (uint32_t)align_up(chunk->fill_bytes, align_bytes) - chunk->fill_bytes;
    struct window_header header;

    memcpy(&header, chunk->data + chunk->last_window, sizeof(header));
    header.bytes += padding;
    memcpy(chunk->data + chunk->last_window, &header, sizeof(header));
    walk_write_padding(chunk->data + chunk->fill_bytes, padding);
    chunk->fill_bytes += padding;
}

static void sink_queue_chunk(struct sink *sink, struct chunk *chunk)
{
    pad_chunk(chunk, sink->config.align_bytes);
    chunk->state = CHUNK_QUEUED;
    chunk->ends_round = !sink->is_in_round;
    chunk->output_offset = sink->closed_bytes;
    chunk->next = NULL;
    if (sink->queue_tail)
        sink->queue_tail->next = chunk;
    else
        sink->queue_head = chunk;
    sink->queue_tail = chunk;
    sink->closed_bytes += chunk->fill_bytes;
    ledger_add(&sink->totals.queued_bytes, chunk->fill_bytes);
}

static void sink_close_chunk(struct sink *sink, bool full)
{
    struct chunk *chunk = sink->filling;

    if (!chunk)
        return;
    sink->filling = NULL;
    if (sink->ring) {
        ring_close_chunk(sink->ring); /* keeps an empty one */
        return;
    }
    sink_set_order(sink, chunk, full);
    if (chunk->fill_bytes == 0)
        sink_give_chunk(sink, chunk);
    else
        sink_queue_chunk(sink, chunk);
}

void sink_flush(struct sink *sink)
{
    sink_close_chunk(sink, false);
}

void sink_finish(struct sink *sink)
{
    sink_flush(sink);
    sink->finishes = true;
}

uint64_t sink_oldest_usec(const struct sink *sink)
{
    if (sink->ring || !sink->filling || sink->filling->fill_bytes == 0)
        return 0;
    /* Without a grant it would only wait as one more chunk that is nearly empty. */
    if (!sink_can_end_here(sink))
        return 0;
    return sink->filling->opened_usec;
}

/* --- Windows. --- */

void sink_begin_round(struct sink *sink, bool even)
{
    sink->begins_round = true;
    sink->is_in_round = true;
    sink->begins_even = even;
    sink->round_offset = sink_used_bytes(sink);
}

bool sink_end_round(struct sink *sink, bool complete)
{
    sink->longest_round = max_u64(sink->longest_round, sink_used_bytes(sink) - sink->round_offset);
    sink->is_in_round = false;
    /* The writer ends frames where rounds end, which it sees at the end of a chunk only. */
    if (sink->config.handoff && sink->filling &&
        sink->filling->fill_bytes >= sink->filling->bytes / 2)
        sink_close_chunk(sink, true);
    return sink->config.watch && watch_end_round(sink->config.watch, complete);
}

/* Bytes before a window's records: its header, and a lost_records record if any were dropped. */
static uint32_t sink_lead_bytes(const struct sink *sink, unsigned int cpu)
{
    return WINDOW_HEADER_BYTES + (sink->gaps[cpu].count ? LOST_RECORD_BYTES : 0);
}

/* Bytes of records that fit into CHUNK after its content and LEAD bytes. */
static uint32_t chunk_room(const struct chunk *chunk, uint32_t lead)
{
    uint32_t used = chunk->fill_bytes + lead;

    return used < chunk->bytes ? chunk->bytes - used : 0;
}

/* Bytes of records that the output may still take after LEAD bytes. */
static uint64_t sink_output_room(const struct sink *sink, uint32_t lead)
{
    uint64_t used = sink_used_bytes(sink) + lead;

    /* How long an output in its own form is turns out when it is written. */
    if (sink->config.max_bytes == SINK_NO_LIMIT || sink->config.handoff)
        return SINK_NO_LIMIT;
    return used < sink->config.max_bytes ? sink->config.max_bytes - used : 0;
}

enum sink_room sink_begin_window(struct sink *sink, unsigned int cpu, uint32_t least_bytes,
                                 uint32_t wanted_bytes, uint64_t now_usec, uint8_t **ret_records,
                                 uint32_t *ret_room)
{
    uint32_t lead = sink_lead_bytes(sink, cpu);
    uint64_t limit;

    if (sink->end_offset != SINK_NO_LIMIT)
        return sink->has_failed ? SINK_HAS_FAILED : SINK_AT_LIMIT;
    if (sink->config.holds)
        return sink->config.max_bytes > 0 ? SINK_HOLDS : SINK_DROPS;
    /* A window is cut only where it would not fit into a chunk of its own either. */
    if (sink->filling && chunk_room(sink->filling, lead) < wanted_bytes &&
        (wanted_bytes <= sink->filling->bytes - lead ||
         chunk_room(sink->filling, lead) < max_u64(least_bytes, WORTHWHILE_BYTES)))
        sink_close_chunk(sink, true);
    limit = sink_output_room(sink, lead);
    if (limit < least_bytes)
        return SINK_AT_LIMIT;
    if (!sink->filling)
        sink->filling = sink_take_chunk(sink, wanted_bytes + lead);
    if (!sink->filling)
        return SINK_NO_CHUNK;
    if (sink->filling->fill_bytes == 0)
        sink->filling->opened_usec = now_usec;

    *ret_room = (uint32_t)min_u64(chunk_room(sink->filling, lead), limit);
    *ret_records = sink->filling->data + sink->filling->fill_bytes + lead;
    return SINK_ROOM;
}

static void sink_enter_into_ledger(struct sink *sink, unsigned int cpu,
                                   const struct walk_result *walked)
{
    struct ledger *ledger = &sink->ledger[cpu];

    ledger_add(&ledger->produced, walked->records + walked->lost);
    ledger_add(&ledger->delivered, walked->records);
    ledger_add(&ledger->lost, walked->lost);
    if (walked->first_tsc && !ledger->first_tsc)
        ledger_publish(&ledger->first_tsc, walked->first_tsc);
    if (walked->last_tsc)
        ledger_publish(&ledger->last_tsc, walked->last_tsc);
}

static void sink_count_classes(const struct sink *sink, const uint64_t *class_records)
{
    uint64_t *sum = sink_class_records(sink);

    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        if (class_records[i])
            ledger_add(&sum[i], class_records[i]);
    ledger_add(sink_windows(sink), 1);
}

/* The lost_records record that reports the CPU's gap, and ends it. */
static struct lost_record take_gap(struct gap *gap)
{
    uint64_t tsc = gap->last_tsc > gap->first_tsc ? gap->last_tsc : gap->first_tsc + 1;
    struct lost_record lost = {
        .header = LOST_RECORD_HEADER,
        .tsc = {(uint32_t)tsc, (uint32_t)(tsc >> 32)},
        .count = (uint32_t)min_u64(gap->count, UINT32_MAX),
        .first_tsc = {(uint32_t)gap->first_tsc, (uint32_t)(gap->first_tsc >> 32)},
    };

    gap->count -= lost.count;
    if (gap->count == 0)
        *gap = (struct gap){0};
    return lost;
}

/*
 * Puts the window's header, and a lost_records record if any were dropped, before its records.
 * Returns the window's bytes, and in *RET_TOLD how many records it reports as dropped.
 */
static uint32_t sink_write_lead(struct sink *sink, unsigned int cpu, uint32_t kept_bytes,
                                uint32_t *ret_told)
{
    uint8_t *p = sink->filling->data + sink->filling->fill_bytes;
    uint32_t lead = sink_lead_bytes(sink, cpu);
    struct window_header header = {
        .header = WINDOW_HEADER,
        .cpu = cpu,
        .bytes = lead - WINDOW_HEADER_BYTES + kept_bytes,
    };

    *ret_told = 0;
    memcpy(p, &header, sizeof(header));
    if (lead > WINDOW_HEADER_BYTES) {
        struct lost_record lost = take_gap(&sink->gaps[cpu]);

        *ret_told = lost.count;
        memcpy(p + WINDOW_HEADER_BYTES, &lost, sizeof(lost));
    }
    return lead + kept_bytes;
}

void sink_enter_account(const struct sink *sink, const struct window_source *source,
                        const struct walk_result *walked)
{
    if (sink->config.account)
        account_enter(sink->config.account, source->cpu, source->cons_from, source->cons_to,
                      walked->records + walked->lost, walked->lost);
}

static struct ring_window sink_ring_window(const struct sink *sink,
                                           const struct window_source *source, uint32_t bytes,
                                           uint32_t told)
{
    return (struct ring_window){
        .cpu = source->cpu,
        .bytes = bytes,
        .told = told,
        .begins_round = sink->begins_round,
        .begins_even = sink->begins_even,
        .cons_from = source->cons_from,
        .cons_to = source->cons_to,
    };
}

void sink_note_loss(struct sink *sink)
{
    ledger_publish(&sink->totals.last_loss_tsc, xen_read_tsc());
}

void sink_end_window(struct sink *sink, const struct window_source *source,
                     const struct walk_result *walked,
                     const uint64_t class_records[static EVENT_CLASSES])
{
    struct chunk *chunk = sink->filling;
    uint32_t bytes = 0, told = 0;

    sink->passed_tsc = max_u64(sink->passed_tsc, max_u64(walked->last_tsc, walked->lost_last_tsc));
    sink->has_missed = sink->has_missed || walked->lost > 0;
    /* Otherwise at most wrap_buffer records, which nobody needs. */
    if (walked->records > 0 || walked->lost > 0)
        bytes = sink_write_lead(sink, source->cpu, walked->kept_bytes, &told);
    if (sink->ring) {
        struct ring_window window = sink_ring_window(sink, source, bytes, told);

        if (bytes > 0)
            ring_commit_window(sink->ring, &window, walked);
        else
            ring_commit_nothing(sink->ring, &window);
    } else if (bytes > 0) {
        chunk->last_window = chunk->fill_bytes;
        chunk->fill_bytes += bytes;
        sink_enter_into_ledger(sink, source->cpu, walked);
    }
    if (bytes == 0)
        return;
    if (walked->lost > 0)
        sink_note_loss(sink);
    if (sink->config.watch) /* includes the report of what we dropped ourselves */
        watch_window(sink->config.watch, source->cpu,
                     chunk->data + chunk->last_window + WINDOW_HEADER_BYTES,
                     bytes - WINDOW_HEADER_BYTES);
    sink->begins_round = false;
    sink_count_classes(sink, class_records);
}

/* If no dropped record has a TSC, the gap begins at the last one before it. */
static void note_gap(struct gap *gap, const struct walk_result *walked, uint64_t before_tsc)
{
    uint64_t first_tsc = walked->first_tsc;

    if (walked->records == 0 && walked->lost == 0)
        return; /* the filter kept nothing */
    if (walked->lost_first_tsc && (!first_tsc || walked->lost_first_tsc < first_tsc))
        first_tsc = walked->lost_first_tsc;
    if (!gap->first_tsc)
        gap->first_tsc = first_tsc ? first_tsc : before_tsc;
    gap->last_tsc = max_u64(gap->last_tsc, max_u64(walked->last_tsc, walked->lost_last_tsc));
    gap->count += walked->records + walked->lost;
}

/* Returns why there is no chunk for a window. */
static enum drop_cause sink_lack(const struct sink *sink)
{
    const struct chunk *head = sink->queue_head;

    if (sink->config.holds)
        return DROP_RESUMING;
    if (head && head->state == CHUNK_QUEUED &&
        sink_length_at_most(sink, head->output_offset + head->fill_bytes) >
            sink->config.granted_bytes)
        return DROP_NO_SPACE;
    return DROP_SLOW_OUTPUT;
}

void sink_drop_window(struct sink *sink, const struct window_source *source,
                      const struct walk_result *walked)
{
    struct ledger *ledger = sink_ledger_of(sink, source->cpu);

    sink->has_missed = sink->has_missed || walked->lost > 0 || walked->records > 0;
    note_gap(&sink->gaps[source->cpu], walked, ledger->last_tsc);
    if (sink->ring) {
        struct ring_window window = sink_ring_window(sink, source, 0, 0);

        ring_commit_drop(sink->ring, &window, walked);
    } else {
        ledger_add(&ledger->produced, walked->records + walked->lost);
        ledger_add(&sink->totals.drops[sink_lack(sink)], walked->records);
        ledger_add(&ledger->dropped, walked->records);
        ledger_add(&ledger->lost, walked->lost);
    }
    if (walked->records > 0 || walked->lost > 0)
        sink_note_loss(sink);
    if (sink->config.watch)
        watch_reset(sink->config.watch);
}

void sink_begin(struct sink *sink, uint64_t complete_from_tsc)
{
    ledger_publish(&sink->totals.complete_from_tsc, complete_from_tsc);
    if (sink->ring)
        ring_set_complete_from(sink->ring, complete_from_tsc);
}

void sink_begin_first(struct sink *sink, uint64_t complete_from_tsc)
{
    uint64_t before_tsc = sink->ring ? ring_complete_from_tsc(sink->ring) : 0;

    sink_begin(sink, before_tsc ? before_tsc : complete_from_tsc);
}

bool sink_take_missed(struct sink *sink)
{
    bool has_missed = sink->has_missed;

    sink->has_missed = false;
    return has_missed;
}

static void add_gap(struct gap *gap, const struct gap *other)
{
    if (other->count == 0)
        return;
    gap->first_tsc = gap->count > 0 ? min_u64(gap->first_tsc, other->first_tsc) : other->first_tsc;
    gap->last_tsc = max_u64(gap->last_tsc, other->last_tsc);
    gap->count += other->count;
}

void sink_add_gap(struct sink *sink, unsigned int cpu, uint64_t count, uint64_t first_tsc)
{
    const struct gap gap = {.count = count, .first_tsc = first_tsc};

    add_gap(&sink->gaps[cpu], &gap);
}

void sink_take_over(struct sink *sink, struct sink *before)
{
    sink->passed_tsc = before->passed_tsc;
    sink_begin(sink, max_u64(before->totals.complete_from_tsc, before->passed_tsc + 1));
    for (unsigned int cpu = 0; cpu < sink->config.nr_cpus; cpu++) {
        add_gap(&sink->gaps[cpu], &before->gaps[cpu]);
        before->gaps[cpu] = (struct gap){0};
    }
    sink->before = before;
}

bool sink_follow(struct sink *sink, const struct sink *before)
{
    if (sink->before != before)
        return false;
    sink->before = NULL;
    if (before->has_failed)
        sink_fail_at(sink, 0, before->failure);
    return true;
}

void sink_tell_gaps(struct sink *sink, uint64_t now_usec)
{
    for (unsigned int cpu = 0; cpu < sink->config.nr_cpus && !sink->ring; cpu++) {
        uint8_t *records;
        uint32_t room, told;

        if (sink->gaps[cpu].count == 0 ||
            sink_begin_window(sink, cpu, RECORD_MIN_BYTES, RECORD_MIN_BYTES, now_usec, &records,
                              &room) != SINK_ROOM)
            continue; /* it is in the ledger in any case */
        sink->filling->last_window = sink->filling->fill_bytes;
        sink->filling->fill_bytes += sink_write_lead(sink, cpu, 0, &told);
        ledger_add(sink_windows(sink), 1);
    }
}
