// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Descriptors are closed on another thread, one for each user. A file system that does not answer
 * is a close(2) that waits for a pipe: of descriptors that `hangs` names.
 */

#include "daemon/base/vacate.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/util.h"
#include "daemon/base/worker.h"
#include "tests/unit/test.h"

static int gate[2];      /* read by whoever hangs */
static atomic_int hangs; /* the file that does; -1: none */
static pthread_t main_thread;
static atomic_uint nr_here; /* closed on the main thread, since it was set to 0 */

int close(int fd)
{
    char byte;

    if (pthread_equal(pthread_self(), main_thread))
        atomic_fetch_add(&nr_here, 1);
    if (fd == atomic_load(&hangs))
        (void)!read(gate[0], &byte, 1);
    return (int)syscall(SYS_close, fd);
}

static int open_null(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        exit(EXIT_FAILURE);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void test_close(struct workers *workers, struct vacate *vacate)
{
    int fds[] = {open_null(), -1, open_null()};

    test_case("files are closed elsewhere");
    atomic_store(&nr_here, 0);
    vacate_close(vacate, 1000, fds, ARRAY_SIZE(fds));
    CHECK_UINT(vacate_count(vacate, 1000), 2);
    workers_run_all(workers);
    CHECK_UINT(atomic_load(&nr_here), 0);
    CHECK(!is_open(fds[0]) && !is_open(fds[2]));
    CHECK_UINT(vacate_count(vacate, 1000), 0);
}

static void test_pipe(struct vacate *vacate)
{
    int fds[2];
    char byte;

    test_case("pipes are closed at once");
    if (pipe2(fds, O_CLOEXEC) < 0)
        exit(EXIT_FAILURE);
    vacate_close(vacate, 1000, &fds[1], 1);
    CHECK_INT(read(fds[0], &byte, 1), 0); /* the end of the file */
    CHECK_UINT(vacate_count(vacate, 1000), 0);
    (void)close(fds[0]);
}

static void test_connections(struct workers *workers, struct vacate *vacate)
{
    int fds[2];

    test_case("a connection with nothing unread is closed at once");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        exit(EXIT_FAILURE);
    vacate_close_connection(vacate, 1000, fds[1]);
    CHECK(!is_open(fds[1]));
    (void)close(fds[0]);

    test_case("one with something unread is closed elsewhere");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        exit(EXIT_FAILURE);
    CHECK_INT(send(fds[0], "x", 1, 0), 1);
    atomic_store(&nr_here, 0);
    vacate_close_connection(vacate, 1000, fds[1]);
    CHECK_UINT(vacate_count(vacate, 1000), 1);
    workers_run_all(workers);
    CHECK_UINT(atomic_load(&nr_here), 0);
    CHECK(!is_open(fds[1]));
    (void)close(fds[0]);
}

static void close_many(struct vacate *vacate, uid_t uid, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++)
        vacate_close(vacate, uid, (const int[]){open_null()}, 1);
}

/* Whoever hangs goes on. */
static void release(void)
{
    atomic_store(&hangs, -1);
    CHECK_INT(write(gate[1], "x", 1), 1);
}

static void test_limits(sd_event *event, struct workers *workers, struct vacate *vacate)
{
    struct failure failure = {0};
    int stuck = open_null();

    test_case("a user whose files are not closed");
    atomic_store(&hangs, stuck);
    vacate_close(vacate, 1000, &stuck, 1);
    close_many(vacate, 1000, VACATE_OF_USER_MAX - 2);
    CHECK_INT(vacate_check(vacate, 1000, &failure), 0);
    close_many(vacate, 1000, 1);
    CHECK_INT(vacate_check(vacate, 1000, &failure), -EBUSY);
    CHECK(strstr(failure.text, "32 files that you passed are not closed yet"));
    CHECK_UINT(vacate_count(vacate, 1000), VACATE_OF_USER_MAX);

    test_case("another user is not affected");
    CHECK_INT(vacate_check(vacate, 1001, &failure), 0);
    close_many(vacate, 1001, 1);
    while (vacate_count(vacate, 1001) > 0)
        CHECK(sd_event_run(event, UINT64_MAX) >= 0);
    CHECK_UINT(vacate_count(vacate, 1000), VACATE_OF_USER_MAX);
    CHECK(!vacate_is_full(vacate, 1000));

    test_case("it passes more, although that is refused");
    close_many(vacate, 1000, VACATE_OF_USER_MAX);
    CHECK(vacate_is_full(vacate, 1000));
    CHECK(!vacate_is_full(vacate, 1001));
    CHECK(!vacate_is_full(vacate, 0));

    test_case("all users together, but not root");
    for (uid_t uid = 2000; uid < 2002; uid++)
        close_many(vacate, uid, VACATE_OF_USER_MAX);
    CHECK_INT(vacate_check(vacate, 1001, &failure), -EBUSY);
    CHECK(strstr(failure.text, "128 files that users passed"));
    CHECK_INT(vacate_check(vacate, 0, &failure), 0);

    test_case("the file system answers");
    release();
    workers_run_all(workers);
    CHECK_INT(vacate_check(vacate, 1000, &failure), 0);
    CHECK_UINT(vacate_count(vacate, 1000), 0);
}

static void test_root(struct workers *workers, struct vacate *vacate)
{
    struct failure failure = {0};
    int stuck = open_null();

    test_case("root has a limit, too");
    atomic_store(&hangs, stuck);
    vacate_close(vacate, 0, &stuck, 1);
    close_many(vacate, 0, VACATE_OF_ROOT_MAX - 2);
    CHECK_INT(vacate_check(vacate, 0, &failure), 0);
    close_many(vacate, 0, 1);
    CHECK_INT(vacate_check(vacate, 0, &failure), -EBUSY);
    CHECK(strstr(failure.text, "128 files that you passed are not closed yet"));
    CHECK(!vacate_is_full(vacate, 0));
    close_many(vacate, 0, VACATE_OF_ROOT_MAX);
    CHECK(vacate_is_full(vacate, 0));
    test_case("root's limit is not the users'");
    CHECK_INT(vacate_check(vacate, 1000, &failure), 0);
    release();
    workers_run_all(workers);
    CHECK_INT(vacate_check(vacate, 0, &failure), 0);
}

static void test_free(struct workers *workers, struct vacate *vacate)
{
    int fd = open_null();

    test_case("it is freed while descriptors wait");
    vacate_close(vacate, 1000, &fd, 1);
    vacate_free(vacate);
    workers_run_all(workers);
    CHECK(!is_open(fd));
}

int main(void)
{
    struct workers *workers;
    struct vacate *vacate;
    sd_event *event = NULL;

    main_thread = pthread_self();
    atomic_store(&hangs, -1);
    if (pipe2(gate, O_CLOEXEC) < 0 || sd_event_new(&event) < 0 ||
        workers_new(event, &workers) < 0 || vacate_new(workers, &vacate) < 0)
        return EXIT_FAILURE;
    test_close(workers, vacate);
    test_pipe(vacate);
    test_connections(workers, vacate);
    test_limits(event, workers, vacate);
    test_root(workers, vacate);
    test_free(workers, vacate);
    workers_free(workers);
    sd_event_unref(event);
    return test_end();
}
