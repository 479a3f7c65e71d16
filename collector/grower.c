// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When woken, the thread checks all extents, and processes one step after the other until none is
 * pending: released steps first, so that their memory is available to others. The lock is not held
 * while a step is processed; `busy` is the extent of that step.
 *
 * An extent that was refused a step is looked at again whenever the thread is woken or has returned
 * a step, and twice a second: nothing reports that dom0 has memory again.
 */

#include "collector/grower.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collector/extent-state.h"
#include "collector/extent.h"
#include "collector/memory.h"
#include "common/meminfo.h"
#include "common/thread.h"
#include "common/util.h"

#define STACK_BYTES (128u * 1024u)
#define SPARE_PARTS 16u /* of dom0's memory, one is left to others */
#define NICE        (-10)
#define RETRY_MSEC  500 /* after a step was refused: dom0 may have memory again */

struct grower {
    pthread_t thread;
    bool thread_runs;
    int fd;
    uint64_t budget_bytes;
    bool quits; /* atomic */

    pthread_mutex_t mutex;
    pthread_cond_t is_done; /* `busy` is another one */
    struct extent *extents;
    struct extent *busy;
    uint64_t used_bytes; /* read by any thread: atomic */
};

void grower_wake(struct grower *grower)
{
    const uint64_t one = 1;

    (void)!write(grower->fd, &one, sizeof(one)); /* cannot block: nobody adds that much */
}

