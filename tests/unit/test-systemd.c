// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * daemon/host/systemd.c and fd-store.c with a systemd of the test's own, which answers, or hangs:
 * then whoever waits for an answer gets one after 2 s, and everything else is done in order later.
 */

#include "daemon/host/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "common/units.h"
#include "common/util.h"
#include "daemon/base/worker.h"
#include "daemon/host/fd-store.h"
#include "tests/unit/test.h"

/* --- The manager, as libsystemd shows it. --- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool hangs;
    bool keeps_nothing;
    const char *job_type; /* NULL: our unit has no job */
    int start_error;
    char heard[512]; /* in this order */
    ino_t inode;     /* of the last descriptor that was sent */
} manager = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void hear(const char *text)
{
    size_t length;

    (void)pthread_mutex_lock(&manager.mutex);
    while (manager.hangs)
        (void)pthread_cond_wait(&manager.changed, &manager.mutex);
    length = strlen(manager.heard);
    (void)snprintf(manager.heard + length, sizeof(manager.heard) - length, "[%s]", text);
    (void)pthread_mutex_unlock(&manager.mutex);
}

static void set_hangs(bool hangs)
{
    (void)pthread_mutex_lock(&manager.mutex);
    manager.hangs = hangs;
    (void)pthread_cond_signal(&manager.changed);
    (void)pthread_mutex_unlock(&manager.mutex);
}

int sd_notify(int unset_environment, const char *state)
{
    (void)unset_environment;
    hear(state);
    return 1;
}

int sd_notify_barrier(int unset_environment, uint64_t timeout)
{
    (void)unset_environment, (void)timeout;
    hear("barrier");
    return 1;
}

int sd_pid_notify_with_fds(pid_t pid, int unset_environment, const char *state, const int *fds,
                           unsigned n_fds)
{
    struct stat st = {0};

    (void)pid, (void)unset_environment;
    hear(state);
    if (n_fds == 1 && fstat(fds[0], &st) == 0)
        manager.inode = st.st_ino;
    return manager.keeps_nothing ? 0 : 1;
}

/* A bus and messages that are only passed on. */
static int bus_memory, message_memory;

int sd_bus_new(sd_bus **ret)
{
    *ret = (sd_bus *)&bus_memory;
    return 0;
}

int sd_bus_set_address(sd_bus *bus, const char *address)
{
    (void)bus;
    return strcmp(address, "unix:path=/run/systemd/private") == 0 ? 0 : -ENOENT;
}

int sd_bus_set_method_call_timeout(sd_bus *bus, uint64_t usec)
{
    (void)bus, (void)usec;
    return 0;
}

int sd_bus_start(sd_bus *bus)
{
    (void)bus;
    hear("connect");
    return 0;
}

sd_bus *sd_bus_flush_close_unref(sd_bus *bus)
{
    (void)bus;
    return NULL;
}

sd_bus_message *sd_bus_message_unref(sd_bus_message *m)
{
    (void)m;
    return NULL;
}

int sd_bus_call_method(sd_bus *bus, const char *destination, const char *path,
                       const char *interface, const char *member, sd_bus_error *ret_error,
                       sd_bus_message **reply, const char *types, ...)
{
    (void)bus, (void)destination, (void)path, (void)interface, (void)ret_error;
    if (reply)
        *reply = (sd_bus_message *)&message_memory;
    if (strcmp(member, "StartUnit") == 0) {
        va_list args;

        va_start(args, types);
        hear(va_arg(args, const char *));
        va_end(args);
        return manager.start_error;
    }
    return strcmp(member, "GetUnitByPID") == 0 ? 0 : -EINVAL;
}

int sd_bus_get_property(sd_bus *bus, const char *destination, const char *path,
                        const char *interface, const char *member, sd_bus_error *ret_error,
                        sd_bus_message **reply, const char *type)
{
    (void)bus, (void)destination, (void)interface, (void)ret_error, (void)type;
    *reply = (sd_bus_message *)&message_memory;
    return strcmp(path, "/unit") == 0 && strcmp(member, "Job") == 0 ? 0 : -EINVAL;
}

