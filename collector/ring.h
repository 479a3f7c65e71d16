/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A ring: the circular memory of a flight recorder. It is a list of chunks in time order. When it
 * is full, the oldest chunk is evicted, together with the rest of its last round, so that the ring
 * and its snapshots always begin with a whole round.
 *
 * A snapshot pins the content of the ring, in constant time and without memory; the chunk being
 * filled is pinned up to its fill level. Chunks that are evicted while pinned are kept until the
 * snapshot has written them. An eighth of the chunks is reserved for this. If these are used up,
 * the ring borrows memory within a budget (grower.h), and returns it afterwards. Beyond the budget,
 * the ring becomes shorter, which is reported, but new records are never lost.
 *
 * The memory may be a sealed memfd that contains all state needed to continue: ring_memfd() can be
 * kept in systemd's fd store, and ring_adopt() takes it over. See ring-state.h.
 *
 * Ownership: the main thread creates and frees it. While a sink with this ring is attached, it
 * belongs to the collector thread, except where stated below.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/ledger.h"
#include "common/cpu-set.h"
#include "common/drop-cause.h"
#include "common/event-set.h"

struct chunk;
struct grower;
struct ring;
struct walk_result;
struct window_header;

#define RING_MIN_BYTES  (UINT64_C(2) << 20)
#define RING_PINS_MAX   8u
#define RING_NOTE_BYTES 256u

/* --- Main thread, before it is attached. --- */

/*
 * BYTES of memory for records, in whole chunks, for NR_CPUS CPUs; touched, and locked if that is
 * allowed. One that OUTLIVES the daemon is in a memfd, for the next one to adopt. It may borrow of
 * GROWER, which must outlive it; NULL: it does not borrow. Returns 0; -EINVAL: less than
 * RING_MIN_BYTES; -ENOMEM; what memfd_create(2), mmap(2) say.
 */
int ring_new(uint64_t bytes, unsigned int nr_cpus, bool outlives, struct grower *grower,
             struct ring **ret_ring);

/*
 * Takes over the ring in MEMFD, which is duplicated, from a daemon that has ended, with what it had
 * borrowed, even beyond GROWER's budget; it never borrows more steps than it was made for.
 * Everything in it that is needed to continue is checked; its records are not: ring_verify_chunk().
 * Returns 0, or -EBADMSG, -EPROTO (another version), -ENOMEM, with a sentence part in *RET_PROBLEM,
 * a constant.
 */
int ring_adopt(int memfd, unsigned int nr_cpus, struct grower *grower, struct ring **ret_ring,
               const char **ret_problem);
struct ring *ring_free(struct ring *ring);

/*
 * Whose records it takes, and the size of Xen's buffers; which events: to be set before it is
 * attached. If it had fewer, it is complete only from when it is attached again.
 */
void ring_set_source(struct ring *ring, const struct cpu_set *cpus, uint32_t buffer_pages);
void ring_set_events(struct ring *ring, const struct event_set *events);

/* Of an adopted ring: as they were set; 0 pages: never. */
const struct cpu_set *ring_cpus(const struct ring *ring);
uint32_t ring_buffer_pages(const struct ring *ring);

uint64_t ring_newest_seq(const struct ring *ring); /* of a chunk; 0: none */

/*
 * Returns in *RET_CONS where CPU's consumer must be so that an adopted ring continues without a
 * gap. XEN_CONS is its present position. Returns false if another program has read records in
 * between.
 */
bool ring_resume_cpu(const struct ring *ring, unsigned int cpu, uint32_t xen_cons,
                     uint32_t *ret_cons);

/* The CPU whose window the previous process took last, in *RET_CPU; false: none, or unknown. */
bool ring_last_cpu(const struct ring *ring, unsigned int *ret_cpu);

/* --- Main thread, at any time. --- */

int ring_memfd(const struct ring *ring); /* stays the ring's; -1: none */
bool ring_is_locked(const struct ring *ring);
uint64_t ring_bytes(const struct ring *ring);
uint64_t ring_bytes_of(uint64_t bytes); /* ring_bytes() of one that was made of BYTES */
uint32_t ring_chunk_bytes(const struct ring *ring);

/* RING_NOTE_BYTES of the owner's, kept with the ring. */
void *ring_note(struct ring *ring);

struct ring_stats {
    uint64_t used_bytes; /* of windows that are in the ring */
    uint64_t oldest_tsc; /* 0: empty */
    uint64_t newest_tsc;
    uint64_t borrowed_bytes; /* now, while snapshots are written */
    /* Total bytes by which the ring became shorter because snapshots held memory. */
    uint64_t shortened_bytes;
};

void ring_read_stats(const struct ring *ring, struct ring_stats *ret_stats);

/* As of struct sink_totals; evicted records do not count as missing. 0: it was never attached. */
uint64_t ring_complete_from_tsc(const struct ring *ring);

/*
 * --- Pins: main thread. A pin's chunks do not change until it is advanced over them. The last one
 * may be filled further meanwhile: the pin has a view of it that does not. ---
 */

/* A number for MESSAGE_PIN, or -EBUSY: RING_PINS_MAX are in use. */
int ring_take_pin(struct ring *ring);

