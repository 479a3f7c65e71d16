// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/output/disk-space.h"

#include <pthread.h>
#include <stdlib.h>

struct disk_space {
    dev_t device;
    unsigned int nr_refs;
    pthread_mutex_t mutex;
    uint64_t loose_bytes; /* atomic */
    struct disk_space *next;
};

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER; /* for the list and `nr_refs` */
static struct disk_space *spaces;

static struct disk_space *disk_space_add(dev_t device)
{
    struct disk_space *space = calloc(1, sizeof(*space));

    if (!space)
        return NULL;
    space->device = device;
    (void)pthread_mutex_init(&space->mutex, NULL); /* cannot fail on Linux */
    space->next = spaces;
    spaces = space;
    return space;
}

struct disk_space *disk_space_ref(dev_t device)
{
    struct disk_space *space;

    (void)pthread_mutex_lock(&list_mutex);
    for (space = spaces; space && space->device != device; space = space->next)
        ;
    if (!space)
        space = disk_space_add(device);
    if (space)
        space->nr_refs++;
    (void)pthread_mutex_unlock(&list_mutex);
    return space;
}

struct disk_space *disk_space_unref(struct disk_space *space)
{
    struct disk_space **link = &spaces;

    if (!space)
        return NULL;
    (void)pthread_mutex_lock(&list_mutex);
    if (--space->nr_refs == 0) {
        while (*link != space)
            link = &(*link)->next;
        *link = space->next;
        (void)pthread_mutex_destroy(&space->mutex);
        free(space);
    }
    (void)pthread_mutex_unlock(&list_mutex);
    return NULL;
}

void disk_space_lock(struct disk_space *space)
{
    (void)pthread_mutex_lock(&space->mutex);
}

void disk_space_unlock(struct disk_space *space)
{
    (void)pthread_mutex_unlock(&space->mutex);
}

uint64_t disk_space_loose_bytes(const struct disk_space *space)
{
    return __atomic_load_n(&space->loose_bytes, __ATOMIC_RELAXED);
}

void disk_space_set_loose(struct disk_space *space, uint64_t *part_bytes, uint64_t bytes)
{
    __atomic_fetch_add(&space->loose_bytes, bytes - *part_bytes, __ATOMIC_RELAXED);
    *part_bytes = bytes;
}
