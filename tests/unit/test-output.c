// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests to an output, with a real worker and on a real directory: they are carried out in order,
 * each is answered once with the figures of its moment, and nothing is left of an output that was
 * freed, whatever was under way. What the requests do to the file is test-output-file's.
 */

#include "daemon/output/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/protocol.h"
#include "common/util.h"
#include "daemon/base/name.h"
#include "daemon/output/sidecar.h"
#include "tests/unit/test.h"

#define MIB UINT64_C(1048576)

static char directory[] = "test-output-XXXXXX"; /* in the working directory */
static int directory_fd = -1;
static struct workers *workers;
static struct worker *worker;

static struct output *output;
static char text[512]; /* the answers */
static struct failure last_failure;
static int last_error;

/* --- Answers. --- */

static void note(const char *answer)
{
    size_t length = strlen(text);

    (void)snprintf(text + length, sizeof(text) - length, "%s%s", length > 0 ? " " : "", answer);
}

static void take(const char *answer, void *userdata, int error, const struct failure *failure)
{
    CHECK(userdata == text);
    note(answer);
    last_error = error;
    last_failure = *failure;
}

/* An output_done_fn for each request. */
#define ANSWER(name)                                                                               \
    static void answer_##name(void *userdata, int error, const struct failure *failure)            \
    {                                                                                              \
        take(#name, userdata, error, failure);                                                     \
    }

ANSWER(run)
ANSWER(finish)
ANSWER(publish)
ANSWER(remove)

static uint64_t granted_at_open, granted_at_extend;

static void answer_open(void *userdata, int error, const struct failure *failure)
{
    take("open", userdata, error, failure);
    granted_at_open = output->figures.granted_bytes;
}

static void answer_extend(void *userdata, int error, const struct failure *failure)
{
    take("extend", userdata, error, failure);
    granted_at_extend = output->figures.granted_bytes;
}

static void never(void *userdata, int error, const struct failure *failure)
{
    (void)userdata, (void)error, (void)failure;
    CHECK_NEVER("an answer");
}

/* --- A rig. --- */

static struct output_request own(const char *name)
{
    return (struct output_request){
        .directory_fd = directory_fd,
        .directory = directory,
        .name = name,
        .check = sidecar_check_none,
        .max_bytes = UINT64_MAX,
        .first_aim_bytes = MIB,
        .aim_bytes = 4 * MIB,
    };
}

static void begin(const char *name)
{
    test_case(name);
    text[0] = '\0';
}

static void make(const struct output_request *request, output_done_fn done)
{
    CHECK_INT(output_new(worker, request, done, text, &output), 0);
}

/* All that is under way is answered. */
static void answers(const char *expected)
{
    workers_run_all(workers);
    CHECK_STR(text, expected);
    text[0] = '\0';
}

static bool exists(const char *file)
{
    return faccessat(directory_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make_file(const char *file)
{
    int fd = openat(directory_fd, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    fd_close(&fd);
}

static void empty_directory(void)
{
    DIR *stream = opendir(directory);
    const struct dirent *entry;

    while (stream && (entry = readdir(stream)))
        (void)unlinkat(directory_fd, entry->d_name, 0);
    if (stream)
        (void)closedir(stream);
}

static unsigned int count_descriptors(void)
{
    DIR *stream = opendir("/proc/self/fd");
    unsigned int count = 0;

    while (stream && readdir(stream))
        count++;
    if (stream)
        (void)closedir(stream);
    return count;
}

/* Holds up the worker until a byte comes. */
static int wait_for_byte(struct output_file *file, void *argument, struct failure *failure)
{
    char byte;

    (void)file, (void)failure;
    return read(*(const int *)argument, &byte, 1) == 1 ? 0 : -EIO;
}

static int fail_with_words(struct output_file *file, void *argument, struct failure *failure)
{
    (void)argument;
    CHECK(file->fd >= 0);
    return failure_set(failure, -EFBIG, ERROR_INVALID, "Words.");
}

/* --- Cases. --- */

static void test_order(void)
{
    const struct output_request request = own("a");
    int fds[2];

    begin("requests keep their order, and figures are those of their moment");
    CHECK_INT(pipe(fds), 0);
    make(&request, answer_open);
    CHECK_INT(output->figures.fd, -1);
    output_extend(output, 0, false, 0, answer_extend);
    output_run(output, wait_for_byte, &fds[0], answer_run);
    output_finish(output, 0, answer_finish);
    CHECK(output_is_busy(output, OUTPUT_OPEN));
    CHECK(output_is_busy(output, OUTPUT_FINISH));
    CHECK(!output_is_busy(output, OUTPUT_REMOVE));
    CHECK_INT(write(fds[1], "x", 1), 1);
    answers("open extend run finish");
    CHECK_UINT(granted_at_open, MIB);
    CHECK_UINT(granted_at_extend, 4 * MIB);
    CHECK(!output_is_busy(output, OUTPUT_OPEN));
    CHECK(!output_is_busy(output, OUTPUT_FINISH));
    CHECK(output->figures.fd >= 0);
    CHECK(strstr(output->figures.path, "/a.xentrace"));
    CHECK(exists("a.xentrace"));

    begin("a request that fails: its error, its words");
    output_run(output, fail_with_words, NULL, answer_run);
    answers("run");
    CHECK_INT(last_error, -EFBIG);
    CHECK_STR(last_failure.name, ERROR_INVALID);
    output_extend(output, 0, false, 0, answer_extend);
    answers("extend");
    CHECK_INT(last_error, 0);
    CHECK_STR(last_failure.name, NULL); /* not those of another request */

    begin("less space than is worth it changes nothing");
    output_extend(output, 0, false, UINT64_MAX, answer_extend);
    granted_at_extend = output->figures.granted_bytes;
    answers("extend");
    CHECK(!output->figures.ran_out);
    CHECK_UINT(output->figures.granted_bytes, granted_at_extend);

    begin("a path for people");
    output_set_path(output, "elsewhere");
    CHECK_STR(output->figures.path, "elsewhere");

    begin("it is removed under the name under which it was created");
    output_remove(output, answer_remove);
    answers("remove");
    CHECK(!exists("a.xentrace"));
    output_free(output);
    answers("");
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

static void test_names(void)
{
    struct output_request request = own("a");

    begin("a name that is in use");
    make_file("a.xentrace");
    make(&request, answer_open);
    answers("open");
    CHECK_INT(last_error, -EEXIST);
    CHECK_STR(last_failure.name, ERROR_NAME_IN_USE);
    CHECK_INT(output->figures.fd, -1);
    output_free(output);
    answers("");
    CHECK(exists("a.xentrace"));

    begin("another will do, and NAME-002 has a sidecar");
    make_file("a-002.json");
    request.may_rename = true;
    make(&request, answer_open);
    answers("open");
    CHECK_INT(last_error, 0);
    CHECK_STR(last_failure.name, NULL);
    CHECK_STR(output->name, "a-003");
    CHECK(strstr(output->figures.path, "/a-003.xentrace"));
    CHECK(exists("a-003.xentrace"));
    CHECK(!exists("a-002.xentrace"));
    output_remove(output, answer_remove);
    output_free(output);
    answers("");
    CHECK(!exists("a-003.xentrace"));
    CHECK(exists("a.xentrace"));
    CHECK(exists("a-002.json"));

    begin("another will do, but only a few");
    request.number_max = 2;
    make(&request, answer_open);
    answers("open");
    CHECK_INT(last_error, -EEXIST);
    CHECK(!exists("a-003.xentrace"));
    output_free(output);
    answers("");
    empty_directory();

    begin("a hidden file gets its place, but no other's");
    request = own("h");
    request.naming = OUTPUT_HIDDEN;
    make_file("taken.xentrace");
    make(&request, answer_open);
    output_publish(output, "taken", answer_publish);
    answers("open publish");
    CHECK_INT(last_error, -EEXIST);
    CHECK(!exists("h.xentrace"));
    output_publish(output, "place", answer_publish);
    answers("publish");
    CHECK_INT(last_error, 0);
    CHECK(exists("place.xentrace"));
    CHECK(strstr(output->figures.path, "/place.xentrace"));
    output_free(output);
    answers("");
    empty_directory();
}

/* Of one second: they are all asked for under the same name, which is as long as one can be. */
static void test_many_names(void)
{
    static const char stem[] = "snapshot-label-label-label-label-label-lab-20261121-060512";
    struct output_request request = own(stem);
    struct output *outputs[3];
    char name[SESSION_NAME_MAX + 1], file[NAME_MAX + 1], last[NAME_MAX + 1] = "";

    begin("names after more than a thousand");
    request.naming = OUTPUT_HIDDEN;
    request.may_rename = true;
    (void)snprintf(file, sizeof(file), "%s.xentrace", stem);
    make_file(file);
    for (unsigned int i = 2; i <= 1200; i++) {
        name_number(stem, i, name);
        (void)snprintf(file, sizeof(file), "%s.xentrace", name);
        make_file(file);
    }
    for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
        make(&request, answer_open);
        answers("open");
        CHECK_INT(last_error, 0);
        CHECK(name_is_valid(output->name, SESSION_NAME_MAX));
        CHECK(strcmp(output->name, last) > 0);
        (void)strcpy(last, output->name);
        outputs[i] = output;
    }
    CHECK_STR(last, "snapshot-label-label-label-label-label-lab-20261121-060512-1203");
    for (size_t i = 0; i < ARRAY_SIZE(outputs); i++)
        output_free(outputs[i]);
    answers("");
    empty_directory();
}

static void test_requirement(void)
{
    struct output_request request = own("a");
    unsigned int descriptors = count_descriptors();

    begin("a requirement that cannot be met: nothing is left, nothing is open");
    request.require_bytes = UINT64_C(1) << 60;
    make(&request, answer_open);
    answers("open");
    CHECK_INT(last_error, -ENOSPC);
    CHECK_STR(last_failure.name, ERROR_NO_SPACE);
    CHECK(!exists("a.xentrace"));
    CHECK_INT(output->figures.fd, -1);
    CHECK_UINT(count_descriptors(), descriptors);
    output_remove(output, answer_remove);
    answers("remove");
    output_free(output);
    answers("");

    begin("one that can");
    request.require_bytes = 8 * MIB;
    make(&request, answer_open);
    answers("open");
    CHECK_INT(last_error, 0);
    CHECK(output->figures.granted_bytes >= 8 * MIB);
    output_remove(output, NULL); /* nobody cares */
    output_free(output);
    answers("");
    CHECK(!exists("a.xentrace"));
    CHECK_UINT(count_descriptors(), descriptors);
}

static void test_forget(void)
{
    const struct output_request request = own("a");
    int fds[2];

    begin("an answer that is forgotten: the request is carried out, and the others are answered");
    CHECK_INT(pipe(fds), 0);
    make(&request, answer_open);
    answers("open");
    output_run(output, wait_for_byte, &fds[0], answer_run);
    output_extend(output, 0, false, 0, never);
    output_forget(output, OUTPUT_EXTEND);
    output_forget(output, OUTPUT_FINISH); /* none is under way */
    CHECK_INT(write(fds[1], "x", 1), 1);
    answers("run");
    CHECK_UINT(output->figures.granted_bytes, 4 * MIB);
    output_finish(output, 0, answer_finish);
    output_extend(output, 0, false, 0, answer_extend);
    answers("finish extend");

    begin("the page cache is looked after when there is nothing else to do");
    output->figures.is_direct = false; /* whatever the file system can */
    output_run(output, wait_for_byte, &fds[0], answer_run);
    output_drop_cache(output, 4096);
    CHECK(!output_is_busy(output, OUTPUT_DROP_CACHE));
    CHECK_INT(write(fds[1], "x", 1), 1);
    answers("run");
    output->figures.is_direct = false;
    output_drop_cache(output, 4096);
    CHECK(output_is_busy(output, OUTPUT_DROP_CACHE));
    output_drop_cache(output, 4096); /* twice is once */
    answers("");
    output_free(output);
    answers("");
    empty_directory();
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

static void free_output(void *userdata, int error, const struct failure *failure)
{
    (void)userdata, (void)failure;
    CHECK_INT(error, 0);
    CHECK(!output_free(output));
}

static void test_free(void)
{
    unsigned int descriptors = count_descriptors();
    const struct output_request request = own("a");
    int fds[2];

    begin("freed while requests are under way: they are carried out, nobody is told");
    CHECK_INT(pipe(fds), 0);
    make(&request, answer_open);
    answers("open");
    output_run(output, wait_for_byte, &fds[0], never);
    output_extend(output, 0, false, 0, never);
    output_finish(output, 4096, never);
    output_free(output);
    CHECK(exists("a.xentrace"));
    CHECK_INT(write(fds[1], "x", 1), 1);
    answers("");
    fd_close(&fds[0]);
    fd_close(&fds[1]);
    CHECK_UINT(count_descriptors(), descriptors);
    empty_directory();

    begin("freed before it is open");
    make(&request, never);
    output_free(output);
    answers("");
    CHECK_UINT(count_descriptors(), descriptors);
    empty_directory();

    begin("freed by its own answer, and before the next one");
    make(&request, free_output);
    output_extend(output, 0, false, 0, never);
    CHECK(!output_free(NULL));
    answers("");
    CHECK_UINT(count_descriptors(), descriptors);
    empty_directory();
}

static void test_adopt(void)
{
    unsigned int descriptors = count_descriptors();
    struct output_request request = {
        .is_adopted = true,
        .path = "client",
        .max_bytes = MIB,
    };
    int pipe_fds[2];
    struct stat st;

    begin("a client's file: the client's descriptor stays its own");
    request.fd = openat(directory_fd, "c", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    make(&request, answer_open);
    fd_close(&request.fd);
    output_finish(output, 8192, answer_finish);
    answers("open finish");
    CHECK_INT(last_error, 0);
    CHECK_STR(output->figures.path, "client");
    CHECK(output->figures.is_final);
    CHECK_UINT(output->figures.granted_bytes, MIB);
    CHECK_INT(fstat(output->figures.fd, &st), 0);
    CHECK_INT(st.st_size, 8192);
    output_free(output);
    answers("");
    CHECK_UINT(count_descriptors(), descriptors);

    begin("one that is not empty is refused, and stays");
    request.fd = openat(directory_fd, "c", O_RDWR | O_CLOEXEC);
    make(&request, answer_open);
    answers("open");
    CHECK_STR(last_failure.name, ERROR_OUTPUT);
    CHECK_INT(output->figures.fd, -1);
    output_free(output);
    fd_close(&request.fd);
    answers("");
    CHECK(exists("c"));
    CHECK_UINT(count_descriptors(), descriptors);

    begin("its sidecar is a pipe: neither is taken");
    CHECK_INT(pipe2(pipe_fds, O_CLOEXEC), 0);
    request.fd = openat(directory_fd, "d", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    request.sidecar = &(struct sidecar){.fd = pipe_fds[1], .path = (char *)"d.json"};
    make(&request, answer_open);
    answers("open");
    CHECK_STR(last_failure.name, ERROR_OUTPUT);
    CHECK(strstr(last_failure.text, "The sidecar d.json is a pipe"));
    CHECK_INT(output->figures.fd, -1);
    output_free(output);
    fd_close(&request.fd);
    answers("");
    request.sidecar = NULL;
    fd_close(&pipe_fds[0]);
    fd_close(&pipe_fds[1]);
    CHECK_UINT(count_descriptors(), descriptors);

    begin("a descriptor that is none");
    request.fd = -1;
    CHECK_INT(output_new(worker, &request, never, text, &output), -EBADF);
    answers("");
    empty_directory();
}

int main(void)
{
    sd_event *event = NULL;

    if (!mkdtemp(directory))
        return TEST_SKIPPED;
    directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory_fd < 0 || sd_event_new(&event) < 0 || workers_new(event, &workers) < 0 ||
        worker_new(workers, "output", &worker) < 0)
        return EXIT_FAILURE;
    test_order();
    test_names();
    test_many_names();
    test_requirement();
    test_forget();
    test_free();
    test_adopt();
    worker_free(worker);
    workers_free(workers);
    sd_event_unref(event);
    fd_close(&directory_fd);
    (void)rmdir(directory);
    return test_end();
}
