// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A person whose descriptors are not closed holds up one thread and its own later descriptors,
 * nothing else. A thread without work goes when its person has no connection left.
 *
 * close(2) frees the slot in the table of descriptors first, and waits afterwards: those that wait
 * in close(2) cost memory of the kernel only.
 *
 * Source: unix(7); net/unix/af_unix.c, net/core/scm.c, fs/file.c and fs/fuse/file.c of Linux 6.1.
 */

#include "daemon/base/vacate.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "common/protocol.h"
#include "common/util.h"
#include "daemon/base/worker.h"

#define TABLE_WANTED 65536u /* slots for descriptors, if the hard limit has as many */

struct vacate_person {
    struct vacate *vacate; /* NULL: freed */
    struct vacate_person *next;
    uid_t person;
    struct worker *worker;
    size_t nr_members; /* connections */
    size_t nr_waiting; /* descriptors that are to be closed, and are not yet */
    bool is_locked;
};

struct vacate {
    struct workers *workers;
    void (*changed)(void *userdata);
    void *userdata;
    size_t room;                   /* for descriptors of clients, in all */
    size_t locked_min;
    size_t nr_held;                /* ... in batches */
    struct vacate_person *persons; /* with connections, or of whom something waits */
    struct vacate_person *spare;   /* for the next one that joins */
};

/* --- Persons. --- */

static struct vacate_person *vacate_find(const struct vacate *vacate, uid_t person)
{
    struct vacate_person *found = vacate->persons;

    while (found && found->person != person)
        found = found->next;
    return found;
}

static void vacate_release(struct vacate_person *person)
{
    struct vacate_person **link;

    if (person->nr_members > 0 || person->nr_waiting > 0)
        return;
    if (person->vacate) {
        link = &person->vacate->persons;
        while (*link != person)
            link = &(*link)->next;
        *link = person->next;
        (void)worker_free(person->worker);
    }
    free(person);
}

static int vacate_add_spare(struct vacate *vacate)
{
    struct vacate_person *spare = calloc(1, sizeof(*spare));
    int r;

    if (!spare)
        return -ENOMEM;
    spare->vacate = vacate;
    r = worker_new(vacate->workers, "close", &spare->worker);
    if (r < 0) {
        free(spare);
        return r;
    }
    vacate->spare = spare;
    return 0;
}

struct vacate_batch *vacate_prepare(struct vacate *vacate)
{
    if (!vacate->spare && vacate_add_spare(vacate) < 0)
        return NULL;
    return vacate_batch_new(NULL, 1);
}

struct vacate_person *vacate_join(struct vacate *vacate, uid_t person, struct vacate_batch *batch,
                                  int fd)
{
    struct vacate_person *joined = vacate_find(vacate, person);

    if (!joined) {
        joined = TAKE_PTR(vacate->spare);
        joined->person = person;
        joined->next = vacate->persons;
        vacate->persons = joined;
    }
    joined->nr_members++;
    batch->person = joined;
    vacate_batch_add(batch, fd);
    return joined;
}

void vacate_leave(struct vacate_person *person)
{
    person->nr_members--;
    vacate_release(person);
}

/* Locked out with VACATE_LOCKED_MIN, until everything is closed: else it would be back at once. */
static void vacate_update_lock(struct vacate_person *person)
{
    bool is_locked =
        person->person != PERSON_ROOT &&
        (person->nr_waiting >= VACATE_LOCKED_MIN || (person->is_locked && person->nr_waiting > 0));

    if (is_locked == person->is_locked)
        return;
    person->is_locked = is_locked;
    if (person->vacate)
        person->vacate->changed(person->vacate->userdata);
}

/* --- Limits. --- */

size_t vacate_count(const struct vacate_person *person)
{
    return person->nr_waiting;
}

bool vacate_is_locked(const struct vacate_person *person)
{
    return person->is_locked;
}

size_t vacate_list_locked(const struct vacate *vacate, uid_t *persons, size_t max)
{
    size_t n = 0;

    for (const struct vacate_person *person = vacate->persons; person; person = person->next) {
        if (!person->is_locked)
            continue;
        if (n < max)
            persons[n] = person->person;
        n++;
    }
    return n;
}

