/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The pool: memory, divided into chunks. Its base is mapped and populated at start. Beyond that, it
 * grows in steps, which a grower (grower.h) provides when the pool runs low, and which are returned
 * a minute after they were last needed. No thread waits for a step: until it is available, the pool
 * keeps its size.
 *
 * A chunk holds whole windows only, so that a file can be split between any two chunks. It has one
 * owner at a time: free -> filling -> queued -> writing -> written -> free.
 *
 * pool_new() and pool_free() may block, and are for the main thread; the others are for the
 * collector thread, unless stated otherwise.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The smallest chunk; one of ORDER has CHUNK_BYTES << ORDER. */
#define CHUNK_BYTES     (256u * 1024u)
#define CHUNK_ORDER_MAX 4u

/* The pool grows by this much at a time. It takes the grower milliseconds, or up to 40 in a VM. */
#define POOL_STEP_BYTES (8u << 20)

enum chunk_state {
    CHUNK_PART, /* no chunk: memory of one that is larger */
    CHUNK_FREE,
    CHUNK_FILLING, /* windows are appended */
    CHUNK_QUEUED,  /* closed, waits to be written */
    CHUNK_WRITING, /* the kernel reads it, or the thread that writes the output */
    CHUNK_WRITTEN, /* waits until those before it are written too */
};

struct grower;
struct sink;

struct chunk {
    struct chunk *next;       /* in a free list, or in its owner's queue or list */
    struct chunk *limbo_next; /* of a ring's: see ring.c */
    struct sink *sink;        /* whose it is, unless it is free */
    uint8_t *data;            /* page aligned, in the pool's mapping */
    uint32_t bytes;           /* there is room for: of a pool's, CHUNK_BYTES << order */
    unsigned int order;
    enum chunk_state state;
    bool ends_round; /* of a closed one: what follows it begins with a round */
    uint32_t fill_bytes;
    uint32_t last_window;   /* offset of the last window's header; valid if fill_bytes > 0 */
    uint32_t written_bytes; /* of a write that came back short */
    uint64_t output_offset; /* where it goes in the output */
    uint64_t opened_usec;   /* CLOCK_MONOTONIC, when its first window came */
    uint64_t written_usec;  /* ... when its write was submitted */
    uint64_t seq;           /* of a ring's: its place in time */
};

struct pool;

/*
 * A pool that does not grow. BYTES is rounded down to whole chunks, at least 2. Returns 0, -EINVAL
 * (fewer), -ENOMEM, or the error of mmap() or madvise().
 */
int pool_new(uint64_t bytes, struct pool **ret_pool);
/*
 * A pool with a base of BYTES that grows within the budget of GROWER, which is borrowed until
 * pool_free(). NR_NOTES is the largest COUNT for pool_reserve_notes(); the notes take a part of
 * each step.
 */
int pool_new_growing(uint64_t bytes, struct grower *grower, unsigned int nr_notes,
                     struct pool **ret_pool);
struct pool *pool_free(struct pool *pool);

/* For tests: how long a step stays that is not needed, instead of a minute. */
void pool_set_patience(struct pool *pool, uint64_t usec);

/* The base, to be registered as one fixed buffer. */
void *pool_base(const struct pool *pool);
uint64_t pool_base_bytes(const struct pool *pool);

/* --- Any thread: as of a moment ago. --- */

/* The present size of the pool, and the part that is not in use. */
uint64_t pool_bytes(const struct pool *pool);
uint64_t pool_free_bytes(const struct pool *pool);

/*
 * How often a step was refused, because the budget was used up or there was no memory. Counted once
 * until the pool no longer needs a step.
 */
uint64_t pool_refusals(const struct pool *pool);

/* --- Collector thread. --- */

/*
 * Takes offered steps, requests more in advance, and returns a step that was not needed for a
 * minute. Called after each iteration of the loop, and at pool_tend_usec(). It keeps half of the
 * pool free, or, if that is less, SPARE_BYTES (which no sink may take) plus room for the records
 * until the next step is available.
 */
void pool_tend(struct pool *pool, uint64_t spare_bytes, uint64_t now_usec);
/* When pool_tend() must be called even if nothing else happens, as CLOCK_MONOTONIC; 0: never. */
uint64_t pool_tend_usec(const struct pool *pool);

/*
 * Takes a free chunk, in state CHUNK_FILLING: of ORDER, or smaller if there is none or the base is
 * too small; NULL: the pool is used up. Chunks of the base are taken first.
 */
struct chunk *pool_take(struct pool *pool, unsigned int order);
/* Gives a chunk back, in whatever state it is but CHUNK_FREE. */
void pool_give(struct pool *pool, struct chunk *chunk);

/*
 * Reserves notes for the owner of a chunk: COUNT words for each chunk of CHUNK_BYTES, stored
 * outside the chunk. Main thread, before the first chunk is taken; later calls have no effect.
 * Returns 0, -EINVAL if COUNT is larger than in the first call, or the error of mmap() or
 * madvise().
 */
int pool_reserve_notes(struct pool *pool, unsigned int count);
/* Their content is undefined until it is written. */
uint64_t *pool_notes(const struct pool *pool, const struct chunk *chunk);
