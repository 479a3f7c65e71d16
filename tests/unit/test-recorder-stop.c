// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The note that the flight recorder was stopped: what is written is read, and whatever else has its
 * name keeps the recorder stopped nevertheless, and nobody waiting.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/clock.h"
#include "daemon/base/failure.h"
#include "daemon/host/fd-store.h"
#include "daemon/session/recorder-stop.h"
#include "tests/unit/test.h"

static struct recorder_stop example(void)
{
    return (struct recorder_stop){
        .is_set = true,
        .realtime_ns = UINT64_C(1795241112123456789),
        .uid = 0,
        .pid = 1234,
        .comm = "xentracectl",
    };
}

/* What a daemon that inherits FD under NAME finds. */
static struct recorder_stop take(int fd, const char *name)
{
    struct fd_store store = {.count = 1};
    struct recorder_stop stop;

    store.inherited[0].fd = fd;
    store.inherited[0].name = strdup(name);
    recorder_stop_take(&store, &stop);
    fd_store_done(&store);
    return stop;
}

static void test_note(void)
{
    struct recorder_stop stop = example(), read;

    test_case("a note says who and when");
    read = take(recorder_stop_write(&stop), "stopped");
    CHECK(read.is_set && read.is_kept);
    CHECK(read.realtime_ns == stop.realtime_ns);
    CHECK(read.uid == 0 && read.pid == 1234);
    CHECK_STR(read.comm, "xentracectl");

    test_case("nothing was left");
    CHECK(!take(-1, "stopped").is_set);
    test_case("a descriptor of another name is no note");
    CHECK(!take(recorder_stop_write(&stop), "ring").is_set);
}

static void check_unknown(const char *name, int fd)
{
    struct recorder_stop stop;
    char text[RECORDER_STOP_TEXT_MAX];

    test_case(name);
    stop = take(fd, "stopped");
    CHECK(stop.is_set);
    CHECK(stop.uid == (uid_t)-1 && stop.realtime_ns == 0);
    CHECK_STR(recorder_stop_describe(text, &stop), "an unknown user");
}

static int memfd_of(const void *bytes, size_t size)
{
    int fd = memfd_create("note", MFD_CLOEXEC);

    if (fd < 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size)
        abort();
    return fd;
}

static void test_unreadable(void)
{
    struct recorder_stop stop = example();
    int fd = recorder_stop_write(&stop), pipes[2];

    check_unknown("an empty file keeps it stopped", memfd_of("", 0));
    check_unknown("another layout keeps it stopped", memfd_of("xrcstop2 and whatever it has", 28));
    if (ftruncate(fd, 20) < 0)
        abort();
    check_unknown("a note that was cut keeps it stopped", fd);
    if (pipe2(pipes, O_CLOEXEC) < 0)
        abort();
    check_unknown("a pipe is not waited for", pipes[0]);
    fd_close(&pipes[1]);
}

static void test_hostile_name(void)
{
    struct recorder_stop stop = example(), read;

    test_case("a process's name is made printable and ends");
    memset(stop.comm, 0x1b, sizeof(stop.comm));
    read = take(recorder_stop_write(&stop), "stopped");
    CHECK(strnlen(read.comm, sizeof(read.comm)) < sizeof(read.comm));
    CHECK(!strchr(read.comm, 0x1b));
}

static void test_sentences(void)
{
    struct recorder_stop stop = example();
    struct failure failure;
    char text[RECORDER_STOP_TEXT_MAX];

    test_case("who it was");
    CHECK_STR(recorder_stop_describe(text, &stop), "root, UID 0 (xentracectl, PID 1234)");
    stop.comm[0] = '\0';
    CHECK_STR(recorder_stop_describe(text, &stop), "root, UID 0 (PID 1234)");
    stop.pid = 0;
    stop.uid = 1000;
    CHECK_STR(recorder_stop_describe(text, &stop), "UID 1000");

    test_case("why there is no ring, and what to type");
    stop.uid = 0;
    stop.realtime_ns = clock_pair_now().realtime_ns - 300 * NSEC_PER_SEC;
    CHECK(recorder_stop_explain(&stop, &failure) < 0);
    CHECK_STR(failure.name, ERROR_NO_RING);
    CHECK_STR(failure.text, "The flight recorder was stopped by root, UID 0 5min ago. To start it: "
                            "xentracectl start flight-recorder");
    test_case("the wall clock was set back");
    stop.realtime_ns += 3600 * NSEC_PER_SEC;
    CHECK(recorder_stop_explain(&stop, &failure) < 0);
    CHECK(!strstr(failure.text, " ago"));
}

int main(void)
{
    test_note();
    test_unreadable();
    test_hostile_name();
    test_sentences();
    return test_end();
}
