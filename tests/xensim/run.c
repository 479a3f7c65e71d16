/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `xensim run`: makes the Xen, starts the producer and the command, waits for the command, stops
 * the producer. Three processes, so that the CPU time of the consumer, the producer and this one
 * can be told apart. The directory goes away at the end, also after SIGINT and SIGTERM, which are
 * forwarded to the command.
 */

#include "commands.h"
#include "numbered.h"
#include "parse.h"
#include "producer.h"
#include "tbuf.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

struct run_options {
    struct producer_options producer;
    uint32_t cpus;
    uint32_t max_pages;
    uint32_t preset_pages;
    uint32_t preset_mask;
    uint32_t faults;
    uint32_t fault_hits;
    uint32_t nr_kinds;
    uint32_t kinds[SIM_MAX_KINDS];
    struct parse_cpus offline;
    bool paused;
    char *const *command;
};

static const char run_usage[] =
    "usage: xensim run [OPTION]... -- COMMAND [ARGUMENT]...\n"
    "  --cpus N             possible CPUs, 1-4095 (8); replay: as the file has, if more\n"
    "  --offline LIST       CPUs that are not online when the buffers are allocated\n"
    "  --pages N            memory for N pages per CPU, more is ENOMEM (Xen's own limit only)\n"
    "  --preset-pages N     as booted with tbuf_size=N: buffers are there, tracing is on\n"
    "  --preset-mask M      as booted with tevt_mask=M\n"
    "  --workload W         numbered (default), sched, replay, none\n"
    "  --rate BYTES         a second over all CPUs: 512K, 50M, 1G, max, 0 (10M; sched, replay: own)\n"
    "  --events LIST        numbered: up to 32 event numbers in place of the 12 built-in ones\n"
    "  --replay FILE        a trace, also .zst; implies --workload replay\n"
    "  --speed X            replay: times as fast (1)\n"
    "  --loops N            replay: N times, then nothing (for ever)\n"
    "  --tsc exact|moved|now, --tsc-exact  replay: the file's TSCs, moved to now (default), the clock\n"
    "  --tick USEC          the producer's step (200)\n"
    "  --duration S         produce for S seconds of tracing only\n"
    "  --paused             start paused; see `xensim resume`\n"
    "  --fault F            no-xen, not-root, not-dom0, version-mismatch, no-tbuf, flask,\n"
    "                       no-memory[=TIMES], virq-taken, virq-busy, virq-drop, no-evtchn,\n"
    "                       map-denied; may be repeated\n"
    "  --report FILE        the producer's counts as JSON\n"
    "  --quiet              no report on stderr\n";

enum {
    OPT_CPUS = 256,
    OPT_OFFLINE,
    OPT_PAGES,
    OPT_PRESET_PAGES,
    OPT_PRESET_MASK,
    OPT_WORKLOAD,
    OPT_RATE,
    OPT_EVENTS,
    OPT_REPLAY,
    OPT_SPEED,
    OPT_LOOPS,
    OPT_TSC,
    OPT_TSC_EXACT,
    OPT_TICK,
    OPT_DURATION,
    OPT_PAUSED,
    OPT_FAULT,
    OPT_REPORT,
    OPT_QUIET,
};

static const struct option run_long_options[] = {
    {"cpus", required_argument, NULL, OPT_CPUS},
    {"offline", required_argument, NULL, OPT_OFFLINE},
    {"pages", required_argument, NULL, OPT_PAGES},
    {"preset-pages", required_argument, NULL, OPT_PRESET_PAGES},
    {"preset-mask", required_argument, NULL, OPT_PRESET_MASK},
    {"workload", required_argument, NULL, OPT_WORKLOAD},
    {"rate", required_argument, NULL, OPT_RATE},
    {"events", required_argument, NULL, OPT_EVENTS},
    {"replay", required_argument, NULL, OPT_REPLAY},
    {"speed", required_argument, NULL, OPT_SPEED},
    {"loops", required_argument, NULL, OPT_LOOPS},
    {"tsc", required_argument, NULL, OPT_TSC},
    {"tsc-exact", no_argument, NULL, OPT_TSC_EXACT},
    {"tick", required_argument, NULL, OPT_TICK},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"paused", no_argument, NULL, OPT_PAUSED},
    {"fault", required_argument, NULL, OPT_FAULT},
    {"report", required_argument, NULL, OPT_REPORT},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {NULL, 0, NULL, 0},
};

static int parse_u32(const char *text, uint64_t most, uint32_t *ret)
{
    uint64_t value;
    int r = parse_u64(text, most, &value);

    if (r == 0)
        *ret = (uint32_t)value;
    return r;
}

static int parse_fault(const char *text, struct run_options *o)
{
    _cleanup_free_ char *name = strdup(text);
    char *times = name ? strchr(name, '=') : NULL;
    uint32_t fault;

    if (!name)
        return -ENOMEM;
    if (times) {
        *times++ = '\0';
        if (parse_u32(times, UINT32_MAX - 1, &o->fault_hits) < 0)
            return -EINVAL;
    }
    fault = sim_fault_parse(name);
    o->faults |= fault;
    return fault ? 0 : -EINVAL;
}

static int parse_tsc(const char *text, enum workload_tsc *ret)
{
    if (strcmp(text, "exact") == 0)
        *ret = WORKLOAD_TSC_EXACT;
    else if (strcmp(text, "moved") == 0)
        *ret = WORKLOAD_TSC_MOVED;
    else if (strcmp(text, "now") == 0)
        *ret = WORKLOAD_TSC_NOW;
    else
        return -EINVAL;
    return 0;
}

