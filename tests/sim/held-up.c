// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measures for how long this machine was away: a virtual machine's host takes its processors
 * without asking. A thread on each processor, of the highest real-time priority, sleeps for 2 ms
 * again and again. No other process keeps it from waking up in time, only the host, or a kernel
 * that is not preempted within a long system call. Ends with SIGTERM or SIGINT, and prints the
 * longest such time in milliseconds, and how often one exceeded 5 ms.
 *
 * tests/all uses it to tell a failure from a measurement that the machine has spoilt.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NSEC 2000000
#define LONG_NSEC   5000000

struct watcher {
    pthread_t thread;
    int64_t longest_nsec; /* atomic */
    unsigned int times;   /* atomic */
};

static int64_t now_nsec(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void *watch(void *argument)
{
    struct watcher *watcher = argument;
    int64_t due_nsec = now_nsec();

    for (;;) {
        struct timespec due;
        int64_t late_nsec;

        due_nsec += PERIOD_NSEC;
        due = (struct timespec){due_nsec / 1000000000, due_nsec % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
            continue;
        late_nsec = now_nsec() - due_nsec;
        if (late_nsec > __atomic_load_n(&watcher->longest_nsec, __ATOMIC_RELAXED))
            __atomic_store_n(&watcher->longest_nsec, late_nsec, __ATOMIC_RELAXED);
        if (late_nsec > LONG_NSEC)
            __atomic_add_fetch(&watcher->times, 1, __ATOMIC_RELAXED);
        if (late_nsec > PERIOD_NSEC)
            due_nsec = now_nsec();
    }
    return NULL;
}

static int watcher_start(struct watcher *watcher, size_t cpu)
{
    const struct sched_param priority = {.sched_priority = sched_get_priority_max(SCHED_FIFO)};
    pthread_attr_t attributes;
    cpu_set_t cpus;
    int r;

    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &priority);
    pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus);
    r = pthread_create(&watcher->thread, &attributes, watch, watcher);
    pthread_attr_destroy(&attributes);
    return -r;
}

int main(void)
{
    size_t nr_cpus = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    struct watcher *watchers = calloc(nr_cpus, sizeof(*watchers));
    int64_t longest_nsec = 0;
    unsigned int times = 0;
    sigset_t ending;
    int ended, r;

    if (!watchers)
        return 1;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ending, NULL);
    for (size_t cpu = 0; cpu < nr_cpus; cpu++) {
        r = watcher_start(&watchers[cpu], cpu);
        if (r < 0) {
            fprintf(stderr, "held-up: a real-time thread on CPU %zu: %s\n", cpu, strerror(-r));
            return 1;
        }
    }
    sigwait(&ending, &ended);
    for (size_t cpu = 0; cpu < nr_cpus; cpu++) {
        int64_t nsec = __atomic_load_n(&watchers[cpu].longest_nsec, __ATOMIC_RELAXED);

        longest_nsec = nsec > longest_nsec ? nsec : longest_nsec;
        times += __atomic_load_n(&watchers[cpu].times, __ATOMIC_RELAXED);
    }
    printf("%lld %u\n", (long long)(longest_nsec / 1000000), times);
    return 0; /* the threads end with the process */
}
