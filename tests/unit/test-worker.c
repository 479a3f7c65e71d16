// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the daemon relies on: the jobs of a worker keep their order, `done` comes on the main thread
 * and once, and a worker that hangs holds up nobody else.
 */

#include "daemon/base/worker.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define JOBS 1000u

static pthread_t main_thread;
static unsigned int nr_run; /* atomic: counted on the worker */
static unsigned int nr_done;

struct numbered_job {
    struct job job;
    unsigned int number;
    bool ran_in_order;
    int release_fd; /* -1, or a pipe to wait for */
};

static void run_numbered(struct job *job)
{
    struct numbered_job *numbered = job_container(job, struct numbered_job, job);
    char byte;

    if (numbered->release_fd >= 0)
        (void)!read(numbered->release_fd, &byte, 1);
    numbered->ran_in_order = numbered->number == __atomic_fetch_add(&nr_run, 1, __ATOMIC_RELAXED) &&
                             !pthread_equal(pthread_self(), main_thread);
}

static void finish_numbered(struct job *job)
{
    struct numbered_job *numbered = job_container(job, struct numbered_job, job);

    CHECK(pthread_equal(pthread_self(), main_thread));
    CHECK(numbered->ran_in_order);
    CHECK_UINT(numbered->number, nr_done);
    nr_done++;
}

static void reset(struct numbered_job *jobs, unsigned int count)
{
    __atomic_store_n(&nr_run, 0, __ATOMIC_RELAXED);
    nr_done = 0;
    for (unsigned int i = 0; i < count; i++)
        jobs[i] = (struct numbered_job){
            .job = {.run = run_numbered, .done = finish_numbered},
            .number = i,
            .release_fd = -1,
        };
}

static void test_order(struct workers *workers)
{
    static struct numbered_job jobs[JOBS];
    struct worker *worker;

    test_case("the jobs of a worker run in order, and are done in order");
    reset(jobs, JOBS);
    CHECK_INT(worker_new(workers, "order", &worker), 0);
    for (unsigned int i = 0; i < JOBS; i++)
        worker_send(worker, &jobs[i].job);
    CHECK(!workers_are_idle(workers));
    worker_free(worker); /* runs what it has */
    workers_run_all(workers);
    CHECK_UINT(nr_done, JOBS);
    CHECK(workers_are_idle(workers));
}

static void test_event_loop(sd_event *event, struct workers *workers)
{
    struct numbered_job job;
    struct worker *worker;

    test_case("the event loop calls done");
    reset(&job, 1);
    CHECK_INT(worker_new(workers, "a name that is longer than a thread's may be", &worker), 0);
    worker_send(worker, &job.job);
    while (nr_done == 0)
        CHECK(sd_event_run(event, UINT64_MAX) >= 0);
    worker_free(worker);
}

/* As with a file system that is frozen. */
static void test_stuck(struct workers *workers)
{
    struct numbered_job stuck, other;
    struct worker *stuck_worker, *other_worker;
    int fds[2];

    test_case("a worker that hangs holds up nobody else, and is seen to hang");
    CHECK_INT(pipe(fds), 0);
    CHECK_INT(worker_new(workers, "stuck", &stuck_worker), 0);
    CHECK_INT(worker_new(workers, "other", &other_worker), 0);
    CHECK_UINT(worker_busy_since_usec(stuck_worker), 0);
    reset(&stuck, 1);
    stuck.release_fd = fds[0];
    worker_send(stuck_worker, &stuck.job);
    while (worker_busy_since_usec(stuck_worker) == 0)
        (void)usleep(1000);

    reset(&other, 1);
    worker_send(other_worker, &other.job);
    worker_free(other_worker);
    while (__atomic_load_n(&nr_run, __ATOMIC_RELAXED) == 0)
        (void)usleep(1000);
    CHECK(worker_busy_since_usec(stuck_worker) > 0);

    stuck.number = 1;
    CHECK_INT(write(fds[1], "x", 1), 1);
    workers_run_all(workers);
    CHECK_UINT(nr_done, 2);
    worker_free(stuck_worker);
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

static void run_nothing(struct job *job)
{
    (void)job;
}

static void count_and_send_again(struct job *job)
{
    if (++nr_done < 10)
        worker_send(job->worker, job);
}

static void test_again(struct workers *workers)
{
    struct job job = {.run = run_nothing, .done = count_and_send_again};
    struct worker *worker;

    test_case("done may send the job again");
    nr_done = 0;
    CHECK_INT(worker_new(workers, "again", &worker), 0);
    worker_send(worker, &job);
    workers_run_all(workers);
    CHECK_UINT(nr_done, 10);
    worker_free(worker);
}

/* The daemon ends while a worker is stuck, and the worker comes back before the process is gone:
 * LeakSanitizer, in tests/all, looks whether its job is still known to somebody. */
static void test_left(sd_event *event)
{
    struct numbered_job *late = calloc(1, sizeof(*late));
    struct workers *workers;
    struct worker *worker;
    int fds[2];

    test_case("a worker that comes back when all others are freed is no leak");
    if (!CHECK(late) || !CHECK_INT(pipe(fds), 0) || !CHECK_INT(workers_new(event, &workers), 0) ||
        !CHECK_INT(worker_new(workers, "late", &worker), 0))
        return;
    reset(late, 1);
    late->release_fd = fds[0];
    worker_send(worker, &late->job);
    while (worker_busy_since_usec(worker) == 0)
        (void)usleep(1000);
    worker_free(worker);
    CHECK(!workers_free(workers));
    CHECK_INT(write(fds[1], "x", 1), 1);
    while (__atomic_load_n(&nr_run, __ATOMIC_RELAXED) == 0)
        (void)usleep(1000);
    (void)usleep(20000); /* the thread ends */
    CHECK_UINT(nr_done, 0);
    fd_close(&fds[1]); /* the other end is the thread's, of whose end nobody knows */
}

int main(void)
{
    struct workers *workers;
    sd_event *event = NULL;

    main_thread = pthread_self();
    if (!CHECK(sd_event_new(&event) >= 0) || !CHECK_INT(workers_new(event, &workers), 0))
        return test_end();
    test_order(workers);
    test_event_loop(event, workers);
    test_stuck(workers);
    test_again(workers);
    workers_free(workers);
    test_left(event);
    sd_event_unref(event);
    return test_end();
}
