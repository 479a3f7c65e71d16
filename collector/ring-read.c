// SPDX-License-Identifier: GPL-2.0-or-later
/* A ring from outside: figures, and the pins' side of the main thread. See ring.c. */

#include "collector/ring.h"

#include <errno.h>
#include <string.h>

#include "collector/extent.h"
#include "collector/pool.h"
#include "collector/ring-state.h"
#include "collector/walk.h"
#include "common/record.h"
#include "common/util.h"

int ring_take_pin(struct ring *ring)
{
    for (unsigned int i = 0; i < RING_PINS_MAX; i++) {
        if (ring->pins[i].taken)
            continue;
        ring->pins[i].taken = true;
        return (int)i;
    }
    return -EBUSY;
}

const struct chunk *ring_pin_first(const struct ring *ring, int pin)
{
    return ring->pins[pin].chunk;
}

const struct chunk *ring_pin_next(const struct ring *ring, int pin, const struct chunk *chunk)
{
    const struct ring_pin *p = &ring->pins[pin];

    if (chunk->seq >= p->last)
        return NULL;
    /* The collector may be about to link the next one to the last that was listed. */
    return p->tail.fill_bytes && chunk->seq + 1 == p->tail.seq ? &p->tail : chunk->next;
}

uint64_t ring_pin_nsec(const struct ring *ring, int pin)
{
    return ring->pins[pin].nsec;
}

bool ring_pin_is_refused(const struct ring *ring, int pin)
{
    return ring->pins[pin].is_refused;
}

void ring_advance_pin(struct ring *ring, int number, const struct chunk *chunk)
{
    struct ring_pin *pin = &ring->pins[number];

    __atomic_store_n(&pin->first, chunk ? chunk->seq : RING_UNPINNED, __ATOMIC_RELEASE);
    if (!chunk)
        pin->taken = false;
}

void ring_set_source(struct ring *ring, const struct cpu_set *cpus, uint32_t buffer_pages)
{
    for (unsigned int cpu = 0; cpu < ring->nr_cpus; cpu++)
        if (cpu_set_has(cpus, cpu) && !cpu_set_has(&ring->header->cpus, cpu))
            ring->header->complete_from_tsc = 0;
    ring->header->cpus = *cpus;
    ring->header->buffer_pages = buffer_pages;
}

void ring_set_events(struct ring *ring, const struct event_set *events)
{
    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        if (events->subclasses[i] & ~ring->header->events.subclasses[i])
            ring->header->complete_from_tsc = 0;
    ring->header->events = *events;
}

const struct cpu_set *ring_cpus(const struct ring *ring)
{
    return &ring->header->cpus;
}

uint32_t ring_buffer_pages(const struct ring *ring)
{
    return ring->header->buffer_pages;
}

uint64_t ring_newest_seq(const struct ring *ring)
{
    return ring->next_seq - 1;
}

bool ring_resume_cpu(const struct ring *ring, unsigned int cpu, uint32_t xen_cons,
                     uint32_t *ret_cons)
{
    const struct ring_header *header = ring->header;
    uint32_t cons = ring->lines[cpu].cons;

    *ret_cons = cons;
    return xen_cons == cons || (header->moving_cpu == cpu && header->moving_from == xen_cons);
}

bool ring_last_cpu(const struct ring *ring, unsigned int *ret_cpu)
{
    uint32_t cpu = ring->header->moving_cpu; /* any process may have written it */

    if (cpu >= ring->nr_cpus)
        return false;
    *ret_cpu = cpu;
    return true;
}

int ring_memfd(const struct ring *ring)
{
    return ring->memfd;
}

bool ring_is_locked(const struct ring *ring)
{
    return ring->is_locked;
}

uint64_t ring_bytes(const struct ring *ring)
{
    return (uint64_t)ring->nr_chunks * ring->chunk_bytes;
}

uint64_t ring_bytes_of(uint64_t bytes)
{
    return align_down(bytes, ring_chunk_bytes_of(bytes));
}

uint32_t ring_chunk_bytes(const struct ring *ring)
{
    return ring->chunk_bytes;
}

void *ring_note(struct ring *ring)
{
    return ring->header->note;
}

void ring_read_stats(const struct ring *ring, struct ring_stats *ret_stats)
{
    *ret_stats = (struct ring_stats){
        .used_bytes = ledger_observe(&ring->used_bytes),
        .oldest_tsc = ledger_observe(&ring->oldest_tsc),
        .newest_tsc = ledger_observe(&ring->newest_tsc),
        .borrowed_bytes = ring->extent ? extent_bytes(ring->extent) : 0,
        .shortened_bytes = ledger_observe(&ring->header->shortened_bytes),
    };
}

