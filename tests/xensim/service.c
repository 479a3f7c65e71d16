// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A service manager for one service, as systemd is for a unit with Type=notify, NotifyAccess=main,
 * RestartSec=, FileDescriptorStoreMax=, WatchdogSec= and StartLimitIntervalSec=0. See
 * docs/xensim.md.
 *
 * One loop over the notify socket and a signalfd. Messages are read before a death is looked at:
 * what the service sent before it was killed counts, as with systemd.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "common/util.h"
#include "fdstore.h"
#include "notify.h"
#include "parse.h"

enum state {
    SERVICE_RUNNING,
    SERVICE_WAITING,    /* it is dead; --restart-delay passes */
    SERVICE_RESTARTING, /* SIGTERM was sent: it starts again when it is dead */
    SERVICE_STOPPING,   /* SIGTERM was sent: that is the end */
    SERVICE_ENDED,
};

struct service {
    char *const *command;
    uint64_t restart_delay_msec;
    uint64_t stop_timeout_msec;
    uint64_t watchdog_msec; /* 0: none */
    bool only_on_failure;
    const char *pid_file;
    FILE *log;
    uint64_t begin_msec;
    char directory[32]; /* of the notify socket */
    char socket_path[64];
    int notify_fd;
    int signal_fd;
    sigset_t old_signals;
    enum state state;
    uint64_t deadline_msec; /* of WAITING, RESTARTING, STOPPING */
    uint64_t fed_msec;      /* when the watchdog was fed last; 0: it does not wait for that */
    pid_t pid;              /* 0: none runs */
    int exit_status;        /* of the last that ran */
    struct fdstore store;
    struct notify_message message;
};

