// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `xensim run`: makes the Xen, starts the producer and the command, waits for the command, stops
 * the producer. Three processes, so that the CPU time of the consumer, the producer and this one
 * can be told apart. The directory goes away at the end, also after SIGINT and SIGTERM, which are
 * forwarded to the command.
 */

#include "commands.h"
#include "domains.h"
#include "run-options.h"
#include "tbuf.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static int set_up(struct sim *sim, const struct run_options *o)
{
    struct sim_shared *s = sim->shared;

    for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++)
        s->cpus[cpu].online = !parse_cpus_has(&o->offline, cpu);
    s->max_pages = o->max_pages;
    s->paused = o->paused;
    s->nr_kinds = o->nr_kinds;
    memcpy(s->kinds, o->kinds, sizeof(s->kinds));
    domains_init(sim);
    if (o->preset_pages) {
        int r = tbuf_boot(sim, o->preset_pages, o->preset_mask);

        if (r < 0)
            return r;
    }
    s->fault_hits = o->fault_hits;
    s->faults = o->faults;
    return 0;
}

/* The library stands beside the program, also in a build tree. */
static int set_environment(const char *directory)
{
    char path[PATH_MAX], preload[2 * PATH_MAX];
    const char *old = getenv("LD_PRELOAD");
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *slash;

    if (n < 0)
        return -errno;
    path[n] = '\0';
    slash = strrchr(path, '/');
    if (!slash)
        return -ENOENT;
    *slash = '\0';
    (void)snprintf(preload, sizeof(preload), "%s/libxensim.so%s%s", path, old ? ":" : "",
                   old ? old : "");
    if (setenv("LD_PRELOAD", preload, 1) < 0 || setenv(SIM_ENV, directory, 1) < 0)
        return -errno;
    return 0;
}

static volatile sig_atomic_t command_pid;

static void forward(int signal_number)
{
    if (command_pid > 0)
        (void)kill(command_pid, signal_number);
}

static pid_t start_command(const char *directory, const struct run_options *o)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    if (set_environment(directory) == 0)
        (void)execvp(o->command[0], o->command); /* returns only with an error */
    (void)fprintf(stderr, "xensim: cannot run %s: %s\n", o->command[0], strerror(errno));
    _exit(127);
}

static int wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void remove_directory(const char *directory)
{
    sim_remove_files(directory);
    if (rmdir(directory) < 0)
        (void)fprintf(stderr, "xensim: %s is left over: %s\n", directory, strerror(errno));
}

/* A producer that cannot start (no such trace file) must not leave the command waiting for it. */
static bool producer_has_started(const struct sim *sim, pid_t producer)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    siginfo_t info = {0};

    while (!__atomic_load_n(&sim->shared->producer_pid, __ATOMIC_ACQUIRE)) {
        if (waitid(P_PID, (id_t)producer, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid)
            return false;
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

static int run(struct sim *sim, const char *directory, const struct run_options *o)
{
    struct sigaction action = {.sa_handler = forward};
    int status = 1, producer_status;
    pid_t producer = fork();

    if (producer < 0)
        return 1;
    if (producer == 0)
        _exit(producer_run(sim, &o->producer));
    (void)sigaction(SIGINT, &action, NULL); /* cannot fail with these arguments */
    (void)sigaction(SIGTERM, &action, NULL);
    if (producer_has_started(sim, producer)) {
        pid_t pid = start_command(directory, o);

        command_pid = pid;
        status = pid < 0 ? 1 : wait_for(pid);
    }
    __atomic_store_n(&sim->shared->stop, 1, __ATOMIC_RELEASE);
    sim_wake(sim);
    producer_status = wait_for(producer);
    if (producer_status)
        (void)fprintf(stderr, "xensim: the producer failed with status %d\n", producer_status);
    return status ? status : producer_status;
}

int command_run(int argc, char **argv)
{
    struct run_options o;
    char directory[] = "/tmp/xensim.XXXXXX";
    struct sim sim;
    int r;

    if (run_options_parse(argc, argv, &o) < 0)
        return 2;
    if (!mkdtemp(directory) || chmod(directory, 0755) < 0) {
        (void)fprintf(stderr, "xensim: cannot make a directory: %s\n", strerror(errno));
        return 1;
    }
    r = sim_create(directory, o.cpus, &sim);
    if (r == 0) {
        sim_set_tsc_offset(&sim, o.tsc_offset_sec);
        r = set_up(&sim, &o);
        if (r == 0)
            r = run(&sim, directory, &o);
        sim_done(&sim);
    }
    remove_directory(directory);
    if (r < 0)
        (void)fprintf(stderr, "xensim: cannot set up: %s\n", strerror(-r));
    return r < 0 ? 1 : r;
}
