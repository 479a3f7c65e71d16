/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The pool: memory, cut into chunks. Its base is mapped and touched at start. Beyond that it grows
 * by steps, which a grower (grower.h) makes while the pool is being used up, and which go back a
 * minute after they were needed. Nobody waits for a step: until it is there, the pool is what it
 * was.
 *
 * A chunk holds whole windows only, so that a file can be cut between any two chunks. It belongs to
 * one owner at a time: free -> filling -> queued -> writing -> written -> free.
 *
 * pool_new() and pool_free() may block and belong to the main thread; the rest to the collector
 * thread, unless it says otherwise.
 */

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
    CHUNK_WRITING, /* the kernel reads it */
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
 * BYTES is rounded down to whole chunks; at least 2. It does not grow. Returns -EINVAL (less),
 * -ENOMEM, or what mmap() and madvise() say.
 */
int pool_new(uint64_t bytes, struct pool **ret_pool);
/*
 * BYTES are the base; it grows as far as the budget of GROWER goes, which is borrowed until
 * pool_free(). NR_NOTES is what pool_reserve_notes() will ask for at most; they take their part of
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

/* What there is for chunks now, and what of it is not in use. */
uint64_t pool_bytes(const struct pool *pool);
uint64_t pool_free_bytes(const struct pool *pool);

/* How often the pool needed a step that was refused: the budget is used up, or there is no memory.
 * Once until it does not need it any more. */
uint64_t pool_refusals(const struct pool *pool);

/* --- Collector thread. --- */

/*
 * Takes the steps that were made, asks for more ahead of their need, and gives back a step that was
 * not needed for a minute. To be called after every turn of the loop, and when pool_tend_usec()
 * says. It sees to it that half of the pool is free, or, if that is less, SPARE_BYTES, which no
 * sink may take, and room for what comes until there is more.
 */
void pool_tend(struct pool *pool, uint64_t spare_bytes, uint64_t now_usec);
/* When pool_tend() has something to do though nothing else happens, as CLOCK_MONOTONIC; 0: never.
 */
uint64_t pool_tend_usec(const struct pool *pool);

/*
 * A free chunk, empty, CHUNK_FILLING: of ORDER, or of less, if there is none or the base is too
 * small for such ones; NULL: there is none at all. Of the base, if it has one.
 */
struct chunk *pool_take(struct pool *pool, unsigned int order);
/* Gives a chunk back, in whatever state it is but CHUNK_FREE. */
void pool_give(struct pool *pool, struct chunk *chunk);

/*
 * Notes of a chunk's owner: COUNT words for each chunk of CHUNK_BYTES, which are no part of it.
 * Main thread, before the first chunk is taken; later calls, with no larger COUNT, change nothing.
 * -EINVAL: COUNT is larger than the first time; or what mmap() and madvise() say.
 */
int pool_reserve_notes(struct pool *pool, unsigned int count);
/* Their content is undefined until it is written. */
uint64_t *pool_notes(const struct pool *pool, const struct chunk *chunk);