static uint64_t now_msec(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* One line: seconds since the start, then what happened. */
static _printf_(2, 3) void tell(const struct service *s, const char *format, ...)
{
    uint64_t msec = now_msec() - s->begin_msec;
    va_list arguments;

    if (!s->log)
        return;
    (void)fprintf(s->log, "%u.%03u ", (unsigned int)(msec / 1000), (unsigned int)(msec % 1000));
    va_start(arguments, format);
    (void)vfprintf(s->log, format, arguments);
    va_end(arguments);
    (void)fputc('\n', s->log);
    (void)fflush(s->log); /* a log that cannot be written is missed by the test that reads it */
}

/* The child of whom is running, whole or not at all. */
static void write_pid_file(const struct service *s)
{
    char path[PATH_MAX];
    FILE *f;

    if (!s->pid_file)
        return;
    (void)snprintf(path, sizeof(path), "%s.new", s->pid_file);
    f = fopen(path, "we");
    if (!f || fprintf(f, "%d\n", s->pid) < 0 || fclose(f) != 0 || rename(path, s->pid_file) < 0)
        (void)fprintf(stderr, "service: cannot write %s: %s\n", s->pid_file, strerror(errno));
}

static void remove_pid_file(const struct service *s)
{
    if (s->pid_file)
        (void)unlink(s->pid_file); /* it may be gone: the test's directory is */
}

/* The child's part of a start; does not return. Exit statuses as systemd's. */
static void execute(const struct service *s)
{
    char most[16], usec[24];

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left over, however this program ends */
    (void)setsid();                         /* a fresh child leads no group: cannot fail */
    (void)sigprocmask(SIG_SETMASK, &s->old_signals, NULL);
    (void)snprintf(most, sizeof(most), "%u", s->store.max);
    if (setenv("NOTIFY_SOCKET", s->socket_path, 1) < 0 ||
        (s->store.max ? setenv("FDSTORE", most, 1) : unsetenv("FDSTORE")) < 0)
        _exit(202);
    (void)snprintf(usec, sizeof(usec), "%llu", (unsigned long long)s->watchdog_msec * 1000);
    if ((s->watchdog_msec ? setenv("WATCHDOG_USEC", usec, 1) : unsetenv("WATCHDOG_USEC")) < 0 ||
        unsetenv("WATCHDOG_PID") < 0)
        _exit(202);
    if (fdstore_pass(&s->store) < 0)
        _exit(202);
    (void)execvp(s->command[0], s->command); /* returns only with an error */
    (void)fprintf(stderr, "service: cannot run %s: %s\n", s->command[0], strerror(errno));
    _exit(203);
}

static int start(struct service *s)
{
    pid_t pid = fork();

    if (pid < 0)
        return -errno;
    if (pid == 0)
        execute(s);
    s->pid = pid;
    s->fed_msec = 0;
    s->state = SERVICE_RUNNING;
    tell(s, "started %d with %u descriptors", pid, s->store.count);
    write_pid_file(s);
    return 0;
}

static void add_fds(struct service *s)
{
    static const char *const results[] = {
        [FDSTORE_ADDED] = "stored",
        [FDSTORE_THERE] = "already stored",
        [FDSTORE_FULL] = "no room for",
    };
    struct notify_message *m = &s->message;
    const char *name = notify_field(m, "FDNAME=");
    bool polled = !notify_has(m, "FDPOLL=0");

    if (!name || !fdstore_name_is_valid(name))
        name = "stored";
    for (uint32_t i = 0; i < m->nr_fds; i++)
        tell(s, "%s %s%s", results[fdstore_add(&s->store, name, polled, fd_take(&m->fds[i]))], name,
             polled ? " (polled)" : "");
}

static void remove_fds(struct service *s)
{
    const char *name = notify_field(&s->message, "FDNAME=");

    if (name && fdstore_name_is_valid(name))
        tell(s, "removed %u of %s", fdstore_remove(&s->store, name), name);
    else
        tell(s, "FDSTOREREMOVE=1 without a valid FDNAME=");
}

/* sd_notify(3): the time to stop ends no earlier than this many microseconds from now. */
static void extend_timeout(struct service *s, const char *text)
{
    uint64_t usec;

    if (parse_u64(text, UINT64_MAX / 2, &usec) < 0) {
        tell(s, "EXTEND_TIMEOUT_USEC= that is no number: %s", text);
        return;
    }
    tell(s, "extend-timeout %s", text);
    if (s->state == SERVICE_STOPPING || s->state == SERVICE_RESTARTING)
        s->deadline_msec = max_u64(s->deadline_msec, now_msec() + usec / 1000);
}

/* A barrier's descriptor is closed by whoever calls; what else stands in its message is ignored. */
static void handle_message(struct service *s)
{
    const struct notify_message *m = &s->message;
    const char *status = notify_field(m, "STATUS=");
    const char *more_time = notify_field(m, "EXTEND_TIMEOUT_USEC=");

    if (notify_has(m, "BARRIER=1")) {
        tell(s, m->nr_fds == 1 ? "barrier" : "barrier without its one descriptor");
        return;
    }
    if (!s->pid || m->sender != s->pid) {
        tell(s, "message of %d, who is not the service, ignored", m->sender);
        return;
    }
    if (notify_has(m, "READY=1")) {
        tell(s, "ready");
        s->fed_msec = now_msec();
    }
    if (notify_has(m, "WATCHDOG=1")) {
        tell(s, "fed");
        s->fed_msec = now_msec();
    }
    if (notify_has(m, "STOPPING=1")) {
        tell(s, "stopping");
        s->fed_msec = 0;
    }
    if (status)
        tell(s, "status %s", status);
    if (more_time)
        extend_timeout(s, more_time);
    if (notify_has(m, "FDSTOREREMOVE=1"))
        remove_fds(s);
    else if (notify_has(m, "FDSTORE=1"))
        add_fds(s);
}

static void read_messages(struct service *s)
{
    char name[256];
    int r;

    while ((r = notify_receive(s->notify_fd, &s->message)) != -EAGAIN) {
        if (r == 0)
            handle_message(s);
        else
            tell(s, "message that cannot be used: %s", strerror(-r));
        notify_done(&s->message);
    }
    while (fdstore_drop_hung_up(&s->store, name))
        tell(s, "hung up %s", name);
}

static void terminate(struct service *s, enum state state)
{
    s->state = state;
    s->deadline_msec = now_msec() + s->stop_timeout_msec;
    (void)kill(s->pid, SIGTERM); /* ours, and not yet waited for */
}

/* What SIGTERM and SIGINT (stop), and SIGHUP (restart), ask for. */
static void handle_request(struct service *s, bool stop)
{
    tell(s, stop ? "stop" : "restart");
    switch (s->state) {
    case SERVICE_RUNNING:
        terminate(s, stop ? SERVICE_STOPPING : SERVICE_RESTARTING);
        break;
    case SERVICE_WAITING:
        if (stop)
            s->state = SERVICE_ENDED;
        s->deadline_msec = 0; /* a restart is not waited for */
        break;
    case SERVICE_RESTARTING:
        if (stop)
            s->state = SERVICE_STOPPING;
        break;
    case SERVICE_STOPPING:
    case SERVICE_ENDED:
        break;
    }
}

/* systemd.service(5), "clean signals". */
static bool is_clean(int status)
{
    return status == 0 || status == 128 + SIGHUP || status == 128 + SIGINT ||
           status == 128 + SIGTERM || status == 128 + SIGPIPE;
}

static void handle_death(struct service *s)
{
    siginfo_t info = {0};

    /* What it left behind goes first: as long as it is a zombie, the group's number is its own. */
    if (!s->pid || waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        !info.si_pid)
        return;
    (void)kill(-s->pid, SIGKILL);
    if (waitid(P_PID, (id_t)s->pid, &info, WEXITED) < 0)
        return;
    s->exit_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    if (info.si_code == CLD_EXITED)
        tell(s, "exited with %d", info.si_status);
    else
        tell(s, "killed by SIG%s", sigabbrev_np(info.si_status));
    s->pid = 0;
    remove_pid_file(s);
    if (s->state == SERVICE_STOPPING ||
        (s->state == SERVICE_RUNNING && s->only_on_failure && is_clean(s->exit_status))) {
        s->state = SERVICE_ENDED;
        return;
    }
    s->deadline_msec = s->state == SERVICE_RUNNING ? now_msec() + s->restart_delay_msec : 0;
    s->state = SERVICE_WAITING;
}

static void read_signals(struct service *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo != SIGCHLD)
            handle_request(s, info.ssi_signo != SIGHUP);
}

