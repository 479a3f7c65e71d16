// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * What -o opens, follows and replaces, above all where others may make files, too. Root only: the
 * others are made with chown(2).
 */

#include "ctl/output.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>

#include <json-c/json.h>

#include "ctl/ctl.h"
#include "tests/unit/test.h"

#define OTHER 12345u /* a user */

/* Of main.c, which is not linked. */
void ctl_error(const char *format, ...)
{
    (void)format;
}

void ctl_error_sentence(const char *sentence)
{
    (void)sentence;
}

static char root[] = "/tmp/test-output-XXXXXX";

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(EXIT_FAILURE);
}

static void give(const char *path, uid_t uid)
{
    must(lchown(path, uid, uid) == 0, path);
}

static void make_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    must(file && fputs(text, file) >= 0 && fclose(file) == 0, path);
}

static const char *read_file(const char *path)
{
    static char text[64];
    FILE *file = fopen(path, "re");
    size_t n;

    if (!file)
        return NULL;
    n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = '\0';
    (void)fclose(file);
    return text;
}

static void make_fifo(const char *path, uid_t uid)
{
    must(mkfifo(path, 0666) == 0, path);
    give(path, uid);
}

static void make_link(const char *target, const char *path, uid_t uid)
{
    must(symlink(target, path) == 0, path);
    give(path, uid);
}

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    must(bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0, path);
    (void)close(fd);
}

/* The same things in "sticky", "plain" and "own": a directory of OTHER's without the bit. */
static void make_things(const char *directory)
{
    must(chdir(directory) == 0, directory);
    make_file("victim", "precious");
    make_fifo("fifo", OTHER);
    make_fifo("my-fifo", 0);
    make_link("victim", "link", OTHER);
    make_link("victim", "my-link", 0);
    make_link("nowhere", "dangling", OTHER);
    make_link("nowhere", "my-dangling", 0);
    make_link("my-fifo", "my-link-to-fifo", 0);
    make_link("link", "my-link-to-link", 0);
    make_link("../elsewhere", "directory", OTHER);
    make_link("../elsewhere", "my-directory", 0);
    make_link("my-loop", "my-loop", 0);
    make_link("victim", "planted.json", OTHER);
    make_socket("socket");
    must(mkdir("folder", 0755) == 0, "folder");
    must(chdir(root) == 0, root);
}

static void make_tree(void)
{
    must(mkdtemp(root) && chdir(root) == 0, root);
    (void)umask(0);
    must(mkdir("sticky", 01777) == 0 && mkdir("plain", 0777) == 0 && mkdir("elsewhere", 0777) == 0,
         "directories");
    make_things("sticky");
    make_things("plain");
}

static void remove_tree(void)
{
    char command[PATH_MAX];

    (void)snprintf(command, sizeof(command), "rm -rf %s", root);
    must(chdir("/") == 0 && system(command) == 0, command);
}

struct open_case {
    const char *typed;
    bool force;
    int result;
    const char *error; /* part of the sentence */
    const char *path;  /* of the output, below the tree */
    bool is_stream;
};

