// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A queue, a mutex and a condition for each worker; one list of finished jobs and an eventfd for
 * all. No lock is held while a job runs, so the main thread never waits for one.
 *
 * A worker is freed by its own thread, when nothing more will come and its queue is empty: a stuck
 * thread keeps what it uses. Threads are detached, for joining one that is stuck would wait.
 */

#include "daemon/base/worker.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include <systemd/sd-event.h>

#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"

#define STACK_BYTES (128u * 1024u) /* json-c and libxenstore need little */

struct job_queue {
    struct job *head;
    struct job **tail;
};

struct workers {
    sd_event *event;
    sd_event_source *source;
    int fd; /* an eventfd: readable while `finished` may hold jobs */
    pthread_mutex_t mutex;
    struct job_queue finished; /* under the mutex */
    unsigned int nr_jobs;      /* sent, and not done: the main thread's */
    struct workers *next;      /* of workers_left */
};

/* Freed while a worker was stuck: kept with the jobs, whose `done` is never called. */
static struct workers *workers_left;

struct worker {
    struct workers *workers;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct job_queue queue; /* these three under the mutex */
    bool is_released;
    uint64_t busy_since_usec;
};

static uint64_t monotonic_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC;
}

static void queue_init(struct job_queue *queue)
{
    *queue = (struct job_queue){.tail = &queue->head};
}

static void queue_put(struct job_queue *queue, struct job *job)
{
    job->next = NULL;
    *queue->tail = job;
    queue->tail = &job->next;
}

static struct job *queue_take(struct job_queue *queue)
{
    struct job *job = queue->head;

    if (!job)
        return NULL;
    queue->head = job->next;
    if (!queue->head)
        queue->tail = &queue->head;
    return job;
}

/* --- The worker's thread. --- */

static void worker_finish_job(struct worker *worker, struct job *job)
{
    static const uint64_t one = 1;
    struct workers *workers = worker->workers;

    (void)pthread_mutex_lock(&workers->mutex);
    queue_put(&workers->finished, job);
    /* Inside, for as soon as the main thread has the last job, WORKERS may go. Cannot fail: the
     * counter never comes near its maximum. */
    (void)!write(workers->fd, &one, sizeof(one));
    (void)pthread_mutex_unlock(&workers->mutex);
}

/* Waits for a job; NULL: there will be none. */
static struct job *worker_next_job(struct worker *worker)
{
    struct job *job;

    (void)pthread_mutex_lock(&worker->mutex);
    worker->busy_since_usec = 0;
    while (!worker->queue.head && !worker->is_released)
        (void)pthread_cond_wait(&worker->changed, &worker->mutex);
    job = queue_take(&worker->queue);
    if (job)
        worker->busy_since_usec = monotonic_usec();
    (void)pthread_mutex_unlock(&worker->mutex);
    return job;
}

static void worker_destroy(struct worker *worker)
{
    (void)pthread_mutex_destroy(&worker->mutex);
    (void)pthread_cond_destroy(&worker->changed);
    free(worker);
}

static void *worker_thread(void *argument)
{
    struct worker *worker = argument;
    struct job *job;

    while ((job = worker_next_job(worker))) {
        job->run(job);
        worker_finish_job(worker, job);
    }
    worker_destroy(worker);
    return NULL;
}

/* --- The main thread. --- */

int worker_new(struct workers *workers, const char *name, struct worker **ret_worker)
{
    struct worker *worker = calloc(1, sizeof(*worker));
    pthread_t thread;
    int r;

    if (!worker)
        return -ENOMEM;
    worker->workers = workers;
    queue_init(&worker->queue);
    (void)pthread_mutex_init(&worker->mutex, NULL);
    (void)pthread_cond_init(&worker->changed, NULL);
    r = thread_start(&thread, name, STACK_BYTES, worker_thread, worker);
    if (r < 0) {
        worker_destroy(worker);
        return r;
    }
    (void)pthread_detach(thread); /* it frees itself */
    *ret_worker = worker;
    return 0;
}

