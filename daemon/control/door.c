// SPDX-License-Identifier: GPL-2.0-or-later
/* Jobs on one worker: the last one that was sent says what is so in the end. */

#include "daemon/control/door.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/base/person.h"
#include "daemon/base/worker.h"
#include "daemon/control/listener.h"
#include "daemon/control/peer-groups.h"
#include "daemon/control/persons.h"

struct door {
    struct worker *worker;
    const char *path;
};

struct door_job {
    struct job job;
    const char *path;
    struct peer_groups groups;
    bool has_groups;
    struct failure failure;
    size_t nr_users;
    struct listener_user users[];
};

static void door_run(struct job *job)
{
    struct door_job *door = job_container(job, struct door_job, job);

    (void)listener_restrict(door->path, door->has_groups ? &door->groups : NULL, door->users,
                            door->nr_users, &door->failure);
}

static void door_done(struct job *job)
{
    struct door_job *door = job_container(job, struct door_job, job);

    if (door->failure.name)
        log_warning("%s", door->failure.text);
    free(door);
}

static bool is_among(const uid_t *persons, size_t nr, uid_t person)
{
    for (size_t i = 0; i < nr; i++)
        if (persons[i] == person)
            return true;
    return false;
}

void door_set(struct door *door, const struct peer_groups *groups, const struct persons *persons,
              const uid_t *locked, size_t nr)
{
    bool are_others_locked = is_among(locked, nr, PERSON_OTHERS);
    const uid_t *members;
    size_t nr_members = persons_list(persons, &members);
    struct door_job *job;

    if (nr_members > LISTENER_USERS_MAX)
        return;
    job = calloc(1, sizeof(*job) + nr_members * sizeof(job->users[0]));
    if (!job)
        return;
    job->job = (struct job){.run = door_run, .done = door_done};
    job->path = door->path;
    job->groups = *groups;
    job->has_groups = !are_others_locked;
    for (size_t i = 0; i < nr_members; i++) {
        bool is_locked = is_among(locked, nr, members[i]);

        if (is_locked || are_others_locked)
            job->users[job->nr_users++] =
                (struct listener_user){.uid = members[i], .may_connect = !is_locked};
    }
    worker_send(door->worker, &job->job);
}

int door_new(struct workers *workers, const char *path, struct door **ret_door)
{
    struct door *door = calloc(1, sizeof(*door));
    int r;

    if (!door)
        return -ENOMEM;
    door->path = path;
    r = worker_new(workers, "door", &door->worker);
    if (r < 0) {
        free(door);
        return r;
    }
    *ret_door = door;
    return 0;
}

struct door *door_free(struct door *door)
{
    if (!door)
        return NULL;
    (void)worker_free(door->worker); /* ends when its jobs are done */
    free(door);
    return NULL;
}