/* After MESSAGE_PINNED: the first chunk, NULL if the ring was empty, and each next one. */
const struct chunk *ring_pin_first(const struct ring *ring, int pin);
const struct chunk *ring_pin_next(const struct ring *ring, int pin, const struct chunk *chunk);
uint64_t ring_pin_nsec(const struct ring *ring, int pin);
/* Whether it pins nothing because other pins hold all the memory that new records can spare. */
bool ring_pin_is_refused(const struct ring *ring, int pin);

/* Chunks before CHUNK are not needed any more; NULL: none is, and PIN is free again. */
void ring_advance_pin(struct ring *ring, int pin, const struct chunk *chunk);

/* What a pinned chunk holds. */
struct ring_chunk_info {
    uint64_t seq;
    uint64_t first_tsc; /* 0: no record has a TSC */
    uint64_t last_tsc;
    uint32_t bytes;       /* of whole windows; whole pages, unless it was being filled */
    uint32_t first_round; /* offset of the first round that begins in it; UINT32_MAX: none */
    uint64_t round_tsc;   /* no record or loss before that is newer */
    bool cut_inside;      /* other rounds in it may begin a file too */
};

void ring_read_chunk(const struct ring *ring, const struct chunk *chunk,
                     struct ring_chunk_info *ret_info);

/* Records of CPU in a chunk, and what its lost_records records report, Xen's and ours;
 * FROM_ROUND: only from first_round on. */
void ring_read_counts(const struct ring *ring, const struct chunk *chunk, unsigned int cpu,
                      bool from_round, uint64_t *ret_records, uint64_t *ret_lost);

/* The window whose header is at OFFSET in a pinned chunk. */
void ring_read_window(const struct ring *ring, const struct chunk *chunk, uint32_t offset,
                      struct window_header *ret_window);

/*
 * Copies a pinned chunk from OFFSET, a window's begin, on to BUFFER, of ring_chunk_bytes(), and
 * pads it to whole pages. Returns its bytes.
 */
uint32_t ring_copy_chunk(const struct ring *ring, const struct chunk *chunk, uint32_t offset,
                         uint8_t *buffer);

/* Likewise, but only up to END, where a window ends; beyond the chunk's end, to that. */
uint32_t ring_copy_windows(const struct ring *ring, const struct chunk *chunk, uint32_t offset,
                           uint32_t end, uint8_t *buffer);

/* Whether a pinned chunk must be copied to be written in whole pages. */
bool ring_must_copy_chunk(const struct ring *ring, const struct chunk *chunk);

/*
 * Whether a pinned chunk holds whole windows of whole records, as its counts say: for one that was
 * written by a daemon before.
 */
bool ring_verify_chunk(const struct ring *ring, const struct chunk *chunk);

/* --- Collector thread. --- */

/* The chunk that is being filled, or a new one. NULL: all are pinned, which ring_pin() prevents. */
struct chunk *ring_fill(struct ring *ring);

/* A window that was appended to the chunk that is being filled. */
struct ring_window {
    unsigned int cpu;
    uint32_t bytes;     /* with its header */
    uint32_t told;      /* records that its first record reports as dropped */
    bool begins_round;  /* it is the first of its round */
    bool begins_even;   /* ... and the round before took all there was */
    uint32_t cons_from; /* of the trace buffer, before and after what the window was made of */
    uint32_t cons_to;
};

/* Makes the window part of the ring, and enters it into the ledger. */
void ring_commit_window(struct ring *ring, const struct ring_window *window,
                        const struct walk_result *walked);
/* There was no chunk for it: enters it as dropped. */
void ring_commit_drop(struct ring *ring, const struct ring_window *window,
                      const struct walk_result *walked);
/* There was nothing in it. */
void ring_commit_nothing(struct ring *ring, const struct ring_window *window);

/* Closes the chunk that is being filled, if there is anything in it. */
void ring_close_chunk(struct ring *ring);

void ring_set_complete_from(struct ring *ring, uint64_t tsc);

/* Evicts chunks of which no record is as young as TSC. */
void ring_expire(struct ring *ring, uint64_t tsc);

/*
 * Returns borrowed memory if no pin is left, a bounded amount with each call and at a limited rate.
 * Called when nothing is urgent. Returns whether the chunk being filled must be closed to return
 * more. ring_settle_usec() is when to call it next; 0: never.
 */
bool ring_settle(struct ring *ring, uint64_t now_usec);
uint64_t ring_settle_usec(const struct ring *ring);

/*
 * Pins what is in the ring; filling continues in the same chunk. A chunk for new records is left,
 * whatever is pinned: if need be the oldest are evicted first, and the pin has less, or is refused.
 */
void ring_pin(struct ring *ring, int pin);

/* Pins all of a ring that is no longer filled. Called by the owner of the sink. */
void ring_pin_closed(struct ring *ring, int pin);

/*
 * For a ring that is no longer filled: the records in CHUNK, which is pinned, and in all later
 * chunks were not written, and move from delivered to dropped. NULL: none. Called by the owner of
 * the sink. FROM_ROUND: of CHUNK only those from its first round on.
 */
void ring_drop_from(struct ring *ring, const struct chunk *chunk, bool from_round,
                    enum drop_cause cause);
/* How many records were dropped, by cause. */
void ring_read_drops(const struct ring *ring, uint64_t drops[static DROP_CAUSES]);

/* The ledger, and what is counted besides, for the sink that owns the ring. */
struct ledger *ring_ledger(struct ring *ring, unsigned int cpu);
uint64_t *ring_windows(struct ring *ring);
uint64_t *ring_class_records(struct ring *ring);
