// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A file takes its name, and nothing that exists is replaced: by place_file() on file systems that
 * refuse one way of it or another, and by sidecars, on a real worker.
 */

#include "daemon/output/place.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "common/util.h"
#include "daemon/base/worker.h"
#include "daemon/output/sidecar.h"
#include "tests/unit/test.h"

static char directory[] = "test-place-XXXXXX"; /* in the working directory */
static int directory_fd;
static int rename_error, link_error; /* what the file system says; 0: it can do that */
static int passing_error;            /* the next PASSING renames fail with that */
static unsigned int passing;
static bool is_carried_out; /* ... although they were carried out */

/* The library's, for the file systems that cannot. */
int renameat2(int old_fd, const char *old, int new_fd, const char *new, unsigned int flags)
{
    if (passing > 0) {
        passing--;
        if (is_carried_out)
            CHECK_INT(syscall(SYS_renameat2, old_fd, old, new_fd, new, flags), 0);
        errno = passing_error;
        return -1;
    }
    errno = rename_error;
    return rename_error ? -1 : (int)syscall(SYS_renameat2, old_fd, old, new_fd, new, flags);
}

int linkat(int old_fd, const char *old, int new_fd, const char *new, int flags)
{
    errno = link_error;
    return link_error ? -1 : (int)syscall(SYS_linkat, old_fd, old, new_fd, new, flags);
}

static void write_file(const char *name, const char *text)
{
    int fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    fd_close(&fd);
}

/* "" if there is none. */
static const char *read_file(const char *name)
{
    static char text[256];
    int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

    fd_close(&fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void remove_file(const char *name)
{
    (void)unlinkat(directory_fd, name, 0); /* it may not be there */
}

/* --- place_file(). --- */

struct place_case {
    const char *name;
    int rename_error, link_error;
    int free_result, taken_result;
};

static const struct place_case place_cases[] = {
    {"renaming", 0, 0, 0, -EEXIST},
    {"a file system without RENAME_NOREPLACE", EINVAL, 0, 0, -EEXIST},
    {"a kernel without it", ENOSYS, 0, 0, -EEXIST},
    {"a file system without links, too", EINVAL, EPERM, 0, -EEXIST},
    {"a network's file system without links", EINVAL, EOPNOTSUPP, 0, -EEXIST},
    {"a disk that fails", EIO, 0, -EIO, -EIO},
    {"a disk that fails to link", EINVAL, ENOSPC, -ENOSPC, -ENOSPC},
};

static void test_place(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(place_cases); i++) {
        const struct place_case *c = &place_cases[i];

        test_case(c->name);
        rename_error = c->rename_error;
        link_error = c->link_error;
        write_file(".new", "ours");
        CHECK_INT(place_file(directory_fd, ".new", "name"), c->free_result);
        CHECK_STR(read_file(c->free_result ? ".new" : "name"), "ours");
        CHECK_STR(read_file(c->free_result ? "name" : ".new"), "");

        write_file(".new", "ours");
        write_file("name", "theirs");
        CHECK_INT(place_file(directory_fd, ".new", "name"), c->taken_result);
        CHECK_STR(read_file("name"), "theirs");
        CHECK_STR(read_file(".new"), "ours");

        remove_file("name");
        CHECK(symlinkat("nowhere", directory_fd, "name") == 0);
        CHECK_INT(place_file(directory_fd, ".new", "name"), c->taken_result);
        remove_file("name");
        remove_file(".new");
    }
    rename_error = link_error = 0;
}

struct passing_case {
    const char *name;
    int error;
    unsigned int times;
    bool is_carried_out;
    int result;
};

static const struct passing_case passing_cases[] = {
    {"interrupted once", EINTR, 1, false, 0},
    {"an I/O error, once", EIO, 1, false, 0},
    {"an I/O error, several times", EIO, 4, false, 0},
    {"an I/O error, for good", EIO, 100, false, -EIO},
    {"no memory for a moment", ENOMEM, 2, false, 0},
    {"an I/O error of a rename that was carried out", EIO, 1, true, 0},
    {"a file system that is read only", EROFS, 1, false, -EROFS},
};

static void test_passing(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(passing_cases); i++) {
        const struct passing_case *c = &passing_cases[i];

        test_case(c->name);
        write_file(".new", "ours");
        passing_error = c->error;
        passing = c->times;
        is_carried_out = c->is_carried_out;
        CHECK_INT(place_file(directory_fd, ".new", "name"), c->result);
        passing = 0;
        CHECK_STR(read_file(c->result ? ".new" : "name"), "ours");
        CHECK_STR(read_file(c->result ? "name" : ".new"), "");
        remove_file("name");
        remove_file(".new");
    }

    test_case("a second name that a crash left");
    write_file(".new", "ours");
    CHECK_INT(syscall(SYS_linkat, directory_fd, ".new", directory_fd, "name", 0), 0);
    CHECK_INT(place_file(directory_fd, ".new", "name"), 0);
    CHECK_STR(read_file("name"), "ours");
    CHECK_STR(read_file(".new"), "");
    remove_file("name");
}

