/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The memory layout of a ring, which survives the daemon: a header, a line for each CPU, the states
 * of chunks, then the counts and the data of the ring's own chunks. Address space for borrowed
 * memory follows, in steps of an extent (extent.h), each with the counts and the data of more
 * chunks. The file has its full size from the beginning, because it is sealed; steps that are not
 * borrowed are holes. Private to ring*.c.
 *
 * A daemon may be killed between any two stores. Changes that belong together are therefore first
 * recorded as a commit, then applied, then the commit is cleared. The next daemon applies a pending
 * commit again; this is idempotent, because all its values are absolute. A killed process has done
 * its stores in order up to some point; the fences in ring.c keep the compiler, and CPUs with
 * weaker ordering, from reordering them.
 *
 * Any change here needs a new RING_VERSION. The records of a ring of version 2 are carried over
 * (ring-v2.c); a ring of any other version is discarded.
 */

#include <stdint.h>

#include "collector/ledger.h"
#include "collector/pool.h"
#include "collector/ring.h"
#include "common/cpu-set.h"
#include "common/event-set.h"
#include "common/record.h"

#define RING_MAGIC     UINT64_C(0x474e495243525458) /* "XTRCRING" */
#define RING_VERSION   3u
#define RING_NO_CHUNK  UINT32_MAX
#define RING_STEPS_MAX 65536u /* a TiB of the smallest */
#define RING_NO_ROUND  UINT32_MAX
#define RING_NO_CPU    UINT32_MAX

/* Of one CPU in one part of a chunk. */
struct ring_count {
    uint32_t records;
    uint32_t lost;
};

/* The parts of a chunk: a ring, and a snapshot, may begin with the second. */
enum ring_part {
    RING_BEFORE_ROUND, /* the rest of a round that began in an earlier chunk */
    RING_FROM_ROUND,   /* from the first round that begins in this chunk */
    RING_PARTS,
};

struct ring_chunk {
    uint64_t seq;         /* counts up from 1 in time order; 0: not in the ring */
    uint64_t first_tsc;   /* the earliest of its windows' first records; 0: none has a TSC */
    uint64_t last_tsc;    /* the latest of their last ones */
    uint64_t round_tsc;   /* no record, and no loss, before first_round is newer */
    uint64_t passed_tsc;  /* nor one up to the chunk's end than that */
    uint32_t fill_bytes;  /* nothing after that is valid */
    uint32_t last_window; /* offset of the last window's header */
    uint32_t first_round; /* offset of the first round that begins here; RING_NO_ROUND */
    uint32_t has_uneven;  /* a later round began where the one before had cut a window */
};

/* One CPU. */
struct ring_line {
    struct ledger ledger; /* delivered and evicted follow from the rest and the counts */
    uint32_t cons;        /* of its trace buffer, after the last record that went through */
    uint32_t reserved;
};

/* What one window changes. */
struct ring_commit {
    uint32_t armed;
    uint32_t cpu;
    uint32_t cons;
    uint32_t chunk; /* index; RING_NO_CHUNK: no window, the records were dropped */
    uint32_t part;
    struct ring_count count;
    struct ring_chunk chunk_state;
    uint64_t produced;
    uint64_t lost;
    uint64_t dropped;
    uint64_t first_tsc;
    uint64_t last_tsc;
};

struct ring_header {
    uint64_t magic;
    uint32_t version;
    uint32_t nr_cpus;
    uint32_t nr_chunks;
    uint32_t chunk_bytes;
    uint64_t total_bytes;  /* of the memfd */
    uint64_t data_offset;  /* of the first chunk */
    uint32_t buffer_pages; /* of Xen's trace buffers: what `cons` goes round in; 0: not yet known */
    uint32_t moving_cpu;   /* whose cons may not be published to Xen yet */
    uint32_t moving_from;  /* ... and what it was before */
    uint32_t nr_steps;     /* that may be borrowed */
    struct cpu_set cpus;   /* whose cons are kept */
    struct event_set events;
    uint64_t complete_from_tsc; /* see ring_complete_from_tsc() */
    struct ring_commit commit;
    uint64_t windows;         /* of all time; statistics: not part of a commit */
    uint64_t shortened_bytes; /* likewise; see struct ring_stats */
    uint64_t class_records[EVENT_CLASSES];
    uint8_t note[256]; /* the owner's */
};

/* Where things are in a ring with these numbers of chunks, CPUs and steps. */
struct ring_layout {
    uint64_t lines_offset;
    uint64_t chunks_offset;
    uint64_t counts_offset;
    uint64_t data_offset;
    uint64_t steps_offset; /* the end of the ring's own */
    uint64_t total_bytes;

    uint64_t step_bytes;
    uint64_t step_chunks;
    uint64_t step_data_offset; /* its counts come before that */
};

struct ring_layout ring_layout_of(uint64_t nr_chunks, uint32_t chunk_bytes, uint64_t nr_cpus,
                                  uint64_t nr_steps);
/* Of a ring of BYTES. */
uint32_t ring_chunk_bytes_of(uint64_t bytes);

/* This process's view of that memory, and state that need not survive. */
struct ring {
    int memfd;
    bool is_locked;
    uint8_t *base;
    struct ring_layout layout;
    struct ring_header *header;
    struct ring_line *lines;    /* [nr_cpus] */
    struct ring_chunk *states;  /* [nr_total] */
    struct ring_count **counts; /* [nr_total], to [RING_PARTS][nr_cpus] */
    struct chunk *chunks;       /* [nr_total]: this process's view; borrowed ones after its own */
    unsigned int nr_cpus;
    uint32_t chunk_bytes;
    unsigned int nr_chunks;  /* of its own */
    unsigned int nr_total;   /* with all that could be borrowed */
    unsigned int max_listed; /* chunks in the list; the others are there for when some are pinned */

