// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * What is accepted from a client as an output or a sidecar: every kind of descriptor, every way to
 * open it. What this machine may not have (a block device, FUSE) is shown by wrapped system calls.
 */

#include "daemon/output/passed-file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pty.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "common/protocol.h"
#include "tests/unit/test.h"

#define FUSE_MAGIC 0x65735546

static char path[] = "test-passed-file-XXXXXX"; /* in the working directory */
static int peer_fd = -1;                        /* the other end */

static struct {
    bool is_block_device;
    bool is_fuse; /* and its mount is not in our namespace */
    bool has_no_blocks;
    bool is_hidden;     /* FUSE shows nothing to root */
    unsigned int magic; /* of the file system; 0: its own */
} fake;

int __real_statx(int fd, const char *name, int flags, unsigned int mask, struct statx *st);
int __wrap_statx(int fd, const char *name, int flags, unsigned int mask, struct statx *st);
int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);

int __wrap_statx(int fd, const char *name, int flags, unsigned int mask, struct statx *st)
{
    int r = __real_statx(fd, name, flags, mask, st);

    CHECK(flags & AT_STATX_DONT_SYNC); /* else a server in user space is waited for */
    if (fake.is_hidden) {
        errno = EACCES;
        return -1;
    }
    if (fake.is_fuse) /* a device that no mount has */
        st->stx_dev_minor = 0xffffff;
    if (fake.is_block_device)
        st->stx_mode = (uint16_t)((st->stx_mode & ~S_IFMT) | S_IFBLK);
    return r;
}

int __wrap_fstatfs(int fd, struct statfs *fs)
{
    int r = __real_fstatfs(fd, fs);

    if (fake.is_fuse)
        fs->f_type = FUSE_MAGIC;
    if (fake.magic)
        fs->f_type = fake.magic;
    if (fake.has_no_blocks) {
        fs->f_type = PROC_SUPER_MAGIC;
        fs->f_blocks = 0;
    }
    return r;
}

/* --- Descriptors. --- */

static int open_file(int flags)
{
    return open(path, flags | O_CLOEXEC);
}

static int make_file(const char *content, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, content, strlen(content)) < 0 || close(fd) < 0)
        exit(EXIT_FAILURE);
    return open_file(flags);
}

static int make_pipe(bool writes)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        exit(EXIT_FAILURE);
    peer_fd = fds[!writes];
    return fds[writes];
}

static int make_fifo(int flags)
{
    (void)unlink(path);
    return mkfifo(path, 0600) < 0 ? -1 : open_file(flags);
}

static int make_socket(int type)
{
    int fds[2];

    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) < 0)
        exit(EXIT_FAILURE);
    peer_fd = fds[1];
    return fds[0];
}

static int make_terminal(void)
{
    int fd;

    return openpty(&peer_fd, &fd, NULL, NULL, NULL) < 0 ? -1 : fd;
}

static int make_memfd(void)
{
    return memfd_create("test", MFD_CLOEXEC);
}

static int make_descriptor(const char *what)
{
    if (strcmp(what, "rw") == 0)
        return make_file("", O_RDWR);
    if (strcmp(what, "w") == 0)
        return make_file("", O_WRONLY);
    if (strcmp(what, "append") == 0)
        return make_file("", O_WRONLY | O_APPEND);
    if (strcmp(what, "r") == 0)
        return make_file("", O_RDONLY);
    if (strcmp(what, "mode 3") == 0)
        return make_file("", O_ACCMODE);
    if (strcmp(what, "O_PATH") == 0)
        return make_file("", O_PATH);
    if (strcmp(what, "full") == 0)
        return make_file("x", O_RDWR);
    if (strcmp(what, "full append") == 0)
        return make_file("x", O_WRONLY | O_APPEND);
    if (strcmp(what, "pipe") == 0)
        return make_pipe(true);
    if (strcmp(what, "reading end") == 0)
        return make_pipe(false);
    if (strcmp(what, "fifo") == 0)
        return make_fifo(O_RDWR);
    if (strcmp(what, "fifo O_PATH") == 0)
        return make_fifo(O_PATH);
    if (strcmp(what, "stream socket") == 0)
        return make_socket(SOCK_STREAM);
    if (strcmp(what, "packet socket") == 0)
        return make_socket(SOCK_SEQPACKET);
    if (strcmp(what, "directory") == 0)
        return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (strcmp(what, "terminal") == 0)
        return make_terminal();
    if (strcmp(what, "eventfd") == 0)
        return eventfd(0, EFD_CLOEXEC);
    if (strcmp(what, "epoll") == 0)
        return epoll_create1(EPOLL_CLOEXEC);
    if (strcmp(what, "memfd") == 0)
        return make_memfd();
    if (strcmp(what, "tmpfs") == 0)
        return open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return open(what, O_WRONLY | O_CLOEXEC); /* a path */
}

