// SPDX-License-Identifier: GPL-2.0-or-later
/* A ring from outside: figures, and the pins' side of the main thread. See ring.c. */

#include <errno.h>

#include "collector/pool.h"
#include "collector/ring-state.h"
#include "common/util.h"
#include "collector/ring.h"

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
    return chunk->seq < ring->pins[pin].last ? chunk->next : NULL;
}

uint64_t ring_pin_nsec(const struct ring *ring, int pin)
{
    return ring->pins[pin].nsec;
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
    };
}

uint64_t ring_complete_from_tsc(const struct ring *ring)
{
    return ledger_observe(&ring->header->complete_from_tsc);
}

void ring_read_chunk(const struct ring *ring, const struct chunk *chunk,
                     struct ring_chunk_info *ret_info)
{
    const struct ring_chunk *state = ring_state_of(ring, chunk);

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
    const struct ring_count *before = ring_counts_of(ring, chunk, RING_BEFORE_ROUND) + cpu;
    const struct ring_count *from = ring_counts_of(ring, chunk, RING_FROM_ROUND) + cpu;

    *ret_records = from->records + (from_round ? 0 : before->records);
    *ret_lost = from->lost + (from_round ? 0 : before->lost);
}

struct ledger *ring_ledger(struct ring *ring, unsigned int cpu)
{
    return &ring->lines[cpu].ledger;
}

uint64_t *ring_windows(struct ring *ring)
{
    return &ring->header->windows;
}

uint64_t *ring_class_records(struct ring *ring)
{
    return ring->header->class_records;
}
