// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A window is copied from Xen's buffer straight into the sink's chunk, walked there, and only then
 * given back to Xen. What the buffer says is checked at each step; a buffer that says something
 * impossible is set aside, and the others go on.
 */

#include "collector/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/sink.h"
#include "collector/tbuf.h"
#include "collector/walk.h"
#include "collector/xen.h"
#include "common/record.h"

struct drain {
    unsigned int nr_cpus;
    struct tbuf *tbufs; /* [nr_cpus] */
    bool is_settling;
    bool *pending; /* [nr_cpus]: while settling, its first record has not come yet */
};

int drain_new(const struct xen_trace_buffers *buffers, struct drain **ret_drain)
{
    struct drain *drain = calloc(1, sizeof(*drain));

    if (!drain)
        return -ENOMEM;
    drain->nr_cpus = buffers->nr_cpus;
    drain->tbufs = calloc(buffers->nr_cpus, sizeof(*drain->tbufs));
    drain->pending = calloc(buffers->nr_cpus, sizeof(*drain->pending));
    if (!drain->tbufs || !drain->pending) {
        drain_free(drain);
        return -ENOMEM;
    }
    for (unsigned int cpu = 0; cpu < buffers->nr_cpus; cpu++)
        if (buffers->buffer[cpu]) /* an impossible one sets itself aside */
            (void)tbuf_init(&drain->tbufs[cpu], buffers->buffer[cpu], buffers->pages);
    *ret_drain = drain;
    return 0;
}

struct drain *drain_free(struct drain *drain)
{
    if (!drain)
        return NULL;
    free(drain->tbufs);
    free(drain->pending);
    free(drain);
    return NULL;
}

static void set_aside(struct tbuf *tbuf)
{
    __atomic_store_n(&tbuf->set_aside, true, __ATOMIC_RELAXED); /* read by the main thread */
}

/* Copies a window into the sink's chunk, walks it there, and gives the space back to Xen. */
static void take_window(struct tbuf *tbuf, struct sink *sink, unsigned int cpu, uint32_t waiting,
                        uint8_t *records, uint32_t room)
{
    uint64_t class_records[EVENT_CLASSES] = {0};
    struct walk_result walked;

    tbuf_copy(tbuf, room, records);
    walk_window(records, room, room == waiting, sink_filter(sink), class_records, &walked);
    tbuf_consume(tbuf, walked.consumed_bytes);
    sink_end_window(sink, cpu, &walked, class_records);
    if (walked.broken)
        set_aside(tbuf);
}

static void take_records(struct drain *drain, enum drain_mode mode, struct sink *sink,
                         unsigned int cpu, uint32_t waiting, uint64_t now_usec, struct round *round)
{
    struct tbuf *tbuf = &drain->tbufs[cpu];
    uint8_t *records;
    uint32_t room;

    round->waiting_bytes += waiting;
    switch (sink_begin_window(sink, waiting, now_usec, &records, &room)) {
    case SINK_ROOM:
        round->behind = round->behind || waiting >= tbuf->data_bytes / 2 || room < waiting;
        take_window(tbuf, sink, cpu, waiting, records, room);
        break;
    case SINK_NO_CHUNK:
        round->starved = true;
        break;
    case SINK_AT_LIMIT:
        round->at_limit = true;
        /* fall through */
    case SINK_HAS_FAILED:
        if (mode == DRAIN_LAST_RECORDS)
            tbuf_consume(tbuf, waiting);
        break;
    }
}

/*
 * Whether the first record that waits, a wrap_buffer record left out, tells a loss. Xen puts it in
 * front of the first record for which both fit: if there was a loss to tell, it is the first.
 */
static bool read_first_loss(const struct tbuf *tbuf, uint32_t waiting, struct lost_record *ret_lost)
{
    uint8_t head[RECORD_MAX_BYTES + LOST_RECORD_BYTES];
    uint32_t bytes = waiting < sizeof(head) ? waiting : (uint32_t)sizeof(head);
    uint32_t offset = 0;
    uint32_t header;

    tbuf_copy(tbuf, bytes, head);
    memcpy(&header, head, sizeof(header));
    if (record_is_wrap(header)) {
        offset = record_bytes(header);
        if (offset + RECORD_MIN_BYTES > bytes)
            return false;
        memcpy(&header, head + offset, sizeof(header));
    }
    if (!record_is_lost(header) || offset + LOST_RECORD_BYTES > bytes)
        return false;
    memcpy(ret_lost, head + offset, sizeof(*ret_lost));
    return true;
}

