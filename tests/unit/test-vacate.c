// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Descriptors are closed on another thread, one for each person, without memory or a thread that
 * would have to be made then. A file system that does not answer is a close_range(2), or a
 * close(2), that waits for a pipe: of the descriptor that `hangs` names.
 */

#include "daemon/base/vacate.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/util.h"
#include "daemon/base/worker.h"
#include "tests/unit/test.h"

static int gate[2];      /* read by whoever hangs */
static atomic_int hangs; /* the file that does; -1: none */
static pthread_t main_thread;
static atomic_uint nr_here; /* closed on the main thread */
static atomic_bool fails;   /* memory and threads cannot be had */
static unsigned int nr_changes;

static void note_close(int first, int last)
{
    int hanging = atomic_load(&hangs);
    char byte;

    if (pthread_equal(pthread_self(), main_thread))
        atomic_fetch_add(&nr_here, 1);
    if (hanging >= first && hanging <= last)
        (void)!read(gate[0], &byte, 1);
}

int close_range(unsigned int first, unsigned int last, int flags)
{
    note_close((int)first, (int)last);
    return (int)syscall(SYS_close_range, first, last, flags);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    note_close(fd, fd);
    return __real_close(fd);
}

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes)
{
    return atomic_load(&fails) ? NULL : __real_calloc(n, bytes);
}

