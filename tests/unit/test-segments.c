/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Segments: what can be asked for, and their files before they have their names: prepared, named,
 * and found again by the next daemon.
 */

#include "daemon/session/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/protocol.h"
#include "common/units.h"
#include "daemon/session/session.h"
#include "tests/unit/test.h"

#define MIB UINT64_C(1048576)

static char directory[] = "test-segments-XXXXXX"; /* in the working directory */

/* --- What can be asked for. --- */

struct option_case {
    const char *name;
    struct session_options options;
    const char *says;       /* part of the sentence; NULL: it is taken */
    bool segmented;         /* if it is */
    uint64_t segment_bytes; /* if it is segmented */
};

static const struct option_case option_cases[] = {
    {"none", {0}, NULL, false, 0},
    {"size", {.segment_size_bytes = MIB}, NULL, true, MIB},
    {"time", {.segment_time_usec = USEC_PER_SEC}, NULL, true, 0},
    {"time and keep-size",
     {.segment_time_usec = USEC_PER_SEC, .keep_size_bytes = 80 * MIB},
     NULL,
     true,
     10 * MIB},
    {"time and little",
     {.segment_time_usec = USEC_PER_SEC, .keep_size_bytes = 3 * MIB},
     NULL,
     true,
     MIB},
    {"time and too little",
     {.segment_time_usec = USEC_PER_SEC, .keep_size_bytes = 3 * MIB - 1},
     "at least 3M",
     false,
     0},
    {"keep-size just enough",
     {.segment_size_bytes = 10 * MIB, .keep_size_bytes = 21 * MIB},
     NULL,
     true,
     10 * MIB},
    {"keep-size not enough",
     {.segment_size_bytes = 10 * MIB, .keep_size_bytes = 21 * MIB - 1},
     "at least 21M",
     false,
     0},
    {"two files", {.segment_size_bytes = MIB, .keep_files = 2}, NULL, true, MIB},
    {"one file", {.segment_size_bytes = MIB, .keep_files = 1}, "from 2", false, 0},
    {"six digits", {.segment_size_bytes = MIB, .keep_files = 100000}, "to 99999", false, 0},
    {"small", {.segment_size_bytes = MIB - 1}, "at least 1M", false, 0},
    {"huge", {.segment_size_bytes = UINT64_MAX}, "that large", false, 0},
    {"huge keep-size",
     {.segment_size_bytes = MIB, .keep_size_bytes = UINT64_MAX},
     "that large",
     false,
     0},
    {"short", {.segment_time_usec = USEC_PER_SEC - 1}, "at least 1 s", false, 0},
    {"keep-files alone", {.keep_files = 3}, "need --segment-size", false, 0},
    {"keep-size alone", {.keep_size_bytes = 99 * MIB}, "need --segment-size", false, 0},
    {"rotate alone", {.on_reserve = "rotate"}, "needs --segment-size", false, 0},
    {"pause alone", {.on_reserve = "pause"}, NULL, false, 0},
    {"output", {.segment_size_bytes = MIB, .has_output = true}, "leave out --output", false, 0},
    {"memory", {.segment_size_bytes = MIB, .memory_bytes = MIB}, "either --memory", false, 0},
    {"max-size", {.segment_size_bytes = MIB, .max_size_bytes = MIB}, "--keep-size", false, 0},
};

static void test_options(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(option_cases); i++) {
        const struct option_case *c = &option_cases[i];
        struct segments *segments = NULL;
        struct failure failure = {0};
        int r;

        test_case(c->name);
        r = segments_new(&c->options, 4, &segments, &failure);
        CHECK_INT(r < 0, c->says != NULL);
        CHECK_INT(segments != NULL, c->segmented);
        if (c->says) {
            CHECK_STR(failure.name, ERROR_INVALID);
            CHECK(strstr(failure.text, c->says));
        }
        if (segments) {
            CHECK_UINT(segments->size_bytes, c->segment_bytes);
            CHECK_INT(segments_aim_bytes(segments) > 0, c->segment_bytes > 0);
        }
        segments_free(segments);
    }
}

static void test_on_reserve(void)
{
    static const char *const names[] = {"stop", "rotate", "pause"};
    enum on_reserve on_reserve;

    test_case("on-reserve");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CHECK_INT(on_reserve_parse(names[i], &on_reserve), 0);
        CHECK_STR(on_reserve_name(on_reserve), names[i]);
    }
    CHECK_INT(on_reserve_parse("", &on_reserve), -EINVAL);
    CHECK_INT(on_reserve_parse("Stop", &on_reserve), -EINVAL);
}

/* --- Files. --- */

