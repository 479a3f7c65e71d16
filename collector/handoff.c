// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One ring of slots and three counters, each written by one thread: `given` by the collector,
 * `taken` and `returned` by the writer, which never reads a slot before it is given, nor the
 * collector one before it is returned. The release store of a counter pairs with the other side's
 * acquire load. What the collector needs, and that it gives up, are flags of which only the newest
 * value counts.
 */

#include "collector/handoff.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "collector/memory.h"
#include "collector/uring.h"
#include "common/util.h"

struct slot {
    struct handoff_item item;
    struct handoff_done done;
};

struct handoff {
    struct handoff_config config;
    int eventfd;
    struct slot slots[HANDOFF_SLOTS];

    /* Counters go up for ever: a slot is a counter modulo HANDOFF_SLOTS. */
    uint32_t given;    /* atomic */
    uint32_t returned; /* atomic */
    uint32_t taken;    /* the writer's own */
    uint32_t taken_back;
    bool must_wake; /* the writer; like taken_back the collector's own */

    bool is_canceled, is_behind, is_held_up; /* relaxed atomics */
};

int handoff_new(const struct handoff_config *config, struct handoff **ret_handoff)
{
    struct handoff *handoff = memory_alloc(1, sizeof(*handoff));

    if (!handoff)
        return -ENOMEM;
    handoff->config = *config;
    handoff->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (handoff->eventfd < 0) {
        int r = -errno;

        free(handoff);
        return r;
    }
    *ret_handoff = handoff;
    return 0;
}

struct handoff *handoff_free(struct handoff *handoff)
{
    if (handoff)
        handoff->config.release(handoff->config.userdata);
    return NULL;
}

void handoff_destroy(struct handoff *handoff)
{
    fd_close(&handoff->eventfd);
    free(handoff);
}

bool handoff_is_idle(const struct handoff *handoff)
{
    return __atomic_load_n(&handoff->given, __ATOMIC_ACQUIRE) ==
           __atomic_load_n(&handoff->returned, __ATOMIC_ACQUIRE);
}

/* --- Collector thread. --- */

static bool handoff_put(struct handoff *handoff, struct handoff_item item)
{
    uint32_t given = __atomic_load_n(&handoff->given, __ATOMIC_RELAXED);

    if (given - handoff->taken_back == HANDOFF_SLOTS)
        return false;
    handoff->slots[given % HANDOFF_SLOTS].item = item;
    __atomic_store_n(&handoff->given, given + 1, __ATOMIC_RELEASE);
    handoff->must_wake = true;
    return true;
}

bool handoff_give(struct handoff *handoff, const void *data, uint32_t bytes, bool ends_round)
{
    assert(bytes > 0);
    return handoff_put(handoff, (struct handoff_item){data, bytes, ends_round});
}

bool handoff_give_end(struct handoff *handoff)
{
    return handoff_put(handoff, (struct handoff_item){0});
}

static void set_flag(struct handoff *handoff, bool *flag, bool value)
{
    if (*flag == value)
        return;
    __atomic_store_n(flag, value, __ATOMIC_RELAXED);
    handoff->must_wake = true;
}

void handoff_cancel(struct handoff *handoff)
{
    set_flag(handoff, &handoff->is_canceled, true);
}

void handoff_set_needs(struct handoff *handoff, bool is_behind, bool is_held_up)
{
    set_flag(handoff, &handoff->is_behind, is_behind);
    set_flag(handoff, &handoff->is_held_up, is_held_up);
}

void handoff_wake(struct handoff *handoff, struct uring *uring)
{
    if (handoff->must_wake && uring_wake(uring, handoff->eventfd) >= 0)
        handoff->must_wake =
            false; /* else the submission queue is full, and the next call does it */
}

bool handoff_take_done(struct handoff *handoff, struct handoff_done *ret_done)
{
    if (handoff->taken_back == __atomic_load_n(&handoff->returned, __ATOMIC_ACQUIRE))
        return false;
    *ret_done = handoff->slots[handoff->taken_back++ % HANDOFF_SLOTS].done;
    return true;
}

/* --- The writer's thread. --- */

int handoff_fd(const struct handoff *handoff)
{
    return handoff->eventfd;
}

void handoff_quieten(struct handoff *handoff)
{
    eventfd_t count;

    (void)eventfd_read(handoff->eventfd, &count); /* EAGAIN: it was quiet */
}

bool handoff_take(struct handoff *handoff, struct handoff_item *ret_item)
{
    if (handoff->taken == __atomic_load_n(&handoff->given, __ATOMIC_ACQUIRE))
        return false;
    *ret_item = handoff->slots[handoff->taken++ % HANDOFF_SLOTS].item;
    return true;
}

unsigned int handoff_nr_taken(const struct handoff *handoff)
{
    return handoff->taken - __atomic_load_n(&handoff->returned, __ATOMIC_RELAXED);
}

bool handoff_is_full(const struct handoff *handoff)
{
    return handoff_nr_taken(handoff) == HANDOFF_SLOTS;
}

void handoff_return(struct handoff *handoff, const struct handoff_done *done)
{
    uint32_t returned = __atomic_load_n(&handoff->returned, __ATOMIC_RELAXED);

    if (returned == handoff->taken)
        return;
    for (uint32_t i = returned; i != handoff->taken; i++)
        handoff->slots[i % HANDOFF_SLOTS].done = *done;
    __atomic_store_n(&handoff->returned, handoff->taken, __ATOMIC_RELEASE);
    handoff->config.wake(handoff->config.userdata);
}

static bool read_flag(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

bool handoff_is_canceled(const struct handoff *handoff)
{
    return read_flag(&handoff->is_canceled);
}

bool handoff_is_behind(const struct handoff *handoff)
{
    return read_flag(&handoff->is_behind);
}

bool handoff_is_held_up(const struct handoff *handoff)
{
    return read_flag(&handoff->is_held_up);
}