int sd_bus_message_read(sd_bus_message *m, const char *types, ...)
{
    bool is_job = strcmp(types, "(uo)") == 0;
    va_list args;

    (void)m;
    va_start(args, types);
    if (is_job)
        (void)va_arg(args, void *);
    *va_arg(args, const char **) = !is_job ? "/unit" : manager.job_type ? "/job" : "/";
    va_end(args);
    return 1;
}

int sd_bus_get_property_string(sd_bus *bus, const char *destination, const char *path,
                               const char *interface, const char *member, sd_bus_error *ret_error,
                               char **ret)
{
    (void)bus, (void)destination, (void)interface, (void)member, (void)ret_error;
    if (strcmp(path, "/job") != 0)
        return -EINVAL;
    *ret = strdup(manager.job_type);
    return *ret ? 0 : -ENOMEM;
}

/* --- Answers. --- */

static char answered[256];

static void note(const char *text)
{
    size_t length = strlen(answered);

    (void)snprintf(answered + length, sizeof(answered) - length, "[%s]", text);
}

static void note_stop(void *userdata, bool for_good)
{
    CHECK(userdata == answered);
    note(for_good ? "for good" : "again");
}

static void note_unit(void *userdata, const char *unit, int error)
{
    CHECK(userdata == answered);
    note(unit);
    if (error < 0)
        note(strerror(-error));
}

static void note_kept(void *userdata, bool is_kept)
{
    CHECK(userdata == answered);
    note(is_kept ? "kept" : "not kept");
}

static void note_flushed(void *userdata)
{
    CHECK(userdata == answered);
    note("flushed");
}

static void reset(void)
{
    (void)pthread_mutex_lock(&manager.mutex);
    manager.heard[0] = answered[0] = '\0';
    (void)pthread_mutex_unlock(&manager.mutex);
}

/* --- Tests. --- */

static void test_answers(struct workers *workers, struct systemd *systemd)
{
    static const struct {
        const char *job_type;
        const char *answer;
    } stops[] = {
        {"stop", "[for good]"},
        {"restart", "[again]"},
        {NULL, "[again]"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(stops); i++) {
        test_case(stops[i].job_type ? stops[i].job_type : "no job");
        reset();
        manager.job_type = stops[i].job_type;
        systemd_ask_stop(systemd, note_stop, answered);
        CHECK_STR(answered, "");
        workers_run_all(workers);
        CHECK_STR(answered, stops[i].answer);
    }

    test_case("units are started, and a failure is reported with the unit");
    reset();
    systemd_start_unit(systemd, "a@1.service", note_unit, answered);
    workers_run_all(workers);
    manager.start_error = -ENOENT;
    systemd_start_unit(systemd, "a@2.service", note_unit, answered);
    workers_run_all(workers);
    manager.start_error = 0;
    CHECK_STR(answered, "[a@1.service][a@2.service][No such file or directory]");
}

static void test_store(struct workers *workers, struct systemd *systemd)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC), lowest;
    struct stat st = {0};

    test_case("a descriptor is kept, which the caller may have closed");
    reset();
    CHECK(fstat(fd, &st) == 0);
    fd_store_keep(systemd, "ring", fd, note_kept, answered);
    fd_close(&fd);
    workers_run_all(workers);
    CHECK_STR(answered, "[kept]");
    CHECK_STR(manager.heard, "[FDSTORE=1\nFDNAME=ring\nFDPOLL=0][barrier]");
    CHECK_UINT(manager.inode, st.st_ino);

    test_case("no copy of it stays open");
    lowest = open("/dev/null", O_RDWR | O_CLOEXEC);
    fd_store_keep(systemd, "ring", lowest, note_kept, answered);
    workers_run_all(workers);
    fd = fcntl(lowest, F_DUPFD_CLOEXEC, 3);
    CHECK_INT(fd, lowest + 1);
    fd_close(&fd);
    fd_close(&lowest);

    test_case("nobody keeps it");
    reset();
    manager.keeps_nothing = true;
    fd_store_keep(systemd, "ring", STDERR_FILENO, note_kept, answered);
    workers_run_all(workers);
    CHECK_STR(answered, "[not kept]");
    manager.keeps_nothing = false;

    test_case("a descriptor that is closed");
    reset();
    fd_store_keep(systemd, "ring", -1, note_kept, answered);
    workers_run_all(workers);
    CHECK_STR(answered, "[not kept]");

    test_case("in order");
    reset();
    systemd_notify(systemd, "READY=1");
    fd_store_forget(systemd, "ring");
    fd_store_keep(systemd, "new", STDERR_FILENO, note_kept, answered);
    systemd_notify(systemd, "STATUS=x");
    systemd_flush(systemd, note_flushed, answered);
    workers_run_all(workers);
    CHECK_STR(manager.heard, "[READY=1][FDSTOREREMOVE=1\nFDNAME=ring][barrier][FDSTORE=1\n"
                             "FDNAME=new\nFDPOLL=0][barrier][STATUS=x]");
    CHECK_STR(answered, "[kept][flushed]");
}