static const struct open_case cases[] = {
    /* Somebody else's, where everybody may make files. */
    {"sticky/fifo", false, -EPERM, "sticky/fifo was created by another user (UID 12345", NULL,
     false},
    {"sticky/fifo", true, -EPERM, "was created by another user", NULL, false},
    {"sticky/link", false, -EPERM, "sticky/link is a link created by another user (UID 12345)",
     NULL, false},
    {"sticky/dangling", false, -EPERM, "is a link created by another", NULL, false},
    {"sticky/my-link-to-link", false, -EPERM, "sticky/link is a link created by another", NULL,
     false},
    {"sticky/directory/f", false, -EPERM, "sticky/directory is a link created by another", NULL,
     false},
    {"sticky/directory/f", true, -EPERM, "is a link created by another", NULL, false},
    {"plain/../sticky/./directory/f", false, -EPERM, "is a link created by another", NULL, false},
    {"sticky/link", true, 0, NULL, "sticky/link", false},
    {"sticky/dangling", true, 0, NULL, "sticky/dangling", false},

    /* One's own. */
    {"sticky/f", false, 0, NULL, "sticky/f", false},
    {"sticky/my-fifo", false, 0, NULL, "sticky/my-fifo", true},
    {"sticky/my-fifo", true, 0, NULL, "sticky/my-fifo", true},
    {"sticky/my-link-to-fifo", false, 0, NULL, "sticky/my-fifo", true},
    {"sticky/my-link-to-fifo", true, 0, NULL, "sticky/my-link-to-fifo", false},
    {"sticky/my-directory/f", false, 0, NULL, "elsewhere/f", false},
    {"sticky/my-link", false, -EEXIST, "sticky/victim exists and was not changed", NULL, false},
    {"sticky/my-link", true, 0, NULL, "sticky/my-link", false},
    {"sticky/my-dangling", false, -EEXIST, "is a link to a file that does not exist", NULL, false},
    {"sticky/my-dangling", true, 0, NULL, "sticky/my-dangling", false},

    /* Where only those with the right may make files, links are followed as usual. */
    {"plain/fifo", false, 0, NULL, "plain/fifo", true},
    {"plain/link", false, -EEXIST, "plain/victim exists", NULL, false},
    {"plain/link", true, 0, NULL, "plain/link", false},
    {"plain/directory/f", false, 0, NULL, "elsewhere/f", false},
    {"plain/directory/f", true, 0, NULL, "elsewhere/f", false},
    {"plain/dangling", false, -EEXIST, "does not exist", NULL, false},
    {"plain/my-loop", false, -ELOOP, "Too many levels", NULL, false},
    {"plain/my-loop", true, 0, NULL, "plain/my-loop", false},

    {"plain/victim", false, -EEXIST, "or replace it with --force", NULL, false},
    {"plain/victim", true, 0, NULL, "plain/victim", false},
    {"plain/planted", false, -EEXIST, "planted.json exists", NULL, false},
    {"plain/planted.xentrace", true, 0, NULL, "plain/planted.xentrace", false},
    {"sticky/planted", true, 0, NULL, "sticky/planted", false},
    {"plain/socket", false, -EINVAL, "is not a regular file", NULL, false},
    {"plain/socket", true, -EINVAL, "is not a regular file", NULL, false},
    {"plain/folder", false, -EINVAL, "is a directory", NULL, false},
    {"plain/folder/", false, -EISDIR, "is a directory", NULL, false},
    {"plain/folder/..", false, -EISDIR, "is a directory", NULL, false},
    {".", false, -EISDIR, "is a directory", NULL, false},
    {"/", false, -EISDIR, "is a directory", NULL, false},
    {"plain/folder/../f", false, 0, NULL, "plain/f", false},
    {"plain//f", false, 0, NULL, "plain/f", false},
    {"none/f", false, -ENOENT, "Cannot write to none/f: No such file", NULL, false},
    {"plain/victim/f", false, -ENOTDIR, "Not a directory", NULL, false},
    {"/dev/zero", false, -EINVAL, "character device", NULL, false},
};

/* What nobody may have touched. */
static void check_victims(void)
{
    CHECK_STR(read_file("sticky/victim"), "precious");
    CHECK(access("sticky/nowhere", F_OK) < 0 && access("plain/nowhere", F_OK) < 0);
    CHECK(access("sticky/f", F_OK) < 0 && access("elsewhere/f", F_OK) < 0);
}

static void check_open(const struct open_case *c)
{
    const struct output_options options = {
        .typed = c->typed,
        .nothing = "Nothing was started",
        .force = c->force,
    };
    _cleanup_free_ char *error = NULL;
    _cleanup_output_ struct output *output = NULL;
    char wanted[PATH_MAX];

    CHECK_INT(output_open(&options, &output, &error), c->result);
    if (c->error && !CHECK(error && strstr(error, c->error)))
        fprintf(stderr, "# %s\n", error ? error : "(none)");
    if (!CHECK(c->error || output))
        return;
    if (!output)
        return;
    (void)snprintf(wanted, sizeof(wanted), "%s/%s", root, c->path);
    CHECK_STR(output->trace.path, wanted);
    CHECK(output->is_stream == c->is_stream);
    CHECK(c->is_stream == (output->sidecar.fd < 0));
}

static void test_open(void)
{
    int readers[] = {
        open("sticky/my-fifo", O_RDWR | O_CLOEXEC),
        open("plain/fifo", O_RDWR | O_CLOEXEC),
        open("sticky/fifo", O_RDWR | O_CLOEXEC),
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char name[128];

        (void)snprintf(name, sizeof(name), "%s%s", cases[i].typed, cases[i].force ? ", force" : "");
        test_case(name);
        check_open(&cases[i]);
        check_victims();
        CHECK_STR(read_file("plain/victim"), "precious");
    }
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
        fd_close(&readers[i]);
}