/* --- Outputs. --- */

struct passed_case {
    const char *what; /* see make_descriptor() */
    const char *path; /* as the client calls it */
    int error;
    const char *words; /* in the sentence */
    bool is_stream;
};

static const struct passed_case output_cases[] = {
    {"rw", "f", 0, NULL, false},
    {"w", "f", 0, NULL, false},
    {"append", "f", 0, NULL, false},
    {"memfd", "f", -EINVAL, "f is in memory (such as tmpfs), which would be charged", false},
    {"tmpfs", "f", -EINVAL, "f is in memory", false},
    {"pipe", "f", 0, NULL, true},
    {"fifo", "f", 0, NULL, true},
    {"/dev/null", "f", 0, NULL, true},
    {"r", "f", -EBADF, "f is not open for writing. The output must be", false},
    {"mode 3", "f", -EBADF, "not open for writing", false},
    {"O_PATH", "f", -EBADF, "not open for writing", false},
    {"fifo O_PATH", "f", -EBADF, "not open for writing", false},
    {"reading end", "f", -EBADF, "not open for writing", false},
    {"directory", "f", -EBADF, "not open for writing", false},
    {"full", "f", -EEXIST, "f is not empty, and captures are never overwritten", false},
    {"stream socket", "f", -EINVAL,
     "f is a socket. The output must be a regular file or a pipe (for root, also a block "
     "device).",
     false},
    {"packet socket", "f", -EINVAL, "f is a socket", false},
    {"terminal", "f", -EINVAL, "f is a terminal", false},
    {"/dev/zero", "f", -EINVAL, "f is a character device", false},
    {"/dev/full", "f", -EINVAL, "f is a character device", false},
    {"eventfd", "f", -EINVAL, "f is not a file", false},
    {"epoll", "f", -EINVAL, "f is not a file", false},
    {"/proc/self/oom_score_adj", "f", -EINVAL, "f is a file of the kernel", false},

    {"append", "-", 0, NULL, true},
    {"memfd", "-", -EINVAL, "Standard output is in memory", false},
    {"full append", "-", 0, NULL, true},
    {"pipe", "-", 0, NULL, true},
    {"r", "-", -EBADF, "Standard output is not open for writing", false},
    {"stream socket", "-", -EINVAL, "Standard output is a socket", false},
    {"terminal", "-", -EINVAL, "Standard output is a terminal", false},
    {"/proc/self/oom_score_adj", "-", -EINVAL, "Standard output is a file of the kernel", false},
};

static void check_sentence(const struct passed_case *c, const struct failure *failure)
{
    if (!c->error) {
        CHECK_STR(failure->name, NULL);
        return;
    }
    CHECK_STR(failure->name, ERROR_OUTPUT);
    if (!CHECK(strstr(failure->text, c->words)))
        fprintf(stderr, "# %s\n", failure->text);
}

static void check_output(const struct passed_case *c, bool by_root)
{
    struct failure failure = {0};
    bool is_stream = false;
    _cleanup_fd_ int fd = make_descriptor(c->what);

    if (!CHECK(fd >= 0))
        return;
    CHECK_INT(passed_file_check_output(fd, c->path, by_root, &is_stream, &failure), c->error);
    CHECK(is_stream == c->is_stream);
    check_sentence(c, &failure);
    /* Writes go to offsets: appending would put them at the end. */
    CHECK(c->error || is_stream || !(fcntl(fd, F_GETFL) & O_APPEND));
    fd_close(&peer_fd);
    (void)unlink(path);
}

static void test_outputs(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(output_cases); i++) {
        char name[128];

        (void)snprintf(name, sizeof(name), "output: %s, called %s", output_cases[i].what,
                       output_cases[i].path);
        test_case(name);
        check_output(&output_cases[i], false);
    }
}