/* When a service that runs is to be killed for not having fed its watchdog. */
static uint64_t watchdog_deadline(const struct service *s)
{
    return s->watchdog_msec && s->fed_msec ? s->fed_msec + s->watchdog_msec : UINT64_MAX;
}

static void handle_watchdog(struct service *s)
{
    if (s->state != SERVICE_RUNNING || now_msec() < watchdog_deadline(s))
        return;
    tell(s, "watchdog was not fed: SIGABRT");
    s->fed_msec = 0;
    (void)kill(s->pid, SIGABRT); /* ours, and not yet waited for */
}

/* 0, or what start() says. */
static int handle_deadline(struct service *s)
{
    if (s->state == SERVICE_RUNNING || s->state == SERVICE_ENDED || now_msec() < s->deadline_msec)
        return 0;
    if (s->state == SERVICE_WAITING)
        return start(s);
    tell(s, "does not end: SIGKILL");
    (void)kill(s->pid, SIGKILL);
    s->deadline_msec = UINT64_MAX;
    return 0;
}

static int poll_timeout(const struct service *s)
{
    uint64_t now = now_msec();
    uint64_t deadline = s->state == SERVICE_RUNNING ? watchdog_deadline(s) : s->deadline_msec;

    if (deadline == UINT64_MAX)
        return -1;
    return now >= deadline ? 0 : (int)min_u64(deadline - now, 60000);
}

/* The two of ours, and each descriptor of the store that is polled. */
static void wait_for_something(const struct service *s)
{
    struct pollfd p[2 + FDSTORE_MOST] = {
        {.fd = s->notify_fd, .events = POLLIN},
        {.fd = s->signal_fd, .events = POLLIN},
    };

    for (uint32_t i = 0; i < s->store.count; i++)
        p[2 + i].fd = s->store.entries[i].poll ? s->store.entries[i].fd : -1;
    (void)poll(p, 2 + s->store.count, poll_timeout(s)); /* all are looked at anyway */
}

static int run(struct service *s)
{
    int r = start(s);

    while (r == 0 && s->state != SERVICE_ENDED) {
        wait_for_something(s);
        read_messages(s);
        read_signals(s);
        read_messages(s); /* again: a death is not looked at before all it had sent */
        handle_death(s);
        handle_watchdog(s);
        r = handle_deadline(s);
    }
    return r;
}