struct worker *worker_free(struct worker *worker)
{
    if (!worker)
        return NULL;
    (void)pthread_mutex_lock(&worker->mutex);
    worker->is_released = true;
    (void)pthread_cond_signal(&worker->changed);
    (void)pthread_mutex_unlock(&worker->mutex); /* from here on its thread may free it */
    return NULL;
}

void worker_send(struct worker *worker, struct job *job)
{
    job->worker = worker;
    worker->workers->nr_jobs++;
    (void)pthread_mutex_lock(&worker->mutex);
    assert(!worker->is_released);
    queue_put(&worker->queue, job);
    (void)pthread_cond_signal(&worker->changed);
    (void)pthread_mutex_unlock(&worker->mutex);
}

struct close_job {
    struct job job;
    int fd;
};

static void close_job_run(struct job *job)
{
    fd_close(&job_container(job, struct close_job, job)->fd);
}

static void close_job_done(struct job *job)
{
    free(job_container(job, struct close_job, job));
}

void worker_close(struct worker *worker, int *fd)
{
    struct close_job *job;

    if (*fd < 0)
        return;
    job = malloc(sizeof(*job));
    if (!job) {
        *fd = -1; /* stays open: to close it here may wait */
        return;
    }
    *job = (struct close_job){
        .job = {.run = close_job_run, .done = close_job_done},
        .fd = fd_take(fd),
    };
    worker_send(worker, &job->job);
}

uint64_t worker_busy_since_usec(const struct worker *worker)
{
    struct worker *locked = (struct worker *)worker;
    uint64_t since_usec;

    (void)pthread_mutex_lock(&locked->mutex);
    since_usec = locked->busy_since_usec;
    (void)pthread_mutex_unlock(&locked->mutex);
    return since_usec;
}

static struct job *workers_take_finished(struct workers *workers)
{
    struct job *job;

    (void)pthread_mutex_lock(&workers->mutex);
    job = queue_take(&workers->finished);
    (void)pthread_mutex_unlock(&workers->mutex);
    return job;
}

static void workers_handle_finished(struct workers *workers)
{
    struct job *job;
    uint64_t count;

    /* Before the list is read: a job that finishes afterwards makes it readable again. */
    (void)!read(workers->fd, &count, sizeof(count));
    while ((job = workers_take_finished(workers))) {
        workers->nr_jobs--;
        job->done(job);
    }
}

static int handle_finished(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    (void)source, (void)fd, (void)revents;
    workers_handle_finished(userdata);
    return 0;
}

static int workers_set_up(struct workers *workers, sd_event *event)
{
    workers->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (workers->fd < 0)
        return -errno;
    workers->event = sd_event_ref(event);
    return sd_event_add_io(event, &workers->source, workers->fd, EPOLLIN, handle_finished, workers);
}

int workers_new(sd_event *event, struct workers **ret_workers)
{
    struct workers *workers = calloc(1, sizeof(*workers));
    int r;

    if (!workers)
        return -ENOMEM;
    queue_init(&workers->finished);
    (void)pthread_mutex_init(&workers->mutex, NULL);
    r = workers_set_up(workers, event);
    if (r < 0) {
        workers_free(workers);
        return r;
    }
    *ret_workers = workers;
    return 0;
}

struct workers *workers_free(struct workers *workers)
{
    if (!workers)
        return NULL;
    if (workers->fd >= 0)
        workers_handle_finished(workers);
    workers->source = sd_event_source_disable_unref(workers->source);
    workers->event = sd_event_unref(workers->event);
    if (workers->nr_jobs > 0) { /* a stuck worker may come back to it */
        workers->next = workers_left;
        workers_left = workers;
        return NULL;
    }
    fd_close(&workers->fd);
    free(workers);
    return NULL;
}

bool workers_are_idle(const struct workers *workers)
{
    return workers->nr_jobs == 0;
}

void workers_run_all(struct workers *workers)
{
    struct pollfd poll_fd = {.fd = workers->fd, .events = POLLIN};

    while (workers->nr_jobs > 0) {
        (void)poll(&poll_fd, 1, -1); /* EINTR: looks again */
        workers_handle_finished(workers);
    }
}