static void note_change(void *userdata)
{
    (void)userdata;
    nr_changes++;
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

/* A member with a connection, which is FD. */
static struct vacate_person *join(struct vacate *vacate, uid_t person, struct vacate_batch **ret,
                                  int fd)
{
    struct vacate_batch *batch = vacate_prepare(vacate);

    if (!batch)
        exit(EXIT_FAILURE);
    *ret = batch;
    return vacate_join(vacate, person, batch, fd);
}

static void close_many(struct vacate_person *person, unsigned int count)
{
    struct vacate_batch *batch = vacate_batch_new(person, VACATE_BATCH_MAX);

    for (unsigned int i = 0; i < count; i++)
        vacate_batch_add(batch, open_null());
    vacate_close(batch);
}

static void test_close(struct workers *workers, struct vacate *vacate)
{
    struct vacate_batch *socket, *batch;
    struct vacate_person *person;
    int fds[] = {open_null(), open_null(), open_null()};

    test_case("a connection and descriptors are closed elsewhere");
    person = join(vacate, 1000, &socket, fds[0]);
    batch = vacate_batch_new(person, 2);
    vacate_batch_add(batch, fds[1]);
    vacate_batch_add(batch, fds[2]);
    vacate_close(batch);
    CHECK_UINT(vacate_count(person), 2);
    workers_run_all(workers);
    CHECK(is_open(fds[0]) && !is_open(fds[1]) && !is_open(fds[2]));
    CHECK_UINT(vacate_count(person), 0);
    vacate_close(socket);
    vacate_leave(person);
    workers_run_all(workers);
    CHECK(!is_open(fds[0]));

    test_case("an empty batch");
    person = join(vacate, 1000, &socket, open_null());
    vacate_close(vacate_batch_new(person, 2));
    vacate_close(NULL);
    CHECK_UINT(vacate_count(person), 0);
    vacate_close(socket);
    vacate_leave(person);
    workers_run_all(workers);
}

static void test_without_memory(struct workers *workers, struct vacate *vacate)
{
    struct vacate_batch *socket, *batch;
    struct vacate_person *person;
    int fds[] = {open_null(), open_null()};

    test_case("without memory or threads, all that was prepared is closed elsewhere");
    socket = vacate_prepare(vacate);
    atomic_store(&fails, true);
    person = vacate_join(vacate, 1000, socket, fds[0]);
    vacate_close(socket);
    CHECK(!vacate_batch_new(person, 1));
    vacate_leave(person);
    CHECK(!vacate_prepare(vacate)); /* accept nothing */
    atomic_store(&fails, false);
    workers_run_all(workers);
    CHECK(!is_open(fds[0]));

    test_case("a person who has a thread needs no other");
    person = join(vacate, 1000, &socket, fds[1]);
    batch = vacate_prepare(vacate);
    atomic_store(&fails, true);
    CHECK(vacate_join(vacate, 1000, batch, open_null()) == person);
    vacate_close(batch);
    vacate_leave(person);
    vacate_close(socket);
    vacate_leave(person);
    atomic_store(&fails, false);
    workers_run_all(workers);
}

/* Whoever hangs goes on. */
static void release(void)
{
    atomic_store(&hangs, -1);
    CHECK_INT(write(gate[1], "x", 1), 1);
}

static void wait_until_closed(sd_event *event, const struct vacate_person *person)
{
    while (vacate_count(person) > 0)
        CHECK(sd_event_run(event, UINT64_MAX) >= 0);
}

static void test_limits(sd_event *event, struct workers *workers, struct vacate *vacate)
{
    struct vacate_batch *sockets[2], *stuck;
    struct vacate_person *person, *other;
    struct failure failure = {0};
    uid_t locked[2];

    test_case("a person whose files are not closed");
    person = join(vacate, 1000, &sockets[0], open_null());
    other = join(vacate, 1001, &sockets[1], open_null());
    stuck = vacate_batch_new(person, 1);
    vacate_batch_add(stuck, open_null());
    atomic_store(&hangs, stuck->fds[0]);
    vacate_close(stuck);
    close_many(person, VACATE_OF_PERSON_MAX - 2);
    CHECK_INT(vacate_check(person, &failure), 0);
    close_many(person, 1);
    CHECK_INT(vacate_check(person, &failure), -EBUSY);
    CHECK(strstr(failure.text, "32 files that you passed are not closed yet"));
    CHECK(!vacate_is_locked(person) && vacate_may_receive(person));

    test_case("another person is not affected");
    CHECK_INT(vacate_check(other, &failure), 0);
    close_many(other, 1);
    wait_until_closed(event, other);
    CHECK_UINT(vacate_count(person), VACATE_OF_PERSON_MAX);

    test_case("it passes more, although that is refused: it is locked out");
    nr_changes = 0;
    for (unsigned int waiting = VACATE_OF_PERSON_MAX; waiting < VACATE_LOCKED_MIN; waiting += 32)
        close_many(person, 32);
    CHECK_UINT(nr_changes, 1);
    CHECK(vacate_is_locked(person) && !vacate_may_receive(person));
    CHECK(!vacate_is_locked(other) && vacate_may_receive(other));
    CHECK_UINT(vacate_list_locked(vacate, locked, ARRAY_SIZE(locked)), 1);
    CHECK_UINT(locked[0], 1000);

    test_case("it stays so without a connection");
    vacate_close(sockets[0]);
    vacate_leave(person);
    CHECK_UINT(vacate_list_locked(vacate, locked, ARRAY_SIZE(locked)), 1);
    CHECK(join(vacate, 1000, &sockets[0], open_null()) == person);
    CHECK(vacate_is_locked(person));

    test_case("until all is closed");
    release();
    wait_until_closed(event, person);
    CHECK_UINT(nr_changes, 2);
    CHECK(!vacate_is_locked(person));
    CHECK_INT(vacate_check(person, &failure), 0);
    vacate_close(sockets[0]);
    vacate_leave(person);
    vacate_close(sockets[1]);
    vacate_leave(other);
    workers_run_all(workers);
}

static void test_root(struct workers *workers, struct vacate *vacate)
{
    struct vacate_batch *socket;
    struct vacate_person *root = join(vacate, PERSON_ROOT, &socket, open_null());

    test_case("root is not locked out");
    nr_changes = 0;
    for (unsigned int waiting = 0; waiting < VACATE_LOCKED_MIN; waiting += 128)
        close_many(root, 128);
    CHECK_UINT(nr_changes, 0);
    CHECK(!vacate_is_locked(root));
    vacate_close(socket);
    vacate_leave(root);
    workers_run_all(workers);
}

/* The kernel would close what has no slot in the table, within recvmsg(2). */
static void test_room(struct workers *workers)
{
    const struct rlimit limit = {.rlim_cur = 1024, .rlim_max = 1024};
    struct vacate_batch *sockets[2], *held;
    struct vacate_person *person, *root;
    struct vacate *vacate;

    test_case("with a small table, users hold less than half of it");
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_INT(vacate_new(workers, note_change, NULL, &vacate), 0);
    person = join(vacate, 1000, &sockets[0], open_null());
    root = join(vacate, PERSON_ROOT, &sockets[1], open_null());
    CHECK(vacate_may_receive(person));
    held = vacate_batch_new(person, VACATE_BATCH_MAX);
    for (unsigned int i = 0; i < 140; i++)
        vacate_batch_add(held, open_null());
    CHECK(!vacate_may_receive(person));
    CHECK(vacate_may_receive(root));
    vacate_close(held);
    workers_run_all(workers);
    CHECK(vacate_may_receive(person));
    vacate_close(sockets[0]);
    vacate_leave(person);
    vacate_close(sockets[1]);
    vacate_leave(root);
    workers_run_all(workers);
    vacate_free(vacate);
}

static void test_free(struct workers *workers, struct vacate *vacate)
{
    int fd = open_null();
    struct vacate_batch *socket;
    struct vacate_person *person = join(vacate, 1000, &socket, fd);

    test_case("it is freed while descriptors wait");
    vacate_close(socket);
    vacate_leave(person);
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
        workers_new(event, &workers) < 0 || vacate_new(workers, note_change, NULL, &vacate) < 0)
        return EXIT_FAILURE;
    test_close(workers, vacate);
    test_without_memory(workers, vacate);
    test_limits(event, workers, vacate);
    test_root(workers, vacate);
    test_free(workers, vacate);
    test_room(workers);
    test_case("the main thread closed nothing");
    CHECK_UINT(atomic_load(&nr_here), 0);
    workers_free(workers);
    sd_event_unref(event);
    return test_end();
}
