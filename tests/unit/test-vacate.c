// SPDX-License-Identifier: GPL-2.0-or-later

/* Descriptors are vacated on another thread: their files are closed, their numbers stay open. */

#include "daemon/base/vacate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/util.h"
#include "daemon/base/worker.h"
#include "tests/unit/test.h"

static unsigned int nr_done;

static void handle_done(void *userdata)
{
    CHECK(userdata == &nr_done);
    nr_done++;
}

static bool is_null(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static void test_pipes(struct workers *workers)
{
    int first[2], second[2];
    char byte;

    test_case("the files are closed, the numbers are not");
    if (pipe2(first, O_CLOEXEC) < 0 || pipe2(second, O_CLOEXEC) < 0)
        exit(EXIT_FAILURE);
    CHECK_INT(
        vacate_descriptors(workers, (const int[]){first[1], second[1]}, 2, handle_done, &nr_done),
        0);
    workers_run_all(workers);
    CHECK_UINT(nr_done, 1);
    CHECK_INT(read(first[0], &byte, 1), 0); /* the end of the file */
    CHECK_INT(read(second[0], &byte, 1), 0);
    CHECK(is_null(first[1]) && is_null(second[1]));
    CHECK_INT(fcntl(first[1], F_GETFD), FD_CLOEXEC);
    for (unsigned int i = 0; i < 2; i++) {
        CHECK_INT(close(first[i]), 0);
        CHECK_INT(close(second[i]), 0);
    }

    test_case("a descriptor that is none is passed over");
    CHECK_INT(vacate_descriptors(workers, (const int[]){-1, -1}, 2, handle_done, &nr_done), 0);
    workers_run_all(workers);
    CHECK_UINT(nr_done, 2);
}

static void test_close(struct workers *workers)
{
    int fds[2];
    char byte;

    test_case("closed elsewhere");
    if (pipe2(fds, O_CLOEXEC) < 0)
        exit(EXIT_FAILURE);
    vacate_close(workers, &fds[1], 1);
    workers_run_all(workers);
    CHECK_INT(read(fds[0], &byte, 1), 0); /* the end of the file */
    CHECK_INT(fcntl(fds[1], F_GETFD), -1);
    (void)close(fds[0]);
}

int main(void)
{
    struct workers *workers;
    sd_event *event = NULL;

    if (sd_event_new(&event) < 0 || workers_new(event, &workers) < 0)
        return EXIT_FAILURE;
    test_pipes(workers);
    test_close(workers);
    workers_free(workers);
    sd_event_unref(event);
    return test_end();
}
