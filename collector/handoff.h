/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Hands the chunks of a sink to another thread, the writer, which writes them to the output in its
 * own form, and returns them with the output's length. The sink gets them back in order.
 *
 * Neither side waits for the other: the collector gives what fits into the slots, and takes back
 * what is done when it is woken. The writer waits for handoff_fd() to become readable.
 *
 * The main thread makes it, and passes it to a sink, which frees it. Each function says whose it
 * is.
 */

#include <stdbool.h>
#include <stdint.h>

struct handoff;
struct uring;

/* Chunks that the writer may have at a time. It has to finish some when it has all of them. */
#define HANDOFF_SLOTS 64u

struct handoff_config {
    void (*wake)(void *userdata);    /* the collector; writer's thread */
    void (*release)(void *userdata); /* the sink is freed: ends the writer; main thread */
    void *userdata;
};

/* Where the output ends, and what is in it. */
struct handoff_done {
    int error;             /* 0, or why the chunk and all after it are not in the output */
    uint64_t stored_bytes; /* the output's length */
    uint64_t least_bytes;  /* ... if nothing more comes: what completes it counts */
    uint64_t raw_bytes;    /* of records that are in it as they were */
};

/* --- Main thread. --- */

/* Returns 0, -ENOMEM, or the error of eventfd(2). */
int handoff_new(const struct handoff_config *config, struct handoff **ret_handoff);
/* Has the writer ended, then frees. Takes NULL; returns NULL. */
struct handoff *handoff_free(struct handoff *handoff);
/* The same for the writer's thread, if the main thread did not wait for it. */
void handoff_destroy(struct handoff *handoff);
/* Whether all that was given has come back. */
bool handoff_is_idle(const struct handoff *handoff);

/* --- Collector thread. --- */

/*
 * Gives BYTES at DATA, which stay as they are until they come back. ENDS_ROUND: what follows begins
 * with a round. False: there is no slot.
 */
bool handoff_give(struct handoff *handoff, const void *data, uint32_t bytes, bool ends_round);
/* Nothing follows: the writer completes the output, which comes back like a chunk. */
bool handoff_give_end(struct handoff *handoff);
/* The output is given up: all comes back as soon as the writer can. */
void handoff_cancel(struct handoff *handoff);
/*
 * Tells what the sink needs. IS_BEHIND: memory runs out, so speed is worth more than size.
 * IS_HELD_UP: nothing follows until some has come back.
 */
void handoff_set_needs(struct handoff *handoff, bool is_behind, bool is_held_up);
/* Has the writer woken with the next system call of URING, if there is something new for it. */
void handoff_wake(struct handoff *handoff, struct uring *uring);
/* Takes back the oldest that was given, if it is done. */
bool handoff_take_done(struct handoff *handoff, struct handoff_done *ret_done);

/* --- The writer's thread. --- */

struct handoff_item {
    const uint8_t *data;
    uint32_t bytes; /* 0: the end */
    bool ends_round;
};

/* Readable after something was given, canceled or asked for, until it is made quiet. */
int handoff_fd(const struct handoff *handoff);
void handoff_quieten(struct handoff *handoff);
/* The next one that was given. */
bool handoff_take(struct handoff *handoff, struct handoff_item *ret_item);
/* How many were taken, and not returned; and whether that is all that there can be. */
unsigned int handoff_nr_taken(const struct handoff *handoff);
bool handoff_is_full(const struct handoff *handoff);
/* Returns all that were taken, and wakes the collector. */
void handoff_return(struct handoff *handoff, const struct handoff_done *done);

bool handoff_is_canceled(const struct handoff *handoff);
bool handoff_is_behind(const struct handoff *handoff);
bool handoff_is_held_up(const struct handoff *handoff);