static void test_for_root(void)
{
    static const struct passed_case device = {"rw", "f", 0, NULL, true},
                                    no_device = {"rw", "f", -EINVAL, "f is a block device", false},
                                    file = {"rw", "f", 0, NULL, false},
                                    no_file = {"rw", "f", -EPERM,
                                               "f is on a FUSE file system, which may never",
                                               false},
                                    no_pipe = {"pipe", "f", 0, NULL, true},
                                    kernels = {"rw", "f", -EINVAL, "a file of the kernel", false},
                                    memory = {"memfd", "f", -EINVAL, "f is in memory", false},
                                    hidden = {"rw", "f", -EACCES, "cannot be examined", false},
                                    socket = {"stream socket", "f", -EINVAL,
                                              "a regular file, a pipe or a block device.", false};

    test_case("root: a block device");
    fake.is_block_device = true;
    check_output(&device, true);
    test_case("others: a block device");
    check_output(&no_device, false);
    fake.is_block_device = false;
    fake.is_fuse = true;
    test_case("root: a file of a FUSE file system");
    check_output(&file, true);
    test_case("others: a file of a FUSE file system");
    check_output(&no_file, false);
    test_case("others: a pipe, whatever its file system");
    check_output(&no_pipe, false);
    fake.is_fuse = false;
    fake.has_no_blocks = true;
    test_case("root: a file of the kernel");
    check_output(&kernels, true);
    fake.has_no_blocks = false;
    test_case("root: a file in memory");
    check_output(&memory, true);
    fake.is_hidden = true;
    test_case("root: a file that it may not see");
    check_output(&hidden, true);
    test_case("others: a file that root may not see");
    check_output(&no_file, false);
    fake.is_hidden = false;
    test_case("root: a socket");
    check_output(&socket, true);
    /* The directory of the test is on a disk, and has extents. */
    fake.magic = OVERLAYFS_SUPER_MAGIC;
    test_case("an overlay over a disk");
    check_output(&file, false);
    test_case("an overlay over memory");
    check_output(&memory, false);
    fake.magic = HUGETLBFS_MAGIC;
    test_case("huge pages");
    check_output(&(struct passed_case){"rw", "f", -EINVAL, "f is in memory", false}, true);
    fake.magic = RAMFS_MAGIC;
    test_case("ramfs");
    check_output(&(struct passed_case){"rw", "f", -EINVAL, "f is in memory", false}, true);
    fake.magic = 0;
}

/* --- Sidecars. --- */

static const struct passed_case sidecar_cases[] = {
    {"rw", "f.json", 0, NULL, false},
    {"w", "f.json", 0, NULL, false},
    {"append", "f.json", 0, NULL, false},
    {"memfd", "f.json", -EINVAL, "The sidecar f.json is in memory (such as tmpfs)", false},
    {"tmpfs", "f.json", -EINVAL, "The sidecar f.json is in memory", false},
    {"r", "f.json", -EBADF, "The sidecar f.json is not open for writing. A sidecar must", false},
    {"full", "f.json", -EEXIST, "f.json is not empty, and sidecars are never", false},
    {"pipe", "f.json", -EINVAL, "The sidecar f.json is a pipe. A sidecar must be a regular", false},
    {"fifo", "-.json", -EINVAL, "is a pipe", false},
    {"stream socket", "f.json", -EINVAL, "is a socket", false},
    {"/dev/null", "f.json", -EINVAL, "is a character device", false},
    {"terminal", "f.json", -EINVAL, "is a terminal", false},
    {"eventfd", "f.json", -EINVAL, "is not a file", false},
    {"/proc/self/oom_score_adj", "f.json", -EINVAL, "a file of the kernel", false},
};

static void check_sidecar(const struct passed_case *c, bool by_root)
{
    struct failure failure = {0};
    _cleanup_fd_ int fd = make_descriptor(c->what);

    if (!CHECK(fd >= 0))
        return;
    CHECK_INT(passed_file_check_sidecar(fd, c->path, by_root, &failure), c->error);
    check_sentence(c, &failure);
    CHECK(c->error || !(fcntl(fd, F_GETFL) & O_APPEND));
    fd_close(&peer_fd);
    (void)unlink(path);
}

static void test_sidecars(void)
{
    static const struct passed_case fuse = {"rw", "f.json", -EPERM,
                                            "The sidecar f.json is on a FUSE file system", false},
                                    roots = {"rw", "f.json", 0, NULL, false},
                                    device = {"rw", "f.json", -EINVAL, "is a block device", false};

    for (size_t i = 0; i < ARRAY_SIZE(sidecar_cases); i++) {
        char name[128];

        (void)snprintf(name, sizeof(name), "sidecar: %s", sidecar_cases[i].what);
        test_case(name);
        check_sidecar(&sidecar_cases[i], false);
    }
    fake.is_fuse = true;
    test_case("sidecar: others, on a FUSE file system");
    check_sidecar(&fuse, false);
    test_case("sidecar: root, on a FUSE file system");
    check_sidecar(&roots, true);
    fake.is_fuse = false;
    fake.is_block_device = true;
    test_case("sidecar: root, a block device");
    check_sidecar(&device, true);
    fake.is_block_device = false;
}

int main(void)
{
    int fd = mkstemp(path);

    if (fd < 0) {
        perror("a file in the working directory");
        return TEST_SKIPPED;
    }
    (void)close(fd);
    (void)unlink(path);
    test_outputs();
    test_for_root();
    test_sidecars();
    return test_end();
}