/* --force replaces the link, and the sidecar's. */
static void test_replace(void)
{
    static const char *const names[] = {"sticky/link", "plain/my-link", "sticky/dangling",
                                        "plain/planted.xentrace"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct output_options options = {.typed = names[i], .nothing = "", .force = true};
        _cleanup_free_ char *error = NULL;
        _cleanup_output_ struct output *output = NULL;
        struct stat st;

        test_case("replaces a link");
        if (!CHECK_INT(output_open(&options, &output, &error), 0))
            continue;
        CHECK_INT(write(output->trace.fd, "new", 3), 3);
        CHECK_INT(write(output->sidecar.fd, "{}", 2), 2);
        CHECK_INT(output_keep(output, &error), 0);
        CHECK(lstat(names[i], &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == 0);
        CHECK(lstat(output->sidecar.path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 2);
        CHECK_STR(read_file(names[i]), "new");
        check_victims();
        CHECK_STR(read_file("plain/victim"), "precious");
    }
}

/* What a shell makes of >(command), and the null device. */
static void test_descriptors(void)
{
    struct output_options options = {.nothing = "Nothing was started"};
    struct output *output = NULL;
    char path[64], byte = 0, *error = NULL;
    int fds[2];

    test_case("a pipe by its descriptor");
    must(pipe2(fds, O_CLOEXEC) == 0, "pipe");
    (void)snprintf(path, sizeof(path), "/dev/fd/%d", fds[1]);
    options.typed = path;
    if (CHECK_INT(output_open(&options, &output, &error), 0)) {
        CHECK(output->is_stream);
        CHECK_INT(write(output->trace.fd, "x", 1), 1);
        CHECK(read(fds[0], &byte, 1) == 1 && byte == 'x');
    }
    output = output_free(output);
    (void)close(fds[0]);
    (void)close(fds[1]);

    test_case("the null device");
    options.typed = "/dev/null";
    CHECK_INT(output_open(&options, &output, &error), 0);
    CHECK(output && output->is_stream);
    output = output_free(output);
    free(error);
}

/* Standard output is a socket, as under some shells and services: the daemon is passed a pipe. */
static void test_copy(void)
{
    struct output_options options = {.typed = "-", .nothing = "Nothing was started"};
    int fds[2], before = dup(STDOUT_FILENO);
    struct output *output = NULL;
    char text[16] = "", *error = NULL;

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "socketpair");
    (void)fflush(stdout);
    must(dup2(fds[1], STDOUT_FILENO) >= 0, "dup2");
    (void)close(fds[1]);
    CHECK_INT(output_open(&options, &output, &error), -EINVAL);
    CHECK(error && strstr(error, "Standard output is a socket"));
    free(error);
    error = NULL;
    options.may_copy = true;
    if (CHECK_INT(output_open(&options, &output, &error), 0)) {
        struct stat st;

        CHECK(output->is_stream && fstat(output->trace.fd, &st) == 0 && S_ISFIFO(st.st_mode));
        CHECK_INT(write(output->trace.fd, "records", 7), 7);
        CHECK_INT(output_keep(output, &error), 0);
        CHECK_INT(output_finish(output, &error), 0);
        CHECK_INT(read(fds[0], text, sizeof(text)), 7);
        CHECK_STR(text, "records");
    }
    output = output_free(output);

    (void)close(fds[0]); /* the reader goes */
    if (CHECK_INT(output_open(&options, &output, &error), 0)) {
        CHECK_INT(write(output->trace.fd, "records", 7), 7);
        CHECK_INT(output_keep(output, &error), 0);
        CHECK_INT(output_finish(output, &error), -EPIPE);
        CHECK(error && strstr(error, "Standard output could not be written: Broken pipe"));
    }
    output = output_free(output);
    free(error);
    must(dup2(before, STDOUT_FILENO) >= 0, "dup2");
    (void)close(before);
}

/* A daemon that can be passed nothing: what comes by another way is copied. */
static void test_copy_from(void)
{
    const struct output_options options = {.typed = "plain/copied",
                                           .nothing = "Nothing was started"};
    struct output *output = NULL;
    char *error = NULL;
    int fds[2];

    test_case("copied from elsewhere");
    must(pipe2(fds, O_CLOEXEC) == 0, "pipe");
    if (CHECK_INT(output_open(&options, &output, &error), 0)) {
        CHECK_INT(output_copy_from(output, fds[0], &error), 0);
        CHECK_INT(write(fds[1], "remote", 6), 6);
        (void)close(fds[1]);
        CHECK_INT(output_keep(output, &error), 0);
        CHECK_INT(output_finish(output, &error), 0);
        CHECK_STR(read_file("plain/copied"), "remote");
    }
    output = output_free(output);
    free(error);
}

/* The daemon is passed no file in memory: a pipe, and this process writes the file and its sidecar.
 */
static void test_memory(void)
{
    struct output_options options = {
        .nothing = "Nothing was started", .for_daemon = true, .may_copy = true};
    char directory[] = "/dev/shm/test-output-XXXXXX", path[64], sidecar[80];
    struct json_object *doc = json_tokener_parse("{\"output\":{\"kind\":\"stream\"}}");
    struct output *output = NULL;
    struct statvfs fs;
    struct stat st;
    char *error = NULL;
    int before;

    if (!mkdtemp(directory) || statvfs(directory, &fs) < 0) {
        printf("# /dev/shm is not writable\n");
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/f", directory);
    (void)snprintf(sidecar, sizeof(sidecar), "%s/f.json", directory);
    options.typed = path;

    test_case("a file in memory: copied");
    if (CHECK_INT(output_open(&options, &output, &error), 0)) {
        CHECK(fstat(output->trace.fd, &st) == 0 && S_ISFIFO(st.st_mode));
        CHECK_INT(output->sidecar.fd, -1);
        CHECK_INT(write(output->trace.fd, "records", 7), 7);
        CHECK_INT(output_keep(output, &error), 0);
        CHECK_INT(output_describe(output, doc, &error), 0);
        CHECK_INT(output_finish(output, &error), 0);
        CHECK_STR(read_file(path), "records");
        CHECK_STR(json_object_get_string(
                      json_object_object_get(json_object_object_get(doc, "output"), "sidecar")),
                  sidecar);
        CHECK(strstr(read_file(sidecar), "\"kind\":\"file\"") ||
              strstr(read_file(sidecar), "\"kind\": \"file\""));
        CHECK_INT(output_describe(output, doc, &error), 0); /* a shorter one replaces it */
    }
    output = output_free(output);
    CHECK(access(path, F_OK) == 0 && access(sidecar, F_OK) == 0);

    test_case("a file in memory: replaced");
    options.force = true;
    if (CHECK_INT(output_open(&options, &output, &error), 0)) {
        CHECK_INT(write(output->trace.fd, "new", 3), 3);
        CHECK_INT(output_keep(output, &error), 0);
        CHECK_INT(output_finish(output, &error), 0);
        CHECK_STR(read_file(path), "new");
    }
    output = output_free(output);
    (void)unlink(path);
    (void)unlink(sidecar);

    test_case("a file in memory: the reserve");
    options.reserve_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
    if (CHECK_INT(output_open(&options, &output, &error), 0)) {
        (void)!write(output->trace.fd, "records", 7);
        CHECK_INT(output_keep(output, &error), 0);
        CHECK_INT(output_finish(output, &error), -ENOSPC);
        CHECK(error && strstr(error, "has reached its reserve: "));
        free_charp(&error);
    }
    output = output_free(output);
    (void)unlink(path);
    (void)unlink(sidecar);
    options.reserve_bytes = 0;
    options.force = false;

    test_case("a file in memory, and nobody who copies");
    options.may_copy = false;
    CHECK_INT(output_open(&options, &output, &error), -EINVAL);
    CHECK(error && strstr(error, "f is in memory (such as tmpfs)") &&
          strstr(error, "xentracectl record. Nothing was started."));
    free_charp(&error);
    CHECK(access(path, F_OK) < 0 && access(sidecar, F_OK) < 0);

    test_case("a file in memory that this process writes");
    options.for_daemon = false;
    if (CHECK_INT(output_open(&options, &output, &error), 0))
        CHECK(fstat(output->trace.fd, &st) == 0 && S_ISREG(st.st_mode) && output->sidecar.fd >= 0);
    output = output_free(output);

    test_case("standard output is a file in memory");
    options = (struct output_options){
        .typed = "-", .nothing = "Nothing was started", .for_daemon = true, .may_copy = true};
    before = dup(STDOUT_FILENO);
    (void)fflush(stdout);
    must(dup2(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), STDOUT_FILENO) >= 0, "dup2");
    if (CHECK_INT(output_open(&options, &output, &error), 0)) {
        CHECK(fstat(output->trace.fd, &st) == 0 && S_ISFIFO(st.st_mode));
        CHECK_INT(write(output->trace.fd, "records", 7), 7);
        CHECK_INT(output_keep(output, &error), 0);
        CHECK_INT(output_finish(output, &error), 0);
        CHECK_STR(read_file(path), "records");
    }
    output = output_free(output);
    options.may_copy = false;
    CHECK_INT(output_open(&options, &output, &error), -EINVAL);
    CHECK(error && strstr(error, "Standard output is in memory"));
    free_charp(&error);
    must(dup2(before, STDOUT_FILENO) >= 0, "dup2");
    (void)close(before);
    (void)unlink(path);
    (void)rmdir(directory);
    json_object_put(doc);
}

int main(void)
{
    if (geteuid() != 0) {
        printf("# only root can make files of others\n");
        return TEST_SKIPPED;
    }
    make_tree();
    test_open();
    test_replace();
    test_descriptors();
    test_case("standard output is a socket");
    test_copy();
    test_copy_from();
    test_memory();
    remove_tree();
    return test_end();
}
