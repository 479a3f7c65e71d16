// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dup3(2) installs /dev/null under the number first and closes the old file afterwards, on the
 * thread that calls it. Each call has a worker of its own, since one may never come back.
 */

#include "daemon/base/vacate.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/base/worker.h"

struct vacate_job {
    struct job job;
    int fds[VACATE_MAX];
    size_t n;
    void (*done)(void *userdata);
    void *userdata;
};

static void vacate_run(struct job *job)
{
    const struct vacate_job *vacate = job_container(job, struct vacate_job, job);
    _cleanup_fd_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (size_t i = 0; i < vacate->n && null_fd >= 0; i++)
        (void)dup3(null_fd, vacate->fds[i], O_CLOEXEC); /* both are open */
}

static void vacate_finish(struct job *job)
{
    struct vacate_job *vacate = job_container(job, struct vacate_job, job);

    vacate->done(vacate->userdata);
    free(vacate);
}

static int vacate_start(struct workers *workers, void (*run)(struct job *job), const int *fds,
                        size_t n, void (*done)(void *userdata), void *userdata)
{
    struct vacate_job *vacate;
    struct worker *worker;
    int r;

    assert(n <= VACATE_MAX);
    vacate = calloc(1, sizeof(*vacate));
    if (!vacate)
        return -ENOMEM;
    r = worker_new(workers, "close", &worker);
    if (r < 0) {
        free(vacate);
        return r;
    }
    vacate->job = (struct job){.run = run, .done = vacate_finish};
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            vacate->fds[vacate->n++] = fds[i];
    vacate->done = done;
    vacate->userdata = userdata;
    worker_send(worker, &vacate->job);
    (void)worker_free(worker); /* ends when the job is done */
    return 0;
}

int vacate_descriptors(struct workers *workers, const int *fds, size_t n,
                       void (*done)(void *userdata), void *userdata)
{
    return vacate_start(workers, vacate_run, fds, n, done, userdata);
}

static void close_run(struct job *job)
{
    struct vacate_job *vacate = job_container(job, struct vacate_job, job);

    for (size_t i = 0; i < vacate->n; i++)
        fd_close(&vacate->fds[i]);
}

static void ignore_end(void *userdata)
{
    (void)userdata;
}

void vacate_close(struct workers *workers, const int *fds, size_t n)
{
    if (vacate_start(workers, close_run, fds, n, ignore_end, NULL) >= 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]); /* waits rather than leaks */
}