static bool is_there(int directory_fd, const char *file)
{
    return faccessat(directory_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make(int directory_fd, const char *file, const char *content)
{
    _cleanup_fd_ int fd = openat(directory_fd, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content));
}

static void test_prepare(int directory_fd)
{
    struct failure failure = {0};
    struct output output;

    test_case("prepare");
    output_init(&output, 0, UINT64_MAX);
    output.aim_bytes = 2 * MIB;
    output.waits = true;
    CHECK_INT(output_prepare_segment(&output, directory_fd, directory, "a.00002", &failure), 0);
    CHECK(is_there(directory_fd, ".a.00002.xentrace.next"));
    CHECK(!is_there(directory_fd, "a.00002.xentrace"));
    CHECK_UINT(output.granted_bytes, 2 * MIB);
    CHECK(!output.is_final && !output.ran_out);
    output_extend(&output, 0); /* longer than it was to be: in small steps */
    CHECK_UINT(output.granted_bytes, 3 * MIB);

    test_case("publish");
    make(directory_fd, "a.00002.xentrace", "other");
    CHECK_INT(output_publish_segment(&output, directory_fd, directory, "a.00002", "a.00002"),
              -EEXIST);
    CHECK_INT(output_publish_segment(&output, directory_fd, directory, "a.00002", "a.00003"), 0);
    CHECK(strstr(output.path, "/a.00003.xentrace"));
    CHECK(is_there(directory_fd, "a.00003.xentrace"));
    CHECK(!is_there(directory_fd, ".a.00002.xentrace.next"));
    output_done(&output);

    test_case("discard");
    output_init(&output, 0, UINT64_MAX);
    CHECK_INT(output_prepare_segment(&output, directory_fd, directory, "a.00004", &failure), 0);
    output_done(&output);
    output_discard_segment(directory_fd, "a.00004");
    CHECK(!is_there(directory_fd, ".a.00004.xentrace.next"));
}

static void test_sweep(int directory_fd)
{
    test_case("sweep");
    make(directory_fd, ".b.00001.xentrace.next", "records");
    make(directory_fd, ".b.00002.xentrace.next", "");
    make(directory_fd, ".b.00003.xentrace.next", "records");
    make(directory_fd, "b.00003.xentrace", "other");
    make(directory_fd, ".b.json.new", "half");
    make(directory_fd, ".snapshot.xentrace.new", "half");
    make(directory_fd, ".xentrace.next", "somebody's");
    output_sweep(directory_fd);
    CHECK(is_there(directory_fd, "b.00001.xentrace"));
    CHECK(!is_there(directory_fd, ".b.00001.xentrace.next"));
    CHECK(!is_there(directory_fd, ".b.00002.xentrace.next"));
    CHECK(!is_there(directory_fd, "b.00002.xentrace"));
    CHECK(is_there(directory_fd, ".b.00003.xentrace.next")); /* its place is taken: for people */
    CHECK(!is_there(directory_fd, ".b.json.new"));
    CHECK(!is_there(directory_fd, ".snapshot.xentrace.new"));
    CHECK(is_there(directory_fd, ".xentrace.next"));
}

/* A full disk, as far as a reserve goes that is larger than any: it may be waited for. */
static void test_wait(int directory_fd)
{
    struct failure failure = {0};
    struct output output;

    test_case("wait");
    output_init(&output, 0, UINT64_MAX);
    output.aim_bytes = MIB;
    output.waits = true;
    CHECK_INT(output_create(&output, directory_fd, directory, "w", &failure), 0);
    output.reserve_bytes = UINT64_C(1) << 60;
    output_extend(&output, 0);
    CHECK(output.ran_out && !output.is_final);
    CHECK_UINT(output_headroom_bytes(&output, 0), 0);
    CHECK_UINT(output.granted_bytes, MIB);
    output.reserve_bytes = 0;
    output_extend(&output, 0);
    CHECK(!output.ran_out && !output.is_final);
    CHECK_UINT(output.granted_bytes, 2 * MIB);
    output.reserve_bytes = UINT64_C(1) << 60;
    output.waits = false;
    output_extend(&output, 0);
    CHECK(output.ran_out && output.is_final);
    output_done(&output);
}

static void test_refuse_old(int directory_fd)
{
    struct session_context context = {.state_dir_fd = directory_fd, .state_dir = directory};
    struct session session = {.context = &context, .name = "c"};
    struct failure failure = {0};

    test_case("older segments");
    make(directory_fd, "c.xentrace", "");
    make(directory_fd, "c.0001.xentrace", "");
    make(directory_fd, "c.00001.xentrace.zst", "");
    make(directory_fd, "cc.00001.xentrace", "");
    CHECK_INT(segments_refuse_old(&session, &failure), 0);
    make(directory_fd, "c.00012.json", "");
    CHECK_INT(segments_refuse_old(&session, &failure), -EEXIST);
    CHECK_STR(failure.name, ERROR_NAME_IN_USE);
    CHECK(strstr(failure.text, "c.00012.json"));
}

int main(void)
{
    char command[64];
    int directory_fd;

    if (!mkdtemp(directory))
        return EXIT_FAILURE;
    directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory_fd < 0)
        return EXIT_FAILURE;
    test_options();
    test_on_reserve();
    test_prepare(directory_fd);
    test_sweep(directory_fd);
    test_wait(directory_fd);
    test_refuse_old(directory_fd);
    (void)close(directory_fd);
    (void)snprintf(command, sizeof(command), "rm -rf %s", directory);
    if (system(command) != 0)
        return EXIT_FAILURE;
    return test_end();
}
