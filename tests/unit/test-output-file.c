// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The output file: what may be taken over, and that its grants never touch the reserve. The latter
 * on small file systems of the test's own, in a mount namespace of its own, which takes root.
 */

#include "daemon/output/output-file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/protocol.h"
#include "tests/unit/test.h"

#define MIB UINT64_C(1048576)

static char directory[] = "test-output-XXXXXX"; /* in the working directory */
static char path[64];                           /* of a file in it */

static int open_directory(void)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        exit(EXIT_FAILURE);
    return fd;
}

/* --- Taking over. --- */

struct adopt_case {
    const char *name;
    const char *path; /* as the client says */
    int flags;
    const char *content;
    const char *error; /* NULL: taken */
    bool is_stream;
};

static const struct adopt_case adopt_cases[] = {
    {"file", "f", O_RDWR, "", NULL, false},
    {"file for writing only", "f", O_WRONLY, "", NULL, false},
    {"file for appending", "f", O_WRONLY | O_APPEND, "", NULL, false},
    {"file for reading", "f", O_RDONLY, "", ERROR_OUTPUT, false},
    {"file that is not empty", "f", O_RDWR, "x", ERROR_OUTPUT, false},
    {"standard output to a file", "-", O_WRONLY | O_APPEND, "x", NULL, true},
};

static void test_adopt(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(adopt_cases); i++) {
        const struct adopt_case *c = &adopt_cases[i];
        struct failure failure = {0};
        struct output_file output;
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        test_case(c->name);
        if (fd < 0 || write(fd, c->content, strlen(c->content)) < 0 || close(fd) < 0)
            exit(EXIT_FAILURE);
        fd = open(path, c->flags | O_CLOEXEC);
        output_file_init(&output, 0, 5 * MIB);
        CHECK_INT(output_file_adopt(&output, dup(fd), c->path, false, &failure) < 0,
                  c->error != NULL);
        CHECK_STR(failure.name, c->error);
        if (!c->error) {
            CHECK(output.is_stream == c->is_stream);
            CHECK_UINT(output.granted_bytes, c->is_stream ? UINT64_MAX : 5 * MIB);
            /* Writes go to offsets: appending would put them where they come. */
            CHECK(c->is_stream || !(fcntl(output.fd, F_GETFL) & O_APPEND));
        }
        output_file_done(&output);
        (void)close(fd);
        (void)unlink(path);
    }
}

