/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Workers run jobs that may block on a disk, a peer, systemd or xenstored, and must not run on the
 * main thread. Each output has its own worker, as has each part of the host that can hang. A worker
 * is a thread that runs its jobs in the order in which they were sent; a job that never returns
 * blocks only its worker.
 *
 * A job is a struct of its owner's that contains a struct job and everything that `run` needs: the
 * two threads share nothing else. It belongs to the worker from worker_send() until `done` is
 * called, in which the owner usually frees it.
 *
 * All functions are called on the main thread and return at once, but for workers_run_all() and
 * workers_free().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job;
struct sd_event;
struct worker;
struct workers;

struct job {
    void (*run)(struct job *job);  /* on the worker's thread; may wait */
    void (*done)(struct job *job); /* on the main thread, from the event loop */

    /* The worker's own. */
    struct job *next;
    struct worker *worker;
};

/* The job whose member MEMBER is JOB, as a TYPE. */
#define job_container(job, type, member) ((type *)((char *)(job)-offsetof(type, member)))

/*
 * State shared by all workers of a process: the path back to the main thread. EVENT is referenced.
 * Returns 0 or a negative errno.
 */
int workers_new(struct sd_event *event, struct workers **ret_workers);

/*
 * When the event loop has ended: calls `done` of the jobs that have been run. Jobs that have not,
 * and workers that are stuck, are abandoned: the process is about to end. Every worker must have
 * been freed.
 */
struct workers *workers_free(struct workers *workers);

/* Whether no worker has a job left: every `done` was called. */
bool workers_are_idle(const struct workers *workers);

/* Starts a worker. NAME is the thread's name in ps(1), cut to 15 bytes. -ENOMEM, -EAGAIN. */
int worker_new(struct workers *workers, const char *name, struct worker **ret_worker);

/*
 * No more jobs will be sent. The thread ends by itself when it has run those it has; their `done`
 * is called as usual. Takes NULL; returns NULL.
 */
struct worker *worker_free(struct worker *worker);

/* JOB's `run` and `done` are set. Always succeeds. */
void worker_send(struct worker *worker, struct job *job);

/* Has *FD, if it is open, closed on WORKER, for that may wait, too; *FD becomes -1. */
void worker_close(struct worker *worker, int *fd);

/*
 * When the job that WORKER is running was begun (CLOCK_MONOTONIC, in microseconds); 0: it is not
 * running any, as far as the main thread knows.
 */
uint64_t worker_busy_since_usec(const struct worker *worker);

/* Runs the event loop's part until the workers are idle, without a loop; for tests. */
void workers_run_all(struct workers *workers);