    /* What is borrowed: ring-borrow.c. */
    struct extent *extent; /* NULL: nothing ever */
    struct grower *grower; /* which serves it; NULL: none */
    struct ring_step *steps;
    unsigned int nr_steps;
    unsigned int nr_borrowed;    /* steps */
    struct chunk *borrowed_list; /* free ones */
    unsigned int nr_free;        /* chunks in both lists */
    bool asks;                   /* for more than is borrowed */
    uint64_t settle_usec;        /* give back more then */

    struct chunk *free_list;
    struct chunk *head; /* the list: in the ring and closed, oldest first */
    struct chunk *tail;
    unsigned int nr_listed;
    struct chunk *limbo_head; /* evicted while pinned, oldest first */
    struct chunk *limbo_tail;
    uint64_t next_seq;
    struct chunk *filling;
    struct ring_pin *pins;         /* [RING_PINS_MAX] */
    struct ring_count *pin_counts; /* their tails' counts */
    uint64_t pin_counts_bytes;
    uint64_t drops[DROP_CAUSES]; /* at its end. All others in the ledger are DROP_PINNED */

    /* Written by the collector thread, read by the main thread: relaxed atomics. */
    uint64_t used_bytes;
    uint64_t oldest_tsc;
    uint64_t newest_tsc;
    uint64_t passed_tsc; /* of the newest record, or loss, ever put into it */
};

struct ring_step {
    bool is_borrowed;
    unsigned int nr_free; /* of its chunks */
};

/*
 * A pin keeps the chunks from `first` to `last` for a snapshot; evicted ones are kept in limbo.
 *
 * The chunk being filled is pinned up to its fill level, and filling continues. The pin therefore
 * has its own view of this chunk, `tail`: the user of the pin reads neither the chunk's state and
 * counts, nor the header of its last window, which is rewritten when the chunk is closed.
 */
struct ring_pin {
    bool taken;                /* main thread */
    uint64_t first;            /* the oldest chunk still needed; RING_UNPINNED: none. See ring.c */
    uint64_t last;             /* collector thread */
    const struct chunk *chunk; /* the oldest at the time; NULL: the ring was empty */
    bool is_refused;           /* ... because others pin all but what new records need */
    uint64_t nsec;             /* what pinning took */

    struct chunk tail; /* fill_bytes is 0: nothing was being filled */
    struct ring_chunk tail_state;
    struct window_header tail_window; /* of its last window */
    struct ring_count *tail_counts;   /* [RING_PARTS][nr_cpus] */
};

#define RING_UNPINNED UINT64_MAX

static inline struct ring_chunk *ring_state_of(const struct ring *ring, const struct chunk *chunk)
{
    return &ring->states[chunk - ring->chunks];
}

static inline struct ring_count *ring_counts_of(const struct ring *ring, const struct chunk *chunk,
                                                enum ring_part part)
{
    return ring->counts[chunk - ring->chunks] + (size_t)part * ring->nr_cpus;
}

/* The pin whose view CHUNK is; NULL: it is one of the ring's own. */
static inline const struct ring_pin *ring_pin_of_tail(const struct ring *ring,
                                                      const struct chunk *chunk)
{
    for (unsigned int i = 0; i < RING_PINS_MAX; i++)
        if (chunk == &ring->pins[i].tail)
            return &ring->pins[i];
    return NULL;
}

static inline bool ring_is_home(const struct ring *ring, const struct chunk *chunk)
{
    return chunk < &ring->chunks[ring->nr_chunks];
}

/*
 * Maps the memory, of memfd if there is one, and allocates the state that need not survive. ring.c.
 */
int ring_set_up(struct ring *ring, uint64_t nr_chunks, unsigned int nr_cpus, uint64_t nr_steps,
                struct grower *grower);
/* Makes a chunk free. ring.c. */
void ring_give(struct ring *ring, struct chunk *chunk);
/* Frees chunks that no pin holds any more. ring.c. */
void ring_free_limbo(struct ring *ring);
/* Whether a snapshot may still need CHUNK. ring.c. */
bool ring_is_pinned(const struct ring *ring, const struct chunk *chunk);

/* As many steps as GROWER's budget has. ring-borrow.c, as the next ones. */
uint64_t ring_steps_of(const struct grower *grower, uint64_t chunk_bytes, uint64_t nr_cpus);
/* STEP is in use from now on: its chunks are free, but for those that have a number. */
void ring_add_step(struct ring *ring, unsigned int step);
unsigned int ring_step_of(const struct ring *ring, const struct chunk *chunk);
/* Asks for memory ahead of the need, if a snapshot needs what is evicted. */
void ring_ask(struct ring *ring);
/* Takes memory that was requested, which adds free chunks. False: there is none. */
bool ring_borrow(struct ring *ring);

/* Stores before it are done before those after it, also as the next daemon sees them. */
static inline void ring_keep_order(void)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Carries out the commit; also again. ring.c. */
void ring_apply_commit(struct ring *ring, const struct ring_commit *commit);
/* Pads a chunk to whole pages, as it is written. ring.c. */
void ring_pad_chunk(struct ring *ring, struct chunk *chunk);
/* Puts a closed chunk at the end of the list. ring.c. */
void ring_append(struct ring *ring, struct chunk *chunk);
/*
 * Removes the oldest chunk from the list, and later chunks up to the next begin of a round. ring.c.
 */
void ring_evict(struct ring *ring);
/*
 * Completes and checks the header, states and counts that a daemon has left in RING's mapping, and
 * puts the chunks into the list and the free list. Returns as ring_adopt(). ring-adopt.c.
 */
int ring_adopt_state(struct ring *ring, const char **ret_problem);