static void grower_count(struct grower *grower, int64_t bytes)
{
    __atomic_fetch_add(&grower->used_bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
}

/* The pending work for an extent: the step to populate, or to return. */
struct task {
    struct extent *extent;
    unsigned int step;
    bool grows;
};

static uint32_t extent_wanted(const struct extent *extent)
{
    return __atomic_load_n(&extent->wanted, __ATOMIC_ACQUIRE);
}

/* A step that goes back: one that is released, or an offer for which there is no want. */
static bool find_shrink(struct extent *extent, struct task *ret_task)
{
    uint32_t kept = 0, wanted = extent_wanted(extent);

    for (unsigned int i = 0; i < extent->nr_steps; i++)
        kept += extent_step_state(extent, i) == EXTENT_IN_USE;
    for (unsigned int i = 0; i < extent->nr_steps; i++) {
        uint32_t state = extent_step_state(extent, i);
        uint32_t offered = EXTENT_OFFERED;

        *ret_task = (struct task){.extent = extent, .step = i};
        if (state == EXTENT_RELEASED)
            return true;
        if (state == EXTENT_OFFERED && kept >= wanted &&
            __atomic_compare_exchange_n(&extent->steps[i], &offered, EXTENT_RELEASED, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
        kept += state == EXTENT_OFFERED;
    }
    return false;
}

static bool find_growth(const struct grower *grower, struct extent *extent, struct task *ret_task)
{
    unsigned int absent = extent->nr_steps;
    uint32_t present = 0;

    for (unsigned int i = extent->nr_steps; i-- > 0;) {
        if (extent_step_state(extent, i) == EXTENT_ABSENT)
            absent = i;
        else
            present++;
    }
    if (present >= extent_wanted(extent))
        return false;
    if (absent == extent->nr_steps ||
        grower->used_bytes + extent->step_bytes > grower->budget_bytes) {
        __atomic_store_n(&extent->is_refused, 1, __ATOMIC_RELAXED);
        return false;
    }
    *ret_task = (struct task){.extent = extent, .step = absent, .grows = true};
    return true;
}

static bool find_task(struct grower *grower, struct task *ret_task)
{
    for (struct extent *extent = grower->extents; extent; extent = extent->next)
        if (find_shrink(extent, ret_task))
            return true;
    for (struct extent *extent = grower->extents; extent; extent = extent->next)
        if (!__atomic_load_n(&extent->is_refused, __ATOMIC_RELAXED) &&
            find_growth(grower, extent, ret_task))
            return true;
    return false;
}

/* The kernel would not refuse it, but make room by killing somebody. */
static bool dom0_can_spare(uint64_t bytes)
{
    uint64_t available_bytes = meminfo_bytes("MemAvailable");

    return available_bytes == 0 ||
           available_bytes >= bytes + meminfo_bytes("MemTotal") / SPARE_PARTS;
}

static void run_task(struct grower *grower, const struct task *task)
{
    struct extent *extent = task->extent;
    uint8_t *base = extent->base + task->step * extent->step_bytes;

    if (!task->grows) {
        memory_return(base, extent->step_bytes, extent->is_shared);
        grower_count(grower, -(int64_t)extent->step_bytes);
        extent_set_step(extent, task->step, EXTENT_ABSENT);
        return;
    }
    if (!dom0_can_spare(extent->step_bytes)) {
        __atomic_store_n(&extent->is_refused, 1, __ATOMIC_RELAXED);
        return;
    }
    grower_count(grower, (int64_t)extent->step_bytes);
    if (memory_populate(base, extent->step_bytes) < 0) {
        memory_return(base, extent->step_bytes, extent->is_shared);
        grower_count(grower, -(int64_t)extent->step_bytes);
        __atomic_store_n(&extent->is_refused, 1, __ATOMIC_RELAXED);
        return;
    }
    (void)memory_lock(base, extent->step_bytes); /* if not, it is reported: memory_is_locked() */
    extent_set_step(extent, task->step, EXTENT_OFFERED);
}

/* Lets what was refused be tried again. */
static void forget_refusals(struct grower *grower)
{
    for (struct extent *extent = grower->extents; extent; extent = extent->next)
        __atomic_store_n(&extent->is_refused, 0, __ATOMIC_RELAXED);
}

static bool has_refused(const struct grower *grower)
{
    for (const struct extent *extent = grower->extents; extent; extent = extent->next)
        if (__atomic_load_n(&extent->is_refused, __ATOMIC_RELAXED))
            return true;
    return false;
}

/* Returns whether a step was refused, and is to be tried again. */
static bool serve(struct grower *grower)
{
    struct task task;
    bool refused;

    (void)pthread_mutex_lock(&grower->mutex);
    forget_refusals(grower);
    while (find_task(grower, &task)) {
        grower->busy = task.extent;
        (void)pthread_mutex_unlock(&grower->mutex);
        run_task(grower, &task);
        (void)pthread_mutex_lock(&grower->mutex);
        grower->busy = NULL;
        if (!task.grows)
            forget_refusals(grower);
        (void)pthread_cond_broadcast(&grower->is_done);
    }
    refused = has_refused(grower);
    (void)pthread_mutex_unlock(&grower->mutex);
    return refused;
}

static void *grower_run(void *argument)
{
    struct grower *grower = argument;
    struct pollfd poll_fd = {.fd = grower->fd, .events = POLLIN};
    bool refused = false;
    uint64_t count;

    /* A step takes 20 ms and more, and must not wait for ordinary threads: at 300 MB/s the
     * pool is used up in a fifth of a second. */
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* of this thread; not allowed: later, then */
    while (!__atomic_load_n(&grower->quits, __ATOMIC_ACQUIRE)) {
        (void)poll(&poll_fd, 1, refused ? RETRY_MSEC : -1); /* EINTR: looks once more */
        (void)!read(grower->fd, &count, sizeof(count));     /* EAGAIN: the time has passed */
        refused = serve(grower);
    }
    return NULL;
}

static int grower_start(struct grower *grower)
{
    int r;

    grower->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (grower->fd < 0)
        return -errno;
    r = thread_start(&grower->thread, "grower", STACK_BYTES, grower_run, grower);
    grower->thread_runs = r == 0;
    return r;
}

int grower_new(uint64_t budget_bytes, struct grower **ret_grower)
{
    struct grower *grower = calloc(1, sizeof(*grower));
    int r;

    if (!grower)
        return -ENOMEM;
    grower->fd = -1;
    grower->budget_bytes = budget_bytes;
    (void)pthread_mutex_init(&grower->mutex, NULL);
    (void)pthread_cond_init(&grower->is_done, NULL);
    r = grower_start(grower);
    if (r < 0) {
        grower_free(grower);
        return r;
    }
    *ret_grower = grower;
    return 0;
}

struct grower *grower_free(struct grower *grower)
{
    if (!grower)
        return NULL;
    if (grower->thread_runs) {
        __atomic_store_n(&grower->quits, true, __ATOMIC_RELEASE);
        grower_wake(grower);
        (void)pthread_join(grower->thread, NULL);
    }
    fd_close(&grower->fd);
    (void)pthread_cond_destroy(&grower->is_done);
    (void)pthread_mutex_destroy(&grower->mutex);
    free(grower);
    return NULL;
}

void grower_add(struct grower *grower, struct extent *extent)
{
    (void)pthread_mutex_lock(&grower->mutex);
    extent->grower = grower;
    extent->next = grower->extents;
    grower->extents = extent;
    grower_count(grower, (int64_t)extent_bytes(extent));
    (void)pthread_mutex_unlock(&grower->mutex);
    grower_wake(grower);
}

void grower_remove(struct grower *grower, struct extent *extent)
{
    struct extent **link = &grower->extents;

    (void)pthread_mutex_lock(&grower->mutex);
    while (grower->busy == extent)
        (void)pthread_cond_wait(&grower->is_done, &grower->mutex);
    for (; *link; link = &(*link)->next) {
        if (*link != extent)
            continue;
        *link = extent->next;
        break;
    }
    grower_count(grower, -(int64_t)extent_bytes(extent));
    extent->grower = NULL;
    forget_refusals(grower);
    (void)pthread_mutex_unlock(&grower->mutex);
    grower_wake(grower);
}

uint64_t grower_budget_bytes(const struct grower *grower)
{
    return grower->budget_bytes;
}

uint64_t grower_used_bytes(const struct grower *grower)
{
    return __atomic_load_n(&grower->used_bytes, __ATOMIC_RELAXED);
}
