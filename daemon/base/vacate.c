// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A user whose files are not closed holds up one worker and its own later descriptors, nothing
 * else. The worker goes when nothing of its user waits.
 *
 * Source: unix(7); fs/fuse/file.c of Linux 6.1 (flush, release).
 */

#include "daemon/base/vacate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/protocol.h"
#include "common/util.h"
#include "daemon/base/worker.h"

struct vacate_user {
    struct vacate *vacate; /* NULL: freed */
    struct vacate_user *next;
    uid_t person;
    struct worker *worker;
    size_t nr_waiting; /* descriptors; the main thread's */
};

struct vacate {
    struct workers *workers;
    struct vacate_user *users; /* of whom something waits */
};

struct vacate_job {
    struct job job;
    struct vacate_user *user;
    size_t n;
    int fds[];
};

/* --- Users. --- */

static struct vacate_user *vacate_find_user(const struct vacate *vacate, uid_t person)
{
    struct vacate_user *user = vacate->users;

    while (user && user->person != person)
        user = user->next;
    return user;
}

static struct vacate_user *vacate_add_user(struct vacate *vacate, uid_t person)
{
    struct vacate_user *user = calloc(1, sizeof(*user));

    if (!user)
        return NULL;
    *user = (struct vacate_user){.vacate = vacate, .next = vacate->users, .person = person};
    if (worker_new(vacate->workers, "close", &user->worker) < 0) {
        free(user);
        return NULL;
    }
    vacate->users = user;
    return user;
}

static void vacate_remove_user(struct vacate *vacate, struct vacate_user *user)
{
    struct vacate_user **link = &vacate->users;

    while (*link != user)
        link = &(*link)->next;
    *link = user->next;
    (void)worker_free(user->worker);
}

size_t vacate_count(const struct vacate *vacate, uid_t person)
{
    const struct vacate_user *user = vacate_find_user(vacate, person);

    return user ? user->nr_waiting : 0;
}

static size_t vacate_count_of_users(const struct vacate *vacate)
{
    size_t count = 0;

    for (const struct vacate_user *user = vacate->users; user; user = user->next)
        count += user->person != PERSON_ROOT ? user->nr_waiting : 0;
    return count;
}

static unsigned int limit_of(uid_t person)
{
    return person == PERSON_ROOT ? VACATE_OF_ROOT_MAX : VACATE_OF_USER_MAX;
}

bool vacate_is_full(const struct vacate *vacate, uid_t person)
{
    return vacate_count(vacate, person) >= 2 * limit_of(person) ||
           (person != PERSON_ROOT && vacate_count_of_users(vacate) >= 2 * VACATE_OF_USERS_MAX);
}

int vacate_check(const struct vacate *vacate, uid_t person, struct failure *failure)
{
    if (vacate_count(vacate, person) >= limit_of(person))
        return failure_set(failure, -EBUSY, ERROR_BUSY,
                           "%u files that you passed are not closed yet, because their file "
                           "systems do not answer. That is the limit for one user. Nothing was "
                           "done; try again when they answer.",
                           limit_of(person));
    if (person != PERSON_ROOT && vacate_count_of_users(vacate) >= VACATE_OF_USERS_MAX)
        return failure_set(failure, -EBUSY, ERROR_BUSY,
                           "%u files that users passed are not closed yet, because their file "
                           "systems do not answer. That is the limit for all users. Nothing was "
                           "done; try again later.",
                           VACATE_OF_USERS_MAX);
    return 0;
}

/* --- Closing. --- */

static void vacate_run(struct job *job)
{
    struct vacate_job *vacate = job_container(job, struct vacate_job, job);

    for (size_t i = 0; i < vacate->n; i++)
        fd_close(&vacate->fds[i]);
}

static void vacate_finish(struct job *job)
{
    struct vacate_job *vacate = job_container(job, struct vacate_job, job);
    struct vacate_user *user = vacate->user;

    user->nr_waiting -= vacate->n;
    free(vacate);
    if (user->nr_waiting > 0)
        return;
    if (user->vacate)
        vacate_remove_user(user->vacate, user);
    free(user);
}

/* Returns 0, or -ENOMEM: then the descriptors are still the caller's. */
static int vacate_send(struct vacate *vacate, uid_t person, const int *fds, size_t n)
{
    struct vacate_job *job = calloc(1, sizeof(*job) + n * sizeof(fds[0]));
    struct vacate_user *user;

    if (!job)
        return -ENOMEM;
    user = vacate_find_user(vacate, person);
    if (!user)
        user = vacate_add_user(vacate, person);
    if (!user) {
        free(job);
        return -ENOMEM;
    }
    job->job = (struct job){.run = vacate_run, .done = vacate_finish};
    job->user = user;
    job->n = n;
    memcpy(job->fds, fds, n * sizeof(fds[0]));
    user->nr_waiting += n;
    worker_send(user->worker, &job->job);
    return 0;
}

static bool is_pipe(int fd)
{
    return fcntl(fd, F_GETPIPE_SZ) > 0;
}

void vacate_close(struct vacate *vacate, uid_t person, const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int fd = fds[i];

        if (fd >= 0 && (is_pipe(fd) || vacate_send(vacate, person, &fd, 1) < 0))
            fd_close(&fd); /* without memory or a thread: waits rather than leaks */
    }
}

void vacate_close_connection(struct vacate *vacate, uid_t person, int fd)
{
    int unread_bytes = 0;

    (void)shutdown(fd, SHUT_RDWR); /* from here on nothing is added */
    if ((ioctl(fd, FIONREAD, &unread_bytes) == 0 && unread_bytes == 0) ||
        vacate_is_full(vacate, person))
        (void)close(fd);
    else
        vacate_close(vacate, person, &fd, 1);
}

/* --- Construction. --- */

int vacate_new(struct workers *workers, struct vacate **ret_vacate)
{
    struct vacate *vacate = calloc(1, sizeof(*vacate));

    if (!vacate)
        return -ENOMEM;
    vacate->workers = workers;
    *ret_vacate = vacate;
    return 0;
}

struct vacate *vacate_free(struct vacate *vacate)
{
    if (!vacate)
        return NULL;
    for (struct vacate_user *user = vacate->users; user; user = user->next) {
        (void)worker_free(user->worker); /* ends when its jobs are done */
        user->vacate = NULL;
    }
    free(vacate);
    return NULL;
}