uint64_t ring_complete_from_tsc(const struct ring *ring)
{
    return ledger_observe(&ring->header->complete_from_tsc);
}

void ring_read_chunk(const struct ring *ring, const struct chunk *chunk,
                     struct ring_chunk_info *ret_info)
{
    const struct ring_pin *pin = ring_pin_of_tail(ring, chunk);
    const struct ring_chunk *state = pin ? &pin->tail_state : ring_state_of(ring, chunk);

    *ret_info = (struct ring_chunk_info){
        .seq = chunk->seq,
        .first_tsc = state->first_tsc,
        .last_tsc = state->last_tsc,
        .bytes = state->fill_bytes,
        .first_round = state->first_round,
        .round_tsc = state->round_tsc,
        .cut_inside = !state->has_uneven,
    };
}

void ring_read_counts(const struct ring *ring, const struct chunk *chunk, unsigned int cpu,
                      bool from_round, uint64_t *ret_records, uint64_t *ret_lost)
{
    const struct ring_pin *pin = ring_pin_of_tail(ring, chunk);
    const struct ring_count *counts =
        pin ? pin->tail_counts : ring_counts_of(ring, chunk, RING_BEFORE_ROUND);
    const struct ring_count *before = counts + cpu;
    const struct ring_count *from = before + (size_t)RING_FROM_ROUND * ring->nr_cpus;

    *ret_records = from->records + (from_round ? 0 : before->records);
    *ret_lost = from->lost + (from_round ? 0 : before->lost);
}

void ring_read_window(const struct ring *ring, const struct chunk *chunk, uint32_t offset,
                      struct window_header *ret_window)
{
    const struct ring_pin *pin = ring_pin_of_tail(ring, chunk);

    if (pin && offset == chunk->last_window)
        *ret_window = pin->tail_window;
    else
        memcpy(ret_window, chunk->data + offset, sizeof(*ret_window));
}

uint32_t ring_copy_chunk(const struct ring *ring, const struct chunk *chunk, uint32_t offset,
                         uint8_t *buffer)
{
    uint32_t last_window = chunk->last_window - offset;
    uint32_t records = last_window + WINDOW_HEADER_BYTES; /* of the last window */
    uint32_t bytes = chunk->fill_bytes - offset;
    uint32_t padding = (uint32_t)align_up(bytes, PAGE_BYTES) - bytes;
    struct window_header window;

    /* Around the last header: it may just be written again. */
    memcpy(buffer, chunk->data + offset, last_window);
    memcpy(buffer + records, chunk->data + offset + records, bytes - records);
    ring_read_window(ring, chunk, chunk->last_window, &window);
    window.bytes += padding;
    memcpy(buffer + last_window, &window, sizeof(window));
    walk_write_padding(buffer + bytes, padding);
    return bytes + padding;
}

uint32_t ring_copy_windows(const struct ring *ring, const struct chunk *chunk, uint32_t offset,
                           uint32_t end, uint8_t *buffer)
{
    uint32_t bytes = end - offset, padding = (uint32_t)align_up(bytes, PAGE_BYTES) - bytes;
    struct window_header window = {0};
    uint32_t last_window = offset;

    if (end >= chunk->fill_bytes)
        return ring_copy_chunk(ring, chunk, offset, buffer);
    for (uint32_t at = offset; at < end; at += WINDOW_HEADER_BYTES + window.bytes) {
        ring_read_window(ring, chunk, at, &window);
        last_window = at;
    }
    memcpy(buffer, chunk->data + offset, bytes);
    window.bytes += padding;
    memcpy(buffer + (last_window - offset), &window, sizeof(window));
    walk_write_padding(buffer + bytes, padding);
    return bytes + padding;
}

bool ring_must_copy_chunk(const struct ring *ring, const struct chunk *chunk)
{
    return ring_pin_of_tail(ring, chunk);
}

struct ledger *ring_ledger(struct ring *ring, unsigned int cpu)
{
    return &ring->lines[cpu].ledger;
}

void ring_read_drops(const struct ring *ring, uint64_t drops[static DROP_CAUSES])
{
    uint64_t pinned = 0;

    for (unsigned int cpu = 0; cpu < ring->nr_cpus; cpu++)
        pinned += ledger_observe(&ring->lines[cpu].ledger.dropped);
    for (unsigned int i = 0; i < DROP_CAUSES; i++) {
        drops[i] = ring->drops[i];
        pinned -= ring->drops[i];
    }
    drops[DROP_PINNED] = pinned;
}

uint64_t *ring_windows(struct ring *ring)
{
    return &ring->header->windows;
}

uint64_t *ring_class_records(struct ring *ring)
{
    return ring->header->class_records;
}