static void test_adopt_pipe(void)
{
    struct failure failure = {0};
    struct output_file output;
    int fds[2];

    test_case("pipe");
    if (pipe2(fds, O_CLOEXEC) < 0)
        exit(EXIT_FAILURE);
    output_file_init(&output, 0, UINT64_MAX);
    CHECK_INT(output_file_adopt(&output, dup(fds[1]), "fifo", false, &failure), 0);
    CHECK(output.is_stream && !output.is_final);
    CHECK_UINT(output.granted_bytes, UINT64_MAX);
    output_file_extend(&output, 1000);
    CHECK_UINT(output.granted_bytes, UINT64_MAX);
    CHECK_INT(output_file_finish(&output, 1000), 0);
    output_file_done(&output);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void test_create(void)
{
    _cleanup_fd_ int directory_fd = open_directory();
    struct output_file output, second;
    struct failure failure = {0};
    struct stat st;

    test_case("create");
    output_file_init(&output, 0, 3 * MIB + 5);
    CHECK_INT(
        output_file_create(&output, directory_fd, directory, "f", OUTPUT_NAMED, NULL, &failure), 0);
    CHECK_UINT(output.granted_bytes, 3 * MIB + 5);
    CHECK(output.is_final && !output.ran_out);
    CHECK_INT(fstat(output.fd, &st), 0);
    CHECK_UINT(st.st_size, 0); /* what is granted shows nowhere */
    CHECK_UINT(st.st_mode & 0777 & ~0640u, 0);
    CHECK_STR(output.path, path);

    output_file_init(&second, 0, UINT64_MAX);
    CHECK_INT(
        output_file_create(&second, directory_fd, directory, "f", OUTPUT_NAMED, NULL, &failure),
        -EEXIST);
    CHECK_STR(failure.name, ERROR_NAME_IN_USE);
    output_file_done(&second);

    CHECK_INT(output_file_finish(&output, 0), 0);
    CHECK_INT(fstat(output.fd, &st), 0);
    CHECK_UINT(st.st_blocks, 0);
    output_file_done(&output);
    CHECK_INT(unlink(path), 0);

    test_case("no space");
    output_file_init(&output, UINT64_C(1) << 60, UINT64_MAX);
    CHECK_INT(
        output_file_create(&output, directory_fd, directory, "f", OUTPUT_NAMED, NULL, &failure),
        -ENOSPC);
    CHECK_STR(failure.name, ERROR_NO_SPACE);
    CHECK(access(path, F_OK) < 0); /* nothing is left behind */
    output_file_done(&output);
}

/* --- The reserve. --- */

struct reserve_case {
    const char *name;
    uint64_t reserve_bytes;
    uint64_t max_bytes;
    uint64_t hog_bytes; /* what somebody else writes in the middle */
    bool ran_out;
};

static const struct reserve_case reserve_cases[] = {
    {"no reserve", 0, UINT64_MAX, 0, true},
    {"a reserve", 7 * MIB, UINT64_MAX, 0, true},
    {"a reserve and somebody else", 4 * MIB, UINT64_MAX, 6 * MIB, true},
    {"a size below the reserve", 4 * MIB, 9 * MIB + 1234, 0, false},
    {"a size that the reserve does not leave", 8 * MIB, 100 * MIB, 0, true},
};

static uint64_t available_in(int fd)
{
    struct statvfs st;

    if (fstatvfs(fd, &st) < 0)
        exit(EXIT_FAILURE);
    return (uint64_t)st.f_bavail * st.f_frsize;
}

/* Fills [BEGIN, END), and has it on the disk. Returns 0 or a negative errno. */
static int fill(int fd, uint64_t begin, uint64_t end)
{
    static const uint8_t block[65536] = {1};

    while (begin < end) {
        ssize_t n = pwrite(fd, block, min_u64(sizeof(block), end - begin), (off_t)begin);

        if (n <= 0)
            return n < 0 ? -errno : -ENOSPC;
        begin += (uint64_t)n;
    }
    return fsync(fd) < 0 ? -errno : 0;
}

static void hog(int directory_fd, uint64_t bytes)
{
    _cleanup_fd_ int fd = openat(directory_fd, "hog", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CHECK_INT(fill(fd, 0, bytes), 0);
}

/* A writer that uses each grant to its end. Returns how far it came. */
static uint64_t use_grants(struct output_file *output, const struct reserve_case *c)
{
    uint64_t written = 0;

    while (CHECK_INT(fill(output->fd, written, output->granted_bytes), 0)) {
        written = output->granted_bytes;
        CHECK(available_in(output->fd) >= c->reserve_bytes);
        CHECK(written <= c->max_bytes);
        if (output->is_final)
            break;
        output_file_extend(output, written);
        CHECK(output->is_final || output->granted_bytes > written);
        CHECK(available_in(output->fd) >= c->reserve_bytes);
    }
    return written;
}

static void check_reserve(const struct reserve_case *c)
{
    _cleanup_fd_ int directory_fd = open_directory();
    uint64_t before = available_in(directory_fd), written, left;
    struct failure failure = {0};
    struct output_file output;
    struct stat st;

    output_file_init(&output, c->reserve_bytes + c->hog_bytes, c->max_bytes);
    if (!CHECK_INT(
            output_file_create(&output, directory_fd, directory, "f", OUTPUT_NAMED, NULL, &failure),
            0))
        return;
    if (c->hog_bytes) {
        hog(directory_fd, c->hog_bytes);
        output.reserve_bytes = c->reserve_bytes;
    }
    (void)fcntl(output.fd, F_SETFL, 0); /* for the writes here need not be of whole blocks */
    written = use_grants(&output, c);
    left = available_in(directory_fd);
    CHECK(output.ran_out == c->ran_out);
    if (c->ran_out)
        CHECK(left < c->reserve_bytes + MIB); /* nothing is wasted either */
    else
        CHECK_UINT(written, c->max_bytes);

    /* Cut to less: what was granted too much is free again. */
    CHECK_INT(output_file_finish(&output, 100001), 0);
    CHECK_INT(fstat(output.fd, &st), 0);
    CHECK_UINT(st.st_size, 100001);
    CHECK((uint64_t)st.st_blocks * 512 <= 100001 + 8192);
    CHECK(available_in(directory_fd) + MIB / 2 + c->hog_bytes >= before);
    output_file_done(&output);
    (void)unlinkat(directory_fd, "f.xentrace", 0);
    (void)unlinkat(directory_fd, "hog", 0);
}

/* A file that never used its grant: what is allocated ahead goes, and nothing of it showed. */
static void check_unused(void)
{
    _cleanup_fd_ int directory_fd = open_directory();
    struct failure failure = {0};
    struct output_file output;
    struct stat st;

    test_case("an unused grant");
    output_file_init(&output, 2 * MIB, UINT64_MAX);
    CHECK_INT(
        output_file_create(&output, directory_fd, directory, "f", OUTPUT_NAMED, NULL, &failure), 0);
    (void)fcntl(output.fd, F_SETFL, 0);
    CHECK(output.granted_bytes > MIB);
    CHECK(available_in(directory_fd) >= 2 * MIB);
    CHECK_INT(fill(output.fd, 0, 5000), 0);
    CHECK_INT(fstat(output.fd, &st), 0);
    CHECK_UINT(st.st_size, 5000);
    CHECK(!output.preallocates || (uint64_t)st.st_blocks * 512 >= output.granted_bytes);
    CHECK_INT(output_file_finish(&output, 5000), 0); /* its length is right already */
    CHECK_INT(fstat(output.fd, &st), 0);
    CHECK((uint64_t)st.st_blocks * 512 <= 8192);
    output_file_done(&output);
    (void)unlinkat(directory_fd, "f.xentrace", 0);
}

static void test_reserve(const char *what)
{
    for (size_t i = 0; i < ARRAY_SIZE(reserve_cases); i++) {
        char name[96];

        (void)snprintf(name, sizeof(name), "%s: %s", what, reserve_cases[i].name);
        test_case(name);
        check_reserve(&reserve_cases[i]);
    }
    check_unused();
}

/* A file system in a file, mounted over the directory. */
static bool mount_ext4(void)
{
    char command[256];

    (void)snprintf(command, sizeof(command),
                   "truncate -s 40M %s.img && mkfs.ext4 -q -F %s.img && mount -o loop %s.img %s",
                   directory, directory, directory, directory);
    return system(command) == 0; /* all of it is ours */
}

static bool own_mounts(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void test_reserves(void)
{
    char image[64];

    if (!own_mounts()) {
        printf("grants on small file systems: skipped, for want of the right to mount\n");
        return;
    }
    if (mount("none", directory, "tmpfs", 0, "size=24m") == 0) {
        test_reserve("tmpfs");
        CHECK_INT(umount(directory), 0);
    } else {
        printf("grants on tmpfs: skipped, %s\n", strerror(errno));
    }
    if (mount_ext4()) {
        test_reserve("ext4");
        CHECK_INT(umount(directory), 0);
    } else {
        printf("grants on ext4: skipped, it could not be made or mounted\n");
    }
    (void)snprintf(image, sizeof(image), "%s.img", directory);
    (void)unlink(image);
}

int main(void)
{
    if (!mkdtemp(directory)) {
        perror("a directory in the working directory");
        return TEST_SKIPPED;
    }
    (void)snprintf(path, sizeof(path), "%s/f.xentrace", directory);
    test_adopt();
    test_adopt_pipe();
    test_create();
    test_reserves();
    (void)rmdir(directory);
    return test_end();
}