/* A quarter of the room is root's. */
bool vacate_may_receive(const struct vacate_person *person)
{
    const struct vacate *vacate = person->vacate;
    size_t room = person->person == PERSON_ROOT ? vacate->room : vacate->room / 4 * 3;

    return !person->is_locked && vacate->nr_held + VACATE_RECEIVE_MAX <= room;
}

int vacate_check(const struct vacate_person *person, struct failure *failure)
{
    if (person->nr_waiting < VACATE_OF_PERSON_MAX)
        return 0;
    return failure_set(failure, -EBUSY, ERROR_BUSY,
                       "%zu files that you passed are not closed yet, because their file systems "
                       "do not answer. The limit for one user is %u. Nothing was done; try again "
                       "when they answer.",
                       person->nr_waiting, VACATE_OF_PERSON_MAX);
}

/* --- Closing. --- */

/* FIRST to LAST are open. The thread sanitizer knows of no other call than close(2). */
static void close_run(int first, int last)
{
#ifdef __SANITIZE_THREAD__
    for (int fd = first; fd <= last; fd++)
        (void)close(fd);
#else
    (void)close_range((unsigned int)first, (unsigned int)last, 0);
#endif
}

/* Runs of numbers at once: their slots are free before the first of them waits. */
static void vacate_run(struct job *job)
{
    struct vacate_batch *batch = job_container(job, struct vacate_batch, job);
    const int *fds = batch->fds;

    for (size_t i = 0, end; i < batch->n; i = end) {
        end = i + 1;
        while (end < batch->n && fds[end] == fds[end - 1] + 1)
            end++;
        close_run(fds[i], fds[end - 1]);
    }
}

static void vacate_finish(struct job *job)
{
    struct vacate_batch *batch = job_container(job, struct vacate_batch, job);
    struct vacate_person *person = batch->person;

    person->nr_waiting -= batch->n;
    if (person->vacate)
        person->vacate->nr_held -= batch->n;
    free(batch);
    vacate_update_lock(person);
    vacate_release(person);
}

struct vacate_batch *vacate_batch_new(struct vacate_person *person, size_t max)
{
    struct vacate_batch *batch = calloc(1, sizeof(*batch) + max * sizeof(batch->fds[0]));

    if (!batch)
        return NULL;
    batch->job = (struct job){.run = vacate_run, .done = vacate_finish};
    batch->person = person;
    return batch;
}

void vacate_batch_add(struct vacate_batch *batch, int fd)
{
    batch->fds[batch->n++] = fd;
    batch->person->vacate->nr_held++;
}

void vacate_close(struct vacate_batch *batch)
{
    struct vacate_person *person;

    if (!batch)
        return;
    if (batch->n == 0) {
        free(batch);
        return;
    }
    person = batch->person;
    person->nr_waiting += batch->n;
    vacate_update_lock(person);
    worker_send(person->worker, &batch->job);
}

/* --- Construction. --- */

/* Returns how many descriptors clients may have here: half of the table, which is made larger. */
static size_t make_room(void)
{
    struct rlimit limit = {.rlim_cur = 1024, .rlim_max = 1024};

    (void)getrlimit(RLIMIT_NOFILE, &limit); /* cannot fail */
    if (limit.rlim_cur < TABLE_WANTED) {
        limit.rlim_cur = limit.rlim_max < TABLE_WANTED ? limit.rlim_max : TABLE_WANTED;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* may always be raised up to the hard limit */
    }
    return limit.rlim_cur / 2;
}

int vacate_new(struct workers *workers, void (*changed)(void *userdata), void *userdata,
               struct vacate **ret_vacate)
{
    struct vacate *vacate = calloc(1, sizeof(*vacate));

    if (!vacate)
        return -ENOMEM;
    *vacate = (struct vacate){
        .workers = workers, .changed = changed, .userdata = userdata, .room = make_room()};
    vacate->locked_min = min_u64(VACATE_LOCKED_MIN, vacate->room / 4);
    *ret_vacate = vacate;
    return 0;
}

struct vacate *vacate_free(struct vacate *vacate)
{
    struct vacate_person *next;

    if (!vacate)
        return NULL;
    for (struct vacate_person *person = vacate->persons; person; person = next) {
        next = person->next;
        (void)worker_free(person->worker); /* ends when its jobs are done */
        person->vacate = NULL;
        vacate_release(person);
    }
    if (vacate->spare)
        (void)worker_free(vacate->spare->worker);
    free(vacate->spare);
    free(vacate);
    return NULL;
}