/* Of all that waits, which nobody asked for, keeps the loss that it begins with. */
static void take_loss(struct drain *drain, struct sink *sink, unsigned int cpu, uint32_t waiting,
                      uint64_t now_usec, struct round *round)
{
    static const uint64_t no_class_records[EVENT_CLASSES];
    struct tbuf *tbuf = &drain->tbufs[cpu];
    struct walk_result walked = {.kept_bytes = LOST_RECORD_BYTES};
    struct lost_record lost;
    uint8_t *records;
    uint32_t room;

    if (read_first_loss(tbuf, waiting, &lost)) {
        enum sink_room found = sink_begin_window(sink, sizeof(lost), now_usec, &records, &room);

        if (found == SINK_NO_CHUNK) {
            round->starved = true;
            return;
        }
        if (found == SINK_ROOM && room == sizeof(lost)) {
            memcpy(records, &lost, sizeof(lost));
            walked.lost = lost.count;
            sink_end_window(sink, cpu, &walked, no_class_records);
        }
    }
    drain->pending[cpu] = false;
    tbuf_consume(tbuf, waiting);
}

static void drain_cpu(struct drain *drain, enum drain_mode mode, struct sink *sink,
                      unsigned int cpu, uint64_t now_usec, struct round *round)
{
    struct tbuf *tbuf = &drain->tbufs[cpu];
    uint32_t waiting;

    if (!tbuf->shared || tbuf->set_aside)
        return;
    if (tbuf_peek(tbuf, &waiting) < 0)
        set_aside(tbuf);
    else if (waiting == 0)
        return;
    else if (mode == DRAIN_LOSSES && drain->pending[cpu])
        take_loss(drain, sink, cpu, waiting, now_usec, round);
    else if (mode == DRAIN_NOTHING || mode == DRAIN_LOSSES ||
             !cpu_set_has(&sink_config(sink)->cpus, cpu))
        tbuf_consume(tbuf, waiting);
    else
        take_records(drain, mode, sink, cpu, waiting, now_usec, round);
}

struct round drain_round(struct drain *drain, enum drain_mode mode, struct sink *sink,
                         uint64_t now_usec)
{
    struct round round = {0};

    for (unsigned int cpu = 0; cpu < drain->nr_cpus; cpu++)
        drain_cpu(drain, mode, sink, cpu, now_usec, &round);
    return round;
}

void drain_begin_settling(struct drain *drain, const struct cpu_set *cpus)
{
    for (unsigned int cpu = 0; cpu < drain->nr_cpus; cpu++)
        drain->pending[cpu] = drain_cpu_is_unsettled(drain, cpu) && cpu_set_has(cpus, cpu);
    drain->is_settling = true;
}

void drain_end_settling(struct drain *drain)
{
    drain->is_settling = false;
}

unsigned int drain_count_unsettled(const struct drain *drain, const struct cpu_set *cpus)
{
    unsigned int n = 0;

    for (unsigned int cpu = 0; cpu < drain->nr_cpus; cpu++)
        n += cpu_set_has(cpus, cpu) && drain_cpu_is_unsettled(drain, cpu);
    return n;
}

bool drain_cpu_is_unsettled(const struct drain *drain, unsigned int cpu)
{
    if (cpu >= drain->nr_cpus || !drain->tbufs[cpu].shared || drain->tbufs[cpu].set_aside)
        return false;
    /* While settling, what is lost anew is nobody's. */
    return drain->is_settling ? drain->pending[cpu] : tbuf_is_unsettled(&drain->tbufs[cpu]);
}

void drain_read_cpu(const struct drain *drain, unsigned int cpu, struct drain_cpu *ret_cpu)
{
    const struct tbuf *tbuf;

    *ret_cpu = (struct drain_cpu){0};
    if (cpu >= drain->nr_cpus || !drain->tbufs[cpu].shared)
        return;
    tbuf = &drain->tbufs[cpu];
    *ret_cpu = (struct drain_cpu){
        .has_buffer = true,
        .set_aside = __atomic_load_n(&tbuf->set_aside, __ATOMIC_RELAXED),
        .fill_percent = tbuf_fill_percent(tbuf),
    };
}