/* --- Sidecars. --- */

static void note_error(void *userdata, int error)
{
    *(int *)userdata = error;
}

static int write_sidecar(sd_event *event, struct worker *worker, const struct sidecar *sidecar,
                         const char *text)
{
    int error = 1;

    CHECK_INT(
        sidecar_write(sidecar, worker, json_object_new_string(text), true, note_error, &error), 0);
    while (error == 1)
        CHECK(sd_event_run(event, UINT64_MAX) >= 0);
    return error;
}

static void test_sidecar(void)
{
    struct sidecar sidecar, other;
    struct workers *workers;
    struct worker *worker;
    sd_event *event;

    if (sd_event_new(&event) < 0 || workers_new(event, &workers) < 0 ||
        worker_new(workers, "test", &worker) < 0)
        exit(EXIT_FAILURE);
    sidecar_init(&sidecar);
    sidecar_init(&other);
    CHECK_INT(sidecar_name(&sidecar, directory_fd, directory, "s"), 0);
    CHECK_INT(sidecar_name(&other, directory_fd, directory, "s"), 0);

    test_case("a sidecar's first text replaces nothing");
    write_file("s.json", "theirs");
    CHECK_INT(write_sidecar(event, worker, &sidecar, "1"), -EEXIST);
    sidecar_remove(&sidecar, worker);
    CHECK_STR(read_file("s.json"), "theirs");
    remove_file("s.json");

    test_case("its later ones replace its own");
    CHECK_INT(write_sidecar(event, worker, &sidecar, "2"), 0);
    sidecar.is_ours = true;
    CHECK_INT(write_sidecar(event, worker, &sidecar, "3"), 0);
    CHECK_STR(read_file("s.json"), "\"3\"");

    test_case("another one of that name changes nothing");
    CHECK_INT(write_sidecar(event, worker, &other, "4"), -EEXIST);
    sidecar_remove(&other, worker);
    CHECK_INT(write_sidecar(event, worker, &sidecar, "5"), 0);
    CHECK_STR(read_file("s.json"), "\"5\"");

    test_case("its owner removes it");
    sidecar_remove(&sidecar, worker);
    CHECK_INT(sidecar_name(&other, directory_fd, directory, "t"), 0);
    CHECK_INT(write_sidecar(event, worker, &other, "6"), 0); /* the worker has come to that */
    CHECK_STR(read_file("s.json"), "");
    remove_file("t.json");

    sidecar_done(&sidecar, worker);
    sidecar_done(&other, worker);
    worker_free(worker);
    workers_free(workers);
    sd_event_unref(event);
}

int main(void)
{
    if (!mkdtemp(directory))
        return TEST_SKIPPED;
    directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    test_place();
    test_passing();
    test_sidecar();
    (void)close(directory_fd);
    CHECK(rmdir(directory) == 0); /* no temporary file is left */
    return test_end();
}