static int set_up(struct service *s)
{
    sigset_t signals;

    (void)sigemptyset(&signals); /* none of these can fail */
    (void)sigaddset(&signals, SIGCHLD);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, &s->old_signals);
    s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signal_fd < 0)
        return -errno;
    (void)snprintf(s->directory, sizeof(s->directory), "/tmp/xensim-service.XXXXXX");
    if (!mkdtemp(s->directory))
        return -errno;
    (void)snprintf(s->socket_path, sizeof(s->socket_path), "%s/notify", s->directory);
    if (chmod(s->directory, 0755) < 0)
        return -errno;
    tell(s, "socket in %s", s->directory);
    return notify_open(s->socket_path, &s->notify_fd);
}

static void tear_down(struct service *s)
{
    fdstore_done(&s->store);
    fd_close(&s->notify_fd);
    fd_close(&s->signal_fd);
    if (s->socket_path[0]) {
        (void)unlink(s->socket_path); /* what is left over is seen in /tmp */
        (void)rmdir(s->directory);
    }
    if (s->log)
        (void)fclose(s->log); /* every line was flushed */
}

static const char usage[] =
    "usage: service [OPTION]... -- COMMAND [ARGUMENT]...\n"
    "  --restart always|on-failure   (always)\n"
    "  --restart-delay MS            from its death to its next start (100)\n"
    "  --stop-timeout MS             from SIGTERM to SIGKILL (30000)\n"
    "  --fd-store-max N              descriptors that are kept at most (16)\n"
    "  --watchdog MS                 restart it if it does not feed it so often (none)\n"
    "  --log FILE                    what happens, a line each\n"
    "  --pid-file FILE               the service's PID; there while it runs\n"
    "Signals: SIGTERM, SIGINT: stop. SIGHUP: restart.\n";

static int parse_option(struct service *s, int option)
{
    uint64_t value;
    int r = 0;

    switch (option) {
    case 'r':
        s->only_on_failure = strcmp(optarg, "on-failure") == 0;
        return s->only_on_failure || strcmp(optarg, "always") == 0 ? 0 : -EINVAL;
    case 'd':
        return parse_u64(optarg, INT_MAX, &s->restart_delay_msec);
    case 't':
        return parse_u64(optarg, INT_MAX, &s->stop_timeout_msec);
    case 'w':
        return parse_u64(optarg, INT_MAX, &s->watchdog_msec);
    case 'm':
        r = parse_u64(optarg, FDSTORE_MOST, &value);
        if (r == 0)
            s->store.max = (uint32_t)value;
        return r;
    case 'l':
        s->log = fopen(optarg, "we");
        return s->log ? 0 : -errno;
    case 'p':
        s->pid_file = optarg;
        return 0;
    default:
        return -EINVAL;
    }
}

static int parse_arguments(struct service *s, int argc, char **argv)
{
    static const struct option options[] = {
        {"restart", required_argument, NULL, 'r'},
        {"restart-delay", required_argument, NULL, 'd'},
        {"stop-timeout", required_argument, NULL, 't'},
        {"watchdog", required_argument, NULL, 'w'},
        {"fd-store-max", required_argument, NULL, 'm'},
        {"log", required_argument, NULL, 'l'},
        {"pid-file", required_argument, NULL, 'p'},
        {NULL, 0, NULL, 0},
    };
    int option, r = 0;

    while (r == 0 && (option = getopt_long(argc, argv, "+", options, NULL)) != -1)
        r = parse_option(s, option);
    if (r == 0 && optind >= argc)
        r = -EINVAL;
    s->command = argv + optind;
    return r;
}

int main(int argc, char **argv)
{
    struct service s = {
        .restart_delay_msec = 100,
        .stop_timeout_msec = 30000,
        .notify_fd = -1,
        .signal_fd = -1,
        .store.max = 16,
        .begin_msec = now_msec(),
    };
    int r = parse_arguments(&s, argc, argv);

    if (r < 0) {
        (void)fputs(usage, stderr);
        return 2;
    }
    r = set_up(&s);
    if (r == 0)
        r = run(&s);
    tear_down(&s);
    if (r < 0)
        (void)fprintf(stderr, "service: %s\n", strerror(-r));
    return r < 0 ? 1 : s.exit_status;
}
