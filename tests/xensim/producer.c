// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The producer's loop.
 *
 * CPUs make records as time passes, and time in which this process was not scheduled is time in
 * which the simulated CPUs did not run: it is skipped, never caught up with in a burst that no
 * machine would make. So a tick is worth at most two ticks' records.
 */

#include "producer.h"
#include "tbuf.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#define NSEC 1000000000u

static uint64_t now_nsec(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NSEC + (uint64_t)t.tv_nsec;
}

/* A mask that selects nothing is as good as tracing being off: time stands still. */
static bool is_active(const struct sim *sim)
{
    const struct sim_shared *s = sim->shared;

    return tbuf_is_enabled(sim) && s->tb_event_mask &&
           !__atomic_load_n(&s->paused, __ATOMIC_ACQUIRE);
}

/* Sleeps until somebody calls sim_wake(), unless it happened since WAKE was read. */
static void wait_for_wake(struct sim *sim, uint32_t wake)
{
    struct sim_shared *s = sim->shared;

    __atomic_store_n(&s->producer_idle, 1, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, &s->wake, FUTEX_WAIT, wake, NULL, NULL, 0);
    __atomic_store_n(&s->producer_idle, 0, __ATOMIC_RELEASE);
}

static void sleep_rest_of_tick(uint64_t start, uint64_t tick_nsec)
{
    uint64_t used = now_nsec() - start;

    if (used < tick_nsec) {
        const struct timespec t = {.tv_nsec = (long)(tick_nsec - used)};

        (void)nanosleep(&t, NULL); /* a signal makes the tick shorter: harmless */
    }
}

/* Between two bursts nothing is produced. Sleeps until the next one, and says whether it had to. */
static bool wait_for_burst(const struct producer_options *o, uint64_t start)
{
    uint64_t phase = (now_nsec() - start) % NSEC;
    const struct timespec t = {.tv_nsec = (long)(NSEC - phase)};

    if (o->burst_usec == 0 || phase < o->burst_usec * 1000)
        return false;
    (void)nanosleep(&t, NULL); /* a signal only makes it look again */
    return true;
}

static void produce(struct sim *sim, const struct producer_options *o, void *state,
                    struct producer_summary *summary)
{
    struct sim_shared *s = sim->shared;
    uint64_t tick_nsec = o->tick_usec * 1000;
    uint64_t start = now_nsec(), last = 0;
    bool finished = false;

    while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
        uint32_t wake = __atomic_load_n(&s->wake, __ATOMIC_ACQUIRE);
        uint64_t now, passed;

        if (finished || !is_active(sim)) {
            if (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
                wait_for_wake(sim, wake);
            last = 0;
            continue;
        }
        if (wait_for_burst(o, start)) {
            last = 0;
            continue;
        }
        now = now_nsec();
        passed = last ? now - last : 0;
        last = now;
        summary->active_sec += (double)passed / NSEC;
        if (passed > 2 * tick_nsec) {
            summary->skipped_sec += (double)(passed - 2 * tick_nsec) / NSEC;
            passed = 2 * tick_nsec;
        }
        summary->generated_bytes +=
            o->workload->produce(sim, &o->options, state, passed, &finished);
        if (o->duration_sec > 0 && summary->active_sec >= o->duration_sec)
            finished = true;
        __atomic_store_n(&s->producer_finished, finished, __ATOMIC_RELEASE);
        if (!o->options.rate_max)
            sleep_rest_of_tick(now, tick_nsec);
    }
}

static void wait_for_stop(struct sim *sim)
{
    struct sim_shared *s = sim->shared;

    while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
        uint32_t wake = __atomic_load_n(&s->wake, __ATOMIC_ACQUIRE);

        if (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
            wait_for_wake(sim, wake);
    }
}

int producer_run(struct sim *sim, const struct producer_options *o)
{
    struct producer_summary summary = {.workload = o->workload ? o->workload->name : "none"};
    struct rusage usage;
    void *state = NULL;
    int r = 0;

    /* It ends when it is told to, after the command: a Ctrl-C is for the command. */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* the default adds 50 us to each tick */
    if (o->workload) {
        if (o->workload->start(sim, &o->options, &state) < 0)
            return 1;
        summary.rate_asked = o->options.rate_max ? 0 : (double)o->options.rate_bytes;
        sim->shared->producer_pid = (uint32_t)getpid();
        produce(sim, o, state, &summary);
        if (o->workload->finish)
            r = o->workload->finish(&o->options, state);
        o->workload->stop(state);
    } else {
        sim->shared->producer_pid = (uint32_t)getpid();
        wait_for_stop(sim);
    }
    (void)getrusage(RUSAGE_SELF, &usage); /* cannot fail with these arguments */
    summary.cpu_sec = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    if (report_write(sim, &summary, o->report_file, o->quiet) < 0)
        r = -EIO;
    return r < 0 ? 1 : 0;
}