static int parse_workload(const char *text, struct producer_options *p)
{
    p->workload = workload_find(text);
    return p->workload || strcmp(text, "none") == 0 ? 0 : -EINVAL;
}

static int parse_rate(const char *text, struct workload_options *w)
{
    w->rate_max = strcmp(text, "max") == 0;
    return w->rate_max ? 0 : parse_bytes(text, &w->rate_bytes);
}

/* Options of the producer; 1 if OPTION is none of them. */
static int parse_producer_option(int option, struct producer_options *p)
{
    switch (option) {
    case OPT_WORKLOAD:
        return parse_workload(optarg, p);
    case OPT_RATE:
        return parse_rate(optarg, &p->options);
    case OPT_REPLAY:
        p->workload = &workload_replay;
        p->options.replay_file = optarg;
        return 0;
    case OPT_SPEED:
        return parse_seconds(optarg, &p->options.replay_speed);
    case OPT_LOOPS:
        return parse_u64(optarg, UINT64_MAX, &p->options.replay_loops);
    case OPT_TSC:
        return parse_tsc(optarg, &p->options.tsc);
    case OPT_TSC_EXACT:
        return parse_tsc("exact", &p->options.tsc);
    case OPT_TICK:
        return parse_u64(optarg, 100000, &p->tick_usec);
    case OPT_DURATION:
        return parse_seconds(optarg, &p->duration_sec);
    case OPT_REPORT:
        p->report_file = optarg;
        return 0;
    case OPT_QUIET:
        p->quiet = true;
        return 0;
    default:
        return 1;
    }
}

static int parse_option(int option, struct run_options *o)
{
    switch (option) {
    case OPT_CPUS:
        return parse_u32(optarg, SIM_MAX_CPUS, &o->cpus);
    case OPT_OFFLINE:
        return parse_cpus(optarg, &o->offline);
    case OPT_PAGES:
        return parse_u32(optarg, UINT16_MAX, &o->max_pages);
    case OPT_PRESET_PAGES:
        return parse_u32(optarg, UINT16_MAX, &o->preset_pages);
    case OPT_PRESET_MASK:
        return parse_u32(optarg, UINT32_MAX, &o->preset_mask);
    case OPT_EVENTS:
        return parse_u32_list(optarg, o->kinds, SIM_MAX_KINDS, &o->nr_kinds);
    case OPT_PAUSED:
        o->paused = true;
        return 0;
    case OPT_FAULT:
        return parse_fault(optarg, o);
    default:
        return parse_producer_option(option, &o->producer);
    }
}

static int parse_arguments(int argc, char **argv, struct run_options *o)
{
    int option;
    bool has_rate = false;

    while ((option = getopt_long(argc, argv, "+", run_long_options, NULL)) != -1) {
        if (option == '?' || parse_option(option, o) != 0) {
            if (option != '?')
                (void)fprintf(stderr, "xensim: '%s' is not a value for %s\n",
                              optarg ? optarg : "", argv[optind - 2]);
            return -EINVAL;
        }
        has_rate |= option == OPT_RATE;
    }
    if (optind >= argc || o->cpus == 0 || o->producer.tick_usec == 0)
        return -EINVAL;
    if (!has_rate && o->producer.workload == &workload_numbered)
        o->producer.options.rate_bytes = 10u << 20;
    else if (has_rate && !o->producer.options.rate_max && o->producer.options.rate_bytes == 0)
        o->producer.workload = NULL;
    o->command = argv + optind;
    return 0;
}

static void set_domains(struct sim_shared *s)
{
    static const struct sim_domain domains[] = {
        {0, 4, "Domain-0"},
        {1, 2, "web"},
        {2, 2, "db"},
    };

    memcpy(s->domains, domains, sizeof(domains));
    s->nr_domains = ARRAY_SIZE(domains);
}

static int set_up(struct sim *sim, const struct run_options *o)
{
    struct sim_shared *s = sim->shared;

    for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++)
        s->cpus[cpu].online = !parse_cpus_has(&o->offline, cpu);
    s->max_pages = o->max_pages;
    s->paused = o->paused;
    s->nr_kinds = o->nr_kinds;
    memcpy(s->kinds, o->kinds, sizeof(s->kinds));
    set_domains(s);
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
    char path[PATH_MAX];

    for (unsigned int i = 0; i < SIM_MAX_HANDLES; i++) {
        (void)snprintf(path, sizeof(path), "%s/evtchn.%u", directory, i);
        (void)unlink(path); /* what is left over is seen */
    }
    (void)snprintf(path, sizeof(path), "%s/memory", directory);
    (void)unlink(path);
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
    struct run_options o = {
        .producer = {.workload = &workload_numbered, .tick_usec = 200, .options.replay_speed = 1},
        .cpus = 8,
        .fault_hits = UINT32_MAX,
        .nr_kinds = numbered_default_kinds_count,
    };
    char directory[] = "/tmp/xensim.XXXXXX";
    struct sim sim;
    int r;

    memcpy(o.kinds, numbered_default_kinds, numbered_default_kinds_count * sizeof(o.kinds[0]));
    if (parse_arguments(argc, argv, &o) < 0) {
        (void)fputs(run_usage, stderr);
        return 2;
    }
    if (!mkdtemp(directory) || chmod(directory, 0755) < 0) {
        (void)fprintf(stderr, "xensim: cannot make a directory: %s\n", strerror(errno));
        return 1;
    }
    r = sim_create(directory, o.cpus, &sim);
    if (r == 0) {
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