static uint64_t now_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

static void test_hanging(sd_event *event, struct workers *workers, struct systemd *systemd)
{
    uint64_t begin = now_usec();

    test_case("systemd hangs: nothing waits");
    reset();
    set_hangs(true);
    manager.job_type = "stop";
    systemd_notify(systemd, "STOPPING=1");
    systemd_start_unit(systemd, "a@3.service", note_unit, answered);
    fd_store_keep(systemd, "ring", STDERR_FILENO, note_kept, answered);
    systemd_ask_stop(systemd, note_stop, answered);
    CHECK(now_usec() - begin < USEC_PER_SEC);
    CHECK_STR(answered, "");

    test_case("systemd hangs: the question is answered after 2 s");
    while (!answered[0] && CHECK(sd_event_run(event, 10 * USEC_PER_SEC) > 0))
        ;
    CHECK_STR(answered, "[again]");
    CHECK(now_usec() - begin >= 2 * USEC_PER_SEC - USEC_PER_MSEC);
    systemd_flush(systemd, note_flushed, answered);
    while (!strstr(answered, "flushed") && CHECK(sd_event_run(event, 10 * USEC_PER_SEC) > 0))
        ;

    test_case("it answers again: what was asked for is done; the question is answered once");
    set_hangs(false);
    workers_run_all(workers);
    CHECK_STR(manager.heard, "[STOPPING=1][connect][a@3.service][FDSTORE=1\nFDNAME=ring\n"
                             "FDPOLL=0][barrier][connect]");
    CHECK_STR(answered, "[again][flushed][a@3.service][kept]");
}

static void test_freed_while_hanging(sd_event *event, struct workers *workers)
{
    struct systemd *systemd;

    test_case("freed while systemd hangs: no answer comes any more, and all is done still");
    CHECK_INT(systemd_new(event, workers, &systemd), 0);
    reset();
    set_hangs(true);
    systemd_ask_stop(systemd, note_stop, answered);
    fd_store_keep(systemd, "ring", STDERR_FILENO, note_kept, answered);
    systemd_notify(systemd, "STATUS=x");
    CHECK(!systemd_free(systemd));
    (void)sd_event_run(event, 0); /* nothing, or what is left of before */
    set_hangs(false);
    workers_run_all(workers);
    CHECK_STR(answered, "");
    CHECK_STR(manager.heard, "[connect][FDSTORE=1\nFDNAME=ring\nFDPOLL=0][barrier][STATUS=x]");
    CHECK(!systemd_free(NULL));
}

int main(void)
{
    struct systemd *systemd;
    struct workers *workers;
    sd_event *event = NULL;

    if (!CHECK(sd_event_new(&event) >= 0) || !CHECK_INT(workers_new(event, &workers), 0) ||
        !CHECK_INT(systemd_new(event, workers, &systemd), 0))
        return test_end();
    test_answers(workers, systemd);
    test_store(workers, systemd);
    test_hanging(event, workers, systemd);
    systemd_free(systemd);
    test_freed_while_hanging(event, workers);
    workers_free(workers);
    sd_event_unref(event);
    return test_end();
}
